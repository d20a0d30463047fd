"""Probabilities of next states for the rows of a table: of both layouts, row by row, 0 for unreachable states."""

import numpy as np
import pandas as pd
import pytest

from livarot.data import MNLTransition
from livarot.data.use.predict import on_states, probabilities, sets_of
from livarot.errors import LivarotError
from tests.support.machine_logs import SETS, WEAR, fitted, with_covariates

ROWS = pd.DataFrame([("worn", "run"), ("new", "mend"), ("worn", "run"), ("used", "mend")], columns=["state", "action"])


def test_every_row_by_hand():
    fit = fitted(400)
    weight = dict(zip(fit.columns_, fit.theta_, strict=True))
    found = probabilities(fit, ROWS)
    for row, (state, action) in zip(found, ROWS.itertuples(index=False), strict=True):
        (own,) = [value for name, value in weight.items() if action in name]
        p = {s: np.exp(own * WEAR[s]) for s in SETS[state, action]}
        expected = [p.get(s, 0.0) / sum(p.values()) for s in fit.states_]
        np.testing.assert_allclose(row, expected, rtol=1e-12)


def test_equal_rows_share_a_set():
    for fit, rows in ((fitted(100), ROWS), (with_covariates(100), ROWS.assign(age=1.0, kind="saw"))):
        choices, row = sets_of(fit, rows)
        assert choices.n_sets == 3 and row[0] == row[2] and len(set(row.tolist())) == 3
        assert [fit.states_[s] for s in choices.state[row]] == rows.state.tolist()
        assert [fit.actions_[a] for a in choices.action[row]] == rows.action.tolist()


def test_numbers_of_rows_on_states():
    fit = fitted(100)
    choices, _ = sets_of(fit, ROWS.head(1))
    found = on_states(choices, np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]), 4)
    assert found.shape == (1, 4, 2) and found[0, fit.states_.index("new")].tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(found[0, choices.next_state], [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])


def test_alternatives_keep_the_order_of_their_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"choice": np.repeat(np.arange(30), 2), "x": rng.normal(size=60), "chosen": [1, 0] * 30})
    fit = MNLTransition(features=["x"]).fit(table)
    mixed = table.sample(frac=1.0, random_state=1)
    p = pd.Series(np.exp(fit.theta_[0] * mixed.x))
    expected = p / p.groupby(mixed.choice).transform("sum")
    np.testing.assert_allclose(probabilities(fit, mixed), expected, rtol=1e-12)
    with pytest.raises(LivarotError, match="data: has no next states"):
        on_states(fit.choices_, np.zeros(60), 2)
