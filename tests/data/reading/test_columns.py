"""Roles of columns, and the small checks that both layouts share."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from livarot import LivarotError
from livarot.data import MNLTransition
from livarot.data.reading.columns import Columns, constant_within, counts_of, log_nominal
from livarot.data.reading.table import read_table


def test_every_role_is_a_setting_of_the_estimator():
    estimator = MNLTransition(features=["x"], state="s", nominal="p")
    columns = Columns.of(estimator)
    assert (columns.features, columns.state, columns.action, columns.nominal) == (["x"], "s", "action", "p")
    with pytest.raises(AttributeError):
        Columns.of(SimpleNamespace(features=[]))


def test_counts_are_not_negative():
    table = read_table(pd.DataFrame({"n": [1, 0, 2], "m": [1.0, -1.0, -2.0]}))
    np.testing.assert_array_equal(counts_of(table, "n"), [1.0, 0.0, 2.0])
    with pytest.raises(LivarotError, match="negative counts") as caught:
        counts_of(table, "m")
    assert (caught.value.index, caught.value.count) == ((1,), 2)


@pytest.mark.parametrize("wrong", [0.0, -0.5, float("nan")])
def test_nominal_probabilities_are_positive(wrong):
    np.testing.assert_allclose(log_nominal(np.array([0.5, 1.0]), "p"), [np.log(0.5), 0.0])
    with pytest.raises(LivarotError, match="not positive") as caught:
        log_nominal(np.array([0.5, wrong]), "p")
    assert caught.value.index == (1,)


def test_what_is_constant_within_each_set():
    codes, start = np.array([3, 3, 1, 2, 2]), np.array([0, 2, 4, 5])
    assert constant_within(codes, start).tolist() == [True, False, True]
