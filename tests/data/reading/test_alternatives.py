"""One row per alternative: rows of a choice find each other, and equal choices are counted."""

import itertools

import numpy as np
import pandas as pd
import pytest

from livarot import LivarotError
from livarot.data.reading.alternatives import chosen_rows, from_alternatives, group_rows, merge_equal
from livarot.data.reading.columns import Columns
from livarot.data.reading.table import read_table


def choices_of(frame, **roles):
    return from_alternatives(read_table(frame), Columns(["x"], **roles), False, None)


def frame_of(**columns):
    base = {"choice": [7, 7, 3, 3, 3], "chosen": [0, 1, 1, 0, 0], "x": [1.0, 2.0, 3.0, 4.0, 5.0]}
    return pd.DataFrame(base | columns)


def test_rows_of_a_choice_are_put_side_by_side():
    start, order = group_rows(pd.Series(["b", "b", "a"]), "choice")
    assert start.tolist() == [0, 2, 3] and order is None
    start, order = group_rows(pd.Series(["b", "a", "b", "a", "a"]), "choice")
    assert sorted(np.diff(start).tolist()) == [2, 3]
    grouped = np.array(["b", "a", "b", "a", "a"])[order]
    assert all(len(set(grouped[i:j])) == 1 for i, j in itertools.pairwise(start))
    with pytest.raises(LivarotError, match="missing values"):
        group_rows(pd.Series([1.0, None]), "choice")


def test_any_order_of_the_rows_gives_the_same_choices():
    frame = frame_of()
    one, other = choices_of(frame), choices_of(frame.iloc[[2, 0, 3, 1, 4]])
    assert one.n_sets == other.n_sets == 2 and one.weight.tolist() == [1.0, 1.0]
    sums = {tuple(sorted(rows)) for rows in np.split(other.rows(np.arange(5))[:, 0], other.start[1:-1])}
    assert sums == {(1.0, 2.0), (3.0, 4.0, 5.0)}
    assert set(other.rows(other.log_row)[:, 0]) == {2.0, 3.0}


@pytest.mark.parametrize("flags", [[0, 0, 1, 0, 0], [1, 1, 1, 0, 0]])
def test_exactly_one_row_of_a_choice_is_chosen(flags):
    with pytest.raises(LivarotError, match="1 choices do not have exactly one chosen row"):
        choices_of(frame_of(chosen=flags))
    with pytest.raises(LivarotError) as caught:
        chosen_rows(np.array([False, False, True]), np.array([0, 2, 3]), "chosen", np.array([5, 6, 7]))
    assert caught.value.index == (5,)  # the row of the table as it was given


def test_a_state_belongs_to_the_whole_choice_and_a_next_state_is_listed_once():
    roles = {"action": ["go"] * 5, "next_state": ["a", "b", "a", "b", "c"]}
    with pytest.raises(LivarotError, match="changes within a choice"):
        choices_of(frame_of(state=["s", "t", "s", "s", "s"], **roles))
    with pytest.raises(LivarotError, match="names a next state twice"):
        choices_of(frame_of(state=["s"] * 5, **(roles | {"next_state": ["a", "a", "a", "b", "c"]})))


def test_equal_choices_are_stored_once_with_their_counts():
    frame = pd.DataFrame(
        {
            "choice": np.repeat(np.arange(6), 2),
            "state": "s",
            "action": "go",
            "next_state": ["a", "b"] * 6,
            "chosen": [1, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0],
            "x": [0.0, 1.0] * 5 + [0.0, 2.0],
        }
    )
    merged = choices_of(frame)
    assert merged.n_sets == 2 and merged.count.tolist() == [4.0, 1.0, 1.0, 0.0]
    assert merged.log_row.tolist() == [0, 1, 0, 0, 0, 2]
    assert merge_equal(merged, always=True).count.tolist() == merged.count.tolist()
