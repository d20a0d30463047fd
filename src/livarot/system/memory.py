"""Recycled memory for states that are copied every episode.

A state is never changed in place, so each update makes new arrays; fresh pages for them cost more than the update of a
large sparse model.  An array is used again only when the pool alone refers to it: what a caller keeps stays as it is.
"""

from __future__ import annotations

import sys
import threading

import numpy as np
from numpy.typing import NDArray

DEPTH = 4  # arrays kept per shape and thread
SMALL = 1 << 15  # numbers; below this the allocator's own recycling is as good
_local = threading.local()


def fresh_copy(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """A copy of an array, in memory that was used before if there is some."""
    if array.size < SMALL:
        return array.copy()
    pools: dict[tuple[int, ...], list[NDArray[np.float64]]] = _local.__dict__.setdefault("pools", {})
    pool = pools.setdefault(array.shape, [])
    for index in range(len(pool)):
        if sys.getrefcount(pool[index]) == 2:  # references: the pool and this call
            np.copyto(pool[index], array)
            return pool[index]
    new = array.copy()
    if len(pool) < DEPTH:
        pool.append(new)
    return new
