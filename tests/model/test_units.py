"""Units of rewards: the way there and back, and what cancels."""

import numpy as np
import pytest

from livarot.model.units import PLAIN, Units


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_values_are_those_of_rewards_in_the_user_s_units(discount):
    """One path of rewards, summed before and after the map."""
    units = Units(low=-3.0, scale=5.0, end=2.0, discount=discount)
    paid, last = np.array([0.1, 0.7, 0.4]), 0.3
    fade = discount ** np.arange(4)
    plain = fade[:3] @ paid + fade[3] * last
    whole = fade[:3] @ units.reward(paid) + fade[3] * units.terminal_reward(last)
    assert units.value(plain, 3) == pytest.approx(whole, rel=1e-14)
    assert units.normalised(whole, 3) == pytest.approx(plain, rel=1e-13)


def test_stages_have_their_own_shift_and_differences_none():
    units = Units(low=1.0, scale=2.0)
    found = units.values(np.zeros((3, 2)), 2)
    np.testing.assert_array_equal(found, [[2.0, 2.0], [1.0, 1.0], [0.0, 0.0]])
    assert (units.regret(0.5), units.variance(0.5)) == (1.0, 2.0)


def test_plain_rewards_are_left_alone():
    value = np.ones((2, 2))
    assert PLAIN.identity and PLAIN.values(value, 1) is value and PLAIN.regret(value) is value
