"""Problems for exploration: uncertain river, chain with jitter, lock, sparse ring; exact values."""

import math

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.errors import LivarotError
from tests.support.models import table_of
from tests.twins import envs as ref


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


# ---------------------------------------------------------------- the sparse ring


@pytest.mark.parametrize(
    ("settings", "argument"), [({"n_reachable": 1}, "n_reachable"), ({"n_active": 51}, "n_active")]
)
def test_bad_settings(settings, argument):
    with pytest.raises(LivarotError) as caught:
        envs.sparse_mdp(**settings)
    assert caught.value.argument == argument
