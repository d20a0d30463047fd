"""The hard chain: the twin's rows, signs, bounds and gap."""

import itertools
import math

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.envs.problems.hard import paper_gap
from tests.support.models import rows_of, same_rows
from tests.twins import core as ref


@pytest.mark.parametrize(("H", "d", "gap"), [(2, 2, 0.2), (5, 2, None), (6, 3, 0.1), (4, 4, None), (10, 2, None)])
def test_hard_chain_is_the_twin(H, d, gap):
    mdp = envs.hard_chain(H, n_episodes=700, dim=d, gap=gap, seed=4, param_bound="tight")
    model = ref.hard_chain_rows(H, 700, d, gap=gap, signs=np.sign(mdp.theta[:, : d - 1]))
    same_rows(rows_of(mdp), model["rows"])
    np.testing.assert_allclose(mdp.theta, model["theta"], rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(mdp.problem.reward, model["reward"])
    np.testing.assert_array_equal(mdp.problem.start, model["start"])
    assert mdp.problem.param_bound == pytest.approx(model["param_bound"], rel=1e-13)
    assert mdp.problem.n_actions == 2 ** (d - 1) == len(model["actions"])
    assert mdp.problem.rows.norms().max() == pytest.approx(1.0, rel=1e-14)
    best = livarot.solve(mdp)
    assert mdp.probabilities(0, 0, int(best.policy[0, 0]))[1] == pytest.approx(model["p_best"], abs=1e-13)


def test_hard_chain_bounds():
    tight = envs.hard_chain(10, param_bound="tight")
    assert tight.problem.param_bound == pytest.approx(np.linalg.norm(tight.theta, axis=1).max(), rel=1e-14)
    plain = envs.hard_chain(10)
    assert plain.problem.param_bound == pytest.approx(1.5 * (1 + math.log(9)), rel=1e-14)
    np.testing.assert_array_equal(plain.theta, tight.theta)
    assert envs.hard_chain(10, param_bound=7.5).problem.param_bound == 7.5
    # a gap so wide that the quoted bound does not hold: the parameter's own norm
    wide = envs.hard_chain(3, gap=0.65)
    assert wide.problem.param_bound == pytest.approx(np.linalg.norm(wide.theta, axis=1).max())
    assert wide.problem.param_bound > 1.5 * (1 + math.log(2))


def test_hard_chain_signs_come_from_the_seed():
    one, same, other = (envs.hard_chain(12, dim=3, gap=0.05, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.theta, same.theta)
    assert not np.array_equal(one.theta, other.theta)
    assert one.problem.same_as(other.problem)  # what the learner knows is the same
    signs = np.sign(np.concatenate([envs.hard_chain(12, dim=3, gap=0.05, seed=s).theta[:, :2] for s in range(40)]))
    assert abs(signs.mean()) < 4 / math.sqrt(signs.size)


def test_hard_chain_gap():
    assert paper_gap(10, 1000) == pytest.approx(1 / (4 * math.sqrt(20000)), rel=1e-15)
    tuned, fixed = envs.hard_chain(10, 1000), envs.hard_chain(10, gap=paper_gap(10, 1000))
    np.testing.assert_array_equal(tuned.theta, fixed.theta)


def test_hard_chain_actions_are_all_sign_vectors_in_order():
    mdp = envs.hard_chain(5, dim=4, gap=0.05)
    actions = list(itertools.product((-1, 1), repeat=3))
    moving = np.array([mdp.problem.features(0, 0, a)[0] for a in range(8)])
    np.testing.assert_array_equal(np.sign(-moving[:, :3]), actions)
    assert np.ptp(moving[:, 3]) == 0
