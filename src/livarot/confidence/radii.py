"""Radii, as printed and as they should be (readings E4-E7, E18).  A radius is never squared.

Names: ``dim`` d, ``bound`` B, ``horizon`` H, ``failure_level`` delta, ``reg`` lambda, ``n_outcomes`` U.
"""

from __future__ import annotations

import math


def livarot_radius_printed(t: int, dim: int, bound: float, failure_level: float) -> float:
    """beta_t = sqrt(2/3 d log(t/delta)) + 24 B sqrt(d), t the episode's number: Lemma (confidence set learning phase).

    As printed; the union over stages is missing and 24 B sqrt(d) is 2 B sqrt(lambda) at lambda = 144 d only (E18).
    """
    return math.sqrt(2.0 / 3.0 * dim * math.log(t / failure_level)) + 24.0 * bound * math.sqrt(dim)


def livarot_radius(t: int, dim: int, horizon: int, bound: float, reg: float, failure_level: float) -> float:
    """beta_t = sqrt(2/3 d log(t H/delta)) + 2 B sqrt(lambda), for theta_hat_t, which has seen t - 1 updates (E18)."""
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
    """The explicit radius of OFU-MNL+ (Lee and Oh 2024) with K = U - 1 and delta/H; certain there, likely here.

    beta_t is that of theta_t, which has seen t - 1 updates, whatever number of episodes they took.
    """
    level = math.log(2.0 * math.sqrt(1.0 + 2.0 * t) * horizon / failure_level)
    growth = 3.0 * math.log(1.0 + n_outcomes * t) + bound + 2.0
    loss = growth * (17.0 / 16.0 * reg + 2.0 * math.sqrt(reg) * level + 16.0 * level**2)
    curvature = 7.0 * math.sqrt(6.0) / 6.0 * dim * step_size * math.log(1.0 + (t + 1.0) / (2.0 * reg))
    return math.sqrt(2.0 * step_size * (loss + 2.0 + curvature) + 4.0 * reg * bound**2)


def bernstein_radius(t: int, dim: int, horizon: int, bound: float, failure_level: float) -> float:
    """(B + 3) sqrt(d log(t H/delta)): the set of UCRL-MNL-LL around the maximum likelihood estimate (likely)."""
    return (bound + 3.0) * math.sqrt(dim * math.log(t * horizon / failure_level))


def max_norm_radius_printed(t: int, dim: int, horizon: int, n_states: int, reg: float) -> float:
    """sqrt(d log(1 + t H S/(d lambda))): UCRL-MNL as its public experiments run it (certain), before their factor c."""
    return math.sqrt(dim * math.log(1.0 + t * horizon * n_states / (dim * reg)))


def max_norm_radius(
    count: int, dim: int, horizon: int, n_outcomes: int, bound: float, reg: float, kappa: float, failure_level: float
) -> float:
    """kappa sqrt(d log(1 + n U/(d lambda)) + 2 log(H/delta)) + B sqrt(lambda): UCRL-MNL, likely up to constants.

    n = ``count`` is the number of transitions of the parameter: t H where it is shared, the paper's case.
    """
    growth = dim * math.log(1.0 + count * n_outcomes / (dim * reg))
    return kappa * math.sqrt(growth + 2.0 * math.log(horizon / failure_level)) + bound * math.sqrt(reg)


def newton_radius_printed(t: int, dim: int, horizon: int, kappa: float, failure_level: float) -> float:
    """sqrt(kappa d) log(t H/delta): the order of the ONS estimate's radius in Li et al. (likely)."""
    return math.sqrt(kappa * dim) * math.log(t * horizon / failure_level)


def newton_radius(
    count: int, dim: int, horizon: int, n_outcomes: int, bound: float, reg: float, kappa: float, failure_level: float
) -> float:
    """alpha_n of Cho et al., n = ``count`` transitions of the parameter, L_phi = 1, L_theta = B, kap = 1/kappa:

    alpha^2 = 8 d/kap log(1 + n U/(d lambda)) + (32 B/3 + 16/kap) log((1 + ceil(2 log2(n U B))) n^2 H/delta)
              + 2 sqrt2 + 2 lambda B^2.

    Terms certain; that the root covers all of them is likely.  Deviation: delta/H, for the union over the stages.
    """
    doublings = max(0, math.ceil(2.0 * math.log2(count * n_outcomes * bound))) if bound > 0.0 else 0
    growth = 8.0 * dim * kappa * math.log(1.0 + count * n_outcomes / (dim * reg))
    level = math.log((1.0 + doublings) * count**2 * horizon / failure_level)
    noise = (32.0 * bound / 3.0 + 16.0 * kappa) * level
    return math.sqrt(growth + noise + 2.0 * math.sqrt(2.0) + 2.0 * reg * bound**2)


def mirror_alpha(n_outcomes: int, bound: float) -> float:
    """alpha = log U + 2 (1 + B) of Cho et al.; their OMD step size is alpha/2 (certain)."""
    return math.log(n_outcomes) + 2.0 * (1.0 + bound)


def mirror_reg(dim: int, n_outcomes: int, bound: float) -> float:
    """lambda = max(12 sqrt2 alpha, 48 d alpha) of Cho et al. (certain)."""
    return max(12.0 * math.sqrt(2.0), 48.0 * dim) * mirror_alpha(n_outcomes, bound)


def mirror_radius(
    count: int, dim: int, horizon: int, n_outcomes: int, bound: float, reg: float, failure_level: float
) -> float:
    """beta_n of ORRL-MNL and UCRL-MNL+ (Cho et al., certain), n = ``count`` transitions of the parameter:

    beta^2 = alpha (GA + GB) + lambda B^2,   c = 2 alpha/3,
    GA = 5/4 (3 log(U n) + B) lambda + 4 (3 log(U n) + B) log(H sqrt(1 + 2 n)/delta) + 2,
    GB = sqrt6 c d log(1 + 2 n/(d lambda)).
    """
    alpha = mirror_alpha(n_outcomes, bound)
    growth = 3.0 * math.log(n_outcomes * count) + bound
    level = math.log(horizon * math.sqrt(1.0 + 2.0 * count) / failure_level)
    loss = growth * (1.25 * reg + 4.0 * level) + 2.0
    curvature = math.sqrt(6.0) * (2.0 * alpha / 3.0) * dim * math.log(1.0 + 2.0 * count / (dim * reg))
    return math.sqrt(alpha * (loss + curvature) + reg * bound**2)


def optimistic_samples(n_events: int) -> int:
    """M = ceil(1 - log(n)/log Phi(1)) (Cho et al., certain): of M standard normals one exceeds 1, for n events at once.

    >>> optimistic_samples(1), optimistic_samples(20)
    (1, 19)
    """
    below_one = 0.5 * (1.0 + math.erf(1.0 / math.sqrt(2.0)))
    return math.ceil(1.0 - math.log(n_events) / math.log(below_one))


def _power(kappa: float, rho: float, exponent: float) -> float:
    """(kappa/rho)^exponent, infinite where it overflows."""
    try:
        return math.inf if rho == 0.0 else float((kappa / rho) ** exponent)
    except OverflowError:
        return math.inf
