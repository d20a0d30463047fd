"""Radii of the other MNL agents: numbers worked out by hand, and the twins' terms."""

import math

import pytest
from scipy.stats import norm

from livarot.confidence.radii import (
    bernstein_radius,
    max_norm_radius,
    max_norm_radius_printed,
    mirror_alpha,
    mirror_radius,
    mirror_reg,
    newton_radius,
    newton_radius_printed,
    optimistic_samples,
)
from tests.twins import field as twin


def test_by_hand():
    """Every logarithm made a whole number."""
    assert bernstein_radius(2, 4, 3, 1.0, 6 * math.exp(-9)) == pytest.approx(4 * math.sqrt(36), rel=1e-14)
    # d = 3, 1 + tHS/(d lambda) = 1 + 2*5*6/(3*20) = 2
    assert max_norm_radius_printed(2, 3, 5, 6, 20.0) == pytest.approx(math.sqrt(3 * math.log(2)), rel=1e-14)
    # n U/(d lambda) = 1, H/delta = e^2: 7 sqrt(3 log 2 + 4) + 2 sqrt 9
    radius = max_norm_radius(9, 3, 5, 3, 2.0, 9.0, 7.0, 5 * math.exp(-2))
    assert radius == pytest.approx(7 * math.sqrt(3 * math.log(2) + 4) + 6, rel=1e-14)
    assert newton_radius_printed(2, 4, 5, 9.0, 10 * math.exp(-3)) == pytest.approx(6 * 3, rel=1e-14)
    # n U/(d lambda) = 1, 2 log2(n U B) = 2 log2(8) = 6: 1 + 6 = 7 and 7 n^2 H/delta = e^2
    delta = 7 * 16 * 5 * math.exp(-2)
    expected = 8 * 2 * 3 * math.log(2) + (32 * 0.5 / 3 + 16 * 3) * 2 + 2 * math.sqrt(2) + 2 * 8 * 0.25
    assert newton_radius(4, 2, 5, 4, 0.5, 8.0, 3.0, delta) == pytest.approx(math.sqrt(expected), rel=1e-14)


def test_mirror_radius_by_hand():
    """U n = 4, B = 1, H sqrt(1 + 2n)/delta = e, 2n/(d lambda) = 1: alpha = log 2 + 4, c = 2 alpha/3."""
    delta, alpha = 3 * math.sqrt(5) / math.e, math.log(2) + 4
    growth = 3 * math.log(4) + 1
    total = alpha * (1.25 * growth * 2 + 4 * growth + 2 + math.sqrt(6) * 2 * alpha / 3 * 2 * math.log(2)) + 2
    assert mirror_radius(2, 2, 3, 2, 1.0, 2.0, delta) == pytest.approx(math.sqrt(total), rel=1e-14)
    assert mirror_alpha(2, 1.0) == pytest.approx(alpha, rel=1e-15)
    assert mirror_reg(1, 2, 1.0) == pytest.approx(48 * alpha)
    assert mirror_reg(5, 2, 1.0) == pytest.approx(240 * alpha)


@pytest.mark.parametrize("n", [1, 7, 1000])
@pytest.mark.parametrize(("d", "H", "U", "B", "reg"), [(4, 20, 3, 2.6, 1.0), (10, 5, 2, 5.0, 40.0)])
def test_against_the_twins(n, d, H, U, B, reg):
    assert newton_radius(n, d, H, U, B, reg, 30.0, 0.05) == pytest.approx(
        twin.newton_radius(n, d, H, U, B, reg, 30.0, 0.05), rel=1e-13
    )
    assert mirror_radius(n, d, H, U, B, reg, 0.05) == pytest.approx(
        twin.mirror_radius(n, d, H, U, B, reg, 0.05), rel=1e-13
    )


def test_a_bound_of_zero_has_no_logarithm():
    assert math.isfinite(newton_radius(1, 1, 1, 2, 0.0, 1.0, 4.0, 0.05))
    assert math.isfinite(newton_radius(1, 1, 1, 2, 1e-9, 1.0, 4.0, 0.05))


def test_enough_samples():
    """M is the smallest whole number >= 1 - log n/log Phi(1), so that n Phi(1)^(M - 1) <= 1."""
    for n in (1, 2, 20, 60, 1000):
        count = optimistic_samples(n)
        assert n * norm.cdf(1) ** (count - 1) <= 1 + 1e-12
        assert count == 1 or n * norm.cdf(1) ** (count - 2) > 1
