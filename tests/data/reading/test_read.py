"""Which layout a table has."""

import pandas as pd
import pytest

from livarot import LivarotError
from livarot.data.reading.columns import Columns
from livarot.data.reading.read import read_choices

LOG = pd.DataFrame({"state": ["a", "a", "b"], "action": ["x"] * 3, "next_state": ["a", "b", "a"]})
LONG = pd.DataFrame(
    {
        "choice": [0, 0, 1, 1],
        "state": ["a"] * 4,
        "action": ["x"] * 4,
        "next_state": ["a", "b", "a", "b"],
        "chosen": [True, False, False, True],
        "size": [0.0, 1.0, 0.0, 1.0],
    }
)
SIZE = pd.DataFrame({"size": {"a": 0.0, "b": 1.0}})


@pytest.mark.filterwarnings("ignore::livarot.data.DataWarning")
def test_a_chosen_column_makes_alternatives_and_anything_else_transitions():
    long = read_choices(LONG, Columns(["size"]))
    log = read_choices(LOG, Columns(["next.size"], states=SIZE))
    assert (long.layout, log.layout) == ("alternatives", "transitions")
    assert long.n_sets == 1 and long.count.tolist() == [1.0, 1.0]  # equal sets are stored once
    assert log.weight.sum() == 3 and [*log.labels.states] == ["a", "b"]


@pytest.mark.filterwarnings("ignore::livarot.data.DataWarning")
def test_new_transitions_are_counted_in_the_sets_of_the_fit():
    columns = Columns(["next.size"], states=SIZE)
    fitted = read_choices(LOG, columns)
    again = read_choices(LOG.iloc[:1], columns, like=fitted)
    assert again.n_sets == fitted.n_sets and again.weight.sum() == 1


def test_an_empty_table_is_refused():
    with pytest.raises(LivarotError, match="the table has no rows"):
        read_choices(LONG.iloc[:0], Columns(["size"]))
