"""Kinds of outcomes: equal next states with equal rewards are one kind."""

import numpy as np

from livarot import MNLMDP, envs
from livarot.model.terms.after import number_kinds, outcome_kinds, worths


def test_kinds_are_numbered_once_and_every_row_finds_its_own():
    states = np.array([2, 0, 2, 2, 0], dtype=np.int32)
    more = np.array([0.5, 0.0, 0.5, 0.25, 0.0])
    kind, state, gain = number_kinds(states, more)
    assert len(state) == len(gain) == 3
    np.testing.assert_array_equal(state[kind], states)
    np.testing.assert_array_equal(gain[kind], more)


def test_without_rewards_of_the_next_state_what_follows_is_the_next_value():
    problem = envs.river_swim(3, 2).problem
    value = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(worths(problem, value), value[1:])


def test_what_follows_is_discounted_and_pays_the_reward_of_its_row():
    """v = r(s, a, s') + discount V(s') of every row, in the units that planners use."""
    pays = np.array([[[0.0, 0.3]], [[1.0, 0.6]]])  # (S, A, S')
    mdp = MNLMDP.from_function(
        2, 2, 1, features=lambda h, s, a: ([0, 1], [[0.0], [1.0]]), reward=pays, theta=[0.4], discount=0.7
    )
    problem, value = mdp.problem, np.array([[0.0, 0.0], [0.2, 0.5], [0.0, 0.0]])
    found = worths(problem, value)[0][outcome_kinds(problem)] + np.repeat(problem.reward[0].reshape(-1), 2)
    whole = problem.units.scale * found + problem.units.low
    expected = pays.reshape(-1) + problem.units.scale * 0.7 * np.tile(value[1], 2)
    np.testing.assert_allclose(whole, expected, atol=1e-12)
