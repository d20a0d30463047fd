"""Gains, discounted values and diameters: closed forms, brute force, certificates."""

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.infinite import (
    InfiniteMDP,
    diameter,
    policy_gain,
    policy_value,
    solve_average,
    solve_discounted,
)
from tests.support.models import random_model, to_mdp
from tests.twins import infinite as twin


def endless(rng, **sizes):
    model = random_model(rng, H=1, one_table=True, **sizes)
    return InfiniteMDP.from_mdp(to_mdp(model, shared=True))


def two_state(leave, enter):
    """State 0 is left with probability ``leave``, state 1 with ``enter``; state 1 pays."""
    return InfiniteMDP.from_function(
        2,
        1,
        features=lambda s, a: ([0, 1], np.zeros((2, 1))),
        offset=lambda s, a: np.log([1 - leave, leave] if s == 0 else [enter, 1 - enter]),
        reward=[[0.0], [1.0]],
        theta=[0.0],
        param_bound=1.0,
    )


@pytest.mark.parametrize(("leave", "enter"), [(0.3, 0.2), (1e-4, 0.5), (0.999, 1e-3)])
def test_two_states_in_closed_form(leave, enter):
    """g = p/(p + q), h(1) - h(0) = 1/(p + q), D = max(1/p, 1/q)."""
    mdp = two_state(leave, enter)
    found = solve_average(mdp)
    assert found.gain == pytest.approx(leave / (leave + enter), rel=1e-12)
    assert found.bias[1] - found.bias[0] == pytest.approx(1 / (leave + enter), rel=1e-12)
    assert found.lower - 1e-14 <= found.gain <= found.upper + 1e-14
    assert diameter(mdp) == pytest.approx(max(1 / leave, 1 / enter), rel=1e-9)
    gamma = 0.97
    v0, v1 = np.linalg.solve(
        [[1 - gamma * (1 - leave), -gamma * leave], [-gamma * enter, 1 - gamma * (1 - enter)]], [0, 1]
    )
    np.testing.assert_allclose(solve_discounted(mdp, gamma).value, [v0, v1], rtol=1e-12)


@pytest.mark.parametrize("gap", [0.01, 0.05, 0.2])
def test_park_s_instance_in_closed_form(gap):
    """The right signs climb with delta + 3 gap: g* = (delta + 3 gap)/(2 delta + 3 gap)."""
    mdp = InfiniteMDP.from_mdp(envs.park_two_state(gap=gap))
    p = 0.25 + 3 * gap
    found = solve_average(mdp)
    assert found.gain == pytest.approx(p / (p + 0.25), abs=1e-12)
    assert found.policy[0] == 7
    assert diameter(mdp) == pytest.approx(max(1 / 0.25, 1 / p), rel=1e-9)


