"""The law of one choice: NumPy's numbers, also where plain exponentials overflow."""

import numpy as np
import pytest
from scipy.special import logsumexp

from livarot.core.compiling.jit import jit
from livarot.core.law import expectation, log_sum_exp, logits, mean_row, softmax, spread
from livarot.core.views import view


@jit
def law(offset, phi, theta, z, p):
    logits(view(offset), view(phi), view(theta), view(z))
    softmax(view(z), view(p))
    return expectation(view(p), view(z))


@jit
def log_sum(z):
    return log_sum_exp(view(z))


@jit
def about_the_mean(p, phi, mean, weight, away):
    mean_row(view(p), view(phi), view(mean))
    return spread(view(p), view(phi), view(mean), view(weight), view(away))


def of(offset, phi, theta):
    z, p = np.empty(len(offset)), np.empty(len(offset))
    return z, p, law(offset, phi, theta, z, p)


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_logits_probabilities_and_expectations(n, scale):
    rng = np.random.default_rng(n)
    offset, phi, theta = scale * rng.normal(size=n), rng.normal(size=(n, 3)), rng.normal(size=3)
    z, p, mean = of(offset, phi, theta)
    np.testing.assert_allclose(z, offset + phi @ theta, rtol=1e-14, atol=1e-14 * scale)
    weights = np.exp(z - z.max())
    # no exponential is below 1e-304, so that logarithms stay finite
    np.testing.assert_allclose(p, weights / weights.sum(), rtol=1e-14, atol=1e-304)
    assert mean == pytest.approx(p @ z, rel=1e-14)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e300])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_log_sum_exp(n, scale):
    z = scale * np.random.default_rng(n).normal(size=n)
    assert log_sum(z) == pytest.approx(logsumexp(z), rel=1e-14)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_weights_and_columns_make_the_covariance(n):
    rng = np.random.default_rng(10 + n)
    p, phi = rng.dirichlet(np.ones(n)), rng.normal(size=(n, 4))
    mean, weight, away = np.empty(4), np.empty(n), np.empty((4, n))
    k = about_the_mean(p, phi, mean, weight, away)
    assert k == (1 if n == 2 else n)
    np.testing.assert_allclose(mean, p @ phi, rtol=1e-14, atol=1e-15)
    covariance = (phi - mean).T @ np.diag(p) @ (phi - mean)
    np.testing.assert_allclose((weight[:k] * away[:, :k]) @ away[:, :k].T, covariance, rtol=0, atol=1e-15)
