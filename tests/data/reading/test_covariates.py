"""Covariates of transitions: the same fit as a long table made by hand, MDPs of a profile, chains without actions."""

import warnings

import numpy as np
import pandas as pd
import pytest

from livarot.data import DataWarning, MNLTransition, load_fit, save_fit, support_check, value_interval
from livarot.errors import LivarotError
from livarot.model.probabilities import transition_kernel

STATES = ["ill", "well", "dead"]
REWARD = {"well": 1.0, "ill": 0.3, "dead": 0.0}


def log(n=900, seed=0):
    rng = np.random.default_rng(seed)
    age, sex = rng.normal(60.0, 8.0, n), rng.choice(["f", "m"], n)
    state, action = rng.choice(["ill", "well"], n), rng.choice(["wait", "treat"], n)
    u = np.stack([0.4 * (state == "ill"), 0.7 * (action == "treat") + 0.0 * age, 0.05 * (age - 60.0) - 1.0], axis=1)
    after = np.array(STATES)[(u + rng.gumbel(size=(n, 3))).argmax(axis=1)]
    return pd.DataFrame({"state": state, "action": action, "next_state": after, "age": age, "sex": sex})


LOG = log()
FORMULA = "~ next_state * (age + sex) + next_state:action + next_state:state"


@pytest.fixture(scope="module")
def fit():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return MNLTransition(formula=FORMULA, reachable="all", reference={"next_state": "well"}).fit(LOG)


def by_hand(data):
    """One row per alternative, dummies included."""
    long = data.loc[data.index.repeat(3)].reset_index(drop=True)
    long["choice"], long["alt"] = np.repeat(np.arange(len(data)), 3), np.tile(STATES, len(data))
    long["chosen"] = long.alt == long.next_state
    for alt in ("dead", "ill"):
        here = (long.alt == alt) * 1.0
        long[f"c_{alt}"], long[f"age_{alt}"], long[f"m_{alt}"] = here, here * long.age, here * (long.sex == "m")
        long[f"wait_{alt}"], long[f"well_{alt}"] = here * (long.action == "wait"), here * (long.state == "well")
    return long.drop(columns=["state", "action", "next_state"])


def test_the_same_as_a_long_table_made_by_hand(fit):
    long = by_hand(LOG)
    names = [f"{kind}_{alt}" for kind in ("c", "age", "m", "wait", "well") for alt in ("dead", "ill")]
    other = MNLTransition(features=names).fit(long)
    np.testing.assert_allclose(fit.theta_, other.theta_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(fit.covariance_, other.covariance_, rtol=1e-6, atol=1e-12)
    p = other.predict_proba(long).reshape(-1, 3)[:, [STATES.index(s) for s in fit.states_]]
    np.testing.assert_allclose(fit.predict_proba(LOG), p, atol=1e-9)
    assert fit.score(LOG) == pytest.approx(fit.log_likelihood_ / len(LOG))


def test_equal_rows_are_one_set():
    rounded = LOG.assign(age=(LOG.age / 20.0).round() * 20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        found = MNLTransition(formula=FORMULA, reachable="all").fit(rounded)
    assert found.choices_.n_sets == len(rounded.drop_duplicates(["state", "action", "age", "sex"]))
    assert found.choices_.n_choices == len(rounded)


def test_an_mdp_for_a_profile(fit):
    at = {"age": 70.0, "sex": "m"}
    with pytest.raises(LivarotError, match="no action is known in 1 states: 'dead'"):  # none was ever left: no guess
        fit.to_mdp(REWARD, 4, "ill", at=at)
    mdp = fit.to_mdp(REWARD, 4, "ill", at=at, terminal="dead")
    rows = pd.DataFrame([{"state": s, "action": a} | at for s in ("ill", "well") for a in fit.actions_])
    kernel = transition_kernel(mdp)
    starts = mdp.problem.rows.row_start[[fit.states_.index(s) * 2 for s in ("ill", "well")]]
    found = np.concatenate([kernel.prob[first : first + 6] for first in starts]).reshape(-1, 3)
    assert found == pytest.approx(fit.predict_proba(rows), abs=1e-12)
    young, old = (fit.to_mdp(REWARD, 4, "ill", at={"age": age, "sex": "f"}, terminal="dead") for age in (45.0, 85.0))
    assert value_interval(fit, young).value > value_interval(fit, old).value
    assert support_check(fit, mdp).attrs["share"] >= 0.0


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (None, "at: is not given, and the model depends on 'age', 'sex'"),
        ({"age": 70.0}, "at: has no value for 'sex'"),
        ({"age": 70.0, "sex": "m", "size": 1.0}, "'size' is not a covariate"),
        ({"age": 70.0, "sex": "x"}, "category 'x' was not in the data"),
        ({"age": "old", "sex": "m"}, "column 'age': must hold numbers"),
        ({"age": np.nan, "sex": "m"}, "column 'age': missing values"),
        ("mean", "at"),
    ],
)
def test_profiles_that_are_refused(fit, at, message):
    with pytest.raises(LivarotError, match=message):
        fit.to_mdp(REWARD, 4, "ill", at=at)


