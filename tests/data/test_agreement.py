"""Coefficients, standard errors and log-likelihoods agree with statsmodels' to 1e-6 on data that ship with packages."""

import warnings

import numpy as np
import pandas as pd
import pytest

from livarot.data import MNLTransition, marginal_effects, wald_test

sm = pytest.importorskip("statsmodels.api")
CLOSE = {"rtol": 1e-6, "atol": 1e-7}


def chain(frame, y, x):
    """A log of one state, -1: the covariates x, and y, numbered from 0, as the next state."""
    return frame[list(x)].astype(float).assign(state=-1, next_state=np.asarray(pd.Categorical(y).codes, dtype=int))


def fitted(log, x, **options):
    formula = "~ next_state * (" + " + ".join(x) + ")"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reachable = {-1: list(range(log.next_state.max() + 1))}
        options = {"action": None, "reachable": reachable, "covariates": list(x), "tol": 1e-10} | options
        return MNLTransition(formula=formula, **options).fit(log)


def peer(log, x, **options):
    """statsmodels' multinomial logit, taken to the end by Newton's method."""
    model = sm.MNLogit(log.next_state.to_numpy(), sm.add_constant(log[list(x)].to_numpy()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(method="newton", tol=1e-13, maxiter=200, disp=0, **options)


def agree(fit, model, n_covariates):
    """The columns of the fit are constants, then one block per covariate; statsmodels has one column per level."""
    shape = n_covariates + 1, -1
    np.testing.assert_allclose(fit.theta_.reshape(shape), model.params, **CLOSE)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance_)).reshape(shape), model.bse, **CLOSE)
    assert fit.log_likelihood_ == pytest.approx(model.llf, rel=1e-9)


def anes96():
    data = sm.datasets.anes96.load_pandas().data
    return chain(data, data.PID, x := ["logpopul", "selfLR", "age", "educ", "income"]), x


def fair():
    data = sm.datasets.fair.load_pandas().data
    log = chain(data, data.rate_marriage, x := ["age", "yrs_married", "children", "religious"])
    return log.assign(work=data.occupation.to_numpy() * 10 + data.occupation_husb.to_numpy()), x


def randhie():
    data = sm.datasets.randhie.load_pandas().data[:6000]
    visits = np.minimum(data.mdvis.to_numpy(dtype=int), 3)
    return chain(data, visits, x := ["lncoins", "idp", "lpi", "physlm", "disea"]), x


def spector():
    data = sm.datasets.spector.load_pandas().data
    return chain(data, data.GRADE, x := ["GPA", "TUCE", "PSI"]), x


def credit_cards():
    data = sm.datasets.ccard.load_pandas().data
    return chain(data, data.OWNRENT, x := ["AGE", "INCOME"]), x


def heart():
    data = sm.datasets.heart.load_pandas().data
    return chain(data, data.censors, x := ["age"]), x


def iris():
    found = pytest.importorskip("sklearn.datasets").load_iris(as_frame=True)
    data = found.data.rename(columns={"sepal length (cm)": "length", "sepal width (cm)": "width"})
    return chain(data, found.target, x := ["width"]), x


def wine():
    found = pytest.importorskip("sklearn.datasets").load_wine(as_frame=True)
    return chain(found.data, found.target, x := ["ash", "magnesium"]), x


@pytest.mark.parametrize("data", [anes96, fair, randhie, spector, credit_cards, heart, iris, wine])
def test_multinomial_logit(data):
    log, x = data()
    fit, model = fitted(log, x), peer(log, x)
    agree(fit, model, len(x))
    p = fit.predict_proba(log)[:, 1:]
    np.testing.assert_allclose(p, model.predict(), rtol=1e-6, atol=1e-9)
    assert fit.aic_ == pytest.approx(model.aic, rel=1e-9) and fit.bic_ == pytest.approx(model.bic, rel=1e-9)


