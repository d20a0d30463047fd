"""The formula language, on tables of alternatives and on reachable sets."""

import numpy as np
import pandas as pd
import pytest

from livarot.data import Computed, MNLTransition
from livarot.data.reading.columns import Columns
from livarot.data.reading.read import read_choices
from livarot.errors import LivarotError

LOG = pd.DataFrame(
    {
        "state": ["a", "a", "b", "b", "c", "c"],
        "action": ["u", "v", "u", "v", "u", "v"],
        "next_state": ["a", "b", "b", "c", "c", "a"],
    }
)
STATES = pd.DataFrame({"state": ["a", "b", "c"], "x": [1.0, 2.0, 4.0], "zone": ["n", "s", "n"]})
ACTIONS = pd.DataFrame({"dose": [10.0, 20.0]}, index=["u", "v"])


def matrix(features, **more):
    given = {"reachable": "all", "states": STATES, "actions": ACTIONS} | more
    choices = read_choices(LOG, Columns(features=features, **given))
    return choices.columns, choices.rows(slice(None)), choices.frame()


def test_terms_by_hand():
    """Every term against a loop over the rows."""
    terms = ["x", "C(zone)", "action:x", "state.x:x", "action.dose:C(zone)", "C(state.zone):x", "next_state"]
    names, found, rows = matrix(terms)
    x = dict(zip(STATES.state, STATES.x, strict=True))
    zone = dict(zip(STATES.state, STATES.zone, strict=True))
    dose = {"u": 10.0, "v": 20.0}
    expected = []
    for _, row in rows.iterrows():
        s, a, t = row.state, row.action, row.next_state
        expected.append(
            [x[t], zone[t] == "s", (a == "u") * x[t], (a == "v") * x[t], x[s] * x[t], dose[a] * (zone[t] == "s"),
             (zone[s] == "n") * x[t], (zone[s] == "s") * x[t], t == "b", t == "c"]
        )  # fmt: skip
    assert names == (
        "x", "C(zone)[s]", "action[u]:x", "action[v]:x", "state.x:x", "action.dose:C(zone)[s]",
        "C(state.zone)[n]:x", "C(state.zone)[s]:x", "next_state[b]", "next_state[c]",
    )  # fmt: skip
    np.testing.assert_array_equal(found, np.asarray(expected, dtype=float))


def test_computed_features_see_labels():
    order = {"a": 0, "b": 1, "c": 2}
    far = Computed("far", lambda rows: (rows.next_state.map(order) - rows.state.map(order)).abs())
    names, found, rows = matrix([far])
    assert names == ("far",)
    for value, (_, row) in zip(found[:, 0], rows.iterrows(), strict=True):
        assert value == abs(order[row.next_state] - order[row.state])
    with pytest.raises(LivarotError, match="one number per row"):
        matrix([Computed("wrong", lambda rows: [1.0])])


def test_attributes_from_the_log_and_from_the_reachable_sets():
    log = LOG.assign(x=LOG.next_state.map({"a": 1.0, "b": 2.0, "c": 4.0}))
    found = read_choices(log, Columns(features=["x"], reachable="all")).rows(slice(None))
    np.testing.assert_array_equal(found, matrix(["x"])[1])
    reachable = pd.DataFrame({"state": list("aabbcc"), "next_state": list("abbcca"), "cost": np.arange(6.0)})
    choices = read_choices(LOG, Columns(features=["cost"], reachable=reachable))  # for every action
    frame = choices.frame().assign(cost=choices.rows(slice(None))[:, 0])
    merged = frame.merge(reachable, on=["state", "next_state"], suffixes=("", "_given"))
    assert len(merged) == 12 and (merged.cost == merged.cost_given).all()


def test_nominal_probabilities_are_the_offset():
    nominal = {("a", "u"): {"a": 0.9, "b": 0.1}, ("a", "v"): {"a": 0.5, "b": 0.5}}
    log = pd.DataFrame({"state": ["a"] * 4, "action": list("uuvv"), "next_state": list("abab"), "x": [0.0, 1.0] * 2})
    choices = read_choices(log, Columns(features=["x"], reachable=nominal, nominal="p0"))
    np.testing.assert_allclose(np.exp(choices.offset), [0.9, 0.1, 0.5, 0.5])
    with pytest.raises(LivarotError, match="nominal: needs the table of reachable sets"):
        read_choices(log, Columns(features=["x"], reachable="all", nominal="p0"))
    zero = {("a", "u"): {"a": 1.0, "b": 0.0}, ("a", "v"): {"a": 0.5, "b": 0.5}}
    with pytest.raises(LivarotError, match=r"column 'p0': not positive \(1 in all, first at index 1\)"):
        read_choices(log, Columns(features=["x"], reachable=zero, nominal="p0"))


def test_categories_and_products_of_alternatives():
    rng = np.random.default_rng(0)
    n = 200
    table = pd.DataFrame(
        {
            "choice": np.repeat(np.arange(n), 3),
            "chosen": np.tile([1, 0, 0], n),
            "price": rng.normal(size=3 * n),
            "brand": rng.choice(["p", "q", "r"], size=3 * n),
            "season": np.repeat(rng.choice(["hot", "cold"], size=n), 3),  # the same within a choice
            "log:price": rng.normal(size=3 * n),  # a name with a colon is still a name
        }
    )
    table["chosen"] = (rng.random((n, 3)).argmax(axis=1)[:, None] == np.arange(3)).reshape(-1).astype(int)
    fit = MNLTransition(features=["price:C(season)", "C(brand)", "log:price"]).fit(table)
    assert fit.columns_ == ("price:C(season)[cold]", "price:C(season)[hot]", "C(brand)[q]", "C(brand)[r]", "log:price")
    np.testing.assert_allclose(fit.predict_proba(table).reshape(n, 3).sum(axis=1), 1.0)
    other = table.head(3).assign(brand=["p", "p", "z"])
    with pytest.raises(
        LivarotError, match=r"category 'z' was not in the data the model was fitted to.*first at index 2"
    ):
        fit.predict_proba(other)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (None, "features: none are given"),
        ([], "features: none are given"),
        ([3], "3 is neither text nor Computed"),
        (["x", "x"], "'x' is given twice"),
        (["action:"], "empty factor"),
        (["unknown"], "there is no column 'unknown'"),
        (["zone"], r"must hold numbers.*C\(zone\)"),
        (["stage:x"], "stage: is not given"),
    ],
)
def test_bad_terms(features, message):
    with pytest.raises(LivarotError, match=message):
        matrix(features)
