"""min and max of two numbers as Python has them, new arrays, and integers in a range."""

import math

import numba
import numpy as np
import pytest

from livarot.core.compiling.basics import all_below, new_floats, new_integers
from livarot.core.compiling.jit import jit
from livarot.core.views import view

NUMBERS = [0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan, 3, -7]


@jit
def both(x, y):
    return min(x, y), max(x, y)


@jit
def made(n, m):
    floats, whole = new_floats(n, m), new_integers(n)
    for i in range(n):
        whole[i] = 2**40 + i
        for j in range(m):
            floats[i, j] = whole[i] + 0.5 * j
    return floats, whole


@pytest.mark.parametrize("x", NUMBERS)
@pytest.mark.parametrize("y", NUMBERS)
def test_the_smaller_and_the_larger_are_those_of_python(x, y):
    for found, expected in zip(both(x, y), (min(x, y), max(x, y)), strict=True):
        assert repr(float(found)) == repr(float(expected))
        assert isinstance(found, int) == (isinstance(x, int) and isinstance(y, int))


@pytest.mark.parametrize("kinds", [(np.int32, np.int32), (np.int32, np.int64), (np.int32, np.float64)])
def test_narrow_integers(kinds):
    x, y = kinds[0](-3), kinds[1](2)
    assert both(x, y) == both(y, x) == (-3, 2)


def test_three_numbers_and_tuples_are_left_to_numba():
    @numba.njit
    def three(x, y, z):
        return min(x, y, z), max((x, y, z))

    assert three(3, 1.0, 2) == (1.0, 3.0)


def test_new_arrays_are_arrays_of_numpy():
    floats, whole = made(5, 3)
    assert floats.flags.c_contiguous
    assert floats.dtype == np.float64
    assert whole.dtype == np.int64
    np.testing.assert_array_equal(whole, 2**40 + np.arange(5))
    np.testing.assert_array_equal(floats, whole[:, None] + 0.5 * np.arange(3))
    assert made(0, 3)[0].shape == (0, 3)


@jit
def below(array, limit):
    return all_below(view(array), limit)


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 31, 32, 100])
def test_integers_in_a_range_wherever_the_bad_one_stands(length):
    rng = np.random.default_rng(length)
    good = rng.integers(5, size=length).astype(np.int32)
    assert below(good, 5)
    for place in range(length):
        for wrong in (5, -1, 2**31 - 1, -(2**31)):
            bad = good.copy()
            bad[place] = wrong
            assert not below(bad, 5)
            assert below(bad, 2**31 - 1) == (0 <= wrong < 2**31 - 1)
