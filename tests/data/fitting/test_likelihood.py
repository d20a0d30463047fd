"""Log-likelihood, gradient, Hessian, scores and reach against naive loops."""

import numpy as np
import pytest

from livarot.data import Choices
from livarot.data.fitting import likelihood
from tests.twins import data as naive


def choices_of(start, features, count, offset=None):
    return Choices(start, features, count, tuple(f"x{j}" for j in range(features.shape[1])), offset)


@pytest.mark.parametrize("chunk", [1, 7, 4096])
@pytest.mark.parametrize("seed", range(3))
def test_the_twin(seed, chunk, monkeypatch):
    monkeypatch.setattr(likelihood, "CHUNK", chunk)
    start, x, count, offset, _ = naive.sample(seed, n=60, offset=seed > 0)
    count *= np.random.default_rng(seed).integers(0, 5, size=len(count))  # some sets never met, some often
    theta = np.random.default_rng(seed + 10).normal(size=3)
    found = likelihood.derivatives(choices_of(start, x, count, offset), theta)
    value, gradient, hessian, scores = naive.derivatives(start, x, count, offset, theta)
    assert found.log_likelihood == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found.hessian, hessian, rtol=1e-11, atol=1e-12)
    middle = likelihood.derivatives(choices_of(start, x, count, offset), theta, counted=True).hessian
    np.testing.assert_allclose(middle, scores, rtol=1e-11, atol=1e-12)
    assert likelihood.log_likelihood(choices_of(start, x, count, offset), theta) == pytest.approx(value, rel=1e-13)


def test_columns_in_place_give_the_same_bits():
    start, x, count, offset, theta = naive.sample(0)
    one = likelihood.derivatives(choices_of(start, x, count, offset), theta)
    names = ("a", "b", "c")
    two = likelihood.derivatives(Choices(start, tuple(x.T), count, names, offset), theta)
    assert one.log_likelihood == two.log_likelihood
    np.testing.assert_array_equal(one.hessian, two.hessian)
    np.testing.assert_array_equal(one.gradient, two.gradient)


def test_a_common_shift_of_a_million_changes_nothing():
    start, x, count, _, theta = naive.sample(1)
    x = np.round(x * 1024) / 1024  # so that the shift is exact
    plain = likelihood.derivatives(choices_of(start, x, count), theta)
    moved = likelihood.derivatives(choices_of(start, x + 2.0**20, count), theta)
    assert plain.log_likelihood == moved.log_likelihood
    np.testing.assert_array_equal(plain.hessian, moved.hessian)


def test_logits_of_ten_thousand():
    start, x, count, _, theta = naive.sample(2)
    found = likelihood.derivatives(choices_of(start, x, count), 1e4 * theta)
    assert np.isfinite(found.log_likelihood) and np.isfinite(found.hessian).all()
    p = np.exp(likelihood.log_probabilities(choices_of(start, x, count), 1e4 * theta))
    np.testing.assert_allclose(np.add.reduceat(p, start[:-1]), 1.0, rtol=1e-12)


def test_counts_are_sufficient():
    """A log written out a thousand times and its counts have the same likelihood."""
    start, x, count, offset, theta = naive.sample(3, n=4)
    once = choices_of(start, x, count * 1000.0, offset)
    many = choices_of(
        np.concatenate(([0], np.cumsum(np.tile(np.diff(start), 1000)))),
        np.tile(x, (1000, 1)),
        np.tile(count, 1000),
        np.tile(offset, 1000),
    )
    a, b = likelihood.derivatives(once, theta), likelihood.derivatives(many, theta)
    assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(a.hessian, b.hessian, rtol=1e-11)


def test_reach_bounds_the_curvature_along_every_line():
    """psi''(t) >= exp(-average t) with |v|_H = 1, and no range exceeds the widest."""
    start, x, count, _, theta = naive.sample(4, n=40, dim=2)
    data = choices_of(start, x, count)
    hessian = likelihood.derivatives(data, theta).hessian
    root = np.linalg.cholesky(hessian)
    found = likelihood.reach(data, theta, root)
    assert found.farthest <= found.widest <= 2 * found.farthest
    assert found.average <= found.widest
    rng = np.random.default_rng(0)
    for _ in range(50):
        v = np.linalg.solve(root.T, (w := rng.normal(size=2)) / np.linalg.norm(w))
        assert v @ hessian @ v == pytest.approx(1.0)
        along = x @ v
        ranges = np.maximum.reduceat(along, start[:-1]) - np.minimum.reduceat(along, start[:-1])
        assert ranges.max() <= found.widest * (1 + 1e-12)
        for t in (0.1, 1.0, 3.0, 10.0):
            curved = v @ likelihood.derivatives(data, theta + t * v).hessian @ v
            assert curved >= np.exp(-found.average * t) * (1 - 1e-12)
