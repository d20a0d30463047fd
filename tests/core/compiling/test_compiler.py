"""Kernels and parts compiled in fewer steps give what Python gives; Python's garbage collector is left as it was."""

import gc
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import config

from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.views import Bundle, opened, part, view


@inner
def halved(n):
    """A variable that is assigned in a loop, one that is assigned once before it, and one in a branch."""
    first, steps = n, 0
    while n > 1:
        left = n // 2
        if left * 2 != n:
            steps += first
        n = left
    return steps, first


@inner
def twice(n):
    return halved(n), halved(n + 1)


@jit
def all_of_them(numbers, out):
    own = view(numbers)
    for i in range(len(own)):
        tail = part(own, i, len(own) - i)
        (a, b), (c, d) = twice(tail[0])
        out[i] = a + 10 * b + 100 * c + 1000 * d


@jit
def caught(x):
    found = 0
    try:
        if x > 1:
            raise ValueError("large")
        found = 1
    except Exception:
        found = 2
    return found


@jit
def grown(n):
    """Arrays that replace each other, some of them never used, in a loop and after it."""
    kept = np.zeros(1)
    for i in range(n):
        new = np.empty(len(kept) + 1)
        for k in range(len(kept)):
            new[k] = kept[k]
        new[len(kept)] = i
        if i % 3 == 0:
            continue
        kept = new
    return kept


def test_variables_are_names_of_values_or_have_memory():
    numbers = np.array([1, 2, 3, 12, 1023, 7])
    out = np.zeros(len(numbers), dtype=np.int64)
    all_of_them(numbers, out)
    expected = []
    for n in numbers.tolist():
        (a, b), (c, d) = halved_in_python(n), halved_in_python(n + 1)
        expected.append(a + 10 * b + 100 * c + 1000 * d)
    assert out.tolist() == expected


def halved_in_python(n):
    bits = bin(n)[3:][::-1]  # all but the leading one, from below
    return n * bits.count("1"), n


@pytest.mark.parametrize("x", [0, 5])
def test_a_kernel_may_catch_exceptions(x):
    assert caught(x) == 1 + (x > 1)


def test_arrays_that_replace_each_other_are_released_once():
    for _ in range(100):
        np.testing.assert_array_equal(grown(9), [0, 1, 2, 4, 5, 7, 8])


@pytest.mark.parametrize("collecting", [True, False])
def test_the_garbage_collector_is_left_as_it_was(collecting):
    @jit
    def fresh(x):
        return x + 1

    before = gc.isenabled()
    (gc.enable if collecting else gc.disable)()
    try:
        assert fresh(1.5) == 2.5
        assert gc.isenabled() == collecting
        with pytest.raises(Exception, match=r"unsupported|Cannot|No implementation|Invalid"):
            fresh({})
        assert gc.isenabled() == collecting
    finally:
        (gc.enable if before else gc.disable)()


class Two(NamedTuple):
    one: Any
    other: Any


@inner
def total(two, power):
    return (two.one[0] + two.other[0]) * power


@jit
def total_of(bundle, numbers):
    """NamedTuples from outside and made here, and constants: one translation serves all of them."""
    return total(opened(bundle), 2) + total(Two(view(numbers), view(numbers)), 3) + total(opened(bundle), len(numbers))


@jit
def powers(x):
    return x**2, x**3, x**0.5, 2**x


def test_a_part_is_translated_once_for_its_types():
    numbers = np.array([1.5, 2.0])
    assert total_of(Bundle(Two(numbers, 2.0 * numbers)), numbers) == 4.5 * 2 + 3.0 * 3 + 4.5 * 2
    if not config.DISABLE_JIT:
        assert len(total.overloads) == 1


def test_powers_of_constants_are_those_of_python():
    assert powers(4.0) == (16.0, 64.0, 2.0, 16.0)
