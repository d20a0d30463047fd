"""Kernels and parts compiled in fewer steps give what Python gives; Python's garbage collector is left as it was."""

import gc

import numpy as np
import pytest

from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.views import part, view


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
