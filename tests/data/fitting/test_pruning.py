"""Columns without information are dropped with one warning; collinear ones are refused or dropped, as asked."""

import warnings

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot.data import (
    Choices,
    MNLTransition,
    NotIdentified,
    bootstrap,
    coverage_coefficients,
    influence,
    load_fit,
    lr_test,
    plan_optimistic,
    plan_pessimistic,
    plan_robust,
    relative_risk_ratios,
    save_fit,
    value_interval,
    wald_test,
    warm_start,
)
from livarot.data.fitting.separation import separation
from livarot.errors import LivarotError


def ratings(n=600, seed=0):
    """A rating matrix with structural zeros: from A never to C, D is never left."""
    rng = np.random.default_rng(seed)
    state = rng.choice(["A", "B", "C"], n)
    after = [str(rng.choice({"A": ["A", "B"], "B": ["A", "B", "C"], "C": ["B", "C", "D"]}[s])) for s in state]
    return pd.DataFrame({"state": state, "next_state": after})


def heard(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        made = call()
    return made, [str(one.message) for one in found if "inferred" not in str(one.message)]


def test_a_saturated_model_with_empty_cells_gives_the_frequencies():
    log = ratings()
    for options in (
        {"features": ["state:next_state"]},
        {"formula": "~ state:next_state"},
        {"formula": "~ state*next_state"},
    ):
        fit, told = heard(lambda options=options: MNLTransition(action=None, collinear="drop", **options).fit(log))
        assert sum("without information" in text for text in told) == 1 and fit.dropped_
        assert str(len(fit.dropped_)) in str(fit.summary())
        expected = pd.crosstab(log.state, log.next_state, normalize="index").to_numpy()
        rows = pd.DataFrame({"state": ["A", "B", "C"]})
        np.testing.assert_allclose(fit.predict_proba(rows), expected, atol=1e-8)


def test_one_warning_names_the_columns():
    log = ratings()
    fit, told = heard(lambda: MNLTransition(formula="~ state:next_state", action=None).fit(log[log.state != "C"]))
    assert len(told) == 1 and "without information, dropped: " in told[0] and "next_state[C]" in told[0]
    assert all(name in told[0] for name in fit.dropped_) and not set(fit.dropped_) & set(fit.columns_)


def test_a_term_that_says_nothing_is_still_refused():
    log = ratings().assign(age=1.0)
    with pytest.raises(NotIdentified, match="constant within every choice set"):
        MNLTransition(features=["next_state", "state"], action=None, reachable="all").fit(log)


def table(n=200):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3 * n, 2))
    found = pd.DataFrame(
        {"choice": np.repeat(np.arange(n), 3), "a": x[:, 0], "b": x[:, 1], "c": x[:, 0] - 2.0 * x[:, 1]}
    )
    found["d"] = found.b + found.choice  # the same as b within a choice
    found["chosen"] = np.tile([True, False, False], n)[rng.permutation(3 * n).argsort().argsort()]
    found["chosen"] = (np.arange(3 * n) % 3) == np.repeat(rng.integers(3, size=n), 3)
    return found


def test_collinear_columns_are_refused_or_dropped():
    with pytest.raises(NotIdentified, match=r"collinear within choice sets.*collinear='drop'"):
        MNLTransition(features=["a", "b", "c", "d"]).fit(table())
    fit, told = heard(lambda: MNLTransition(features=["a", "b", "c", "d"], collinear="drop").fit(table()))
    assert len(told) == 1 and "dropped: 'c', 'd'" in told[0] and fit.dropped_ == ("c", "d")
    plain = MNLTransition(features=["a", "b"]).fit(table())
    np.testing.assert_array_equal(fit.theta_, plain.theta_)
    np.testing.assert_array_equal(fit.predict_proba(table()), plain.predict_proba(table()))
    with pytest.raises(LivarotError, match="collinear: 'keep' is not known"):
        MNLTransition(features=["a"], collinear="keep").fit(table())


