"""The maximum: certificate, twins, scales; separable and collinear data refused by name."""

import itertools

import numpy as np
import pytest

from livarot.data import Choices, DataWarning, NotIdentified
from livarot.data.fitting import likelihood
from livarot.data.fitting.newton import maximise
from livarot.data.fitting.separation import separation
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


def separated(rng, n, dim, kind):
    """Choices that columns 0 and 1 separate: always (full), or where column 0 is not zero (quasi)."""
    size = rng.integers(2, 5, size=n)
    start = np.concatenate(([0], np.cumsum(size)))
    x = rng.normal(size=(start[-1], dim))
    count = np.zeros(start[-1])
    for begin, end in itertools.pairwise(start):
        if kind == "full":
            count[begin + np.argmax(x[begin:end, 0] - 2.0 * x[begin:end, 1])] = 1.0
        else:
            y = begin + rng.integers(end - begin)
            count[y] = 1.0
            x[begin:end, 0] = 0.0
            if rng.random() < 0.2:
                x[y, 0] = rng.random() + 0.1
    return start, x, count


@pytest.mark.parametrize("kind", ["full", "quasi"])
def test_separable_data_are_named(kind):
    """A hundred of each kind: flagged when, and only when, a linear programme over all constraints says so."""
    rng = np.random.default_rng(3)
    flagged = 0
    for _ in range(100):
        start, x, count = separated(rng, 40, 4, kind)
        assert naive.separable(start, x, count)
        with pytest.raises(NotIdentified, match="separable") as caught:
            maximise(choices_of(start, x, count))
        error = caught.value
        assert error.kind == "separable" and "reg > 0" in str(error)
        if kind == "quasi":
            assert error.columns == ("x0",)
        flagged += 1
        along = x @ error.direction  # the certificate itself
        for begin, end in itertools.pairwise(start):
            y = begin + int(count[begin:end].argmax())
            assert (along[y] - along[begin:end] >= -1e-6 * np.abs(error.direction).max()).all()
        assert maximise(choices_of(start, x, count), reg=0.1).converged
    assert flagged == 100


def test_few_choices_are_judged_as_the_linear_programme_judges():
    rng = np.random.default_rng(4)
    outcomes = []
    for seed in range(60):
        start, x, count, _, _ = naive.sample(seed + 100, n=int(rng.integers(5, 12)), dim=3)
        truth = naive.separable(start, x, count)
        if truth:
            with pytest.raises(NotIdentified, match="separable"):
                maximise(choices_of(start, x, count))
        else:
            assert maximise(choices_of(start, x, count)).converged
        outcomes.append(truth)
    assert 5 < sum(outcomes) < 55


def test_overlapping_data_have_no_separation():
    start, x, count, _, theta = naive.sample(7)
    spread = likelihood.derivatives(choices_of(start, x, count), np.zeros(3)).spread
    assert separation(choices_of(start, x, count), theta, spread) is None


def test_nearly_separable_data_converge():
    """One contradicting choice among 400, logits of about 30: slow, finite, and reported as converged."""
    rng = np.random.default_rng(5)
    start, x, count = separated(rng, 400, 2, "full")
    begin, end = start[0], start[1]
    count[begin:end] = 0.0
    count[begin + np.argmin(x[begin:end, 0] - 2.0 * x[begin:end, 1])] = 1.0
    found = maximise(choices_of(start, x, count))
    assert found.converged and found.certificate < 0.5
    _, gradient, _, _ = naive.derivatives(start, x, count, np.zeros(len(x)), found.theta)
    assert np.abs(gradient).max() < 1e-6


def test_collinear_columns_are_named():
    start, x, count, _, _ = naive.sample(8, dim=4)
    x[:, 3] = 2.0 * x[:, 0] - x[:, 2] + np.repeat(np.arange(len(start) - 1), np.diff(start))  # up to a set's constant
    with pytest.raises(NotIdentified, match="'x0', 'x2', 'x3'") as caught:
        maximise(choices_of(start, x, count))
    assert caught.value.kind == "collinear" and caught.value.columns == ("x0", "x2", "x3")
    along = x @ caught.value.direction
    ranges = np.maximum.reduceat(along, start[:-1]) - np.minimum.reduceat(along, start[:-1])
    assert ranges.max() < 1e-9
    with pytest.warns(DataWarning, match="collinear"):
        assert maximise(choices_of(start, x, count), reg=1.0).converged


def test_a_constant_column_is_named():
    start, x, count, _, _ = naive.sample(9)
    x[:, 1] = np.repeat(np.arange(len(start) - 1), np.diff(start))
    with pytest.raises(NotIdentified, match=r"column 'x1': constant within every choice set") as caught:
        maximise(choices_of(start, x, count))
    assert caught.value.kind == "constant" and caught.value.count == 1


def test_nearly_collinear_columns_warn():
    start, x, count, _, _ = naive.sample(10, dim=3)
    x[:, 2] = x[:, 0] + 1e-6 * x[:, 2]
    with pytest.warns(DataWarning, match="nearly collinear"):
        maximise(choices_of(start, x, count))


def test_too_few_steps_are_not_called_converged():
    start, x, count, _, _ = naive.sample(11, scale=3.0)
    with pytest.warns(DataWarning, match="no convergence in 1 steps"):
        assert not maximise(choices_of(start, x, count), max_iter=1).converged
