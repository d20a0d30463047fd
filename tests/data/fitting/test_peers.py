"""Coefficients and standard errors agree with statsmodels and xlogit."""

import warnings

import numpy as np
import pandas as pd
import pytest

from livarot.data import Choices, MNLTransition
from tests.twins import data as naive

conditional_models = pytest.importorskip("statsmodels.discrete.conditional_models")


def ours(start, x, count):
    fit = MNLTransition().fit(Choices(start, x, count, tuple(f"x{j}" for j in range(x.shape[1]))))
    return fit.theta_, np.sqrt(np.diag(fit.covariance_)), fit.log_likelihood_


@pytest.mark.parametrize("seed", range(10))
def test_statsmodels(seed):
    """Ten random data sets; every other one ragged."""
    start, x, count, _, _ = naive.sample(seed, n=150, dim=2 + seed % 3, sizes=(2, 6) if seed % 2 else (4, 4))
    theta, error, value = ours(start, x, count)
    groups = np.repeat(np.arange(len(start) - 1), np.diff(start))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = conditional_models.ConditionalLogit(count, x, groups=groups).fit(method="newton", disp=0)
    np.testing.assert_allclose(theta, peer.params, atol=1e-5)
    np.testing.assert_allclose(error, peer.bse, atol=1e-5)
    assert value == pytest.approx(peer.llf, rel=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_xlogit(seed):
    """Ten random data sets; one ragged, which xlogit takes with an availability mask."""
    xlogit = pytest.importorskip("xlogit")
    start, x, count, _, _ = naive.sample(seed + 50, n=400, dim=3, sizes=(2, 5) if seed == 0 else (4, 4))
    theta, error, value = ours(start, x, count)
    sizes = np.diff(start)
    most = sizes.max()
    place = np.repeat(np.arange(len(sizes)), sizes) * most + np.concatenate([np.arange(k) for k in sizes])
    padded, chosen, there = np.zeros((len(sizes) * most, 3)), np.zeros(len(sizes) * most), np.zeros(len(sizes) * most)
    padded[place], chosen[place], there[place] = x, count, 1.0
    model, coefficients = xlogit.MultinomialLogit(), None
    for _ in range(4):  # its tolerance on the gradient cannot be set: begin again where it stopped
        model.fit(
            X=pd.DataFrame(padded, columns=["a", "b", "c"]), y=chosen, varnames=["a", "b", "c"],
            ids=np.repeat(np.arange(len(sizes)), most), alts=np.tile(np.arange(most), len(sizes)),
            avail=there if seed == 0 else None, verbose=0, init_coeff=coefficients,
        )  # fmt: skip
        coefficients = model.coeff_
    np.testing.assert_allclose(theta, model.coeff_, atol=1e-5)
    np.testing.assert_allclose(error, model.stderr, atol=1e-5)
    assert value == pytest.approx(model.loglikelihood, rel=1e-6)