def test_what_was_dropped_is_in_the_file(tmp_path):
    fit, _ = heard(lambda: MNLTransition(features=["a", "b", "c"], collinear="drop").fit(table()))
    save_fit(tmp_path / "m", fit)
    again = load_fit(tmp_path / "m")
    assert again.dropped_ == ("c",)
    np.testing.assert_array_equal(again.predict_proba(table()), fit.predict_proba(table()))


def test_a_ridge_is_not_advised_where_there_is_one():
    """At most one warning about columns, and none that advises reg > 0."""
    log = ratings(6).assign(u=1.0)  # fewer than coefficients
    _, told = heard(lambda: MNLTransition(features=["next_state", "state:next_state"], action=None, reachable="all",
                                          reg=1.0).fit(log))  # fmt: skip
    assert any("the ridge decides" in text for text in told) and not any("reg > 0" in text for text in told)
    assert sum("the ridge alone decides" in text for text in told) <= 1


def nearly(small, n=400):
    """p = 2x + small z, and choices by x."""
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    chosen = (x + rng.gumbel(size=(n, 3))).argmax(axis=1)
    data = pd.DataFrame({"choice": np.repeat(np.arange(n), 3), "x": x.reshape(-1)})
    data["p"] = 2.0 * data.x + small * z.reshape(-1)
    return data.assign(chosen=np.tile(np.arange(3), n) == np.repeat(chosen, 3))


@pytest.mark.filterwarnings("ignore::livarot.data.DataWarning")
def test_nearly_collinear_is_not_separable():
    """The data overlap, and no certificate may say otherwise: what is wrong is the collinearity."""
    fit, alone = (MNLTransition(features=names).fit(nearly(1e-6)) for names in (["x", "p"], ["x"]))
    assert fit.converged_ and fit.log_likelihood_ >= alone.log_likelihood_
    for small in (1e-8, 1e-9):
        with pytest.raises(LivarotError, match="collinear") as caught:
            MNLTransition(features=["x", "p"]).fit(nearly(small))
        assert "separable" not in str(caught.value)


@pytest.mark.parametrize("small", [1e-6, 1e-8, 1e-9])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_direction_along_which_nothing_moves_proves_nothing(small, sign):
    data = nearly(small)
    choices = Choices.from_arrays(data[["x", "p"]].to_numpy(), chosen=data.chosen, choice=data.choice)
    assert separation(choices, sign * np.array([2.0, -1.0]), np.ones(2)) is None


def staged(n=900, seed=0):
    """Three stages, two actions; at stage 0 nobody is worn out, and at stage 1 nobody rests when new."""
    rng = np.random.default_rng(seed)
    stage, names = rng.integers(3, size=n), np.array(["new", "old", "worn"])
    state = np.where(stage == 0, rng.integers(2, size=n), rng.integers(3, size=n))
    action = rng.choice(["rest", "run"], size=n)
    action[(stage == 1) & (state == 0)] = "run"
    gain = rng.gumbel(size=(n, 3)) + 0.5 * (action == "run")[:, None] * np.arange(3)
    table = {"stage": stage, "state": names[state], "action": action, "next_state": names[gain.argmax(axis=1)]}
    return pd.DataFrame(table)


CELLS = {"features": ["state:action:next_state"], "reachable": "all", "stage": "stage", "homogeneous": False}
PAYS = {"new": 1.0, "old": 0.5, "worn": 0.0}


@pytest.fixture(scope="module")
def by_stage():
    return heard(lambda: MNLTransition(collinear="drop", **CELLS).fit(staged()))


