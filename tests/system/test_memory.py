"""Recycled memory: what somebody still holds is never written to."""

import sys

import numpy as np

from livarot.system import memory


def test_small_arrays_are_plain_copies():
    array = np.arange(4.0)
    copied = memory.fresh_copy(array)
    copied[0] = 9.0
    assert array[0] == 0.0 and sys.getrefcount(copied) == 2


def test_memory_is_used_again_only_when_nobody_holds_it():
    array = np.arange(float(memory.SMALL))
    first = memory.fresh_copy(array)
    place = first.ctypes.data
    second = memory.fresh_copy(array + 1.0)
    assert second.ctypes.data != place and first[0] == 0.0
    view = first[:2]  # a view holds the memory as well as the array does
    del first
    third = memory.fresh_copy(array + 2.0)
    assert third.ctypes.data != place and view[1] == 1.0
    del view
    fourth = memory.fresh_copy(array + 3.0)
    assert fourth.ctypes.data == place and fourth[0] == 3.0


def test_no_more_than_a_few_arrays_are_kept():
    array = np.zeros((memory.SMALL, 1))
    held = [memory.fresh_copy(array) for _ in range(memory.DEPTH + 3)]
    assert len({one.ctypes.data for one in held}) == len(held)
    assert len(memory._local.pools[array.shape]) == memory.DEPTH