def test_clusters():
    """Repeated measurements: statsmodels' cluster-robust covariance, its small-sample correction included."""
    log, x = fair()
    model = peer(log, x, cov_type="cluster", cov_kwds={"groups": log.work.to_numpy()})
    clustered, plain = fitted(log, x, cluster="work"), fitted(log, x)
    agree(clustered, model, len(x))
    assert clustered.covariance_kind_ == "cluster" and plain.covariance_kind_ == "hessian"
    assert np.abs(np.diag(clustered.covariance_) / np.diag(plain.covariance_) - 1.0).max() > 0.1
    restricted = np.zeros((4, model.params.size))
    restricted[np.arange(4), 5 * np.arange(4) + 1] = 1.0  # the coefficients of age: one per level, each level a block
    theirs = float(np.squeeze(model.wald_test(restricted, scalar=True).statistic))
    assert wald_test(clustered, "next_state:age").statistic == pytest.approx(theirs, rel=1e-6)


def test_sandwich():
    log, x = randhie()
    model = peer(log, x, cov_type="HC0")
    agree(fitted(log, x, covariance="sandwich"), model, len(x))


def test_sampling_weights():
    """A logit with weights: statsmodels' GLM with variance weights and the sandwich."""
    data = sm.datasets.fair.load_pandas().data
    weight = 0.5 + data.children.to_numpy() + 0.25 * data.educ.to_numpy()
    log = chain(data, data.affairs > 0, x := ["rate_marriage", "age", "religious"]).assign(w=weight)
    family = sm.families.Binomial()
    model = sm.GLM(log.next_state.astype(float), sm.add_constant(log[x]), family=family, var_weights=weight)
    found = model.fit(cov_type="HC0", tol=1e-14, tol_criterion="params")
    fit = fitted(log, x, weights="w")
    assert fit.covariance_kind_ == "sandwich" and fit.choices_.n_observations == len(log)
    np.testing.assert_allclose(fit.theta_, found.params, **CLOSE)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance_)), found.bse, **CLOSE)


def test_frequencies():
    """Aggregated counts: schools above and below the median."""
    data = sm.datasets.star98.load_pandas().data
    x = ["LOWINC", "PERASIAN", "PTRATIO", "PCTCHRT"]
    once = chain(data, np.zeros(len(data)), x)
    both = [once.assign(next_state=k, n=data[name]) for k, name in enumerate(("NBELOW", "NABOVE"))]
    fit = fitted(pd.concat(both, ignore_index=True), x, count="n")
    family = sm.families.Binomial()
    model = sm.GLM(data[["NABOVE", "NBELOW"]], sm.add_constant(data[x]), family=family).fit(tol=1e-14)
    np.testing.assert_allclose(fit.theta_, model.params, **CLOSE)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance_)), model.bse, **CLOSE)


@pytest.mark.parametrize("ragged", [False, True])
def test_conditional_logit(ragged):
    """Travel modes, four alternatives each; ragged: the poor have no plane unless they took it."""
    data = sm.datasets.modechoice.load_pandas().data
    if ragged:
        data = data[~((data["mode"] == 1) & (data.hinc < 25) & (data.choice == 0))]
    names = ["ttme", "invc", "invt", "gc"]
    fit = MNLTransition(
        formula="choice ~ C(mode, contr.treatment(base=4.0)) + ttme + invc + invt + gc",
        choice="individual", chosen="choice", tol=1e-11,
    ).fit(data)  # fmt: skip
    x = np.column_stack([*((data["mode"] == k) * 1.0 for k in (1, 2, 3)), data[names]])
    conditional = pytest.importorskip("statsmodels.discrete.conditional_models")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = conditional.ConditionalLogit(data.choice.to_numpy(), x, groups=data.individual.to_numpy())
        found = model.fit(method="newton", disp=0, tol=1e-13)
    assert (len(set(fit.choices_.sizes)) > 1) == ragged
    np.testing.assert_allclose(fit.theta_, found.params, **CLOSE)
    np.testing.assert_allclose(np.sqrt(np.diag(fit.covariance_)), found.bse, **CLOSE)
    assert fit.log_likelihood_ == pytest.approx(found.llf, rel=1e-9)


def test_average_marginal_effects():
    log, x = anes96()
    theirs = peer(log, x).get_margeff()
    fit = fitted(log, x)
    for k, name in enumerate(x):
        mine = marginal_effects(fit, name)
        np.testing.assert_allclose(mine["effect"], theirs.margeff[k], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(mine["std err"], theirs.margeff_se[k], rtol=1e-5)