def test_what_says_nothing_at_a_stage_is_held_there(by_stage):
    """The frequencies of every (stage, state, action) that was met, and no model where nothing was."""
    fit, told = by_stage
    log = staged()
    assert len(told) == 1 and "without information at a stage, held at 0 there" in told[0]
    assert "'state[new]:action[rest]:next_state[old]' at stage 1" in told[0]
    assert "never met and not known without them: " in told[0] and "('worn', 'rest')" in told[0]
    expected = pd.crosstab([log.stage, log.state, log.action], log.next_state, normalize="index")
    rows = expected.index.to_frame(index=False)
    np.testing.assert_allclose(fit.predict_proba(rows), expected.to_numpy(), atol=1e-7)
    assert fit.held_.shape == fit.theta_.shape and (fit.theta_[fit.held_] == 0.0).all()
    assert fit.held_.sum() == 4 + 2 and fit.n_parameters_ == 2 * len(expected)  # worn at 0: 2 actions; new, rest at 1
    with pytest.raises(LivarotError, match=r"without a reachable set.*dropped for want of data"):
        fit.predict_proba({"stage": [0], "state": ["worn"], "action": ["run"]})


def test_a_model_per_stage_is_that_of_the_stage_alone(by_stage):
    fit, log, compared = by_stage[0], staged(), 0
    for k in range(3):
        own, _ = heard(lambda k=k: MNLTransition(
            features=CELLS["features"], reachable="all", collinear="drop").fit(log[log.stage == k]))  # fmt: skip
        mine = [fit.columns_.index(name) for name in own.columns_ if name in fit.columns_]
        free = np.flatnonzero(~fit.held_[k])
        assert own.log_likelihood_ == pytest.approx(fit.maxima_[k].log_likelihood)
        if sorted(mine) == free.tolist():  # else another cell is the reference
            compared += 1
            theirs = [own.columns_.index(fit.columns_[j]) for j in free]
            np.testing.assert_allclose(fit.theta_[k, free], own.theta_[theirs], atol=1e-6)
            np.testing.assert_allclose(
                fit.covariance_[k][np.ix_(free, free)], own.covariance_[np.ix_(theirs, theirs)], rtol=1e-5, atol=1e-8
            )
    assert compared == 3 and not fit.covariance_[fit.held_].any()


def test_what_follows_a_held_coefficient(by_stage, tmp_path):
    """Summary, tests, sets, plans, files, warm starts."""
    fit, _ = by_stage
    table = fit.summary().table
    assert len(table) == fit.n_parameters_ == len(relative_risk_ratios(fit)) and np.isfinite(table.to_numpy()).all()
    assert "Held at 0" in str(fit.summary())
    term = fit.choices_.terms[0]
    assert wald_test(fit, term).df == lr_test(fit, term).df == fit.n_parameters_
    for kind in ("wald", "finite-sample"):
        sets = fit.confidence_set(kind=kind)
        assert all(own.well_conditioned for own in sets)
    assert np.isfinite(influence(fit)["move"]).all()
    mdp = fit.to_mdp(PAYS, start={"new": 0.5, "old": 0.5})
    problem = mdp.problem
    worn, rest, new = fit.states_.index("worn"), fit.actions_.index("rest"), fit.states_.index("new")
    assert problem.available is not None and not problem.available[1, new, rest] and problem.available[0, new, rest]
    assert not problem.reachable[0, worn]
    best = livarot.solve(mdp).policy
    assert value_interval(fit, mdp, best).standard_error > 0.0
    draws = bootstrap(fit, 20, resample="model").theta
    assert (draws[:, fit.held_] == 0.0).all() and draws.std(axis=0)[~fit.held_].min() > 0.0
    careful = plan_pessimistic(fit, mdp)
    assert careful.lower < value_interval(fit, mdp, careful.policy).value < float(plan_optimistic(fit, mdp).upper[0])
    assert 0.0 < coverage_coefficients(fit, mdp).information < np.inf
    assert (np.asarray(plan_robust(fit, mdp, 0.05).policy)[1, new] != rest).all()
    roomy = fit.to_mdp(PAYS, start={"new": 0.5, "old": 0.5}, param_bound=50.0)
    state = warm_start(livarot.agents.Livarot(), roomy.problem, fit).init(roomy.problem)
    assert np.isfinite(state.estimate.theta).all()
    save_fit(tmp_path / "m", fit)
    again = load_fit(tmp_path / "m")
    np.testing.assert_array_equal(again.held_, fit.held_)
    assert str(again.summary()) == str(fit.summary()) and again.aic_ == fit.aic_
    np.testing.assert_array_equal(again.to_mdp(PAYS, start="new").theta, fit.to_mdp(PAYS, start="new").theta)


