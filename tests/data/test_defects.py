"""Problems that practitioners ran into, one test each."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn

import livarot
from livarot.cli.plan import parse_pay
from livarot.data import (
    DataWarning,
    MNLTransition,
    held_out,
    labels_of,
    plan_optimistic,
    plan_pessimistic,
    plan_robust,
    policy_table,
    residuals,
    value_interval,
)
from livarot.errors import LivarotError


def log(n=300, seed=0):
    rng = np.random.default_rng(seed)
    state, action = rng.integers(3, size=n), rng.choice(["x", "y"], size=n)
    after = np.clip(state + rng.integers(-1, 2, size=n), 0, 2)
    return pd.DataFrame({"state": state, "action": action, "next_state": after, "height": after * 1.0})


@pytest.fixture(scope="module")
def fit():
    return MNLTransition(features=["action:height"], reachable="all").fit(log())


def test_rewards_missing_from_a_file_are_named(fit, tmp_path):
    pd.DataFrame({"state": [0, 1], "reward": [1.0, 0.0]}).to_csv(tmp_path / "r.csv", index=False)
    with pytest.raises(LivarotError, match=r"^reward: 2 .* have no number, such as \(2, 'x'\), \(2, 'y'\)"):
        fit.to_mdp(parse_pay(fit, "reward", str(tmp_path / "r.csv")), 3, 0)
    pd.DataFrame({"state": [0, 1], "action": ["x", "y"], "reward": 1.0}).to_csv(tmp_path / "r.csv.gz", index=False)
    with pytest.raises(LivarotError, match=r"^reward: 4 \(state, action\) have no number"):
        fit.to_mdp(tmp_path / "r.csv.gz", 3, 0)


def test_labels_and_intervals_of_a_problem_without_an_end(fit):
    endless = livarot.infinite.InfiniteMDP.from_mdp(livarot.envs.park_two_state())
    assert list(labels_of(endless).states) == [0, 1]
    with pytest.raises(LivarotError, match="mdp: was not made from this fit"):
        value_interval(fit, endless)
    own = fit.to_mdp({0: 0.0, 1: 0.5, 2: 1.0}, start=0, discount=0.9)
    assert list(labels_of(own).states) == [0, 1, 2] and value_interval(fit, own).standard_error > 0.0


def test_an_impossible_action_is_never_recommended():
    """A shop sells from stock; when it is empty nothing can be sold, however much a sale pays."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(400):
        state = str(rng.choice(["empty", "full"]))
        action = str(rng.choice(["order", "sell"])) if state == "full" else "order"
        rows.append((state, action, str(rng.choice(["empty", "full"]))))
    data = pd.DataFrame(rows, columns=["state", "action", "next_state"])
    sets = {pair: ["empty", "full"] for pair in [("full", "sell"), ("full", "order"), ("empty", "order")]}
    shop = MNLTransition(formula="~ next_state", reachable=sets).fit(data)
    pays = {("full", "sell"): 1000.0, ("full", "order"): -10.0, ("empty", "order"): -10.0}
    mdp, endless = (shop.to_mdp(pays, horizon, "empty", discount=0.95) for horizon in (10, None))
    assert livarot.solve(mdp)["empty"] == ("order",) * 10 and livarot.solve(mdp)["full"] == ("sell",) * 10
    assert livarot.infinite.solve(endless).policy["empty"] == "order"
    for model in (mdp, endless):
        for plan in (plan_robust(shop, model, 0.05), plan_optimistic(shop, model)):
            table = np.squeeze(plan.policy)
            told = policy_table(model, table)
            assert "sell" not in set(told[told.state == "empty"].action)
    told = policy_table(mdp, plan_pessimistic(shop, mdp).policy)
    assert "sell" not in set(told[told.state == "empty"].action)


def test_labels_survive_a_file(fit, tmp_path):
    mdp = fit.to_mdp({0: 0.0, 1: 0.5, 2: 1.0}, 4, 0)
    mdp.save(tmp_path / "m")
    assert labels_of(livarot.MNLMDP.load(tmp_path / "m")) == labels_of(mdp)


def test_integers_come_back_as_integers(fit):
    found = fit.predict(log())
    assert found.dtype == np.int64 and fit.classes_.dtype == np.int64
    metrics = pytest.importorskip("sklearn.metrics")
    assert 0.0 < metrics.accuracy_score(log().next_state, found) < 1.0


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", None])
@pytest.mark.parametrize("kind", [int, str])
def test_scikit_learn_scores(scoring, kind):
    select = pytest.importorskip("sklearn.model_selection")
    if scoring == "neg_log_loss" and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9):
        pytest.skip("before 1.9 scikit-learn has this score for classifiers only")
    data = log().astype({"state": kind, "next_state": kind})
    states = pd.DataFrame({"height": [0.0, 1.0, 2.0]}, index=[kind(k) for k in range(3)])
    model = MNLTransition(features=["height", "action:height"][1:], reachable="all", states=states)
    scores = select.cross_val_score(model, data, data.next_state, cv=3, scoring=scoring)
    assert np.isfinite(scores).all()
    if scoring == "neg_log_loss":
        np.testing.assert_allclose(scores, select.cross_val_score(model, data, data.next_state, cv=3))


def test_equal_sets_are_stored_once():
    """Five different sets in 226 choices of one (state, action): five are stored."""
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(5, 3))
    which = rng.integers(5, size=226)
    table = pd.DataFrame({"choice": np.repeat(np.arange(226), 3), "x": kinds[which].reshape(-1)})
    table = table.assign(state="s", action="a", next_state=np.tile(["p", "q", "r"], 226))
    table["chosen"] = np.tile(np.arange(3), 226) == np.repeat(rng.integers(3, size=226), 3)
    fit = MNLTransition(features=["x"]).fit(table)
    assert fit.choices_.n_sets == 5 and fit.choices_.n_choices == 226
    apart = MNLTransition(features=["x"]).fit(table.drop(columns=["state", "action", "next_state"]))
    np.testing.assert_allclose(fit.theta_, apart.theta_, atol=1e-9)
    np.testing.assert_allclose(fit.predict_proba(table), apart.predict_proba(table), atol=1e-9)
    np.testing.assert_array_equal(np.bincount(fit.choices_.log_row, minlength=15), fit.choices_.count)


def choices(n=200, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"choice": np.repeat(np.arange(n), 3), "x": rng.normal(size=3 * n)})
    u = table.x + rng.gumbel(size=3 * n)
    return table.assign(chosen=u == u.groupby(table.choice).transform("max"))


def test_held_out_needs_no_states():
    fit = MNLTransition(features=["x"]).fit(choices())
    found = held_out(fit, choices(seed=1))
    assert found.empirical is None and found.model < found.uniform == pytest.approx(np.log(3))
    assert "empirical" not in str(found) and "uniform" in str(found)


def test_residuals_are_refused_where_they_mean_nothing():
    fit = MNLTransition(features=["x"]).fit(choices())
    with pytest.raises(LivarotError, match="200 choice sets for 200 choices: Pearson residuals mean nothing"):
        residuals(fit, by="row")


def test_warnings_point_at_the_caller():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        MNLTransition(features=["height"]).fit(log())
    assert [one.category for one in heard] == [DataWarning] and heard[0].filename == __file__
