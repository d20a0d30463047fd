"""Layouts of files: sizes agree everywhere, numbers are in their ranges, labels come back as they were."""

import math

import numpy as np
import pytest

from livarot import LivarotError
from livarot.file_layout import (
    Entry,
    Layout,
    Misfit,
    Tensor,
    check_range,
    from_numbers,
    plain_label,
    read_labels,
    to_numbers,
)

LAYOUT = Layout(
    {"n": Entry(int, 1, 9), "note": Entry(str, optional=True), "scale": Entry(float, 0.0)},
    {
        "start": Tensor("int64", ("rows+1",)),
        "node": Tensor("int32", ("rows", 2), "n"),
        "more": Tensor("float64", ("n",), optional=True),
    },
)
FOUND = {"start": ("int64", (4,)), "node": ("int32", (3, 2))}


def test_sizes_are_those_of_the_header_and_of_the_first_tensor():
    assert LAYOUT.check_head({"n": 5, "scale": 1}, FOUND) == {"n": 5, "rows": 3}


@pytest.mark.parametrize(
    ("header", "found", "said"),
    [
        ({"n": 0, "scale": 1.0}, FOUND, "n = 0, expected int from 1 to 9"),
        ({"n": True, "scale": 1.0}, FOUND, "n = True"),
        ({"n": 5, "scale": -1.0}, FOUND, "scale = -1.0"),
        ({"n": 5}, FOUND, "header entry 'scale' is missing"),
        ({"n": 5, "scale": 1.0, "x": 1}, FOUND, "header entry 'x' does not belong there"),
        ({"n": 5, "scale": 1.0}, {"start": ("int64", (4,))}, "tensor 'node' is missing"),
        ({"n": 5, "scale": 1.0}, FOUND | {"node": ("int64", (3, 2))}, "dtype int64, expected int32"),
        ({"n": 5, "scale": 1.0}, FOUND | {"node": ("int32", (4, 2))}, r"expected \(rows, 2\) with rows = 3"),
        ({"n": 5, "scale": 1.0}, FOUND | {"node": ("int32", (3, 3))}, "has shape"),
        ({"n": 5, "scale": 1.0}, FOUND | {"start": ("int64", (0,))}, "'start' has shape"),
        ({"n": 5, "scale": 1.0}, FOUND | {"more": ("float64", (4,))}, "with n = 5"),
    ],
)
def test_what_does_not_fit_is_named(header, found, said):
    with pytest.raises(Misfit, match=said):
        LAYOUT.check_head(header, found)


def test_indices_stay_below_their_size():
    sizes = {"n": 3, "rows": 2}
    LAYOUT.check_numbers({"node": np.array([[0, 2], [1, 1]], np.int32)}, sizes)
    for wrong in (-1, 3):
        with pytest.raises(Misfit, match=rf"has {wrong} at index 3, allowed are 0..2"):
            LAYOUT.check_numbers({"node": np.array([[0, 2], [1, wrong]], np.int32)}, sizes)


def test_ranges():
    for wrong in (math.nan, math.inf):
        with pytest.raises(Misfit, match="at index 1"):
            check_range("x", np.array([0.0, wrong]), -math.inf, math.inf)
    check_range("x", np.array([0.0, math.inf]), 0.0, math.inf, finite=False)
    with pytest.raises(Misfit, match="nan at index 0"):
        check_range("x", np.array([math.nan, 1.0]), 0.0, math.inf, finite=False)
    check_range("x", np.empty(0), 0.0, 1.0)


def test_labels_come_back_as_they_were():
    labels = ["a", 1, 2.5, None, (1, ("b", True)), np.int64(7)]
    stored = from_numbers(to_numbers(plain_label(labels)))
    assert read_labels(stored) == ("a", 1, 2.5, None, (1, ("b", True)), 7)


@pytest.mark.parametrize("stored", ["text", [1, 1], [[1]], [{"tuple": 1}], [{"tuple": [1]}, {"tuple": [1]}]])
def test_what_is_not_a_list_of_labels_is_a_misfit(stored):
    with pytest.raises(Misfit):
        read_labels(stored)


@pytest.mark.parametrize("label", [object(), [{1}], math.inf])
def test_labels_that_cannot_be_stored_are_refused(label):
    with pytest.raises(LivarotError, match="cannot be stored"):
        to_numbers(plain_label(label))
