"""Problems for exploration: uncertain river, chain with jitter, lock, sparse ring; exact values."""

import math

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.errors import LivarotError
from tests.envs.test_benchmarks import table_of
from tests.twins import envs as ref


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


# ---------------------------------------------------------------- RiverSwim with an uncertain left
@pytest.mark.parametrize("features", ["one-hot", "moves"])
def test_both_moves_of_the_uncertain_river_have_the_same_outcomes(features):
    mdp = envs.unknown_river(5, 6, features=features)
    problem, P = mdp.problem, table_of(mdp)
    for s in range(5):
        assert problem.next_states(0, s, 0).tolist() == problem.next_states(0, s, 1).tolist()
    np.testing.assert_allclose(P[2, 0, 1:4], [0.9, 0.08, 0.02], atol=1e-9)
    np.testing.assert_allclose(P[0, 0, :2], [0.98, 0.02], atol=1e-9)
    np.testing.assert_allclose(P[4, 0, 3:], [0.9, 0.1], atol=1e-9)
    np.testing.assert_allclose(P[2, 1, 1:4], [0.05, 0.6, 0.35], atol=1e-9)
    value, _ = ref.solve_table(P, problem.reward, 6)
    np.testing.assert_allclose(livarot.solve(mdp).value, value, atol=1e-12)
    assert problem.dim == (8 if features == "moves" else 16)


def test_without_knowledge_the_plan_is_wrong():
    """At theta = 0 the moves are equal and left, which pays, is played at the bottom: the effect has to be learned."""
    known, unknown = envs.river_swim(), envs.make("river-swim-unknown")
    for mdp, optimal in ((known, True), (unknown, False)):
        blind = livarot.MNLMDP(mdp.problem, 0 * mdp.theta)
        loss = livarot.solve(mdp).value[0, 0] - livarot.evaluate(mdp, livarot.solve(blind).policy)[0, 0]
        assert (loss < 1e-3) == optimal


# ---------------------------------------------------------------- the chain with jitter
def test_the_bias_differs_between_stages():
    plain = envs.hard_chain(10, gap=0.05, seed=3)
    mdp = envs.jittered_chain(10, gap=0.05, seed=3, bias_jitter=0.5)
    np.testing.assert_allclose(np.sign(mdp.theta[:, 0]), np.sign(plain.theta[:, 0]))
    np.testing.assert_array_equal(mdp.theta[:, 0], plain.theta[:, 0])
    shift = []
    for h in range(10):
        odds = [math.log(m.probabilities(h, h, 0)[0] / m.probabilities(h, h, 0)[1]) for m in (plain, mdp)]
        shift.append(odds[1] - odds[0])
    other = [math.log(mdp.probabilities(h, h, 1)[0] / mdp.probabilities(h, h, 1)[1]) for h in range(10)]
    base = [math.log(plain.probabilities(h, h, 1)[0] / plain.probabilities(h, h, 1)[1]) for h in range(10)]
    np.testing.assert_allclose(np.subtract(other, base), shift, atol=1e-12)  # the same for both actions
    assert 0.1 < np.std(shift) < 1.2
    # backward induction by hand: V(good) = H - h, V(chain) = max_a p (H - h - 1) + (1 - p) V
    value = 0.0
    for h in reversed(range(10)):
        value = max(
            mdp.probabilities(h, h, a)[1] * (10 - h - 1) + mdp.probabilities(h, h, a)[0] * value for a in (0, 1)
        )
    assert livarot.solve(mdp).value[0, 0] == pytest.approx(value, abs=1e-12)


def test_jitter_keeps_one_problem_for_all_seeds_and_many_draws_have_its_deviation():
    first = envs.jittered_chain(10, gap=0.05, seed=0, bias_jitter=1.0)
    shifts = []
    for seed in range(200):
        mdp = envs.jittered_chain(10, gap=0.05, seed=seed, bias_jitter=1.0)
        assert mdp.problem.same_as(first.problem)
        plain = envs.hard_chain(10, gap=0.05, seed=seed)
        unit = abs(mdp.problem.features(0, 0, 0)[0, 1])
        shifts.append((mdp.theta[:, 1] - plain.theta[:, 1]) * unit)
    assert np.std(shifts) == pytest.approx(1.0, abs=0.05)
    assert np.abs(shifts).max() <= 3.0 + 1e-9
    with pytest.raises(LivarotError, match="horizon"):
        envs.jittered_chain(2, gap=0.1)


# ---------------------------------------------------------------- the lock
@pytest.mark.parametrize(
    ("H", "A", "d", "clarity", "hardness"), [(8, 10, 4, 6.0, 2.0), (3, 4, 2, 3.0, 0.0), (2, 2, 1, 1.0, 5.0)]
)
def test_the_lock_opens_with_its_combination(H, A, d, clarity, hardness):
    mdp = envs.combination_lock(H, A, d, clarity, hardness, seed=5)
    solution = livarot.solve(mdp)
    assert solution.value[0, 0] == pytest.approx(sigmoid(clarity - hardness) ** (H - 1), rel=1e-12)
    x = [mdp.problem.features(0, 0, a)[0] for a in range(A)]
    for h in range(H - 1):
        best = max(range(A), key=lambda a: x[a] @ mdp.theta[h])
        assert mdp.probabilities(h, 0, solution.policy[h, 0])[0] == pytest.approx(mdp.probabilities(h, 0, best)[0])
        for a in range(A):
            assert mdp.probabilities(h, 0, a)[0] == pytest.approx(sigmoid(x[a] @ mdp.theta[h] - hardness), rel=1e-12)
    assert mdp.problem.same_as(envs.combination_lock(H, A, d, clarity, hardness, seed=6).problem)


def test_greed_fails_at_the_lock():
    seeds = range(6)
    models = [envs.combination_lock(6, seed=seed) for seed in seeds]
    greedy = livarot.run(models, livarot.agents.CertaintyEquivalent(), 600, seed=seeds).regret[:, -100:].mean()
    sound = livarot.run(models, livarot.agents.SoundLivarot(), 600, seed=seeds).regret[:, -100:].mean()
    assert sound < 0.5 * greedy


# ---------------------------------------------------------------- the sparse ring
def test_the_sparse_ring():
    mdp = envs.sparse_mdp(seed=2)
    problem = mdp.problem
    assert (problem.dim, problem.n_states, problem.n_parameters) == (50, 10, 1)
    assert np.linalg.norm(mdp.theta, axis=1) == pytest.approx(8.0)
    for s in range(10):
        for a in range(4):
            phi = problem.features(0, s, a)
            assert (problem.next_states(0, s, a) == (s + 1) % 10).any()
            assert sorted((phi != 0).sum(axis=1)) == [0, 3, 3]
            np.testing.assert_allclose(np.sort(np.linalg.norm(phi, axis=1)), [0, 1, 1], atol=1e-12)
    value, _ = ref.solve_table(table_of(mdp), problem.reward, 10)
    np.testing.assert_allclose(livarot.solve(mdp).value, value, atol=1e-12)
    assert envs.sparse_mdp(seed=3).problem.same_as(problem)


@pytest.mark.parametrize(
    ("settings", "argument"), [({"n_reachable": 1}, "n_reachable"), ({"n_active": 51}, "n_active")]
)
def test_bad_settings(settings, argument):
    with pytest.raises(LivarotError) as caught:
        envs.sparse_mdp(**settings)
    assert caught.value.argument == argument
