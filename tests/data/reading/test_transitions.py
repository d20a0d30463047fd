"""Logged transitions: counts, reachable sets, labels, stages, and the way to an MDP."""

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot.data import Choices, DataWarning, MNLTransition, held_out, influence, labels_of, residuals
from livarot.errors import LivarotError

SEVERITY = {"well": 0.0, "ill": 1.0, "dead": 3.0}
REACHABLE = {
    ("well", "wait"): ["well", "ill"],
    ("well", "treat"): ["well", "ill"],
    ("ill", "wait"): ["well", "ill", "dead"],
    ("ill", "treat"): ["well", "ill", "dead"],
}


def truth(state, action):
    """The distribution the logs are drawn from: weight e^(coefficient x severity)."""
    nexts = REACHABLE[state, action]
    weights = np.array([np.exp((-1.0 if action == "treat" else -0.5) * SEVERITY[s]) for s in nexts])
    return nexts, weights / weights.sum()


def simulate(n, seed=0, horizon=5):
    rng = np.random.default_rng(seed)
    rows, state = [], "well"
    for t in range(n):
        action = str(rng.choice(["wait", "treat"]))
        nexts, p = truth(state, action)
        after = nexts[rng.choice(len(nexts), p=p)]
        rows.append((t % horizon, state, action, after, SEVERITY[after]))
        state = "well" if after == "dead" else after
    return pd.DataFrame(rows, columns=["t", "state", "action", "next_state", "severity"])


LOG = simulate(1500)
ROWS = [(s, a, t) for (s, a), nexts in REACHABLE.items() for t in nexts]
STATES = {"states": pd.DataFrame({"s": SEVERITY})}
AT = r".*first at index 7"


def expanded(log):
    """The same log with one row per alternative."""
    rows = []
    for i, row in enumerate(log.itertuples()):
        for s in REACHABLE[row.state, row.action]:
            wait, treat = (SEVERITY[s] * (row.action == a) for a in ("wait", "treat"))
            rows.append((i, row.t, row.state, row.action, s, s == row.next_state, treat, wait))
    return pd.DataFrame(rows, columns=["choice", "t", "state", "action", "next_state", "chosen", "treat", "wait"])


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
    mdp = fit.to_mdp(reward={("well", 4): 1.0}, horizon=3, start=("well", 4))
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
    mdp = staged.to_mdp(reward={"well": 1.0})
    assert mdp.problem.horizon == 5 and not mdp.problem.shared_parameter
    first = LOG[LOG.t == 0].state.value_counts(normalize=True)
    assert mdp.problem.start[staged.states_.index("well")] == pytest.approx(first["well"])
    long = MNLTransition(features=["treat", "wait"], homogeneous=False, stage="t").fit(expanded(LOG))
    np.testing.assert_allclose(long.theta_, staged.theta_, atol=1e-12)
    with pytest.raises(LivarotError, match="stage: is not given"):
        MNLTransition(features=["action:severity"], reachable=REACHABLE, homogeneous=False).fit(LOG)


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


def test_the_mdp_has_the_fitted_probabilities(fit):
    mdp = fit.to_mdp(reward={"well": 1.0, ("ill", "wait"): 0.5}, horizon=4, start={"well": 0.5, "ill": 0.5})
    labels = labels_of(mdp)
    for (s, a), nexts in REACHABLE.items():
        i, j = labels.states.index(s), labels.actions.index(a)
        found = dict(
            zip(labels.states.decode(mdp.problem.next_states(0, i, j)), mdp.probabilities(0, i, j), strict=True)
        )
        p = fit.predict_proba({"state": [s], "action": [a]})[0]
        assert set(found) == set(nexts)
        for s2 in nexts:
            assert found[s2] == pytest.approx(p[labels.states.index(s2)], rel=1e-12)
    dead = labels.states.index("dead")  # nothing was ever logged there: absorbing
    assert list(mdp.problem.next_states(0, dead, 0)) == [dead]
    ill, wait = labels.states.index("ill"), labels.actions.index("wait")
    assert mdp.problem.reward[0, ill, wait] == 0.5 and mdp.problem.reward[0, ill, 1 - wait] == 0.0
    assert mdp.problem.start[ill] == 0.5
    np.testing.assert_allclose(mdp.original_theta[0], fit.theta_, rtol=1e-12)
    assert np.isfinite(livarot.solve(mdp).value).all()
    scaled = fit.confidence_set(problem=mdp.problem)
    np.testing.assert_allclose(scaled.center, mdp.theta[0], rtol=1e-12)
    direction = np.array([1.0, 2.0])
    plain = fit.confidence_set()
    assert scaled.width(direction) == pytest.approx(plain.width(direction) * mdp.problem.feature_scale)


def test_unseen_pairs():
    log = LOG[~((LOG.state == "ill") & (LOG.action == "wait"))]
    with pytest.warns(DataWarning, match="inferred"):
        fit = MNLTransition(features=["action:severity"]).fit(log)
    with pytest.raises(LivarotError, match=r"1 \(state, action\) have no reachable set, such as \('ill', 'wait'\)"):
        fit.to_mdp(reward={"well": 1.0}, horizon=3, start="well")
    stay = fit.to_mdp(reward={"well": 1.0}, horizon=3, start="well", unseen="stay")
    ill, wait = fit.states_.index("ill"), fit.actions_.index("wait")
    assert list(stay.problem.next_states(0, ill, wait)) == [ill]
    sink = fit.to_mdp(reward=lambda s, a: float(s == "well"), horizon=3, start="well", unseen="sink")
    labels = labels_of(sink)
    assert labels.states[-1] == "(unseen)" and list(sink.problem.next_states(0, ill, wait)) == [len(labels.states) - 1]
    assert (sink.problem.reward[:, -1] == 0.0).all()
    assert fit.support().loc[("well", "treat"), "count"] == ((log.state == "well") & (log.action == "treat")).sum()


def test_stage_column_does_not_fix_the_horizon_of_a_shared_model():
    long = MNLTransition(features=["treat", "wait"], stage="t").fit(expanded(LOG))
    assert long.choices_.n_sets == 20
    assert long.to_mdp(reward={"well": 1.0}, horizon=9).problem.horizon == 9


def test_features_that_change_from_choice_to_choice_are_no_mdp():
    table = expanded(LOG.head(200)).assign(noise=lambda t: np.random.default_rng(0).normal(size=len(t)))
    fit = MNLTransition(features=["treat", "noise"]).fit(table)
    with pytest.raises(LivarotError, match="differ from choice to choice"):
        fit.to_mdp(reward={"well": 1.0}, horizon=3, start="well")


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


def test_plain_arrays():
    x = np.arange(12.0).reshape(2, 3, 2)
    data = Choices.from_arrays(x, chosen=[2, 0])
    assert np.shares_memory(data.features, x) and list(data.log_row) == [2, 3]
    flat = Choices.from_arrays(x.reshape(6, 2)[[3, 0, 4, 1, 5, 2]], choice=[1, 0] * 3, chosen=[1, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(flat.count, [1, 0, 0, 0, 0, 1])
    with pytest.raises(LivarotError, match=r"chosen: outside 0..2 \(1 in all, first at index 1\)"):
        Choices.from_arrays(x, chosen=[0, 3])
