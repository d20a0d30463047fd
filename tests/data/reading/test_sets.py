"""Reachable sets: given in several forms, all states, or inferred with a warning."""

import numpy as np
import pandas as pd
import pytest

from livarot.data import DataWarning, MNLTransition
from tests.support.patients import LOG, REACHABLE

ROWS = [(s, a, t) for (s, a), nexts in REACHABLE.items() for t in nexts]


@pytest.fixture(scope="module")
def fit():
    return MNLTransition(features=["action:severity"], reachable=REACHABLE).fit(LOG)


def test_inferred_sets_warn_and_say_what_they_assume(fit):
    with pytest.warns(DataWarning, match=r"never seen after a \(state, action\) is taken to be impossible.*reachable="):
        other = MNLTransition(features=["action:severity"]).fit(LOG)
    np.testing.assert_array_equal(other.theta_, fit.theta_)


@pytest.mark.parametrize(
    "reachable",
    [
        {"well": ["well", "ill"], "ill": ["well", "ill", "dead"]},
        pd.DataFrame(ROWS, columns=["state", "action", "next_state"]),
        pd.DataFrame([(s, t) for s, a, t in ROWS if a == "wait"], columns=["state", "next_state"]),
    ],
    ids=["by state", "table", "table by state"],
)  # fmt: skip
def test_forms_of_reachable_sets(fit, reachable):
    other = MNLTransition(features=["action:severity"], reachable=reachable).fit(LOG)
    np.testing.assert_array_equal(other.theta_, fit.theta_)


def test_all_states_reachable():
    fit = MNLTransition(features=["action:severity"], reachable="all", reg=1.0).fit(LOG)
    assert fit.choices_.n_sets == 6 and (fit.choices_.sizes == 3).all()
    assert fit.predict_proba(LOG.head(2)).min() > 0.0


@pytest.mark.parametrize("kind", ["wald", "finite-sample"])
def test_the_sets_of_all_stages_hold_together(kind):
    """Five sets at level .9 together are five sets at level 1 - .1/5 alone (union bound)."""
    settings = {"features": ["action:severity"], "reachable": REACHABLE}
    sets = MNLTransition(**settings, homogeneous=False, stage="t").fit(LOG).confidence_set(0.9, kind)
    for k, own in enumerate(sets):
        alone = MNLTransition(**settings).fit(LOG[LOG.t == k])
        assert own.radius == pytest.approx(alone.confidence_set(0.98, kind).radius, rel=1e-9)
        assert own.radius > 1.05 * alone.confidence_set(0.9, kind).radius
        if kind == "wald":  # the quantile of a chi square with two degrees of freedom is -2 log(1 - level)
            assert own.radius == pytest.approx(np.sqrt(-2 * np.log(0.02)), rel=1e-12)
