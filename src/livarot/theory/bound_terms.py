"""The terms of the regret bound and the length and radius of the exploration, as logarithms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import numpy as np

from livarot.theory.all_constants import Constants

Reading = Literal["proof", "printed"]
LEADING = "variance"
TERMS = (
    LEADING,
    "martingale",
    "gap_variance",
    "value_error",
    "gap_square",
    "value_error_square",
    "curvature",
    "exploration",
)
ROOT2 = math.sqrt(2.0)
FARTHEST = 1e15  # log T beyond which a crossing is not looked for


def last_crossing(margin: Callable[[float], float]) -> float:
    """The smallest x >= 0 with margin >= 0 from there on.

    The margins here are logarithms of powers of T over powers of log T: beyond x = 64 they increase, below that they
    are evaluated on a grid.
    """
    high = 64.0
    while margin(high) < 0.0:
        high *= 2.0
        if high > FARTHEST:
            return math.inf
    low = high / 2.0 if high > 64.0 else None
    if low is None:
        grid = np.linspace(0.0, 64.0, 1281)
        below = [float(x) for x in grid if margin(float(x)) < 0.0]
        if not below:
            return 0.0
        low, high = below[-1], below[-1] + 0.05
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if margin(middle) < 0.0 else (low, middle)
    return high


def log_length(log_t: float, constants: Constants, failure_level: float, reading: Reading) -> float:
    d, horizon, bound = constants.dim, constants.horizon, constants.param_bound
    if constants.rho == 0.0:
        return math.inf
    ratio = constants.kappa.log_upper - math.log(constants.rho)
    if reading == "printed":
        return (
            5.0 * math.log(4.0)
            + 8.0 * ratio
            + 4.0 * math.log(1.0 + 3.0 * ROOT2)
            + 6.0 * math.log(d)
            + 2.0 * math.log(bound + 3.0)
            + math.log(log_t + math.log(horizon / failure_level))
            + 6.0 * math.log(_log1p_ratio(log_t, d))
        )
    return _log_tau_of_proof(constants, failure_level, ratio)


@lru_cache(maxsize=64)  # it does not depend on T, and is asked for at a thousand values of T
def _log_tau_of_proof(constants: Constants, failure_level: float, ratio: float) -> float:
    d = constants.dim

    def excess(log_tau: float) -> float:
        radius = log_radius_of(log_tau, constants, failure_level, "proof")
        design = 0.5 * (ratio + math.log(d * _log1p_ratio(log_tau, d)) - log_tau)
        return math.log(4.0 * 3.0 * ROOT2) + radius + design

    return last_crossing(lambda x: -excess(x))


def log_radius_of(log_tau: float, constants: Constants, failure_level: float, reading: Reading) -> float:
    """log beta^0_{tau+1} of Eq. (def beta_t)."""
    d, horizon, bound = constants.dim, constants.horizon, constants.param_bound
    relax = 1.0 + (3.0 * ROOT2 if reading == "printed" else 6.0 * ROOT2 * bound)
    if math.isinf(log_tau) or constants.rho == 0.0:
        return math.inf
    ratio = constants.kappa.log_upper - math.log(constants.rho)
    next_ = float(np.logaddexp(log_tau, 0.0))
    noise = math.log(bound + 3.0) + 0.5 * math.log(d * (next_ + math.log(horizon / failure_level)))
    bias = 0.25 * float(np.logaddexp(log_tau, math.log(2.0))) + 1.5 * ratio + math.log(d * _log1p_ratio(next_, d))
    return math.log(relax) + float(np.logaddexp(noise, bias))


def radius_of(log_t: float, dim: int, bound: float, union: int, failure_level: float) -> float:
    """beta_t with lambda = 144 d; ``union`` is 1 as printed and H where the union over stages is taken (E18)."""
    return math.sqrt(2.0 / 3.0 * dim * (log_t + math.log(union / failure_level))) + 24.0 * bound * math.sqrt(dim)


def _log1p_ratio(log_x: float, d: float) -> float:
    """log(1 + x/d)."""
    return float(np.logaddexp(0.0, log_x - math.log(d)))


def log_of(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf


def log_terms_of(
    log_t: float,
    constants: Constants,
    failure_level: float,
    spread: float,
    nu: float,
    n_explore: int | None,
    reading: Reading,
) -> dict[str, float]:
    """The logarithms of the eight terms at T = exp(log_t)."""
    d, bound, log_kappa = constants.dim, constants.param_bound, constants.kappa.log_upper
    h, sigma, gap = math.log(constants.horizon), log_of(spread), log_of(nu)
    growth = log_of(_log1p_ratio(log_t, 1.0))  # log L
    level = log_of(math.log(2.0 / failure_level))  # log l
    if reading == "printed":
        size, times = log_of(bound) + math.log(d), log_of(log_t - math.log(failure_level))  # B d, log(T/delta)
        burn_in = log_length(log_t, constants, failure_level, reading)
        burn_in += 6.0 * (log_of(log_t) - log_of(_log1p_ratio(log_t, d)))  # the theorem has log^6 T
        values = (
            math.log(4.0) + 0.5 * math.log(2.0 * math.e) + size + 2 * h + sigma + 0.5 * log_t + growth + 0.5 * times,
            1.5 * h + 0.5 * (math.log(2.0) + log_t + level),
            math.log(8.0) + 0.5 * (1.0 + gap + level) + size + 1.25 * h + 0.25 * log_t + growth + times,
            math.log(8.0) + 2.0 + size + 2.25 * h + 0.25 * log_t + 0.5 * (growth + times + level),
            math.log(32.0) + 1.0 + 2 * size + gap + h + growth + times,
            math.log(32.0) + 2.0 + 2 * size + 3 * h + 2 * growth + times,
            math.log(40.0) + log_kappa + 2 * size + 2 * h + growth + times,
        )
    else:
        beta = math.log(radius_of(log_t, d, bound, constants.horizon, failure_level))
        root = beta + 0.5 * (math.log(d) + growth)  # log of beta sqrt(d L)
        burn_in = log_length(log_t, constants, failure_level, reading) if n_explore is None else 0.0
        slow = math.log(4.0) + 0.75 * math.log(2.0) + 0.25 * (log_t + level)
        design = log_of(_log1p_ratio(log_t, 144.0 * d * d))
        values = (
            math.log(4.0) + 0.5 * math.log(2.0 * math.e) + root + 2 * h + sigma + 0.5 * log_t,
            math.log(2.0) + 1.5 * h + 0.5 * (math.log(2.0) + log_t + level),
            slow + 0.5 * (1.0 + gap) + root + 1.25 * h,
            slow + 2.0 + root + 2.25 * h,
            math.log(16.0) + 1.0 + 2 * root + h + gap,
            math.log(16.0) + 4.0 + 2 * root + 3 * h,
            math.log(40.0) + log_kappa + 2 * beta + math.log(d) + 2 * h + design,
        )
    explored = burn_in + h if n_explore is None else log_of(n_explore) + h
    return dict(zip(TERMS, (*values, explored), strict=True))
