"""The affine map of rewards into [0, 1] and back."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livarot import LivarotError
from livarot.model.terms.units import PLAIN, Units, units_of

numbers = st.floats(-1e6, 1e6)
units = st.builds(Units, numbers, st.floats(1e-3, 1e6), numbers, st.floats(0.0, 1.0), st.booleans())


@given(units, st.integers(0, 30), st.floats(0.0, 30.0))
def test_there_and_back(own, left, value):
    there = own.value(value, left)
    size = abs(own.scale * value) + abs(own.shift(left)) + 1.0
    assert own.scale * own.normalised(there, left) == pytest.approx(own.scale * value, abs=1e-12 * size)


@given(units, st.integers(1, 20))
def test_the_shift_is_what_zero_rewards_are_worth(own, left):
    """L(n) = low + discount L(n - 1), L(0) = end."""
    size = 1.0 + abs(own.low) * left + abs(own.end)
    assert own.shift(0) == pytest.approx(own.end, abs=1e-12 * size)
    assert own.shift(left) == pytest.approx(own.low + own.discount * own.shift(left - 1), abs=1e-9 * size)


def test_stages_come_first():
    own = Units(-2.0, 4.0, 1.0, 0.5)
    value = np.arange(8.0).reshape(4, 2)
    expected = [[4.0 * value[h, s] + own.shift(3 - h) for s in range(2)] for h in range(4)]
    np.testing.assert_allclose(own.values(value, 3), expected)
    assert PLAIN.values(value, 3) is value
    assert own.regret(2.0) == 8.0 and own.variance(2.0) == 32.0
    assert own.reward(0.5) == 0.0 and own.terminal_reward(0.5) == 3.0


def test_a_file_holds_five_numbers():
    own = Units(-2.0, 4.0, 1.0, 0.5, True)
    assert units_of(list(map(float, own))) == own
    for wrong in ([1.0], [0.0, 0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.5, 0.0], [0.0, 1.0, 0.0, 1.0, 0.5]):
        with pytest.raises(LivarotError):
            units_of(wrong)


def test_the_examples_of_the_document():
    path = Path(__file__).parents[3] / "docs" / "units.md"
    found = doctest.testfile(str(path), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted >= 12 and found.failed == 0
