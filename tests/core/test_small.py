"""Factors, solves and inverses of small matrices, and matrices that have none."""

import numpy as np
import pytest

from livarot.core.linalg import factor_dense, invert_lower, solve_dense


def positive(n, condition, seed=0):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    a = (basis * np.geomspace(1.0, 1.0 / condition, n)) @ basis.T
    return (a + a.T) / 2.0


@pytest.mark.parametrize("condition", [1.0, 1e6, 1e12])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_factor_solves_and_inverts(n, condition):
    a = positive(n, condition)
    low = np.zeros((n, n))
    assert factor_dense(a, low)
    whole = np.tril(low, -1) + np.diag(1.0 / np.diag(low))  # the diagonal is stored as reciprocals
    np.testing.assert_allclose(whole @ whole.T, a, rtol=0, atol=4e-16 * n * np.abs(a).max())
    x = np.ones(n)
    solve_dense(low, x)
    np.testing.assert_allclose(a @ x, 1.0, rtol=0, atol=1e-15 * n * condition)
    inverse = np.zeros(n * n)
    invert_lower(low.reshape(-1), 0, n, inverse, 0)
    np.testing.assert_allclose(inverse.reshape(n, n) @ whole, np.eye(n), rtol=0, atol=1e-15 * n * condition)


def test_only_the_lower_part_is_read():
    a = positive(4, 10.0)
    low, other = np.zeros((4, 4)), np.zeros((4, 4))
    factor_dense(a, low)
    factor_dense(np.tril(a) + np.triu(np.full((4, 4), np.nan), 1), other)
    np.testing.assert_array_equal(low, other)


def test_units_do_not_matter():
    """A coordinate in units of 1e-12 has the factor of the plain matrix in these units, and no pivot is raised."""
    a, units = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, 1e-12])
    plain, scaled = np.zeros((2, 2)), np.zeros((2, 2))
    assert factor_dense(a, plain)
    assert factor_dense(a * np.outer(units, units), scaled)
    np.testing.assert_allclose(np.diag(scaled) * units, np.diag(plain), rtol=1e-14)
    np.testing.assert_allclose(scaled[1, 0], plain[1, 0] * units[1], rtol=1e-14)


@pytest.mark.parametrize("a", [np.zeros((2, 2)), np.ones((3, 3)), np.diag([1.0, -1.0])])
def test_a_matrix_without_a_factor_is_flagged_and_stays_finite(a):
    low, x = np.zeros(a.shape), np.ones(len(a))
    assert not factor_dense(a, low)
    solve_dense(low, x)
    assert np.isfinite(low).all() and np.isfinite(x).all()


@pytest.mark.parametrize("first", [0.0, -1.0])
def test_a_diagonal_entry_that_is_not_positive(first):
    low = np.zeros((3, 3))
    assert not factor_dense(np.array([[first, 1e5, 1e5], [1e5, 1.0, 1.0], [1e5, 1.0, 1.0]]), low)
    assert np.isfinite(low).all()
