"""What a table, a file of rewards or a ridge leaves open is reported, not guessed."""

import warnings

import numpy as np
import pandas as pd
import pytest

from livarot import LivarotError
from livarot.data import DataWarning, MNLTransition, load_fit, save_fit
from tests.support.machine_logs import WEAR, fitted, make_log


def alternatives(n=200, seed=0, theta=1.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    p = np.exp(theta * x)
    p /= p.sum(axis=1, keepdims=True)
    chosen = np.array([rng.choice(3, p=row) for row in p])
    flags = (np.arange(3) == chosen[:, None]).astype(int).reshape(-1)
    return pd.DataFrame({"choice": np.repeat(np.arange(n), 3), "x": x.reshape(-1), "chosen": flags})


def test_counts_and_flags_together_are_refused():
    table = alternatives()
    table["times"] = 5 * table["chosen"]
    with pytest.raises(LivarotError, match=r"^count: .*'times' and 'chosen'"):
        MNLTransition(features=["x"], count="times").fit(table)
    by_flags = MNLTransition(features=["x"]).fit(table)
    by_counts = MNLTransition(features=["x"], count="times").fit(table.drop(columns="chosen"))
    assert by_counts.n_choices_ == 5 * by_flags.n_choices_
    np.testing.assert_allclose(by_counts.theta_, by_flags.theta_, rtol=1e-7)


@pytest.mark.parametrize(
    ("names", "dtype"),
    [([3, 1, 2], np.int64), ([0.5, 1.5, 2.5], np.float64), (["a", "b", "c"], object), ([0, 1, "c"], object)],
)
def test_predictions_have_the_type_of_the_states(tmp_path, names, dtype):
    column = pd.Series([names[i % 2] for i in range(40)], dtype=None if dtype is object else dtype)
    after = pd.Series([names[(i * 7 // 3) % 3] for i in range(40)], dtype=None if dtype is object else dtype)
    log = pd.DataFrame({"state": column, "action": ["go"] * 40, "next_state": after})
    log["z"] = after.map({name: float(i) for i, name in enumerate(names)})
    fit = MNLTransition(features=["z"], reachable="all").fit(log)
    assert fit.predict(log).dtype == dtype
    assert set(fit.predict(log).tolist()) <= set(names)
    save_fit(tmp_path / "fit", fit)
    assert load_fit(tmp_path / "fit").predict(log).dtype == dtype


def test_a_file_of_rewards_has_all_of_them(tmp_path):
    fit = fitted(200)
    whole = pd.DataFrame({"state": list(WEAR), "reward": [1.0, 0.5, 0.2, 0.0]})
    for path, write in ((tmp_path / "r.csv", "to_csv"), (tmp_path / "r.parquet", "to_parquet")):
        getattr(whole, write)(path, index=False)
        read = fit.to_mdp(path, 4, "new", terminal="broken")
        given = fit.to_mdp(dict(zip(whole["state"], whole["reward"], strict=True)), 4, "new", terminal="broken")
        assert read.problem.same_as(given.problem)
        getattr(whole[:2], write)(path, index=False)
        with pytest.raises(LivarotError, match=r"^reward: 2 \(state, action\) have no number, such as \('worn', 'me"):
            fit.to_mdp(path, 4, "new", terminal="broken")


@pytest.mark.parametrize(("reg", "warned"), [(0.0, False), (1e-6, False), (0.1, False), (300.0, True), (1e7, True)])
def test_what_a_ridge_decides_is_said(reg, warned):
    fit = MNLTransition(features=["x"], reg=reg).fit(alternatives())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = str(fit.summary())
        found = fit.confidence_set(0.95)
        fit.confidence_set(0.95, "finite-sample") if reg < 1.0 else None
    assert [w.category for w in caught] == [DataWarning] * (2 if warned else 0)
    assert ("Bayesian" in text) == (reg > 0.0)
    if warned:
        assert "the ridge decides 1 of 1 coefficients" in str(caught[0].message) and "x" in str(caught[0].message)
        assert reg > 1e6 or not found.contains([1.0])  # the truth, which the set misses
    else:
        assert found.contains([1.0])


def test_a_fit_with_counts_is_read_again(tmp_path):
    log = make_log(300, 0)
    counted = log.groupby(["state", "action", "next_state"]).size().rename("times").reset_index()
    counted["wear"] = counted["next_state"].map(WEAR)
    fit = MNLTransition(features=["action:wear"], reachable="all", count="times").fit(counted)
    save_fit(tmp_path / "fit", fit)
    assert np.array_equal(load_fit(tmp_path / "fit").theta_, fit.theta_)
