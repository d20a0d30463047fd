"""Marginal effects, elasticities and intervals of probabilities: against differences, and by simulation."""

import warnings

import numpy as np
import pandas as pd
import pytest

from livarot.data import (
    DataWarning,
    MNLTransition,
    elasticities,
    marginal_effects,
    probability_interval,
    relative_risk_ratios,
)
from livarot.data.fitting import effects
from livarot.errors import LivarotError

FORMULA = "~ next_state + log(age):next_state + sex:next_state + next_state:state + poly(dose, 2):next_state"
TRUE = {"well": 0.0, "ill": -1.0, "dead": -3.0}


def log(n=700, seed=0):
    rng = np.random.default_rng(seed)
    age, sex, dose = rng.uniform(30.0, 80.0, n), rng.choice(["f", "m"], n), rng.normal(size=n)
    state = rng.choice(["ill", "well"], n)
    u = np.stack(
        [TRUE[s] + (k * 0.4) * np.log(age) + 0.3 * k * (sex == "m") + 0.2 * k * dose for k, s in enumerate(TRUE)]
    )
    after = np.array(list(TRUE))[(u.T + rng.gumbel(size=(n, 3))).argmax(axis=1)]
    return pd.DataFrame({"state": state, "next_state": after, "age": age, "sex": sex, "dose": dose})


