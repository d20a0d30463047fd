"""The whitener of some coordinates, and the range of the next stage's values."""

import numpy as np
import pytest

from livarot import envs
from livarot.core.compiling.jit import jit
from livarot.core.views import opened, view
from livarot.model.compiled import plan_model
from livarot.planning.optimistic.loops.loop_parts import own_whitener, value_range


@jit
def whitener_of(whiten, cols, w):
    own_whitener(view(whiten), view(cols), len(whiten), view(w))


@jit
def range_of(model, h, value):
    return value_range(opened(model), h, view(value))


@pytest.mark.parametrize("cols", [[0], [3], [0, 1, 2, 3, 4], [4, 1], [2, 0, 3]])
def test_the_whitener_of_some_coordinates(cols):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    gram = root @ root.T + 0.1 * np.eye(5)
    whiten = np.linalg.inv(np.linalg.cholesky(gram))  # W'W = gram^-1, lower triangular
    w = np.full((len(cols), len(cols)), np.nan)
    whitener_of(whiten, np.array(cols), w)
    w = np.tril(w)
    np.testing.assert_allclose(w.T @ w, np.linalg.inv(gram)[np.ix_(cols, cols)], rtol=1e-10)


def test_the_range_is_that_of_states_that_can_be_reached_at_the_next_stage():
    problem = envs.deep_sea(4).problem  # one row of the sea at each stage
    value = np.random.default_rng(1).normal(size=problem.n_states)
    for h in range(problem.horizon):
        there = value[problem.reachable[h + 1]] if h + 1 < problem.horizon else np.zeros(1)  # 0 after the last stage
        assert range_of(plan_model(problem), h, value) == pytest.approx(np.ptp(there), rel=1e-15)
