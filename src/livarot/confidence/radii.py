"""Radii, as printed and as they should be (readings E4-E7, E18).  A radius is never squared.

Names: ``dim`` d, ``bound`` B, ``horizon`` H, ``failure_level`` delta, ``reg`` lambda, ``n_outcomes`` U.
"""

from __future__ import annotations

import math


def kappa_bound(n_outcomes: int, bound: float) -> float:
    """kappa <= U^2 exp(4 B): the cheap bound the paper's experiments use (infinite where it overflows).

    It holds for |phi| <= 1 and no offsets; a known offset in the logits is not accounted for.
    """
    exponent = 4.0 * bound + 2.0 * math.log(n_outcomes)
    return math.exp(exponent) if exponent < 709.0 else math.inf


def livarot_radius_printed(t: int, dim: int, bound: float, failure_level: float) -> float:
    """beta_t = sqrt(2/3 d log(t/delta)) + 24 B sqrt(d), t the episode's number: Lemma (confidence set learning phase).

    As printed; the union over stages is missing and 24 B sqrt(d) is 2 B sqrt(lambda) at lambda = 144 d only (E18).
    """
    return math.sqrt(2.0 / 3.0 * dim * math.log(t / failure_level)) + 24.0 * bound * math.sqrt(dim)


def livarot_radius(t: int, dim: int, horizon: int, bound: float, reg: float, failure_level: float) -> float:
    """beta_t = sqrt(2/3 d log(t H/delta)) + 2 B sqrt(lambda), t the number of OMD updates of the parameter (E18)."""
    return math.sqrt(2.0 / 3.0 * dim * math.log(max(t, 1) * horizon / failure_level)) + 2.0 * bound * math.sqrt(reg)


def exploration_radius(
    n_explore: int, dim: int, horizon: int, bound: float, kappa: float, rho: float, failure_level: float
) -> float:
    """beta^0_{tau+1} of Eq. (def beta_t), for |theta - centre|_A <= beta^0 (the algorithm box squares it: E4)."""
    first = (bound + 3.0) * math.sqrt(dim * math.log((n_explore + 1) * horizon / failure_level))
    second = (n_explore + 2) ** 0.25 * _power(kappa, rho, 1.5) * dim * math.log(1.0 + (n_explore + 1) / dim)
    return float((1.0 + 3.0 * math.sqrt(2.0)) * (first + second))


def exploration_length(
    n_episodes: int, dim: int, horizon: int, bound: float, kappa: float, rho: float, failure_level: float
) -> float:
    """tau of Lemma (constant diameter); astronomically large in practice (E7), so a float."""
    return float(
        4.0**5
        * _power(kappa, rho, 8.0)
        * (1.0 + 3.0 * math.sqrt(2.0)) ** 4
        * dim**6
        * (bound + 3.0) ** 2
        * math.log(n_episodes * horizon / failure_level)
        * math.log(1.0 + n_episodes / dim) ** 6
    )


def second_order_radius_printed(t: int, dim: int, horizon: int, n_outcomes: int, failure_level: float) -> float:
    """sqrt(d) log(U) log(t H/delta): UCRL-MNL-OL as the paper runs it."""
    return math.sqrt(dim) * math.log(n_outcomes) * math.log(t * horizon / failure_level)


def second_order_radius(
    t: int, dim: int, horizon: int, n_outcomes: int, bound: float, reg: float, step_size: float, failure_level: float
) -> float:
    """The explicit radius of OFU-MNL+ (Lee and Oh 2024) with K = U - 1 and delta/H; certain there, likely here."""
    level = math.log(2.0 * math.sqrt(1.0 + 2.0 * t) * horizon / failure_level)
    growth = 3.0 * math.log(1.0 + n_outcomes * t) + bound + 2.0
    loss = growth * (17.0 / 16.0 * reg + 2.0 * math.sqrt(reg) * level + 16.0 * level**2)
    curvature = 7.0 * math.sqrt(6.0) / 6.0 * dim * step_size * math.log(1.0 + (t + 1.0) / (2.0 * reg))
    return math.sqrt(2.0 * step_size * (loss + 2.0 + curvature) + 4.0 * reg * bound**2)


def _power(kappa: float, rho: float, exponent: float) -> float:
    """(kappa/rho)^exponent, infinite where that is too large for a number."""
    try:
        return math.inf if rho == 0.0 else float((kappa / rho) ** exponent)
    except OverflowError:
        return math.inf