def fitted(data, formula=FORMULA, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return MNLTransition(formula=formula, action=None, reachable="all", **options).fit(data)


@pytest.fixture(scope="module")
def fit():
    return fitted(log())


@pytest.mark.parametrize("name", ["age", "dose"])
def test_an_average_effect_is_a_difference_of_predictions(fit, name):
    data, h = log(), 1e-5
    up, down = (fit.predict_proba(data.assign(**{name: data[name] + s})) for s in (h, -h))
    table = marginal_effects(fit, name)
    np.testing.assert_allclose(table["effect"], (up - down).mean(axis=0) / (2 * h), rtol=1e-6, atol=1e-10)
    assert list(table.index) == list(fit.states_) and abs(table["effect"].sum()) < 1e-12
    p = fit.predict_proba(data)
    slope = ((up - down) / (2 * h) * data[[name]].to_numpy() / p).mean(axis=0)
    np.testing.assert_allclose(elasticities(fit, name)["effect"], slope, rtol=1e-6, atol=1e-9)


def test_a_category_changes_from_its_reference(fit):
    data = log()
    change = (fit.predict_proba(data.assign(sex="m")) - fit.predict_proba(data.assign(sex="f"))).mean(axis=0)
    table = marginal_effects(fit, "sex")
    np.testing.assert_allclose(table["effect"], change, atol=1e-12)
    assert table.index[0] == ("m - f", fit.states_[0])
    with pytest.raises(LivarotError, match="'sex' is a category"):
        elasticities(fit, "sex")


def test_effects_at_a_profile(fit):
    data, h = log(), 1e-5
    at = data.assign(age=data.age.mean(), dose=data.dose.mean(), sex=data.sex.mode()[0])
    up, down = (fit.predict_proba(at.assign(age=at.age + s)) for s in (h, -h))
    table = marginal_effects(fit, "age", at="mean")
    np.testing.assert_allclose(table["effect"], (up - down).mean(axis=0) / (2 * h), rtol=1e-6)
    fixed = data.assign(sex="m")
    up, down = (fit.predict_proba(fixed.assign(age=data.age + s)) for s in (h, -h))
    table = marginal_effects(fit, "age", at={"sex": "m"})
    np.testing.assert_allclose(table["effect"], (up - down).mean(axis=0) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("name", ["age", "sex"])
@pytest.mark.parametrize("call", [marginal_effects, elasticities])
def test_standard_errors_are_those_of_the_gradient(fit, name, call):
    """g' Cov g with g by central differences in theta."""
    if call is elasticities and name == "sex":
        return
    errors, theta = call(fit, name)["std err"].to_numpy(), fit.theta_.copy()
    columns = []
    try:
        for j in range(len(theta)):
            h = 1e-5 * max(1.0, abs(theta[j]))
            ends = []
            for sign in (1.0, -1.0):
                fit.theta_ = theta + sign * h * (np.arange(len(theta)) == j)
                ends.append(call(fit, name)["effect"].to_numpy())
            columns.append((ends[0] - ends[1]) / (2 * h))
    finally:
        fit.theta_ = theta
    g = np.stack(columns, axis=1)
    np.testing.assert_allclose(errors, np.sqrt(np.einsum("ij,jk,ik->i", g, fit.covariance_, g)), rtol=1e-5)


def trips(n=300, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"choice": np.repeat(np.arange(n), 3), "mode": np.tile(["bus", "car", "rail"], n)})
    table["price"] = rng.uniform(1.0, 9.0, 3 * n)
    table["income"] = np.repeat(rng.uniform(1.0, 4.0, n), 3)
    u = -0.4 * table.price + 0.3 * (table["mode"] == "car") * table.income + rng.gumbel(size=3 * n)
    table["chosen"] = u == u.groupby(table.choice).transform("max")
    return table


def test_attributes_of_alternatives():
    data, h = trips(), 1e-5
    fit = MNLTransition(formula="~ C(mode) + log(price) + income:C(mode)", collinear="drop").fit(data)
    own, cross, elastic = [], [], []
    p = fit.predict_proba(data)
    for k in range(3):
        here = (np.arange(len(data)) % 3 == k) * h
        up, down = (fit.predict_proba(data.assign(price=data.price + s * here)) for s in (1.0, -1.0))
        slope = ((up - down) / (2 * h)).reshape(-1, 3)
        own.append(slope[:, k].mean())
        cross.append((slope.sum(axis=1) - slope[:, k]).mean() / 2.0)
        elastic.append((slope[:, k] * data.price.to_numpy().reshape(-1, 3)[:, k] / p.reshape(-1, 3)[:, k]).mean())
    table = marginal_effects(fit, "price", data=data, by="mode")
    np.testing.assert_allclose(table.loc["own", "effect"], own, rtol=1e-5)
    np.testing.assert_allclose(table.loc["cross", "effect"], cross, rtol=1e-5)
    table = elasticities(fit, "price", data=data, by="mode")
    np.testing.assert_allclose(table.loc["own", "effect"], elastic, rtol=1e-5)
    up, down = (fit.predict_proba(data.assign(income=data.income + s)).reshape(-1, 3) for s in (h, -h))
    table = marginal_effects(fit, "income", data=data, by="mode")
    np.testing.assert_allclose(table["effect"], (up - down).mean(axis=0) / (2 * h), rtol=1e-5)
    for call, message in (
        (lambda: marginal_effects(fit, "price"), "does not keep its table"),
        (lambda: marginal_effects(fit, "speed", data=data), "there is no column 'speed'"),
        (lambda: marginal_effects(fit, "price", data=data, at="mean"), "is for covariates"),
    ):
        with pytest.raises(LivarotError, match=message):
            call()


def test_probabilities_have_intervals(fit):
    data = log().head(4)
    table = probability_interval(fit, data)
    np.testing.assert_allclose(table.probability.to_numpy().reshape(4, 3), fit.predict_proba(data), rtol=1e-12)
    assert ((table.lower < table.probability) & (table.probability < table.upper)).all()
    assert table.lower.min() > 0.0 and table.upper.max() < 1.0
    by_hand = fit.covariance_
    choices, _ = effects.sets_of(fit, data.head(1))
    x, p = choices.rows(slice(None)), fit.predict_proba(data.head(1))[0]
    g = p[:, None] * (x - p @ x)
    np.testing.assert_allclose(table["std err"][:3], np.sqrt(np.einsum("ij,jk,ik->i", g, by_hand, g)), rtol=1e-9)
    long = trips()
    other = MNLTransition(features=["price"]).fit(long)
    np.testing.assert_allclose(probability_interval(other, long).probability, other.predict_proba(long))


def test_relative_risks(fit):
    ratios = relative_risk_ratios(fit)
    np.testing.assert_allclose(ratios.ratio, np.exp(fit.theta_))
    assert ((ratios.lower < ratios.ratio) & (ratios.ratio < ratios.upper)).all()


@pytest.mark.statistical
def test_intervals_cover():
    """95 % intervals of a probability and of an average effect over 400 simulated logs."""
    formula = "~ next_state + log(age):next_state + sex:next_state + dose:next_state"
    large = fitted(log(200_000, seed=10**6), formula)
    row = pd.DataFrame({"state": ["ill"], "age": [50.0], "sex": ["m"], "dose": [0.3]})
    truth = large.predict_proba(row)[0]
    effect = marginal_effects(large, "age")["effect"].to_numpy()
    inside, inside_effect = np.zeros(3), np.zeros(3)
    for seed in range(400):
        fit = fitted(log(500, seed), formula)
        table = probability_interval(fit, row)
        inside += (table.lower <= truth) & (truth <= table.upper)
        own = marginal_effects(fit, "age")
        inside_effect += (own.lower <= effect) & (effect <= own.upper)
    assert (inside / 400 >= 0.92).all() and (inside / 400 <= 0.98).all()
    assert (inside_effect / 400 >= 0.92).all() and (inside_effect / 400 <= 0.98).all()
