"""Extended value iteration: the greedy L1 maximum against linear programming, optimism, the twin."""

import math

import numpy as np
import pytest

from livarot.infinite import InfiniteMDP, solve_discounted
from livarot.infinite.learning.extended import Rounds, fill_estimate, iterate, optimistic_mean, plan_replicas
from livarot.model.episodes import Estimate
from tests.support.models import random_estimate, random_model, rows_of, to_mdp
from tests.twins import infinite as twin


def model(seed, **sizes):
    rng = np.random.default_rng(seed)
    drawn = random_model(rng, H=1, one_table=True, **sizes)
    mdp = InfiniteMDP.from_mdp(to_mdp(drawn, shared=True))
    return mdp, rows_of(mdp.stage)[0], rng


def kernel_and_width(problem, estimate, replica):
    """p_hat of every row, (rows,), and max_i |phi_i|_{gram^-1} of every pair, (S, A)."""
    prob, width = np.empty(problem.rows.n_rows), np.zeros(problem.n_states * problem.n_actions)
    fill_estimate(problem.rows.graph, estimate.theta[replica, 0], estimate.whiten[replica, 0], prob, width)
    return prob, width.reshape(problem.n_states, problem.n_actions)


def extended_values(problem, prob, l1_radius, rounds):
    """V (S,), its greedy policy (S,) and the rounds it took, for one kernel with a radius (S, A) per pair."""
    value, policy = np.empty(problem.n_states), np.empty(problem.n_states, dtype=np.int32)
    order, worth = np.empty(problem.rows.n_rows, dtype=np.int64), np.empty(problem.rows.n_rows)
    half, pays = 0.5 * l1_radius, (problem.scaled_pay(rounds.discount), np.zeros(problem.rows.n_rows))
    done = iterate(problem.rows.graph, prob, half, *pays, rounds, (order, worth), value, policy)
    return value, policy, done


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_the_greedy_maximum_is_the_linear_program_s(n):
    rng = np.random.default_rng(n)
    for trial in range(25):
        p = rng.dirichlet(np.full(n, 0.5))
        v = rng.normal(size=n) if trial % 3 else np.round(rng.normal(size=n))  # with ties
        radius = rng.choice([0.0, 0.05, 0.4, 1.0, 2.0])
        order = np.arange(n)
        found = optimistic_mean(p, 0, n, v, 0.5 * radius, order)
        assert found == pytest.approx(twin.l1_maximum(p, v, radius), abs=1e-9)
        assert found == pytest.approx(twin.l1_greedy(list(p), list(v), radius), abs=1e-13)
        assert (np.diff(v[order]) >= 0).all()


def test_mass_goes_to_the_best_state_not_to_the_likeliest():
    """A public implementation of extended value iteration moves it to the likeliest state."""
    p, v = np.array([0.8, 0.15, 0.05]), np.array([0.0, 0.5, 1.0])
    found = optimistic_mean(p, 0, 3, v, 0.1, np.arange(3))
    assert found == pytest.approx(0.15 * 0.5 + 0.15, abs=1e-15)


