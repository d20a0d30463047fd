"""Fitted models in files: everything comes back, damage is noticed, labels keep their types."""

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot.data import (
    Computed,
    MNLTransition,
    bootstrap,
    labels_of,
    load_fit,
    marginal_effects,
    plan_robust,
    save_fit,
    value_interval,
)
from livarot.file_layout import from_numbers, to_numbers
from livarot.storage import load_tensors, save_tensors
from tests.support.machine_logs import PAYS, fitted, make_log, to_mdp, with_covariates


def same(one, two):
    assert np.array_equal(one.theta_, two.theta_)
    assert np.array_equal(one.covariance_, two.covariance_)
    assert one.states_ == two.states_ and one.actions_ == two.actions_ and one.stages_ == two.stages_
    assert list(map(type, one.states_)) == list(map(type, two.states_))
    assert str(one.summary()) == str(two.summary())
    for found, again in zip(one.maxima_, two.maxima_, strict=True):
        for x, y in zip(found, again, strict=True):
            assert np.array_equal(x, y) and type(x) is type(y)


@pytest.mark.parametrize("per_stage", [False, True])
def test_a_round_trip(tmp_path, per_stage):
    fit = fitted(500, homogeneous=False, stage="week", covariance="sandwich") if per_stage else fitted(500)
    save_fit(tmp_path / "model", fit)
    again = load_fit(tmp_path / "model")
    same(fit, again)
    save_fit(tmp_path / "twice", again)
    assert (tmp_path / "model").read_bytes() == (tmp_path / "twice").read_bytes()
    log = make_log(20, 5, 3)
    assert np.array_equal(fit.predict_proba(log), again.predict_proba(log))
    assert fit.score(log) == again.score(log)
    one, two = (x.to_mdp(PAYS, 3, "new", terminal="broken") for x in (fit, again))
    assert one.problem.same_as(two.problem) and labels_of(one) == labels_of(two)
    for kind in ("wald", "finite-sample"):
        sets = [x.confidence_set(kind=kind) for x in (fit, again)]
        for x, y in zip(*(s if per_stage else [s] for s in sets), strict=True):
            assert x.radius == y.radius and np.array_equal(x.matrix, y.matrix)
    kinds = {"kind": "bootstrap", "n_resamples": 20}
    assert str(value_interval(fit, one, **kinds)) == str(value_interval(again, two, **kinds))
    assert np.array_equal(plan_robust(fit, one, n_resamples=20).value, plan_robust(again, two, n_resamples=20).value)


