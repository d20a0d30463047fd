"""Messages say which argument, what, where first, how often and what to do; wrong types are refused."""

import copy

import numpy as np
import pytest

from livarot.errors import (
    LivarotError,
    bad,
    require_finite,
    require_non_negative,
    require_positive_int,
    require_probability,
)

NOT_NUMBERS = [None, True, False, np.True_, "1", b"1", 1j, [0.5], np.array([0.5]), {}, object()]


def test_the_message_has_all_parts_in_order():
    error = bad(
        "features",
        "3 rows have norm > 1",
        index=(0, 2, 1),
        count=3,
        cure="divide them by their largest norm or pass normalise=True",
    )
    assert str(error) == (
        "features: 3 rows have norm > 1 (first at index (0, 2, 1)); "
        "divide them by their largest norm or pass normalise=True"
    )
    assert (error.argument, error.index, error.count) == ("features", (0, 2, 1), 3)
    assert error.cure == "divide them by their largest norm or pass normalise=True"
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "x: wrong"),
        ({"index": 3}, "x: wrong (first at index 3)"),
        ({"index": (3,)}, "x: wrong (first at index 3)"),
        ({"count": 2}, "x: wrong (2 in all)"),
        ({"count": 2, "index": (1, 0)}, "x: wrong (2 in all, first at index (1, 0))"),
        ({"cure": "mend it"}, "x: wrong; mend it"),
    ],
)
def test_parts_that_are_absent_leave_no_trace(parts, message):
    assert str(bad("x", "wrong", **parts)) == message


def test_numpy_integers_become_plain_ones():
    error = bad("x", "wrong", index=np.unravel_index(5, (2, 3)), count=np.int64(1))
    assert error.index == (1, 2)
    assert all(type(i) is int for i in error.index)
    assert type(error.count) is int
    assert "np.int64" not in str(error)


def test_a_message_is_one_line():
    assert "\n" not in str(bad("x", "wrong\nin two\r\n  lines", cure="a\nb"))


def test_errors_cross_process_borders_with_their_parts():
    error = bad("x", "wrong", index=(1, 2), count=4, cure="mend it")
    received = copy.deepcopy(error)  # the same protocol that carries errors out of worker processes
    assert (str(received), vars(received)) == (str(error), vars(error))


def test_finite_arrays_come_back_as_float64():
    array = np.arange(6.0).reshape(2, 3)
    assert require_finite("x", array) is array
    for same in ([1, 2], np.array([1, 2], dtype=np.int32), np.array([1, 2], dtype=np.float32), (1.0, 2)):
        result = require_finite("x", same)
        assert result.dtype == np.float64
        assert result.tolist() == [1.0, 2.0]
    assert require_finite("x", []).shape == (0,)
    assert require_finite("x", 3.0).shape == ()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_the_first_bad_entry_and_the_count_are_named(wrong):
    array = np.zeros((2, 3, 4))
    array[1, 0, 2] = array[1, 2, 3] = wrong
    with pytest.raises(LivarotError, match=r"^reward: ") as caught:
        require_finite("reward", array)
    assert (caught.value.index, caught.value.count) == ((1, 0, 2), 2)
    with pytest.raises(LivarotError) as caught:
        require_finite("reward", wrong)
    assert (caught.value.index, caught.value.count) == (None, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        True,
        "1.0",
        [True, False],
        ["a"],
        [1j],
        [[1.0], [1.0, 2.0]],
        [None],
        np.array([1.0], dtype=object),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        [10**400],
        object(),
    ],
)
def test_arrays_of_anything_else_are_refused(wrong):
    with pytest.raises(LivarotError, match=r"^x: "):
        require_finite("x", wrong)


def test_a_masked_entry_is_not_a_number():
    array = np.ma.array(np.zeros((2, 3)), mask=[[0, 0, 0], [0, 1, 1]])
    for given in (array, list(array), tuple(array)):
        with pytest.raises(
            LivarotError, match=r"^regret: masked \(2 in all, first at index \(1, 1\)\); .*compressed"
        ) as caught:
            require_finite("regret", given)
        assert (caught.value.index, caught.value.count) == ((1, 1), 2)
    with pytest.raises(LivarotError, match="masked"):
        require_finite("regret", np.ma.masked)


def test_a_masked_array_without_masked_entries_is_a_plain_one():
    for mask in (False, [False, False]):
        found = require_finite("regret", np.ma.array([1.0, 2.0], mask=mask))
        assert type(found) is np.ndarray
        assert found.tolist() == [1.0, 2.0]
    with pytest.raises(LivarotError, match="NaN"):
        require_finite("regret", np.ma.array([1.0, np.nan]))


def test_a_number_too_large_for_float64_is_infinite():
    if np.finfo(np.longdouble).max == np.finfo(np.float64).max:
        pytest.skip("long doubles are doubles here")
    with pytest.raises(LivarotError, match="infinite"):
        require_finite("x", np.array([np.finfo(np.longdouble).max]))


def test_positive_integers():
    assert require_positive_int("n", 1) == 1
    assert type(require_positive_int("n", np.int32(7))) is int
    assert require_positive_int("n", 0, minimum=0) == 0
    for wrong in [*NOT_NUMBERS, 0, -1, 1.0, np.float64(2.0), float("nan")]:
        with pytest.raises(LivarotError, match=r"^n: must be an integer >= 1, got "):
            require_positive_int("n", wrong)
    with pytest.raises(LivarotError, match=">= 2"):
        require_positive_int("n", 1, minimum=2)


def test_probabilities_are_strictly_inside():
    assert require_probability("p", np.float32(0.5)) == 0.5
    assert require_probability("p", np.nextafter(0.0, 1.0)) > 0
    for wrong in [*NOT_NUMBERS, 0, 1, 0.0, 1.0, -0.1, 1.1, float("nan"), float("inf"), 10**400]:
        with pytest.raises(LivarotError, match=r"^p: must be a number strictly between 0 and 1, got "):
            require_probability("p", wrong)


def test_non_negative_numbers():
    assert require_non_negative("r", 0) == 0.0
    assert type(require_non_negative("r", np.int64(3))) is float
    for wrong in [*NOT_NUMBERS, -1, -1e-300, float("nan"), float("inf"), -float("inf"), 10**400]:
        with pytest.raises(LivarotError, match=r"^r: must be a finite number >= 0, got "):
            require_non_negative("r", wrong)


def test_long_values_are_shortened_in_the_message():
    with pytest.raises(LivarotError) as caught:
        require_probability("p", "x\n" * 10_000)
    assert len(str(caught.value)) < 150
