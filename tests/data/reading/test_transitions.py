"""Logged transitions: counts, reachable sets, labels, stages, and the way to an MDP."""

import numpy as np
import pandas as pd
import pytest

from livarot.data import MNLTransition, held_out, influence, labels_of, residuals
from livarot.errors import LivarotError
from tests.support.patients import LOG, REACHABLE, SEVERITY, expanded

STATES = {"states": pd.DataFrame({"s": SEVERITY})}
AT = r".*first at index 7"


@pytest.fixture(scope="module")
def fit():
    return MNLTransition(features=["action:severity"], reachable=REACHABLE).fit(LOG)


def test_both_layouts_give_the_same_model(fit):
    """Counts are sufficient: 1500 logs are four choice sets, in either layout and in any order of the rows."""
    long = expanded(LOG)
    for table in (long, long.sample(frac=1.0, random_state=1)):
        other = MNLTransition(features=["treat", "wait"]).fit(table)
        assert other.choices_.n_sets == fit.choices_.n_sets == 4
        np.testing.assert_array_equal(other.theta_, fit.theta_)
        assert other.log_likelihood_ == pytest.approx(fit.log_likelihood_, rel=1e-14)
        p = other.predict_proba(table)
        dense = fit.predict_proba(table)
        np.testing.assert_allclose(p, dense[np.arange(len(p)), fit.states_.encode(table.next_state)], rtol=1e-12)
        assert other.score(table) == pytest.approx(fit.score(LOG), rel=1e-12)


def test_without_states_nothing_is_merged(fit):
    """Choice-specific features: every choice is a set of its own, and the estimate is the same."""
    other = MNLTransition(features=["treat", "wait"]).fit(expanded(LOG)[["choice", "chosen", "treat", "wait"]])
    assert other.choices_.n_sets == 1500
    np.testing.assert_allclose(other.theta_, fit.theta_, atol=1e-9)
    np.testing.assert_allclose(other.covariance_, fit.covariance_, rtol=1e-9)


def test_counts_column(fit):
    small = LOG.groupby(["state", "action", "next_state", "severity"], as_index=False).size()
    other = MNLTransition(features=["action:severity"], reachable=REACHABLE, count="size").fit(small)
    np.testing.assert_array_equal(other.theta_, fit.theta_)
    assert other.n_choices_ == 1500


def test_labels_of_any_kind():
    """Tuples and numbers as states, text as actions; they come back in predictions and in the MDP."""
    log = LOG.assign(
        state=[(s, len(s)) for s in LOG.state],
        next_state=[(s, len(s)) for s in LOG.next_state],
        action=LOG.action == "wait",
    )
    fit = MNLTransition(features=["action:severity"], reachable="all", reg=0.1).fit(log)
    assert set(fit.states_) == {("well", 4), ("ill", 3), ("dead", 4)} and list(fit.actions_) == [False, True]
    assert fit.predict(log.head(1))[0] in fit.states_
    mdp = fit.to_mdp({("well", 4): 1.0, ("ill", 3): 0.0}, 3, ("well", 4), terminal=("dead", 4))
    assert labels_of(mdp).states == fit.states_


def test_stages(fit):
    """One theta per stage is what separate fits of the stages give."""
    staged = MNLTransition(features=["action:severity"], reachable=REACHABLE, homogeneous=False, stage="t").fit(LOG)
    assert (
        staged.theta_.shape == (5, 2)
        and staged.covariance_.shape == (5, 2, 2)
        and list(staged.stages_) == list(range(5))
    )
    total = 0.0
    for k in range(5):
        alone = MNLTransition(features=["action:severity"], reachable=REACHABLE).fit(LOG[LOG.t == k])
        np.testing.assert_allclose(staged.theta_[k], alone.theta_, atol=1e-9)
        total += alone.log_likelihood_
    assert staged.log_likelihood_ == pytest.approx(total)
    assert staged.score(LOG) == pytest.approx(total / 1500)
    np.testing.assert_allclose(staged.predict_proba(LOG).sum(axis=1), 1.0)
    assert len(staged.confidence_set()) == len(staged.confidence_set(kind="finite-sample")) == 5
    assert influence(staged)["count"].sum() == 1500 and len(residuals(staged, by="stage")) == 5
    assert held_out(staged, LOG).model == pytest.approx(-staged.score(LOG))
    mdp = staged.to_mdp(reward={"well": 1.0, "ill": 0.0}, terminal="dead")
    assert mdp.problem.horizon == 5 and not mdp.problem.shared_parameter
    first = LOG[LOG.t == 0].state.value_counts(normalize=True)
    assert mdp.problem.start[staged.states_.index("well")] == pytest.approx(first["well"])
    long = MNLTransition(features=["treat", "wait"], homogeneous=False, stage="t").fit(expanded(LOG))
    np.testing.assert_allclose(long.theta_, staged.theta_, atol=1e-12)
    with pytest.raises(LivarotError, match="stage: is not given"):
        MNLTransition(features=["action:severity"], reachable=REACHABLE, homogeneous=False).fit(LOG)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"next_state": "mars"}, {}, r"column 'next_state': 1 rows went to a next state outside.*'mars'" + AT),
        ({"state": "mars"}, {}, r"column 'state': 1 rows have a \(state, action\) without a reachable set" + AT),
        ({"state": "well", "next_state": "dead", "severity": 3.0}, {}, r"1 rows went to a next state outside" + AT),
        ({"state": None}, {}, r"column 'state': missing values" + AT),
        ({"severity": np.nan}, {}, r"column 'severity': missing values" + AT),
        ({"severity": np.inf}, {}, r"column 'severity': infinite values" + AT),
        ({"severity": 9.0}, {}, r"column 'severity': is not a function of 'next_state'.*several values" + AT),
        ({"state": "mars"}, STATES, r"column 'state': 1 rows.*not known, such as 'mars'" + AT),
        ({"next_state": "mars"}, STATES, r"column 'next_state': 1 rows.*'mars'" + AT),
        ({"action": "pray"}, {}, r"column 'state': 1 rows have a \(state, action\) without.*'pray'" + AT),
    ],
)  # fmt: skip
def test_bad_logs(change, options, message):
    log = LOG.copy().astype({"state": object})
    for column, value in change.items():
        log.loc[7, column] = value
    reachable = {("well", "wait"): ["well", "ill"], **REACHABLE}
    with pytest.raises(LivarotError, match=message):
        MNLTransition(features=["severity"], reachable=reachable, **options).fit(log)


def test_select_and_resample(fit):
    data = fit.choices_
    part = data.select(data.weight > 400)
    assert part.n_choices == data.weight[data.weight > 400].sum() and len(part.log_row) == part.n_choices
    np.testing.assert_array_equal(np.bincount(part.log_row, minlength=part.n_rows), part.count)
    twice = MNLTransition().fit(data.with_counts(2.0 * data.count))
    np.testing.assert_allclose(twice.theta_, fit.theta_, atol=1e-9)
    np.testing.assert_allclose(twice.covariance_, fit.covariance_ / 2.0, rtol=1e-8)
