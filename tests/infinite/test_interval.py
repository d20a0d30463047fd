"""Intervals: the gradient by finite differences, delta method beside bootstrap, coverage of a statistic."""

import numpy as np
import pytest

import livarot
from livarot.infinite import InfiniteMDP, evaluate, solve, value_interval
from livarot.infinite.interval import value_gradient
from livarot.infinite.planning.sparse import DIRECT
from livarot.infinite.problem import check_stationary
from tests.support.stationary import with_features


def at(mdp, theta):
    return InfiniteMDP(livarot.MNLMDP(mdp.stage.problem, theta[None]), mdp.terms)


@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("mixed", [False, True])
def test_the_gradient(gamma, mixed):
    rng = np.random.default_rng(0)
    mdp = with_features(rng, start=2)
    policy = rng.dirichlet(np.ones(3), 6) if mixed else check_stationary(mdp.problem, solve(mdp, gamma).policy)
    value, slope, every = value_gradient(mdp, policy, gamma)

    def worth(theta):
        found = evaluate(at(mdp, theta), policy, gamma)
        return found.gain[2] if gamma == 1.0 else found[2]

    steps = 1e-5 * np.eye(3)
    stencil = [(worth(mdp.theta + step) - worth(mdp.theta - step)) / 2e-5 for step in steps]
    assert value == pytest.approx(worth(mdp.theta), rel=1e-12)
    np.testing.assert_allclose(slope, stencil, rtol=0, atol=1e-7 * (1.0 + np.abs(slope).max()))
    if gamma < 1.0:
        np.testing.assert_allclose(every[2], slope, rtol=0, atol=1e-10 * (1.0 + np.abs(slope).max()))


@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_both_methods_agree_where_the_covariance_is_small(gamma):
    mdp = with_features(np.random.default_rng(1), discount=gamma)
    covariance = 1e-4 * np.diag([1.0, 2.0, 3.0])
    delta = value_interval(mdp, covariance, level=0.9)
    draws = value_interval(mdp, covariance, level=0.9, method="bootstrap", n_draws=800, seed=3)
    assert draws.standard_error == pytest.approx(delta.standard_error, rel=0.1)
    assert draws.lower == pytest.approx(delta.lower, abs=0.25 * delta.standard_error)
    assert draws.upper == pytest.approx(delta.upper, abs=0.25 * delta.standard_error)
    if gamma < 1.0:
        width = delta.states["upper"] - delta.states["lower"]
        np.testing.assert_allclose(draws.states["upper"] - draws.states["lower"], width, rtol=0.15)
        assert delta.states["value"][0] == pytest.approx(delta.value)


def test_a_fixed_policy_and_a_statistic():
    mdp = with_features(np.random.default_rng(2), discount=0.9)
    policy = [0, 1, 2, 0, 1, 2]
    fixed = value_interval(mdp, 0.01 * np.eye(3), policy)
    assert fixed.value == pytest.approx(evaluate(mdp, policy)[0])
    told = value_interval(
        mdp, 0.01 * np.eye(3), method="bootstrap", n_draws=60, statistic=lambda found: found.value.max()
    )
    assert told.statistic["lower"] < told.statistic["estimate"] < told.statistic["upper"]
    assert "statistic" in repr(told) and value_interval(mdp, np.zeros((3, 3))).standard_error == 0.0


def test_large_models_have_an_interval_at_the_start_only():
    from tests.support.infinite import sparse_model

    mdp = sparse_model(DIRECT + 20, np.random.default_rng(0))
    assert value_interval(mdp, [[1.0]], discount=0.9).standard_error == 0.0  # nothing depends on theta


def test_refusals():
    mdp = with_features(np.random.default_rng(1), discount=0.9)
    for call, argument in (
        (lambda: value_interval(mdp, np.eye(2)), "covariance"),
        (lambda: value_interval(mdp, np.eye(3), [0, 0]), "policy"),
        (lambda: value_interval(mdp, np.eye(3), level=1.5), "level"),
        (lambda: value_interval(mdp, np.eye(3), statistic=len), "statistic"),
        (lambda: value_interval(mdp, np.diag([1.0, 1.0, -1.0]), method="bootstrap"), "covariance"),
        (lambda: value_interval(mdp, np.eye(3), method="jackknife"), "method"),
    ):
        with pytest.raises(livarot.LivarotError) as error:
            call()
        assert error.value.argument == argument
