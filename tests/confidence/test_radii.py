"""Radii: the formulas of the text, by numbers worked out by hand."""

import math

import numpy as np
import pytest

from livarot.confidence.radii import (
    exploration_length,
    exploration_radius,
    livarot_radius,
    livarot_radius_printed,
    second_order_radius,
    second_order_radius_printed,
)
from tests.twins import agents as twin


def kappa_bound(n_outcomes, bound):
    """U^2 exp(4 B), infinite where it overflows."""
    return n_outcomes**2 * math.exp(4 * bound) if bound < 175 else math.inf


def test_livarot_radius_as_printed():
    """t = 1, d = 6, B = 1/24, delta = e^-1: sqrt(2/3 * 6 * 1) + sqrt(6)."""
    assert livarot_radius_printed(1, 6, 1 / 24, math.exp(-1)) == pytest.approx(2 + math.sqrt(6), rel=1e-14)
    # d = 2, B = 2.223, t = 81, delta = .05: sqrt(4/3 * log 1620) = 3.139040, 24 * 2.223 * sqrt 2 = 75.451122
    assert livarot_radius_printed(81, 2, 2.223, 0.05) == pytest.approx(3.139040 + 75.451122, abs=2e-6)


def test_livarot_radius_follows_the_regularisation_and_the_horizon():
    """t H / delta = e^6, d = 9, B = 5, reg = 4: sqrt(2/3 * 9 * 6) + 2 * 5 * sqrt(4) = 6 + 20."""
    assert livarot_radius(2, 9, 3, 5.0, 4.0, 6 * math.exp(-6)) == pytest.approx(26.0, rel=1e-14)
    # with reg = 144 d and H = 1 it is the printed one
    assert livarot_radius(7, 3, 1, 1.5, 144 * 3, 0.05) == pytest.approx(livarot_radius_printed(7, 3, 1.5, 0.05))
    assert livarot_radius(0, 3, 4, 1.5, 10.0, 0.05) == livarot_radius(1, 3, 4, 1.5, 10.0, 0.05)
    values = [livarot_radius(t, 2, 5, 1.0, 10.0, 0.05) for t in range(1, 50)]
    assert np.all(np.diff(values) > 0)


def test_second_order_radius_as_printed():
    """sqrt(4) * log(e^2) * log(t H / delta) with t H / delta = e^3."""
    assert second_order_radius_printed(2, 4, 5, 8, 10 * math.exp(-3)) == pytest.approx(2 * math.log(8) * 3)
    assert second_order_radius_printed(1, 2, 10, 2, 0.05) == pytest.approx(
        math.sqrt(2) * math.log(2) * math.log(200), rel=1e-14
    )


def test_second_order_radius_of_the_theory():
    """Every factor made simple: L = log(2 sqrt(1 + 2t) H / delta) = 1 and reg = 16."""
    t, d, H, B, eta, reg = 4, 3, 2, 1.0, 2.0, 16.0
    delta = 2 * math.sqrt(9) * H / math.e
    growth = 3 * math.log(1 + 5 * t) + B + 2  # U = 5 outcomes: K + 1 = 5
    inner = growth * (17 / 16 * 16 + 2 * 4 * 1 + 16 * 1) + 2
    inner += 7 * math.sqrt(6) / 6 * d * eta * math.log(1 + 5 / 32)
    exact = math.sqrt(2 * eta * inner + 4 * reg * B**2)
    assert second_order_radius(t, d, H, 5, B, reg, eta, delta) == pytest.approx(exact, rel=1e-14)
    assert growth * 41 + 2 < inner < growth * 41 + 2 + 3


def test_exploration_radius():
    """(1+3 sqrt 2) ((B+3) sqrt(d log((tau+1)H/delta)) + (tau+2)^1/4 (kappa/rho)^3/2 d log(1+(tau+1)/d))."""
    delta = 16 * 2 / math.exp(8)  # (tau + 1) H / delta = e^8 at tau = 15, H = 2
    first = (1.0 + 3) * math.sqrt(2 * 8)
    second = 17**0.25 * 4**1.5 * 2 * math.log(9)
    factor = 1 + 3 * math.sqrt(2)
    assert exploration_radius(15, 2, 2, 1.0, 4.0, 1.0, delta) == pytest.approx(factor * (first + second), rel=1e-14)
    assert exploration_radius(14, 2, 2, 1.0, 2.0, 0.5, 0.05) == pytest.approx(
        twin.explore_radius(14, 2, 2, 1.0, 2.0, 0.5, 0.05), rel=1e-14
    )
    # the paper's experiment (E8): about 6e8, far beyond the B-ball
    experiment = exploration_radius(80, 2, 10, 2.223, kappa_bound(2, 2.223), 1.0, 0.05)
    assert 4e8 < experiment < 8e8


def test_exploration_length():
    """4^5 (kappa/rho)^8 (1 + 3 sqrt 2)^4 d^6 (B + 3)^2 log(TH/delta) log(1 + T/d)^6."""
    exact = 1024 * 2**8 * (1 + 3 * math.sqrt(2)) ** 4 * 2**6 * 25 * math.log(100 * 5 / 0.05) * math.log(51) ** 6
    assert exploration_length(100, 2, 5, 2.0, 1.0, 0.5, 0.05) == pytest.approx(exact, rel=1e-13)
    # E7: no budget allows it, with kappa = 11.3 at H = 10 and T = 1000
    assert 1e23 < exploration_length(1000, 2, 10, 2.223, 11.3, 1.0, 0.05) < 1e24


@pytest.mark.parametrize("bound", [10.0, 25.0, 60.0, 130.0, 175.0, 500.0])
def test_astronomical_numbers_are_infinite_and_not_an_error(bound):
    kappa = kappa_bound(3, bound)
    assert exploration_radius(10, 2, 5, bound, kappa, 1.0, 0.05) > 1e9
    assert exploration_length(1000, 2, 5, bound, kappa, 1.0, 0.05) > 1e30
