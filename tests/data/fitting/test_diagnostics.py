"""Calibration, residuals, influence, likelihood ratio, held-out loss: each against the definition."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from livarot.data import (
    Choices,
    MNLTransition,
    calibration,
    held_out,
    influence,
    likelihood_ratio,
    residuals,
)
from livarot.errors import LivarotError
from tests.twins import data as naive


def machine(n=800, seed=0):
    rng = np.random.default_rng(seed)
    state = rng.integers(3, size=n)
    after = np.array([rng.choice([s, (s + 1) % 3], p=[0.7, 0.3]) for s in state])
    action = rng.choice(["x", "y"], size=n)
    return pd.DataFrame({"state": state, "action": action, "next_state": after, "level": (after**2).astype(float)})


REACHABLE = {s: [s, (s + 1) % 3] for s in range(3)}


@pytest.fixture(scope="module")
def fit():
    return MNLTransition(features=["level"], reachable=REACHABLE).fit(machine())


def test_calibration_by_hand(fit):
    found = calibration(fit, bins=4).table
    assert found["count"].sum() == 2 * 800  # two alternatives per choice
    assert found["observed"] @ found["count"] == pytest.approx(800)
    assert found["predicted"] @ found["count"] == pytest.approx(800)
    for row in found.itertuples():
        limits = binomtest(round(row.observed * row.count), round(row.count)).proportion_ci(method="exact")
        assert (row.lower, row.upper) == (pytest.approx(limits.low), pytest.approx(limits.high))
    axes = calibration(fit).plot()
    assert axes.get_xlabel() == "predicted probability" and len(axes.containers) == 1
    assert calibration(fit).plot(axes) is axes


def test_a_saturated_model_is_calibrated():
    """With one coefficient per (state, next state) the expected counts are the observed ones."""
    fit = MNLTransition(features=["state:action:level"], reachable=REACHABLE).fit(machine())
    rows = residuals(fit, by="row")
    np.testing.assert_allclose(rows["residual"], 0.0, atol=1e-6)
    table = calibration(fit).table
    np.testing.assert_allclose(table["predicted"], table["observed"], atol=1e-6)


def test_residuals_by_hand(fit):
    rows = residuals(fit, by="row")
    for row in rows.itertuples():
        own = machine()
        own = own[(own.state == row.state) & (own.action == row.action)]
        p = fit.predict_proba({"state": [row.state], "action": [row.action]})[0][row.next_state]
        assert row.count == (own.next_state == row.next_state).sum()
        assert row.expected == pytest.approx(len(own) * p)
        assert row.residual == pytest.approx((row.count - row.expected) / math.sqrt(row.expected))
    by_state = residuals(fit)
    np.testing.assert_allclose(by_state["chi2"].sum(), (rows["residual"] ** 2).sum())
    assert (by_state["df"] == 2.0).all()  # two actions, two alternatives each
    assert by_state["p_value"].is_monotonic_increasing
    with pytest.raises(LivarotError, match="there is no 'ward'"):
        residuals(fit, by="ward")


def test_influence_is_one_newton_step_of_leaving_one_out():
    start, x, count, _, _ = naive.sample(0, n=40, dim=2)
    fit = MNLTransition().fit(Choices(start, x, count, ("a", "b")))
    found = influence(fit)
    assert len(found) == 40 and found["move"].is_monotonic_decreasing
    for row in found.head(10).itertuples():
        begin, end = start[row.set], start[row.set + 1]
        less = count.copy()
        less[begin:end] = 0.0
        _, gradient, hessian, _ = naive.derivatives(start, x, less, np.zeros(len(x)), fit.theta_)
        step = -np.linalg.solve(hessian, gradient)
        np.testing.assert_allclose([row[-2], row[-1]], step, rtol=1e-6, atol=1e-10)
        exact = naive.newton(start, x, less, np.zeros(len(x))) - fit.theta_  # the whole way, not one step
        assert np.linalg.norm(step - exact) < 0.35 * np.linalg.norm(exact)


def test_influence_of_repeated_logs(fit):
    found = influence(fit)
    assert found["count"].sum() == 800 and {"state", "action", "next_state", "move", "d level"} <= set(found)


def test_likelihood_ratio(fit):
    data = machine()
    large = MNLTransition(features=["action:level"], reachable=REACHABLE).fit(data)
    found = likelihood_ratio(fit, large)  # nested, although no column has the same name
    assert found.df == 1 and found.statistic == pytest.approx(2 * (large.log_likelihood_ - fit.log_likelihood_))
    assert 0.0 <= found.p_value <= 1.0
    with pytest.raises(LivarotError, match="cannot express"):
        likelihood_ratio(MNLTransition(features=["next_state"], reachable=REACHABLE).fit(data), large)
    with pytest.raises(LivarotError, match="no more parameters"):
        likelihood_ratio(fit, fit)
    with pytest.raises(LivarotError, match="other data"):
        likelihood_ratio(fit, MNLTransition(features=["action:level"], reachable=REACHABLE).fit(machine(900, seed=1)))
    with pytest.raises(LivarotError, match="reg: is positive"):
        likelihood_ratio(MNLTransition(features=["level"], reachable=REACHABLE, reg=1.0).fit(data), large)


@pytest.mark.statistical
def test_likelihood_ratio_has_its_law():
    """Under the smaller model p-values are uniform: 400 data sets, share below 10 % within 4 standard errors."""
    below = 0
    for seed in range(400):
        start, x, count, _, _ = naive.sample(3000 + seed, n=200, dim=2)
        noise = np.random.default_rng(seed).normal(size=(len(x), 1))
        small = MNLTransition().fit(Choices(start, x, count, ("a", "b")))
        large = MNLTransition().fit(Choices(start, np.hstack((x, noise)), count, ("a", "b", "c")))
        below += likelihood_ratio(small, large).p_value < 0.1
    assert abs(below / 400 - 0.1) < 4 * math.sqrt(0.09 / 400)


def test_held_out_loss_by_hand(fit):
    test = machine(200, seed=5)
    found = held_out(fit, test)
    train = machine()
    model = empirical = 0.0
    for row in test.itertuples():
        own = train[(train.state == row.state) & (train.action == row.action)]
        p = fit.predict_proba({"state": [row.state], "action": [row.action]})[0][row.next_state]
        model -= math.log(p) / 200
        empirical -= math.log(((own.next_state == row.next_state).sum() + 0.5) / (len(own) + 1.0)) / 200
    assert found.model == pytest.approx(model) == pytest.approx(-fit.score(test))
    assert found.empirical == pytest.approx(empirical)
    assert found.uniform == pytest.approx(math.log(2))
    assert "model" in str(found)


def test_held_out_needs_outcomes(fit):
    with pytest.raises(LivarotError, match="no observed choices"):
        held_out(fit, machine()[["state", "action"]])
