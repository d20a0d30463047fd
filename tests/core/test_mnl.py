"""One multinomial-logistic choice: against sixty digits and the slow twins."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from livarot.core import lanes as lane
from livarot.core import law, mnl
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.lanes import W, lanes
from livarot.core.views import part, view
from tests.twins import core as ref
from tests.twins.agents import random_row

QUIET = settings(max_examples=60, deadline=None, derandomize=True)
LOGITS = hnp.arrays(
    np.float64, st.integers(1, 8), elements=st.floats(-1e4, 1e4, allow_nan=False, allow_subnormal=False)
)


def exact_log_p(z):
    """log softmax in 60 digits, by log1p of all but the largest term, so that p near 1 is exact as well."""
    with mpmath.workdps(60):
        order = np.argsort(-z, kind="stable")
        top = mpmath.mpf(float(z[order[0]]))
        tail = mpmath.log1p(mpmath.fsum(mpmath.exp(mpmath.mpf(float(z[i])) - top) for i in order[1:]))
        return [float((mpmath.mpf(float(x)) - top) - tail) for x in z]


# ---------------------------------------------------------------- the exponential
@jit
def exp(x):
    return lane.exp(x)


def test_exp_kernel_is_within_a_few_units_in_the_last_place():
    rng = np.random.default_rng(1)
    points = np.concatenate(
        (
            rng.uniform(-700, 0, 3000),
            -(10.0 ** rng.uniform(-18, 2.8, 1000)),
            np.arange(-1010, 1) * math.log(2) * 0.69,
            (np.arange(-1009, 1) - 0.5) * math.log(2),  # where the reduction changes its integer
            [0.0, -0.0, -700.0],
        )
    )
    points = points[points >= -700]
    worst = 0.0
    with mpmath.workdps(40):
        for x in points:
            exact = mpmath.exp(mpmath.mpf(float(x)))
            worst = max(worst, float(abs((mpmath.mpf(float(exp(float(x)))) - exact) / exact)))
    assert worst <= 1e-15
    assert exp(0.0) == 1.0


def test_exp_kernel_below_its_range_is_tiny_but_positive():
    assert exp(-700.0) == exp(-1e4) == exp(-math.inf)
    assert 0 < exp(-1e308) < 1e-303


# ---------------------------------------------------------------- probabilities
@QUIET
@given(LOGITS)
def test_probabilities_against_sixty_digits(z):
    np.testing.assert_allclose(mnl.softmax(z), np.exp(exact_log_p(z)), rtol=1e-11, atol=1e-300)


@inner
def curvature(offset, phi, theta, vectors, away, mean, hessian):
    p, weight = vectors[0], vectors[1]
    law.logits(offset, phi, theta, p)
    law.softmax(p, p)
    law.mean_row(p, phi, mean)
    count = law.spread(p, phi, mean, weight, away)
    for j in range(len(hessian)):
        row = part(p, 0, count)
        law.scaled(weight, away[j], row)
        for k in range(len(hessian)):
            hessian[j, k] = law.expectation(row, away[k])


@jit
def curvature_of_floats(offset, phi, theta, vectors, away, mean, hessian):
    curvature(view(offset), view(phi), view(theta), view(vectors), view(away), view(mean), view(hessian))


@jit
def curvature_of_lanes(offset, phi, theta, vectors, away, mean, hessian):
    curvature(lanes(offset), lanes(phi), lanes(theta), lanes(vectors), lanes(away), lanes(mean), lanes(hessian))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 30.0, 1e3, 1e4])
@pytest.mark.parametrize("n", [2, 3, 7])
def test_probabilities_of_random_logits(scale, n):
    rng = np.random.default_rng(3)
    for _ in range(20):
        z = scale * rng.normal(size=n)
        np.testing.assert_allclose(mnl.softmax(z), np.exp(exact_log_p(z)), rtol=1e-11, atol=1e-300)


@QUIET
@given(LOGITS)
def test_probabilities_are_a_distribution(z):
    p = mnl.softmax(z)
    assert abs(math.fsum(p) - 1.0) <= 1e-12
    assert np.all(p >= 0)
    shifted = mnl.softmax(z + 3.25)
    np.testing.assert_allclose(shifted, p, rtol=1e-10, atol=1e-300)  # rounding of z + 3.25 at 1e4
    order = np.argsort(z, kind="stable")
    assert np.all(np.diff(p[order]) >= 0)


@QUIET
@given(LOGITS)
def test_compiled_probabilities_are_the_same(z):
    p = np.empty(len(z))
    mnl.choice_probabilities(z, 0, len(z), np.empty(0), 0, 0, np.empty(0), p)
    assert abs(math.fsum(p) - 1.0) <= 1e-12
    np.testing.assert_allclose(p, mnl.softmax(z), rtol=5e-15, atol=1e-303)


def test_probabilities_against_the_twin_along_axes():
    rng = np.random.default_rng(4)
    rows = [random_row(rng, 3, 5) for _ in range(6)]
    theta = 3 * rng.normal(size=3)
    z = np.array([row[2] + row[1] @ theta for row in rows])
    for i, row in enumerate(rows):
        exact = ref.softmax(row, theta)
        np.testing.assert_allclose(mnl.softmax(z)[i], exact, rtol=1e-13)


# ---------------------------------------------------------------- derivatives
@QUIET
@given(st.integers(1, 6), st.integers(2, 6), st.integers(0, 10**6), st.floats(0.0, 1e3))
def test_second_derivative_of_the_expectation_is_bounded_by_the_variance_of_the_move(d, n, seed, scale):
    """|f''| <= span(V) Var_p(phi . x) along x, the inequality behind the variance-aware bound."""
    rng = np.random.default_rng(seed)
    row, theta, values, x = (
        random_row(rng, d, n),
        scale * rng.normal(size=d),
        rng.random(n),
        rng.normal(size=d),
    )
    phi = row[1]
    assume(np.ptp(values) > 0)
    p = mnl.softmax(phi @ theta)
    moved = phi @ x - p @ (phi @ x)
    second = p @ ((values - p @ values) * moved**2)
    assert abs(second) <= np.ptp(values) * (p @ moved**2) + 1e-15


@pytest.mark.parametrize("n", [2, 3, 5])
def test_mean_and_hessian_of_floats_and_of_lanes(n):
    """W choices side by side: the twin's numbers, and the bits of each choice alone."""
    rng = np.random.default_rng(7 + n)
    rows, thetas = [random_row(rng, 3, n) for _ in range(W)], rng.normal(size=(W, 3))
    sides = [np.stack(parts, axis=-1) for parts in ([row[2] for row in rows], [row[1] for row in rows], thetas)]
    together = [np.zeros((3, W)), np.zeros((3, 3, W))]
    curvature_of_lanes(*sides, np.zeros((2, n, W)), np.zeros((3, n, W)), *together)
    for k, (row, theta) in enumerate(zip(rows, thetas, strict=True)):
        alone = [np.zeros(3), np.zeros((3, 3))]
        curvature_of_floats(row[2], row[1], theta, np.zeros((2, n)), np.zeros((3, n)), *alone)
        np.testing.assert_allclose(alone[0], ref.softmax(row, theta) @ row[1], atol=1e-15)
        np.testing.assert_allclose(alone[1], ref.hessian(row, theta), atol=1e-15)
        for one, many in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one, many[..., k])


def test_a_single_outcome_is_certain():
    assert mnl.softmax([1e4]).tolist() == [1.0]