def test_labels_keep_their_kinds(tmp_path):
    states = [("zone", 1), ("zone", 2), ("zone", 3)]
    log = {
        "state": pd.Series([states[i % 2] for i in range(40)]),
        "action": np.array([1.5] * 40),
        "next_state": pd.Series([states[(i * 7 // 3) % 3] for i in range(40)]),
    }
    far = Computed("far", lambda rows: [abs(x[1] - y[1]) for x, y in zip(rows.state, rows.next_state, strict=True)])
    fit = MNLTransition(features=[far], reachable="all").fit(pd.DataFrame(log))
    save_fit(tmp_path / "model", fit)
    again = load_fit(tmp_path / "model")
    same(fit, again)
    assert list(again.states_) == states and again.actions_[0] == 1.5 and again.features == ["far"]


def test_alternatives_with_categories(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"choice": np.repeat(np.arange(60), 3), "price": rng.normal(size=180)})
    table["kind"] = np.tile(["bus", "car", "train"], 60)
    table["chosen"] = 0
    table.loc[np.arange(60) * 3 + rng.integers(3, size=60), "chosen"] = 1
    fit = MNLTransition(features=["price", "C(kind)"]).fit(table)
    save_fit(tmp_path / "model", fit)
    again = load_fit(tmp_path / "model")
    assert np.array_equal(fit.predict_proba(table), again.predict_proba(table))
    assert again.columns_ == fit.columns_


def test_refusals(tmp_path):
    with pytest.raises(livarot.LivarotError, match="fit: is not fitted"):
        save_fit(tmp_path / "x", MNLTransition(features=["wear"]))
    to_mdp(fitted(100)).save(tmp_path / "mdp")
    with pytest.raises(livarot.LivarotError, match="holds 'mnlmdp', not 'mnl-transition'"):
        load_fit(tmp_path / "mdp")
    with pytest.raises(livarot.LivarotError, match="there is no file"):
        load_fit(tmp_path / "nothing")
    save_fit(tmp_path / "model", fitted(100))
    data = bytearray((tmp_path / "model").read_bytes())
    data[-5] ^= 1
    (tmp_path / "model").write_bytes(bytes(data))
    with pytest.raises(livarot.LivarotError, match="damaged"):
        load_fit(tmp_path / "model")
    stamps = pd.date_range("2024-01-01", periods=3)
    log = pd.DataFrame({"state": [0] * 6, "action": [0] * 6, "next_state": list(stamps) * 2, "z": [0.0, 1.0, 2.0] * 2})
    odd = MNLTransition(features=["z"], reachable={0: list(stamps)}).fit(log)
    with pytest.raises(livarot.LivarotError, match=r"labels: .*cannot be stored"):
        save_fit(tmp_path / "odd", odd)
    assert not (tmp_path / "odd").exists()


def test_a_file_that_is_whole_but_wrong(tmp_path):
    from livarot.storage import load_tensors, save_tensors

    save_fit(tmp_path / "model", fitted(100))
    tensors, header = load_tensors(tmp_path / "model", kind="mnl-transition")
    for broken in (
        {"state": tensors["state"] + 99},
        {"theta": tensors["theta"][:, :1]},
        {"words": tensors["words"][:9]},
    ):
        save_tensors(tmp_path / "bad", tensors | broken, kind="mnl-transition", header=header)
        with pytest.raises(livarot.LivarotError, match="does not hold what it should"):
            load_fit(tmp_path / "bad")


def test_a_round_trip_with_covariates_clusters_and_weights(tmp_path):
    fit = with_covariates()
    save_fit(tmp_path / "model", fit)
    again = load_fit(tmp_path / "model")
    same(fit, again)
    save_fit(tmp_path / "twice", again)
    assert (tmp_path / "model").read_bytes() == (tmp_path / "twice").read_bytes()
    at = {"age": 1.5, "kind": "saw"}
    one, two = (x.to_mdp(PAYS, 3, "new", at=at, terminal="broken") for x in (fit, again))
    assert str(value_interval(fit, one)) == str(value_interval(again, two))
    np.testing.assert_array_equal(bootstrap(fit, 5).theta, bootstrap(again, 5).theta)
    np.testing.assert_array_equal(marginal_effects(fit, "age"), marginal_effects(again, "age"))


def test_files_without_the_later_entries_are_read(tmp_path):
    """As they were written before formulas, clusters and covariates."""
    fit = fitted(200)
    save_fit(tmp_path / "model", fit)
    tensors, header = load_tensors(tmp_path / "model", kind="mnl-transition")
    words = from_numbers(tensors["words"])
    old = {key: words[key] for key in ("columns", "levels", "labels", "features")}
    later = ("formula", "weights", "cluster", "collinear")
    settings = {key: value for key, value in header["settings"].items() if key not in later}
    save_tensors(tmp_path / "old", tensors | {"words": to_numbers(old)}, kind="mnl-transition",
                 header=header | {"settings": settings})  # fmt: skip
    same(fit, load_fit(tmp_path / "old"))


@pytest.mark.parametrize("formula", ["~ __import__('os')", "~ eval('1'):next_state", "x" * 5000, "~ a +"])
def test_a_formula_in_a_file_is_read_and_never_run(tmp_path, formula):
    save_fit(tmp_path / "model", with_covariates())
    tensors, header = load_tensors(tmp_path / "model", kind="mnl-transition")
    header["settings"]["formula"] = formula
    save_tensors(tmp_path / "model", tensors, kind="mnl-transition", header=header)
    with pytest.raises(livarot.LivarotError, match="does not hold what it should"):
        load_fit(tmp_path / "model")