def test_a_stage_where_nothing_varies_is_refused():
    log = staged().assign(next_state=lambda x: np.where(x.stage == 2, "new", x.next_state))
    with pytest.raises(LivarotError, match="at stage 2"):
        heard(lambda: MNLTransition(collinear="drop", **CELLS).fit(log))


@pytest.mark.parametrize("options", [{"features": ["state:next_state"]}, {"formula": "~ state*next_state"}])
def test_a_transition_that_was_never_seen_is_left_out(options):
    """reachable="all": what the data rule out has probability 0, with one warning, and the rest are frequencies."""
    log = ratings()
    fit, told = heard(lambda: MNLTransition(action=None, reachable="all", **options).fit(log))
    assert len(told) == 1 and "never seen, and taken to be impossible" in told[0]
    assert all(pair in told[0] for pair in ("'A' -> 'C'", "'A' -> 'D'", "'B' -> 'D'", "'C' -> 'A'"))
    assert "'B' -> 'A'" not in told[0] and "dropped: " in told[0]
    expected = pd.crosstab(log.state, log.next_state, normalize="index").to_numpy()
    np.testing.assert_allclose(fit.predict_proba(pd.DataFrame({"state": ["A", "B", "C"]})), expected, atol=1e-7)
    assert fit.get_params()["reachable"] == "all"
    every = {s: ["A", "B", "C", "D"] for s in "ABC"}
    with pytest.raises(NotIdentified, match="separable"):  # sets that were given are not changed
        heard(lambda: MNLTransition(action=None, reachable=every, collinear="drop", **options).fit(log))


def test_separable_by_a_number_is_still_refused():
    log = pd.DataFrame({"state": ["a", "b"] * 20, "next_state": ["b", "b"] * 20, "action": "x"})
    height = pd.DataFrame({"state": ["a", "b"], "height": [0.0, 1.0]})
    with pytest.raises(NotIdentified, match="separable"):
        heard(lambda: MNLTransition(features=["height"], reachable="all", states=height).fit(log))


def test_an_action_never_tried_is_unknown_unless_a_ridge_speaks():
    """Its coefficient is not 0 for sure: without a ridge it has no model, with one its variance is the prior's."""
    log = pd.DataFrame({"state": ["a", "b"] * 30, "action": ["x", "y", "y"] * 20, "next_state": ["a", "a", "b"] * 20})
    sets = {(s, a): ["a", "b"] for s in "ab" for a in "xyz"}
    height = pd.DataFrame({"state": ["a", "b"], "height": [0.0, 1.0]})
    model = {"features": ["height", "action:height"][1:], "reachable": sets, "states": height}
    fit, told = heard(lambda: MNLTransition(**model | {"reg": 0.5}).fit(log))
    assert fit.columns_ == tuple(f"action[{a}]:height" for a in "xyz") and not fit.dropped_
    assert any("'action[z]:height' never vary in what was met" in text for text in told)
    assert fit.covariance_[2, 2] == pytest.approx(1.0 / 0.5)
    log.loc[0, "next_state"] = "b"  # not separable
    fit, told = heard(lambda: MNLTransition(**model).fit(log))
    assert fit.dropped_ == ("action[z]:height",) and "not known without them: ('a', 'z'), ('b', 'z')" in told[0]
    mdp = fit.to_mdp({"a": 0.0, "b": 1.0}, 3, "a")
    assert not mdp.problem.available[:, :, fit.actions_.index("z")].any()
