"""Probabilities of next states: the twin's kernel, and the laws that authors of agents ask for."""

import numpy as np
import pytest

import livarot
from livarot import MNLMDP, LivarotError
from livarot.model.probabilities import transition_kernel
from tests.support.models import random_model, to_mdp
from tests.twins import core as ref


@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
@pytest.mark.parametrize("shared", [False, True])
def test_transition_kernel_against_the_twin(kind, shared):
    model = random_model(np.random.default_rng(2), H=3, d=6, kind=kind, offsets=True, scale=3.0)
    mdp = to_mdp(model, shared=shared)
    kernel, problem = transition_kernel(mdp), mdp.problem
    for h in range(3):
        theta = model["theta"][0 if shared else h]
        for s in range(4):
            for a in range(2):
                pair = problem.pair(h, s, a)
                first, last = problem.rows.row_start[pair : pair + 2]
                p = kernel.prob[kernel.base[h] + first : kernel.base[h] + last]
                np.testing.assert_allclose(p, ref.softmax(model["rows"][h][s][a], theta), rtol=1e-13)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_laws_for_those_who_write_agents_in_numpy(kind, shared):
    model = random_model(np.random.default_rng(6), H=3, d=6, kind=kind, offsets=True, scale=3.0)
    mdp = to_mdp(model, shared=shared)
    kernel, problem = transition_kernel(mdp), mdp.problem
    for h, s, a in np.ndindex(3, 4, 2):
        pair = problem.pair(h, s, a)
        first, last = problem.rows.row_start[pair : pair + 2]
        p = problem.probabilities(mdp.theta, h, s, a)
        np.testing.assert_allclose(p, kernel.prob[kernel.base[h] + first : kernel.base[h] + last], rtol=1e-13)
        own = mdp.theta[0 if shared else h]
        np.testing.assert_array_equal(problem.probabilities(own, h, s, a), p)
        np.testing.assert_array_equal(mdp.probabilities(h, s, a), p)
        z = problem.offset(h, s, a) + problem.features(h, s, a) @ own
        np.testing.assert_allclose(np.exp(z - z.max()) / np.exp(z - z.max()).sum(), p, rtol=1e-13)
        assert len(p) == len(problem.next_states(h, s, a))
    before = problem.offset(0, 0, 0)
    problem.offset(0, 0, 0)[:] = 7.0  # a copy: the problem stays as it is
    np.testing.assert_array_equal(problem.offset(0, 0, 0), before)


def test_laws_of_bad_arguments():
    problem = livarot.envs.river_swim(4, 6).problem
    zero = np.zeros(problem.theta_shape)
    d = problem.dim
    for theta, message in (
        (np.zeros((2, d)), rf"^theta: has shape \(2, {d}\); give the stage's own parameter or all: \({d},\) or"),
        (np.full(d, np.nan), "^theta: NaN"),
        ("theta", "^theta: "),
    ):
        with pytest.raises(LivarotError, match=message):
            problem.probabilities(theta, 0, 0, 0)
    with pytest.raises(LivarotError, match=r"^stage: 6 is out of range"):
        problem.probabilities(zero, 6, 0, 0)
    with pytest.raises(LivarotError, match=r"^action: 2 is out of range"):
        problem.offset(0, 0, 2)


@pytest.mark.parametrize("alike", [True, False])
def test_the_laws_of_many_pairs_are_those_of_each(alike):
    """Large models take pairs of one shape side by side: the same probabilities, pair by pair, to the last bit."""
    rng = np.random.default_rng(5)
    S, A = 1201, 5
    outcomes = np.full(S * A, 4) if alike else np.repeat(rng.integers(1, 7, S), A)
    starts = np.concatenate(([0], np.cumsum(outcomes)))
    nexts = np.concatenate([rng.choice(S, n, replace=False) for n in outcomes])
    phi = rng.uniform(-1.0, 1.0, (len(nexts), 3)) / 2.0
    phi[rng.random(len(nexts)) < 0.3, 1] = 0.0
    theta, offset = rng.normal(size=3) * 5.0, rng.normal(size=len(nexts))
    common = {"theta": theta, "reward": np.zeros((S, A)), "param_bound": 50.0}
    mdp = MNLMDP.from_arrays(1, S, A, outcomes=outcomes, next_state=nexts, features=phi, offset=offset, **common)
    found = transition_kernel(mdp).prob
    assert len(found) > 16_384
    for pair in rng.integers(0, S * A, 300):
        rows = slice(starts[pair], starts[pair + 1])
        z = offset[rows] + phi[rows] @ theta
        p = np.exp(z - z.max())
        np.testing.assert_allclose(found[rows], p / p.sum(), rtol=1e-13)
    part = 100 * A  # the first states alone are few enough to be computed pair by pair
    few = np.concatenate([np.arange(n) for n in outcomes[:part]])
    arrays = {"features": phi[: starts[part]], "offset": offset[: starts[part]], "next_state": few}
    small = MNLMDP.from_arrays(1, 100, A, outcomes=outcomes[:part], **arrays, **common | {"reward": np.zeros((100, A))})
    np.testing.assert_array_equal(transition_kernel(small).prob, found[: starts[part]])