def test_river_swim():
    """Swimming right for ever; the chain's stationary distribution by detailed balance."""
    for features in ("one-hot", "moves"):
        mdp = InfiniteMDP.from_mdp(envs.river_swim(variant="park", shared_parameter=True, features=features))
        weights = [1.0, 0.6 / 0.05]
        for _ in range(3):
            weights.append(weights[-1] * 0.35 / 0.05)
        weights.append(weights[-1] * 0.35 / 0.4)
        found = solve_average(mdp)
        assert found.gain == pytest.approx(weights[-1] / sum(weights), abs=1e-12)
        assert found.upper - found.lower <= 1e-10
        np.testing.assert_array_equal(found.policy, 1)
        assert policy_gain(mdp, np.zeros(6, dtype=int)).gain == pytest.approx(0.05, abs=1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_against_all_policies(seed):
    mdp = endless(np.random.default_rng(seed), S=4, A=2, U=4, ragged=False)
    expected = twin.best_gain(mdp.table, mdp.problem.reward)
    found = solve_average(mdp)
    np.testing.assert_allclose(found.gain, expected, rtol=0, atol=1e-11)
    assert found.lower - 1e-12 <= expected[0] <= found.upper + 1e-12
    np.testing.assert_allclose(policy_gain(mdp, found.policy).gain, expected, rtol=0, atol=1e-11)
    value = twin.discounted(mdp.table, mdp.problem.reward, 0.9, 400)
    exact = solve_discounted(mdp, 0.9)
    np.testing.assert_allclose(exact.value, value, rtol=0, atol=1e-11)
    assert (exact.lower <= value + 1e-11).all() and (value <= exact.upper + 1e-11).all()
    np.testing.assert_allclose(policy_value(mdp, exact.policy, 0.9), value, rtol=0, atol=1e-11)
    np.testing.assert_allclose(exact.q.max(axis=1), exact.value, rtol=0, atol=1e-11)


@pytest.mark.parametrize("seed", range(6))
def test_gain_and_bias_satisfy_their_equation(seed):
    """Any policy, also one with several recurrent classes and transient states, and one that draws its actions."""
    rng = np.random.default_rng(seed)
    mdp = endless(rng, S=6, A=3, U=2)
    problem = mdp.problem
    drawn = rng.dirichlet(np.ones(3), size=6)
    for policy in (rng.integers(0, 3, size=6), drawn):
        weights = np.eye(3)[policy] if policy.ndim == 1 else policy
        move = np.einsum("sa,sat->st", weights, mdp.table)
        pay = (weights * problem.reward).sum(axis=1)
        gain, bias = policy_gain(mdp, policy)
        np.testing.assert_allclose(gain + bias, pay + move @ bias, rtol=0, atol=1e-10)
        np.testing.assert_allclose(move @ gain, gain, rtol=0, atol=1e-12)
        np.testing.assert_allclose(gain, twin.gain_by_powers(move, pay), rtol=0, atol=1e-9)


def test_a_periodic_chain_converges():
    """A cycle of three states: without mixing, value iteration would go round for ever."""
    mdp = InfiniteMDP.from_function(
        3, 1, features=lambda s, a: ([(s + 1) % 3], [[0.0]]), reward=[[0.0], [0.5], [1.0]], theta=[0.0], param_bound=1.0
    )
    assert solve_average(mdp).gain == pytest.approx(0.5, abs=1e-12)
    assert diameter(mdp) == pytest.approx(2.0, rel=1e-9)


def test_no_single_gain_is_refused_with_what_is_known():
    mdp = InfiniteMDP.from_function(
        2, 1, features=lambda s, a: ([s], [[0.0]]), reward=[[0.25], [0.75]], theta=[0.0], param_bound=1.0
    )
    with pytest.raises(livarot.LivarotError, match=r"\[0.25, 0.75\]"):
        solve_average(mdp, max_iter=1000)
    assert diameter(mdp) == np.inf
    np.testing.assert_allclose(policy_gain(mdp, [0, 0]).gain, [0.25, 0.75], rtol=0, atol=1e-15)


def test_the_gain_is_the_limit_of_the_discounted_value():
    mdp = InfiniteMDP.from_mdp(envs.river_swim(variant="park", shared_parameter=True))
    gain = solve_average(mdp).gain
    for gamma in (0.99, 0.9999):
        value = (1 - gamma) * solve_discounted(mdp, gamma).value
        assert np.abs(value - gain).max() <= 20 * (1 - gamma)  # the span of the bias is below 20


def test_bad_numbers_are_refused():
    mdp = InfiniteMDP.from_mdp(envs.park_two_state())
    river = InfiniteMDP.from_mdp(envs.river_swim(shared_parameter=True))
    for call, argument in (
        (lambda: solve_discounted(mdp, 1.0), "discount"),
        (lambda: solve_discounted(mdp, 0.9, tol=0.0), "tol"),
        (lambda: solve_discounted(river, 0.999, max_iter=1), "max_iter"),
        (lambda: solve_average(mdp, tol=-1), "tol"),
        (lambda: policy_value(mdp, [0, 0], -0.5), "discount"),
    ):
        with pytest.raises(livarot.LivarotError) as error:
            call()
        assert error.value.argument == argument
