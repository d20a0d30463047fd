"""Kinds of outcomes: equal next states with equal rewards are one kind."""

import numpy as np

from livarot import envs
from livarot.model.after import number_kinds, worths


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
