"""Who was observed, how often and with which weight: frequencies and weights multiply, and are kept apart."""

import numpy as np
import pandas as pd
import pytest

from livarot.data import Choices, MNLTransition
from livarot.data.reading.columns import Columns
from livarot.data.reading.observations import logged
from livarot.data.reading.table import read_table
from livarot.errors import LivarotError

TABLE = pd.DataFrame({"n": [1, 5, 2, 3], "w": [0.5, 9.0, 2.0, 0.0], "who": ["b", "x", "a", "b"]})
ROW, TABLE_ROW = np.array([1, 1, 3]), np.array([0, 2, 3])  # the second row of the table is of no observation


def read(table=TABLE, *, needed=True, **roles):
    choices = Choices.from_arrays(np.zeros((2, 2, 1)), chosen=[0, 0])
    columns = Columns.of(MNLTransition(features=["x"], **roles))
    return logged(choices, ROW, TABLE_ROW, read_table(table), columns, needed=needed)


@pytest.mark.parametrize(
    ("roles", "count"),
    [
        ({}, [0, 2, 0, 1]),
        ({"count": "n"}, [0, 3, 0, 3]),
        ({"weights": "w"}, [0, 2.5, 0, 0]),
        ({"count": "n", "weights": "w"}, [0, 0.5 * 1 + 2.0 * 2, 0, 0]),
    ],
)
def test_the_likelihood_has_their_product(roles, count):
    found = read(**roles)
    assert found.count.tolist() == count and found.log_row.tolist() == [1, 1, 3]
    assert (found.log_count is None) == ("count" not in roles)
    assert (found.log_weight is None) == ("weights" not in roles)


def test_each_is_kept_for_the_variance():
    found = read(count="n", weights="w", cluster="who")
    assert found.log_count.tolist() == [1, 2, 3] and found.log_weight.tolist() == [0.5, 2.0, 0.0]
    assert found.cluster[0] == found.cluster[2] != found.cluster[1]
    assert found.n_observations == 6.0 and found.n_choices == 4.5


def test_predictions_need_neither_weights_nor_clusters():
    bare = TABLE[["n"]]
    found = read(bare, needed=False, weights="w", cluster="who")
    assert found.log_weight is None and found.cluster is None and found.count.tolist() == [0, 2, 0, 1]
    for role in ("weights", "cluster"):
        with pytest.raises(LivarotError, match=f"{role}: there is no column"):
            read(bare, **{role: "gone"})


def test_weights_that_are_negative_or_all_zero():
    with pytest.raises(LivarotError, match="negative weights") as caught:
        read(TABLE.assign(w=[1.0, -1.0, -2.0, 1.0]), weights="w")
    assert (caught.value.index, caught.value.count) == ((1,), 2)
    with pytest.raises(LivarotError, match="are all zero"):
        read(TABLE.assign(w=[0.0, 9.0, 0.0, 0.0]), weights="w")
