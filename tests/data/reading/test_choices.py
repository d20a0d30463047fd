"""Choices from plain arrays."""

import numpy as np
import pytest

from livarot.data import Choices
from livarot.errors import LivarotError


def test_plain_arrays():
    x = np.arange(12.0).reshape(2, 3, 2)
    data = Choices.from_arrays(x, chosen=[2, 0])
    assert np.shares_memory(data.features, x) and list(data.log_row) == [2, 3]
    flat = Choices.from_arrays(x.reshape(6, 2)[[3, 0, 4, 1, 5, 2]], choice=[1, 0] * 3, chosen=[1, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(flat.count, [1, 0, 0, 0, 0, 1])
    with pytest.raises(LivarotError, match=r"chosen: outside 0..2 \(1 in all, first at index 1\)"):
        Choices.from_arrays(x, chosen=[0, 3])