def test_a_model_without_covariates_has_no_profile():
    plain = MNLTransition(formula="~ next_state", reachable="all").fit(LOG)
    with pytest.raises(LivarotError, match="has no covariates"):
        plain.to_mdp(REWARD, 4, "ill", at={"age": 1.0})


def test_missing_columns_of_new_data(fit):
    with pytest.raises(LivarotError, match="covariates: 'sex' missing"):
        fit.predict_proba(LOG.drop(columns="sex"))
    with pytest.raises(LivarotError, match="category 'x' was not in the data"):
        fit.predict_proba(LOG.head(3).assign(sex="x"))


def test_files_keep_covariates(fit, tmp_path):
    for name, model in (("dummies", fit), ("poly", MNLTransition(formula="~ next_state + poly(age, 2):next_state",
                                                                    reachable="all").fit(LOG))):  # fmt: skip
        save_fit(tmp_path / name, model)
        again = load_fit(tmp_path / name)
        np.testing.assert_array_equal(again.predict_proba(LOG), model.predict_proba(LOG))
        assert again.columns_ == model.columns_ and again.dropped_ == model.dropped_
        at = {key: LOG[key].iloc[0] for key in again.choices_.design.names}
        np.testing.assert_array_equal(
            again.to_mdp(REWARD, 3, "ill", at=at, terminal="dead").theta,
            model.to_mdp(REWARD, 3, "ill", at=at, terminal="dead").theta,
        )
        assert str(again.summary()) == str(model.summary())


def test_a_term_list_takes_covariates_too(fit):
    terms = ["next_state", "next_state:age", "next_state:C(sex)", "action:next_state", "state:next_state"]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        other = MNLTransition(features=terms, reachable="all", collinear="drop").fit(LOG)
    told = [str(one.message) for one in heard]
    assert len(told) == 2 and "without information, dropped: 'state[dead]:next_state[ill]'" in told[0]
    assert "collinear within choice sets, dropped" in told[1]
    np.testing.assert_allclose(other.predict_proba(LOG), fit.predict_proba(LOG), atol=1e-8)


def test_covariates_can_be_named():
    """A column that happens to be a function of the next state is an attribute, unless it is named."""
    data = LOG.assign(flag=(LOG.next_state == "dead") * 1.0)
    attribute = MNLTransition(features=["flag"], reachable="all").fit(data)
    assert attribute.choices_.design is None
    named = MNLTransition(formula="~ next_state + flag:next_state", covariates=["flag"], reachable="all", reg=1.0)
    assert named.fit(data).choices_.design.names == ("flag",)
    with pytest.raises(LivarotError, match="covariates: there is no column 'agee'"):
        MNLTransition(features=["next_state:age"], covariates=["agee"], reachable="all").fit(LOG)


def test_a_log_without_actions_is_a_chain():
    data = LOG.drop(columns="action")
    with pytest.warns(DataWarning, match="a Markov chain, with one action; say action=None"):
        warned = MNLTransition(formula="~ next_state", reachable="all").fit(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = MNLTransition(formula="~ next_state", action=None, reachable="all").fit(data)
    np.testing.assert_array_equal(warned.theta_, fit.theta_)
    assert list(fit.actions_) == ["(none)"] and fit.predict_proba(data).shape == (900, 3)
    mdp = fit.to_mdp(REWARD, 5, "ill")
    assert mdp.problem.n_actions == 1 and value_interval(fit, mdp).standard_error > 0.0
    with pytest.raises(LivarotError, match="action: there is no column 'drug'"):
        MNLTransition(formula="~ next_state", action="drug", reachable="all").fit(data)


def test_stages_and_covariates_go_together():
    data = LOG.assign(week=np.arange(900) % 3)
    fit = MNLTransition(formula="~ next_state + next_state:age", stage="week", homogeneous=False, reachable="all")
    fit.fit(data)
    one = MNLTransition(formula="~ next_state + next_state:age", reachable="all").fit(data[data.week == 1])
    np.testing.assert_allclose(fit.theta_[1], one.theta_, rtol=1e-7)
    assert fit.to_mdp(REWARD, None, "ill", at={"age": 60.0}).problem.horizon == 3
