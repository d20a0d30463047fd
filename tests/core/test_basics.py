"""The smaller and the larger of two numbers as Python has them, and new arrays."""

import math

import numpy as np
import pytest

from livarot.core.basics import new_floats, new_integers
from livarot.core.jit import jit


@jit
def both(x, y):
    return max(x, y), min(x, y)


@jit
def made(n):
    floats, whole = new_floats(n, 2), new_integers(n)
    for i in range(n):
        floats[i, 0], floats[i, 1], whole[i] = i, -i, 2 * i
    return floats, whole


@pytest.mark.parametrize("pair", [(1.0, 2.0), (2.0, 1.0), (1, 2), (2, 1.5), (math.inf, -math.inf), (1.0, math.nan)])
def test_they_are_python_s(pair):
    assert both(*pair) == (max(pair), min(pair))


def test_the_first_of_equal_numbers_is_taken():
    high, low = both(0.0, -0.0)
    assert math.copysign(1.0, high) == math.copysign(1.0, low) == 1.0
    high, low = both(-0.0, 0.0)
    assert math.copysign(1.0, high) == math.copysign(1.0, low) == -1.0


def test_new_arrays_can_be_written():
    floats, whole = made(3)
    np.testing.assert_array_equal(floats, [[0.0, 0.0], [1.0, -1.0], [2.0, -2.0]])
    np.testing.assert_array_equal(whole, [0, 2, 4])
    assert (floats.dtype, whole.dtype) == (np.float64, np.int64)
