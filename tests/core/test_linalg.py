"""Packed matrices: whiteners, distances with twice the digits, blocks that do not mix."""

from fractions import Fraction

import numpy as np
import pytest

from livarot.core.linalg import Blocks, one_block, packed_distance, project_dense, whiten_all
from livarot.core.views import Bundle

TWO = Bundle(Blocks(np.array([0, 2, 5]), np.array([0, 4, 13])))  # blocks of 2 and 3 coordinates


def packed(rng, scale=1.0):
    """A positive matrix of two blocks: its numbers, and the dense matrix."""
    parts = [scale * (root @ root.T + 0.1 * np.eye(len(root))) for root in (rng.normal(size=(n, n)) for n in (2, 3))]
    dense = np.zeros((5, 5))
    dense[:2, :2], dense[2:, 2:] = parts
    return np.concatenate([part.reshape(-1) for part in parts]), dense


def test_a_whitener_of_each_matrix():
    rng = np.random.default_rng(1)
    grams, denses = zip(*(packed(rng, 10.0**k) for k in (-3, 0, 5)), strict=True)
    whiten = np.full((3, 1, 13), np.nan)
    whiten_all(TWO, np.array(grams)[:, None], whiten)
    for numbers, dense in zip(whiten[:, 0], denses, strict=True):
        w = np.zeros((5, 5))
        w[:2, :2], w[2:, 2:] = numbers[:4].reshape(2, 2), numbers[4:].reshape(3, 3)
        assert (np.triu(w, 1) == 0.0).all()
        np.testing.assert_allclose(w.T @ w @ dense, np.eye(5), rtol=0, atol=1e-12)


def test_distances_are_right_where_plain_sums_are_not():
    """x - y is almost the null vector of the matrix: the products cancel in all but the last digits."""
    a = np.array([[1.0, 1.0 - 1e-15], [1.0 - 1e-15, 1.0]])
    x, y = np.array([1.0, -1.0]), np.array([0.1, -0.1])
    away = [Fraction(float(one - other)) for one, other in zip(x, y, strict=True)]
    exact = sum(Fraction(float(a[i, j])) * away[i] * away[j] for i in range(2) for j in range(2))
    assert packed_distance(one_block(2), a.reshape(-1), x, y) == pytest.approx(float(exact) ** 0.5, rel=1e-12)
    plain = ((x - y) @ a @ (x - y)) ** 0.5
    assert abs(plain / float(exact) ** 0.5 - 1.0) > 1e-3  # what the second half of the digits is for


@pytest.mark.parametrize("radius", [1e-6, 0.5, 3.0])
def test_a_projection_is_where_the_gradients_agree(radius):
    rng = np.random.default_rng(2)
    (metric, dense), (shape, dense_shape) = packed(rng), packed(rng)
    target, out = 2.0 * rng.normal(size=5), np.empty(5)
    mu, _, sound = project_dense(TWO, metric, shape, target, radius, out, np.empty((2, 13)), np.empty((3, 5)))
    assert sound and mu >= 0.0
    length = np.sqrt(out @ dense_shape @ out)
    assert length <= radius * (1.0 + 1e-12)
    assert mu == 0.0 or length == pytest.approx(radius, rel=1e-12)
    residual = dense @ (out - target) + (mu * dense_shape @ out if mu > 0.0 else 0.0)
    np.testing.assert_allclose(residual, 0.0, atol=1e-10 * max(1.0, mu * radius))


def test_what_is_inside_stays_where_it_is():
    metric, _ = packed(np.random.default_rng(3))
    target, out = np.full(5, 0.1), np.empty(5)
    identity = np.concatenate([np.eye(2).reshape(-1), np.eye(3).reshape(-1)])
    mu, steps, sound = project_dense(TWO, metric, identity, target, 1.0, out, np.empty((2, 13)), np.empty((3, 5)))
    assert (mu, steps, sound) == (0.0, 0, True)
    np.testing.assert_array_equal(out, target)
