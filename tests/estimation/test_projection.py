"""Projections of an estimate on the ball, an ellipsoid and their intersection."""

import math

import numpy as np
import pytest

from livarot.estimation.omd import ParameterSet, project_estimate, whitened
from tests.support.models import random_estimate, random_model, random_set, same_bits, to_mdp
from tests.twins import core as ref
from tests.twins.agents import random_matrix

KINDS = ["dense", "block", "partial"]


@pytest.mark.parametrize("kind", KINDS)
def test_projection_of_an_estimate(kind):
    rng = np.random.default_rng(30 + KINDS.index(kind))
    mdp = to_mdp(random_model(rng, H=3, S=5, A=2, d=4, kind=kind), param_bound=5.0)
    problem = mdp.problem
    estimate, dense = random_estimate(rng, problem, 4)
    estimate = estimate._replace(theta=3 * estimate.theta)
    for bound, offset, radius in ((1.0, 0.1, 9.0), (math.inf, 0.5, 0.4), (1.0, 1.0, 0.4)):
        within, regions = random_set(rng, problem, 4, bound, radius, offset)
        new = project_estimate(problem, estimate, within)
        for r, k in np.ndindex(4, problem.n_parameters):
            exact = ref.project(estimate.theta[r, k], dense[r, k], regions(r, k))
            np.testing.assert_allclose(new.theta[r, k], exact, rtol=0, atol=1e-7)
        assert same_bits((new.gram, new.whiten), (estimate.gram, estimate.whiten))


@pytest.mark.parametrize("bound", [math.inf, 2.0], ids=["ellipsoid", "intersection"])
def test_projections_on_an_ill_conditioned_set_are_feasible(bound):
    """Condition 1e8, parameters along its weak directions: nothing is left outside by more than 1e-10."""
    rng = np.random.default_rng(31)
    problem = to_mdp(random_model(rng, H=1, S=4, A=2, d=5, U=4), param_bound=5.0).problem
    for k in range(200):
        q, _ = np.linalg.qr(rng.normal(size=(5, 5)))
        values = np.array([1.0, *10.0 ** rng.uniform(-8, 0, size=3), 1e-8]) * 10.0 ** rng.uniform(0, 8)
        matrix = (q * values) @ q.T
        matrix = (matrix + matrix.T) / 2
        center = rng.normal(size=5)
        center *= rng.random() / np.linalg.norm(center)
        away = q @ (rng.normal(size=5) / np.sqrt(values))
        away *= (1 + 1e-9, 1 + 1e-6, 1.5, 1e3)[k % 4] / wide_norm(away, matrix)
        within = ParameterSet(bound, center[None, None], problem.rows.pack(matrix)[None, None], np.ones(1))
        gram = problem.rows.pack(random_matrix(rng, 5, 0.5))[None, None]
        estimate = whitened(problem, (center + away)[None, None], gram)
        theta = project_estimate(problem, estimate, within).theta[0, 0]
        assert wide_norm(theta - center, matrix) <= 1 + 1e-10
        assert np.linalg.norm(theta) <= bound * (1 + 1e-10)


def wide_norm(x, matrix):
    """|x| in the norm of a matrix, in extended precision."""
    wide = np.longdouble(x)
    return float(np.sqrt(wide @ np.longdouble(matrix) @ wide))
