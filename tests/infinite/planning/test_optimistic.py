"""Optimistic stationary plans: certified for every model of the set, and reached by one of them where it can be."""

import numpy as np
import pytest
from scipy.stats import chi2

import livarot
from livarot.infinite import InfiniteMDP, solve_average, solve_discounted, solve_optimistic
from tests.support.stationary import random_table, to_model, with_features

RULES = [None, livarot.VarianceBonus()]


def drawn(mdp, covariance, radius, rng):
    """The model at a random point of the ellipsoid, mostly near its surface."""
    move = rng.normal(size=len(covariance))
    move *= radius * rng.random() ** 0.2 / np.linalg.norm(move)
    theta = mdp.theta + np.linalg.cholesky(covariance) @ move
    return InfiniteMDP(livarot.MNLMDP(mdp.stage.problem, theta[None]), mdp.terms)


@pytest.mark.parametrize("rule", RULES, ids=["joint", "variance"])
@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.999, 1.0])
def test_no_model_of_the_set_is_better(rule, gamma):
    rng = np.random.default_rng(0)
    mdp = with_features(rng)
    root = 0.15 * rng.normal(size=(3, 3))
    covariance = root @ root.T + 0.01 * np.eye(3)
    found = solve_optimistic(mdp, covariance, gamma, rule=rule)
    assert found.radius == pytest.approx(np.sqrt(chi2.ppf(0.95, 3)))
    for _ in range(25):
        other = drawn(mdp, covariance, found.radius, rng)
        own = solve_average(other).gain if gamma == 1.0 else solve_discounted(other, gamma).value
        assert np.all(own <= found.upper + 1e-9)
    assert np.all(np.asarray(found.lower) <= found.upper)


@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_without_a_radius_it_is_the_model_itself(gamma):
    mdp = with_features(np.random.default_rng(1))
    found = solve_optimistic(mdp, np.eye(3), gamma, radius=0.0)
    if gamma == 1.0:
        assert found.gain == pytest.approx(solve_average(mdp).gain, abs=1e-7) and found.upper == pytest.approx(
            found.gain
        )
    else:
        np.testing.assert_allclose(found.value, solve_discounted(mdp, gamma).value, rtol=0, atol=1e-6)
        np.testing.assert_allclose(found.upper, found.value, rtol=0, atol=1e-5)


def test_two_outcomes_are_exact():
    """One parameter, the better state more likely for a larger one: the best model is the end of the interval."""
    phi = np.array([[0.0], [1.0]])
    mdp = InfiniteMDP.from_function(
        2, 1, features=lambda s, a: ([0, 1], phi), theta=[0.3], reward=[0.0, 5.0], param_bound=9.0
    )
    found = solve_optimistic(mdp, [[0.04]], 0.95, radius=2.0)
    best = InfiniteMDP(livarot.MNLMDP(mdp.stage.problem, np.array([[0.7]])), mdp.terms)
    expected = solve_discounted(best, 0.95).value
    np.testing.assert_allclose(found.value, expected, rtol=1e-8)
    np.testing.assert_allclose(found.upper, expected, rtol=1e-8)
    assert found.upper.min() >= expected.min() - 1e-12
    gain = solve_optimistic(mdp, [[0.04]], radius=2.0)
    assert gain.gain == pytest.approx(solve_average(best).gain, rel=1e-8)


def test_known_laws_missing_actions_and_ends():
    mdp = to_model(*random_table(np.random.default_rng(2)))
    found = solve_optimistic(mdp, [[1.0]], 0.9)
    np.testing.assert_allclose(found.value, solve_discounted(mdp, 0.9).value, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(found.policy, solve_discounted(mdp, 0.9).policy)


def test_refusals():
    mdp = with_features(np.random.default_rng(3))
    for call, argument in (
        (lambda: solve_optimistic(mdp, np.eye(2), 0.9), "covariance"),
        (lambda: solve_optimistic(mdp, -np.eye(3), 0.9), "covariance"),
        (lambda: solve_optimistic(mdp, np.triu(np.ones((3, 3))), 0.9), "covariance"),
        (lambda: solve_optimistic(mdp, np.eye(3), 0.9, radius=-1.0), "radius"),
        (lambda: solve_optimistic(mdp, np.eye(3), 0.9, level=1.0), "level"),
        (lambda: solve_optimistic(mdp, np.eye(3), 0.9, rule=livarot.SecondOrderBonus()), "rule"),
        (lambda: solve_optimistic(mdp, np.eye(3), 0.9, rule="joint"), "rule"),
    ):
        with pytest.raises(livarot.LivarotError) as error:
            call()
        assert error.value.argument == argument
