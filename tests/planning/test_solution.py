"""Solutions know their problem, and their values in both units."""

import numpy as np

import livarot
from livarot import envs


def test_a_solution_unpacks_and_knows_its_problem():
    mdp = envs.river_swim(4, 5)
    found = livarot.solve(mdp)
    value, q, policy, variance = found
    assert found.problem.same_as(mdp.problem) and value.shape == (6, 4) and variance.shape == (5, 4)
    np.testing.assert_array_equal(found.normalised.value, value)  # rewards in [0, 1] already
    changed = found._replace(policy=policy * 0)
    assert (changed.policy == 0).all() and changed.normalised is changed and changed.q is q
