"""Bundles of views open to their own arrays."""

import copy
from typing import Any, NamedTuple

import numpy as np
import pytest

from livarot.core.compiling.jit import jit
from livarot.core.lanes import W
from livarot.core.views import Bundle, opened
from tests.core import lane_kernels


@jit
def total(bundle):
    fields = opened(bundle)
    found = 0.0
    for i in range(fields.count):
        found += fields.numbers[i]
    return found


def test_a_bundle_opens_to_its_arrays():
    found, _ = lane_kernels.results()
    rng = np.random.default_rng(5)
    rng.normal(size=(6, W)), rng.integers(-2, 3, size=(6, W))
    table, numbers = rng.normal(size=(2, 3)), rng.normal(size=4)
    np.testing.assert_allclose(found["sums"], [*(table @ numbers[[3, 0, 1]]), numbers[2]], rtol=1e-15)
    with pytest.raises(ValueError, match="C-contiguous"):
        Bundle(lane_kernels.Model(table.T, numbers, np.zeros(3, dtype=np.int32), 3))


class Pair(NamedTuple):
    numbers: Any
    count: int


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
def test_a_copy_of_a_bundle_reads_its_own_arrays(copied):
    one = Bundle(Pair(np.arange(3.0), 3))
    two = copied(one)
    two.fields.numbers[:] = 7.0
    assert (total(one), total(two)) == (one.fields.numbers.sum(), 21.0)
    assert (two.fields.numbers is one.fields.numbers) == (copied is copy.copy)
