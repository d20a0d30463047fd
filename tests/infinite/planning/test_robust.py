"""Robust discounted plans: the loop twin, certificates, limits, and what an adversary can really do."""

import numpy as np
import pytest

import livarot
from livarot.infinite import (
    evaluate_robust,
    policy_value,
    robustness_curve,
    solve_discounted,
    solve_robust,
)
from livarot.infinite.planning.sparse import DIRECT
from tests.support.infinite import sparse_model
from tests.support.stationary import random_table, to_model
from tests.twins import infinite as twin

LEVELS = [{"radius": 0.02}, {"radius": 0.5}, {"radius": 50.0}, {"penalty": 0.3}, {"penalty": 20.0}]


@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_the_twin(seed, level):
    table, ends = random_table(np.random.default_rng(seed))
    mdp = to_model(table, ends)
    (name, number), gamma = next(iter(level.items())), 0.6
    worst = twin.ball_min if name == "radius" else twin.soft_min
    expected = twin.robust_values(table, ends, gamma, lambda x, p: worst(x, p, number), 50)
    found = solve_robust(mdp, gamma, **level)
    np.testing.assert_allclose(found.value, expected, rtol=0, atol=1e-7)
    assert (found.lower <= expected + 1e-7).all() and (expected <= found.upper + 1e-7).all()
    assert (found.upper - found.lower).max() < 1e-8
    again = evaluate_robust(mdp, found.policy, gamma, **level)
    np.testing.assert_allclose(again.value, found.value, rtol=0, atol=1e-8)
    live = ~mdp.problem.terms.terminal
    np.testing.assert_allclose(found.q.max(axis=1)[live], found.value[live], rtol=0, atol=1e-8)
    plain = solve_discounted(mdp, gamma)
    assert (found.value <= plain.value + 1e-9).all()
    worse = evaluate_robust(mdp, plain.policy, gamma, **level)
    assert (worse.lower <= found.upper).all()


def test_no_radius_is_the_nominal_model():
    mdp = to_model(*random_table(np.random.default_rng(9)))
    plain = solve_discounted(mdp, 0.9)
    for level in ({"radius": 0.0}, {"penalty": 0.0}):
        np.testing.assert_allclose(solve_robust(mdp, 0.9, **level).value, plain.value, rtol=0, atol=1e-12)


def test_units_and_arrays():
    """Rewards times c: the ball's values are multiplied by c, the penalty means the same at eta/c."""
    table, ends = random_table(np.random.default_rng(3))
    large = [[None if rows is None else [(t, p, 1e6 * r) for t, p, r in rows] for rows in own] for own in table]
    one, many = to_model(table, ends), to_model(large, {s: 1e6 * r for s, r in ends.items()})
    shape = one.problem.n_states, one.problem.n_actions
    levels = np.random.default_rng(4).random(shape)
    for name, factor in (("radius", 1.0), ("penalty", 1e-6)):
        small, big = solve_robust(one, 0.9, **{name: levels}), solve_robust(many, 0.9, **{name: factor * levels})
        np.testing.assert_allclose(big.value, 1e6 * small.value, rtol=1e-9)
        np.testing.assert_array_equal(big.policy, small.policy)
        np.testing.assert_allclose(big.dual, 1e-6 * small.dual, rtol=1e-4, atol=1e-14)


@pytest.mark.parametrize("near", [None, 3])
@pytest.mark.parametrize("level", [{"radius": 0.1}, {"penalty": 1.0}], ids=str)
def test_a_large_model_has_its_certificate(near, level):
    """No law within the ball does worse to the policy: one backup in the twin's arithmetic, at the returned values."""
    mdp = sparse_model(DIRECT + 30, np.random.default_rng(1), near=near)
    gamma = 0.99
    found = solve_robust(mdp, gamma, tol=1e-6, **level)
    assert (found.upper - found.lower).max() <= 1e-6
    worst = twin.ball_min if "radius" in level else twin.soft_min
    number = next(iter(level.values()))
    for s in range(0, DIRECT, 37):
        a = int(found.policy[s])
        x = gamma * found.value[mdp.problem.next_states(s, a)]
        q = mdp.problem.reward[s, a] + worst(x.tolist(), mdp.probabilities(s, a).tolist(), number)
        assert q == pytest.approx(found.value[s], abs=2e-6)
    assert (policy_value(mdp, found.policy, gamma) >= found.lower - 1e-9).all()


def test_the_curve_falls():
    mdp = to_model(*random_table(np.random.default_rng(5)), discount=0.9)
    curve = robustness_curve(mdp, [0.0, 0.01, 0.1, 1.0])
    assert (np.diff(curve.value) <= 1e-9).all() and curve.changed[0] == 0
    assert curve.to_frame()["radius"].tolist() == [0.0, 0.01, 0.1, 1.0]
    assert (curve.nominal_value <= curve.value + 1e-9).all() and len(curve.plot().axes) == 2


def test_refusals():
    mdp = to_model(*random_table(np.random.default_rng(5)), discount=0.9)
    for call, argument in (
        (lambda: solve_robust(mdp), "radius"),
        (lambda: solve_robust(mdp, radius=0.1, penalty=0.1), "radius"),
        (lambda: solve_robust(mdp, radius=-0.1), "radius"),
        (lambda: solve_robust(mdp, penalty=np.zeros(3)), "penalty"),
        (lambda: solve_robust(mdp, 1.0, radius=0.1), "discount"),
        (lambda: solve_robust(mdp, radius=0.1, tol=0.0), "tol"),
        (lambda: evaluate_robust(mdp, np.full((5, 3), 1 / 3), radius=0.1), "policy"),
        (lambda: robustness_curve(mdp, 0.1), "radii"),
    ):
        with pytest.raises(livarot.LivarotError) as error:
            call()
        assert error.value.argument == argument