@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_kernel_and_widths(kind):
    mdp, rows, rng = model(3, S=5, A=3, d=4, U=4, kind=kind, offsets=True)
    estimate, dense = random_estimate(rng, mdp.problem.stage, 2)
    for r in range(2):
        prob, width = kernel_and_width(mdp.problem, estimate, r)
        at = 0
        for s in range(5):
            for a in range(3):
                p = twin.softmax(rows[s][a], estimate.theta[r, 0])
                np.testing.assert_allclose(prob[at : at + len(p)], p, rtol=1e-12)
                at += len(p)
                norms = [twin.dual_norm(phi, dense[r, 0]) for phi in rows[s][a][1]]
                assert width[s, a] == pytest.approx(0.0 if len(p) == 1 else max(norms), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_the_twin(seed):
    mdp, rows, rng = model(seed, S=4, A=2, d=3, U=3)
    estimate, dense = random_estimate(rng, mdp.problem.stage, 1)
    value, policy = np.zeros((1, 4)), np.zeros((1, 4), dtype=np.int32)
    beta = 0.3
    rounds = Rounds(0.9, 1e-9, 10_000)
    plan_replicas(mdp.problem, estimate, np.ones(1, dtype=bool), np.full(1, beta), 2.0, rounds, value, policy)
    expected, greedy = twin.extended_values(
        rows, estimate.theta[0, 0], dense[0, 0], mdp.problem.reward, beta, 2.0, 0.9, 1e-9
    )
    np.testing.assert_allclose(value[0], expected, rtol=0, atol=1e-10)
    assert policy[0].tolist() == greedy


def test_only_the_replicas_that_ask_are_planned_and_neighbours_do_not_matter():
    mdp, _, rng = model(1, S=4, A=2, d=3, U=3)
    estimate, _ = random_estimate(rng, mdp.problem.stage, 3)
    value, policy = np.full((3, 4), -1.0), np.full((3, 4), -1, dtype=np.int32)
    options = (2.0, Rounds(0.9, 1e-8, 10_000))
    plan_replicas(mdp.problem, estimate, np.array([True, False, True]), np.full(3, 0.2), *options, value, policy)
    assert (value[1] == -1).all() and (policy[1] == -1).all()
    alone = Estimate(*(part[2:] for part in estimate))
    one, acts = np.empty((1, 4)), np.empty((1, 4), dtype=np.int32)
    plan_replicas(mdp.problem, alone, np.ones(1, dtype=bool), np.full(1, 0.2), *options, one, acts)
    assert one.tobytes() == value[2:].tobytes() and acts.tobytes() == policy[2:].tobytes()


@pytest.mark.parametrize("constant", [1.0, 2.0])
@pytest.mark.parametrize("seed", range(12))
def test_optimism_whenever_the_truth_is_in_the_set(seed, constant):
    """theta* exactly beta away from the centre; the constant 1 suffices (theirs is 2), and any early stop will do."""
    mdp, _, rng = model(seed, S=5, A=3, d=3, U=4, scale=2.0)
    estimate, dense = random_estimate(rng, mdp.problem.stage, 1, spread=1.5)
    away = mdp.theta - estimate.theta[0, 0]
    beta = math.sqrt(away @ dense[0, 0] @ away)
    prob, width = kernel_and_width(mdp.problem, estimate, 0)
    radius = np.minimum(constant * beta * width, 2.0)
    # the L1 bound itself
    at = 0
    for pair in range(15):
        n = int(mdp.problem.rows.outcomes[pair])
        apart = np.abs(prob[at : at + n] - mdp.prob[at : at + n]).sum()
        assert apart <= radius.reshape(-1)[pair] + 1e-12
        at += n
    truth = solve_discounted(mdp, 0.95).value
    last = np.full(5, np.inf)
    for rounds in (1, 3, 20, 10_000):
        value, _, done = extended_values(mdp.problem, prob, radius, Rounds(0.95, 1e-9, rounds))
        assert done <= rounds
        assert (value >= truth - 1e-9).all()
        assert (value <= last).all()  # from above
        last = value


def test_no_width_is_the_estimate_s_own_optimum():
    mdp, _, _ = model(5, S=5, A=2, d=3, U=4)
    value, policy, _ = extended_values(mdp.problem, mdp.prob, np.zeros((5, 2)), Rounds(0.9, 1e-12, 10_000))
    exact = solve_discounted(mdp, 0.9)
    np.testing.assert_allclose(value, exact.value, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(policy, exact.policy)


def test_the_stop_is_as_near_as_promised():
    mdp, _, _ = model(6, S=5, A=2, d=3, U=4)
    radius = np.full((5, 2), 0.3)
    exact, _, _ = extended_values(mdp.problem, mdp.prob, radius, Rounds(0.98, 1e-13, 100_000))
    for step in (1e-2, 1e-5):
        value, _, _ = extended_values(mdp.problem, mdp.prob, radius, Rounds(0.98, step, 100_000))
        assert 0 <= (value - exact).max() <= 0.98 * step / 0.02 + 1e-9
