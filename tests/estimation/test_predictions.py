"""Losses of predictions: scored by the estimate from before the episode, and used by the prequential level."""

import math

import numpy as np
import pytest

from livarot.errors import LivarotError
from livarot.estimation.history import empty_history, record
from livarot.estimation.level_set import LevelSettings, level_sets
from livarot.estimation.predictions import predicted_losses
from livarot.model.episodes import Episodes
from tests.estimation.test_ons import random_episodes
from tests.support.models import random_model, rows_of, to_mdp
from tests.twins import core as ref

SURPRISE = math.log(3 / 0.05)


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
def test_predictions_are_scored_before_the_episode(shared):
    rng = np.random.default_rng(5)
    mdp = to_mdp(random_model(rng, H=3, S=4, A=2, d=3, U=3, offsets=True, one_table=shared), shared=shared)
    problem, rows = mdp.problem, rows_of(mdp)
    predicted = rng.random((2, problem.n_parameters))
    kept, theta = predicted.copy(), rng.normal(size=(2, *problem.theta_shape))
    episodes = random_episodes(rng, mdp, 2)
    found = predicted_losses(problem, theta, episodes, predicted)
    np.testing.assert_array_equal(predicted, kept)
    for r, h in np.ndindex(2, 3):
        row, k = rows[h][episodes.states[r, h]][episodes.actions[r, h]], problem.stage_parameter[h]
        if len(row[1]) > 1:
            kept[r, k] += ref.loss(row, theta[r, k], int(episodes.choices[r, h]))
    np.testing.assert_allclose(found, kept, rtol=1e-12)
    history = record(problem, empty_history(problem, 2), episodes)
    levels = level_sets(problem, 0 * theta, history, LevelSettings(1.0, 0.1, SURPRISE, False), found + 5.0)
    np.testing.assert_allclose(levels.beta, SURPRISE + found + 5.0 - levels.loss, rtol=1e-12)


def test_episodes_of_another_problem_are_refused():
    mdp = to_mdp(random_model(np.random.default_rng(1), H=2, S=3, A=2, d=3, U=3))
    foreign = Episodes(np.zeros((1, 3), np.int32), np.full((1, 2), 7, np.int32), np.zeros((1, 2), np.int32))
    with pytest.raises(LivarotError, match="episodes"):
        predicted_losses(mdp.problem, np.zeros((1, 2, 3)), foreign, np.zeros((1, 2)))
