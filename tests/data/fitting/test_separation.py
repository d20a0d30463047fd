"""Data without a maximum of the likelihood are named: separation, collinear and constant columns."""

import itertools

import numpy as np
import pytest

from livarot.data import Choices, DataWarning, NotIdentified
from livarot.data.fitting import likelihood
from livarot.data.fitting.newton import maximise
from livarot.data.fitting.separation import separation
from tests.twins import data as naive


def choices_of(start, features, count, offset=None):
    return Choices(start, features, count, tuple(f"x{j}" for j in range(features.shape[1])), offset)


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
