"""Pessimistic stationary plans: no model of the set is worse, no policy has a better worst case."""

from itertools import product

import numpy as np
import pytest

import livarot
from livarot.infinite import InfiniteMDP, policy_value, solve_discounted, solve_pessimistic
from tests.support.stationary import random_table, to_model, with_features


def moved(mdp, move):
    """The model at another parameter."""
    return InfiniteMDP(livarot.MNLMDP(mdp.stage.problem, (mdp.theta + move)[None]), mdp.terms)


@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.999])
@pytest.mark.parametrize("spread", [0.02, 0.3, 3.0])
def test_no_model_of_the_set_is_worse(gamma, spread):
    rng = np.random.default_rng(0)
    mdp = with_features(rng)
    root = spread * rng.normal(size=(3, 3))
    covariance = root @ root.T + 0.01 * np.eye(3)
    found = solve_pessimistic(mdp, covariance, gamma)
    for _ in range(40):
        step = rng.normal(size=3)
        step *= found.radius * rng.random() ** 0.2 / np.linalg.norm(step)
        own = policy_value(moved(mdp, np.linalg.cholesky(covariance) @ step), found.policy, gamma)
        assert (own >= found.lower).all()
    assert (found.lower <= found.upper).all() and (found.lower <= found.value + 1e-9).all()
    assert (found.upper <= solve_discounted(mdp, gamma).upper + 1e-6).all()


def test_without_a_radius_it_is_the_model_itself():
    mdp = with_features(np.random.default_rng(1))
    found, best = solve_pessimistic(mdp, np.eye(3), 0.9, radius=0.0), solve_discounted(mdp, 0.9)
    np.testing.assert_allclose(found.value, best.value, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.lower, best.value, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found.policy, best.policy)


def test_known_laws_missing_actions_and_ends():
    mdp = to_model(*random_table(np.random.default_rng(2)))
    found, best = solve_pessimistic(mdp, [[1.0]], 0.9), solve_discounted(mdp, 0.9)
    np.testing.assert_allclose(found.value, best.value, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(found.policy, best.policy)


def small(seed, n_out=3):
    """Four states, the last one an end; one coefficient, actions missing, costs of the next state."""
    rng = np.random.default_rng(seed)
    nexts = {(s, a): rng.permutation(4)[:n_out] for s in range(4) for a in range(3)}
    phi = {key: rng.uniform(-1.0, 1.0, (n_out, 1)) for key in nexts}
    cost = rng.uniform(-20.0, 50.0, (4, 3, 4))
    mask = rng.random((4, 3)) < 0.7
    mask[:, 1] = True
    mdp = InfiniteMDP.from_function(
        4, 3, features=lambda s, a: (nexts[s, a], phi[s, a]), theta=[0.4], param_bound=9.0, available=mask,
        terminal={3: 5.0}, cost=lambda s, a, to: cost[s, a, to], discount=0.8,
    )  # fmt: skip
    return mdp, nexts, phi, cost, mask


@pytest.mark.parametrize("n_out", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_all_policies_over_a_grid(seed, n_out):
    """Every stationary policy against the worst point of a grid, pair by pair; slow, and with nothing of ours."""
    mdp, nexts, phi, cost, mask = small(seed, n_out)
    found = solve_pessimistic(mdp, [[0.09]], radius=1.5)
    grid = 0.4 + np.linspace(-0.45, 0.45, 201)
    laws = {}
    for key, own in phi.items():
        weight = np.exp(own[:, 0] * grid[:, None])
        laws[key] = weight / weight.sum(axis=1, keepdims=True)  # (points, outcomes)
    best = np.full(4, -np.inf)
    for policy in product(*(np.flatnonzero(mask[s]) for s in range(3))):
        value = np.array([0.0, 0.0, 0.0, -5.0])
        for _ in range(200):
            for s, a in enumerate(policy):
                value[s] = (laws[s, a] @ (0.8 * value[nexts[s, a]] - cost[s, a, nexts[s, a]])).min()
        best = np.maximum(best, value)
        if policy == tuple(found.policy[:3]):
            chosen = value.copy()
    np.testing.assert_allclose(found.upper, best, rtol=0, atol=1e-3)  # of some 200: the grid is fine, not exact
    assert (found.lower <= best + 1e-9).all() and (found.lower <= chosen + 1e-9).all()
    assert found.lower[3] == pytest.approx(-5.0, abs=1e-6) and found.upper[3] == pytest.approx(-5.0, abs=1e-6)
    if n_out == 2:  # then minima are exact
        np.testing.assert_allclose(found.lower, best, rtol=0, atol=1e-3)


def test_units_and_names():
    mdp, *_ = small(1)
    named = mdp.with_terms(states=["a", "b", "c", "end"], actions=["x", "y", "z"])
    found = solve_pessimistic(named, [[0.09]])
    assert found["end"] is None and found["a"] in ("x", "y", "z")
    assert list(found.to_frame().columns) == ["state", "action", "value", "lower", "upper", "cost"]
    assert "worth at least `lower` in every model" in repr(found)


def test_refusals():
    mdp = with_features(np.random.default_rng(3))
    for call, said in (
        (lambda: solve_pessimistic(mdp, np.eye(3)), "discount: is not below 1: the worst case of an average reward"),
        (lambda: solve_pessimistic(mdp, np.eye(3), 1.0), "discount: is not below 1"),
        (lambda: solve_pessimistic(mdp, np.eye(2), 0.9), "covariance: has shape"),
        (lambda: solve_pessimistic(mdp, np.eye(3), 0.9, radius=-1.0), "radius"),
        (lambda: solve_pessimistic(mdp, np.eye(3), 0.9, solver=livarot.FrankWolfe()), "solver"),
        (lambda: livarot.pessimistic_plan(mdp.problem, None, 1.0), "use the function of livarot.infinite"),
        (lambda: livarot.solve(mdp), "use the function of livarot.infinite"),
        (lambda: livarot.solve_robust(mdp, radius=0.1), "use the function of livarot.infinite"),
    ):
        with pytest.raises(livarot.LivarotError, match=said):
            call()
