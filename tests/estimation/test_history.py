"""Counted history and its ridge estimate: counts, growth, the estimate of the full log, stationarity."""

import numpy as np
import pytest

from livarot import envs
from livarot.estimation.history import FIRST_ROOM, empty_history, fit_history, record
from livarot.estimation.mle import fit_mle
from livarot.model.episodes import Episodes
from tests.support.episodes import random_episodes
from tests.support.models import random_model, rows_of, same_bits, to_mdp
from tests.twins import core as ref
from tests.twins.field import informative


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
def test_the_estimate_is_that_of_the_full_log(shared):
    rng = np.random.default_rng(1)
    mdp = to_mdp(random_model(rng, H=3, S=4, A=2, d=3, U=3, offsets=True, one_table=shared), shared=shared)
    problem, rows = mdp.problem, rows_of(mdp)
    history = empty_history(problem, 2)
    theta = np.zeros((2, problem.n_parameters, 3))
    log = [[[] for _ in range(problem.n_parameters)] for _ in range(2)]
    total = 0
    for _ in range(30):
        episodes = random_episodes(rng, mdp, 2)
        old = tuple(part.copy() for part in history)
        new = record(problem, history, episodes)
        assert same_bits(tuple(history), old)
        history = new
        for r, h in np.ndindex(2, 3):
            row = rows[h][episodes.states[r, h]][episodes.actions[r, h]]
            if informative(row):
                log[r][problem.stage_parameter[h]].append((row, int(episodes.choices[r, h]), 1.0))
                total += 1
        kept = theta.copy()
        estimate = fit_history(problem, theta, history, 0.3)
        np.testing.assert_array_equal(theta, kept)
        theta = estimate.theta
    assert history.counts.sum() == total
    for r, k in np.ndindex(2, problem.n_parameters):
        expected = ref.mle(log[r][k], 0.3, 3)
        np.testing.assert_allclose(theta[r, k], expected, rtol=0, atol=1e-10)
        slope = 0.3 * theta[r, k] + sum(ref.gradient(row, theta[r, k], y) for row, y, _ in log[r][k])
        np.testing.assert_allclose(slope, 0.0, atol=1e-9)
        curvature = 0.3 * np.eye(3) + sum(ref.hessian(row, theta[r, k]) for row, _, _ in log[r][k])
        np.testing.assert_allclose(problem.rows.unpack(estimate.gram)[r, k], curvature, rtol=1e-10, atol=1e-10)
        w = problem.rows.unpack(estimate.whiten)[r, k]
        np.testing.assert_allclose(w.T @ w @ curvature, np.eye(3), atol=1e-9)


def test_warm_and_cold_starts_agree_with_the_batch_fit():
    rng = np.random.default_rng(3)
    mdp = envs.river_swim(4, 6, shared_parameter=True)
    problem = mdp.problem
    history = empty_history(problem, 1)
    for _ in range(40):
        history = record(problem, history, random_episodes(rng, mdp, 1))
    n = int(history.used[0, 0])
    where, which = np.nonzero(history.counts[0, 0, :n])
    weights = history.counts[0, 0, where, which]
    batch = fit_mle(problem, history.pairs[0, 0, where], which.astype(np.int32), weights, reg=1.0)
    cold = fit_history(problem, np.zeros((1, 1, problem.dim)), history, 1.0)
    warm = fit_history(problem, cold.theta + 0.1 * rng.normal(size=cold.theta.shape), history, 1.0)
    np.testing.assert_allclose(cold.theta[0, 0], batch.theta, rtol=0, atol=1e-12)
    np.testing.assert_allclose(warm.theta[0, 0], batch.theta, rtol=0, atol=1e-10)


def test_room_doubles_and_only_when_needed():
    """Thirty pairs do not fit into the first room of eight; later episodes bring no new ones."""
    rng = np.random.default_rng(0)
    mdp = to_mdp(random_model(rng, H=2, S=6, A=5, d=3, U=3, one_table=True, ragged=False), shared=True)
    history, rooms = empty_history(mdp.problem, 1), []
    for _ in range(200):
        history = record(mdp.problem, history, random_episodes(rng, mdp, 1))
        rooms.append(history.pairs.shape[2])
    assert sorted(set(rooms)) == [FIRST_ROOM, 2 * FIRST_ROOM, 4 * FIRST_ROOM]
    n = int(history.used[0, 0])
    assert n == len(set(history.pairs[0, 0, :n].tolist())) == 30
    assert history.counts.sum() == 400
    assert np.all(history.counts[0, 0, n:] == 0)


def test_a_certain_outcome_takes_no_room():
    mdp = envs.river_swim(4, 3)
    episodes = Episodes.from_states(mdp.problem, [[0, 0, 0, 0]], [[0, 0, 0]])
    history = record(mdp.problem, empty_history(mdp.problem, 1), episodes)
    assert history.used.max() == 0
    estimate = fit_history(mdp.problem, np.ones((1, 3, 6)), history, 2.0)  # the ridge alone
    np.testing.assert_allclose(estimate.theta, 0.0, atol=1e-15)


def test_a_fit_that_does_not_finish_is_said(caplog):
    rng = np.random.default_rng(0)
    mdp = envs.hard_chain(4, gap=0.1)
    history = record(mdp.problem, empty_history(mdp.problem, 1), random_episodes(rng, mdp, 1))
    with caplog.at_level("WARNING"):
        fit_history(mdp.problem, np.zeros((1, 4, 2)), history, 1e-6, tol=0.0, max_iter=1)
    assert "Newton's method stopped after 1 steps" in caplog.text
