"""Discounted planning on the sparse model: certificates, both ways of evaluation, large and slow chains."""

import numpy as np
import pytest

from livarot.infinite import policy_value, solve_average, solve_discounted
from livarot.infinite.planning import discounted as way
from livarot.infinite.planning.sparse import DIRECT
from tests.support.infinite import sparse_model


def dense_value(mdp, policy, gamma):
    n = mdp.problem.n_states
    move, pay = mdp.table[np.arange(n), policy], mdp.problem.reward[np.arange(n), policy]
    return np.linalg.solve(np.eye(n) - gamma * move, pay)


@pytest.mark.parametrize("near", [None, 3])
@pytest.mark.parametrize("gamma", [0.1, 0.9, 0.999])
def test_the_interval_holds_for_the_optimum_and_for_the_policy(near, gamma):
    mdp = sparse_model(DIRECT + 60, np.random.default_rng(5), near=near)
    found = solve_discounted(mdp, gamma, tol=1e-7)
    own = dense_value(mdp, found.policy, gamma)
    best = own
    for _ in range(50):  # policy iteration on the dense table
        q = mdp.problem.reward + gamma * np.einsum("sat,t->sa", mdp.table, best)
        better = dense_value(mdp, q.argmax(axis=1), gamma)
        if (better <= best + 1e-12).all():
            break
        best = better
    slack = 1e-11 / (1.0 - gamma)  # of the dense solves
    assert (found.upper - found.lower).max() <= 1e-7
    assert (found.lower <= own + slack).all() and (own <= best + slack).all() and (best <= found.upper + slack).all()
    assert (found.lower <= found.value).all() and (found.value <= found.upper).all()
    np.testing.assert_allclose(found.q.max(axis=1), best, rtol=0, atol=2e-7)


def test_a_slow_chain_is_solved_as_a_linear_system(monkeypatch):
    """Neighbours on a ring: sweeps would take thousands of rounds at gamma = .9999."""
    mdp = sparse_model(DIRECT + 100, np.random.default_rng(6), near=2, n_out=3)
    solved = []
    own = way.solve_system
    monkeypatch.setattr(way, "solve_system", lambda *args: solved.append(len(args[1])) or own(*args))
    found = solve_discounted(mdp, 0.9999, tol=1e-6)
    assert solved and (found.upper - found.lower).max() <= 1e-6
    np.testing.assert_allclose(found.value, dense_value(mdp, found.policy, 0.9999), rtol=0, atol=1e-6)


def test_a_quick_chain_takes_few_improvements_and_no_system(monkeypatch):
    mdp = sparse_model(DIRECT + 200, np.random.default_rng(7))
    monkeypatch.setattr(way, "solve_system", lambda *args: pytest.fail("a linear system"))
    for gamma in (0.95, 0.999):
        assert solve_discounted(mdp, gamma, tol=1e-6).n_iter <= 15


@pytest.mark.parametrize("n", [30, DIRECT + 50])
def test_the_value_of_a_policy(n):
    rng = np.random.default_rng(8)
    mdp = sparse_model(n, rng)
    actions = rng.integers(0, 3, n).astype(np.int32)
    np.testing.assert_allclose(policy_value(mdp, actions, 0.99), dense_value(mdp, actions, 0.99), rtol=1e-11)
    weights = rng.dirichlet(np.ones(3), n)
    move, pay = np.einsum("sa,sat->st", weights, mdp.table), (weights * mdp.problem.reward).sum(axis=1)
    expected = np.linalg.solve(np.eye(n) - 0.99 * move, pay)
    np.testing.assert_allclose(policy_value(mdp, weights, 0.99), expected, rtol=1e-11)


def test_the_gain_of_a_large_model():
    mdp = sparse_model(DIRECT + 40, np.random.default_rng(11))
    found = solve_average(mdp, tol=1e-8)
    n = mdp.problem.n_states
    move = mdp.table[np.arange(n), found.policy]
    system = np.eye(n) - move
    system[:, 0] = 1.0
    gain = np.linalg.solve(system, mdp.problem.reward[np.arange(n), found.policy])[0]
    assert found.lower <= gain + 1e-12 and gain <= found.upper + 1e-12 and found.upper - found.lower <= 1e-8
