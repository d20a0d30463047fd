"""The maximum: certificate, twins, scales; separable and collinear data refused by name."""

import numpy as np
import pytest

from livarot.data import Choices, DataWarning
from livarot.data.fitting import likelihood
from livarot.data.fitting.newton import maximise
from livarot.estimation.mle import fit_mle
from livarot.model.problem import Problem
from tests.twins import data as naive


def choices_of(start, features, count, offset=None):
    return Choices(start, features, count, tuple(f"x{j}" for j in range(features.shape[1])), offset)


@pytest.mark.parametrize("reg", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(4))
def test_the_twin(seed, reg):
    start, x, count, offset, _ = naive.sample(seed, offset=seed % 2 == 1)
    found = maximise(choices_of(start, x, count, offset), reg=reg)
    assert found.converged and found.decrement <= 1e-8 and found.certificate < 0.5
    np.testing.assert_allclose(found.theta, naive.newton(start, x, count, offset, reg), atol=1e-10)


def test_the_other_estimator_of_the_package():
    """fit_mle on a Problem with the same choices (ridge 1e-3)."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-0.5, 0.5, size=(6, 3, 2))
    problem = Problem.from_arrays(
        1, 6, 1, outcomes=np.full(6, 3), next_state=np.tile([0, 1, 2], 6), features=x.reshape(18, 2),
        reward=np.zeros((6, 1)), param_bound=10.0,
    )  # fmt: skip
    pairs, chosen = rng.integers(6, size=400), rng.integers(3, size=400)
    other = fit_mle(problem, pairs, chosen.astype(np.int32), reg=1e-3)
    count = np.zeros(18)
    np.add.at(count, pairs * 3 + chosen, 1.0)
    found = maximise(choices_of(np.arange(0, 19, 3), x.reshape(18, 2), count), reg=1e-3)
    np.testing.assert_allclose(found.theta, other.theta, atol=1e-9)


def test_units_do_not_matter():
    """Columns in units from 1e-9 to 1e9: coefficients scale, the likelihood does not."""
    start, x, count, _, _ = naive.sample(5)
    units = np.array([1e-9, 1.0, 1e9])
    plain, scaled = maximise(choices_of(start, x, count)), maximise(choices_of(start, x * units, count))
    np.testing.assert_allclose(scaled.theta * units, plain.theta, rtol=1e-8)
    assert scaled.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-12)


def test_large_data_begin_on_a_sample(monkeypatch):
    monkeypatch.setattr(likelihood, "CHUNK", 8)
    start, x, count, _, _ = naive.sample(6, n=600)
    data = choices_of(start, x, count)
    found = maximise(data)
    monkeypatch.setattr(likelihood, "CHUNK", 4096)
    plain = maximise(data)
    assert found.n_iter < plain.n_iter
    np.testing.assert_allclose(found.theta, plain.theta, atol=1e-9)


def test_too_few_steps_are_not_called_converged():
    start, x, count, _, _ = naive.sample(11, scale=3.0)
    with pytest.warns(DataWarning, match="no convergence in 1 steps"):
        assert not maximise(choices_of(start, x, count), max_iter=1).converged


@pytest.mark.parametrize("reg", [0.0, 0.7])
def test_nothing_is_free(reg):
    """All coefficients are held at 0: that is the maximum, and its log-likelihood that of theta = 0."""
    start, x, count, _, _ = naive.sample(3)
    choices = choices_of(start, x, count)
    found = maximise(choices, reg=reg, free=np.zeros(x.shape[1], dtype=bool))
    assert found.converged and not found.theta.any() and not found.hessian.any()
    assert found.log_likelihood == pytest.approx(likelihood.log_likelihood(choices, np.zeros(x.shape[1])))
