"""The sparse ring: its sizes and its exact values."""

import numpy as np
import pytest

import livarot
from livarot import envs
from tests.support.models import table_of
from tests.twins import envs as ref


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
