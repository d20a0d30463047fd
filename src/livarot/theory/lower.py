"""The lower bound of Theorem (lower bound) on the hard chain, with a constant.

The paper takes the chain of Park et al. and their rate Omega(d H^{3/2} sqrt T), without a constant (1/(160 sqrt2) is
likely for the linear-mixture chain, about 1/(480 sqrt2) a guess for this one).  What follows is our own derivation
(certain), valid for every H >= 2, d >= 2, T and gap, with every constant explicit.

Let n = d - 1, x_h in {-1, 1}^n uniform and independent, g(y) = 1/(1 + (H-1) e^{-bD y}) the probability of the good
state at y = x_h . a, p = g(n) and q = 1 - p.  At s_h an action with m wrong signs loses (p - g(n - 2m)) DeltaV_{h+1},
at least c m DeltaV_{h+1} with c = min_m (p - g(n - 2m))/m, and s_h is reached with probability at least q^{h-1}, so

    E Reg_T >= sum_t sum_h q^{h-1} DeltaV_{h+1} c sum_j P(sign j of a_{t,h} is wrong),  DeltaV_{h+1} = (1 - q^{H-h})/p.

Two sign vectors that differ in one sign of x_h are told apart at s_h only, by at most K = max kl(g(y), g(y +- 2)) per
visit, and s_h is visited with probability at most r_h = (1 - g(-n))^{h-1} per episode.  Averaged over both, a sign is
wrong with probability at least (1 - TV)/2, with TV <= sqrt(KL/2), 1 - TV >= e^{-KL}/2 and KL <= (t-1) r_h K.  Hence

    E Reg_T >= (n/2) c sum_h q^{h-1} DeltaV_{h+1} sum_t (1 - TV_{t,h}).

It is the mean over 2^{nH} instances, so for every algorithm one of them is at least as bad.  It says nothing about a
single instance, and nothing about how regret depends on B (E31: the printed factor B is not proved).  The chain has
sigma_bar = Theta(H^{-1/2}), hence the paper's d H^2 sigma_bar sqrt T; other values of sigma_bar are not covered by it.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from livarot.core.arguments import any_count, checked, several
from livarot.core.arrays import FloatArray
from livarot.core.tolerances import NORM_SLACK
from livarot.errors import bad, require_positive
from livarot.model.problem import MNLMDP, Problem
from livarot.system.sizes import require_memory
from livarot.theory.all_constants import Constants
from livarot.theory.constants import TheoryWarning, problem_of
from livarot.theory.variance import hard_chain_sigma_bar


@dataclass(frozen=True)
class LowerBound:
    """For every algorithm some hard chain has E[Reg_T] >= ``value`` = ``constant`` * ``rate``, rate = d H^1.5 sqrt(T).

    ``sigma_bar`` is the chain's, under its optimal policy; ``param_bound`` the B it needs; ``failed`` the conditions of
    the theorem that do not hold.
    """

    value: float
    rate: float
    gap: float
    sigma_bar: float
    param_bound: float
    failed: tuple[str, ...] = field(default=())

    @property
    def constant(self) -> float:
        return self.value / self.rate

    def to_json(self) -> dict[str, Any]:
        return {
            "lower": self.value,
            "rate": self.rate,
            "constant": self.constant,
            "gap": self.gap,
            "sigma_bar": self.sigma_bar,
            "B": self.param_bound,
            "failed": list(self.failed),
        }


@checked(n_episodes=any_count)
def lower_bound(
    model: Constants | Problem | MNLMDP, n_episodes: int, *, gap: float | Literal["best"] | None = None
) -> LowerBound:
    """The minimax lower bound for the d, H and B of a model; conditions that fail are :class:`TheoryWarning`.

    ``gap`` is the chain's Delta: None is the paper's 1/(4 sqrt(2HT)), "best" the one with the largest bound.  The
    theorem asks for d >= 2, H >= 3 and T >= max{(d-1)^2 H/2, (d-1)^2 H^3/32} (printed without the max, E31), and the
    class of models with this B contains the chain only if its parameter fits.  Without a chain (d or H below 2) the
    value is 0.

    >>> import livarot
    >>> found = lower_bound(livarot.envs.hard_chain(10), 1000)
    >>> round(found.value, 2), round(found.constant, 4), round(found.sigma_bar, 4)
    (40.82, 0.0204, 0.1078)
    """
    if isinstance(model, Constants):
        d, horizon, bound = model.dim, model.horizon, model.param_bound
    else:
        problem = problem_of(model)
        d, horizon, bound = problem.dim, problem.horizon, problem.param_bound
    failed = []
    if d < 2:
        failed.append(f"d = {d}, the theorem asks for d >= 2")
    if horizon < 3:
        failed.append(f"H = {horizon}, the theorem asks for H >= 3")
    least = max((d - 1) ** 2 * horizon / 2.0, (d - 1) ** 2 * horizon**3 / 32.0)
    if n_episodes < least:
        failed.append(f"T = {n_episodes}, the theorem asks for T >= {least:.6g}")
    rate = d * horizon**1.5 * math.sqrt(n_episodes)
    if d < 2 or horizon < 2:
        found = LowerBound(0.0, rate, 0.0, 0.0, 0.0)
    else:
        found = chain_lower_bound(horizon, d, n_episodes, gap=gap)
        if found.param_bound > bound * (1.0 + NORM_SLACK):
            failed.append(f"B = {bound:.3g}, the chain's parameter has norm {found.param_bound:.3g}")
    for condition in failed:
        warnings.warn(f"lower_bound: {condition}", TheoryWarning, stacklevel=3)
    return LowerBound(found.value, rate, found.gap, found.sigma_bar, found.param_bound, tuple(failed))


@checked(horizon=several, dim=several, n_episodes=any_count, gap=require_positive)
def chain_lower_bound(
    horizon: int, dim: int, n_episodes: int, *, gap: float | Literal["best"] | None = None
) -> LowerBound:
    """The bound of this module for a horizon, a dimension and a number of episodes."""
    require_memory("horizon", "the stages of the chain", 8 * horizon)
    require_memory("dim", "the numbers of right signs", 12 * dim)
    widest = (1.0 - 1.0 / horizon) / (dim - 1)
    if gap == "best":
        gap = _best_gap(horizon, dim, n_episodes, widest)
    elif gap is None:
        gap = min(1.0 / (4.0 * math.sqrt(2.0 * horizon * n_episodes)), 0.5 * widest)
    elif not gap < widest:
        raise bad("gap", f"is {gap:.6g}, outside (0, {widest:.6g})")
    n = dim - 1
    p = 1.0 / horizon + n * gap
    tilt = _tilt(horizon, n, gap)
    if tilt <= 0.0:
        raise bad("gap", f"{gap:.6g} is lost in rounding beside 1/H", cure="take at least 1e-15")
    scale = math.sqrt((n * tilt + math.log(horizon - 1.0) ** 2) / (1.0 + n * tilt))  # the largest feature norm
    return LowerBound(
        value=_mean_regret(horizon, n, n_episodes, gap),
        rate=dim * horizon**1.5 * math.sqrt(n_episodes),
        gap=gap,
        sigma_bar=hard_chain_sigma_bar(horizon, p),
        param_bound=scale * (1.0 + n * tilt),
    )


def _tilt(horizon: int, n: int, gap: float) -> float:
    """bD: the best action reaches the good state with probability 1/H + n gap."""
    base, best = 1.0 / horizon, 1.0 / horizon + n * gap
    return (math.log(best / (1.0 - best)) - math.log(base / (1.0 - base))) / n


def _mean_regret(horizon: int, n: int, n_episodes: int, gap: float) -> float:
    match = np.arange(-n, n + 1, 2)  # y = x . a
    good = 1.0 / (1.0 + (horizon - 1.0) * np.exp(-_tilt(horizon, n, gap) * match))
    p = float(good[-1])
    wrong = np.arange(1, n + 1)
    loss = float(((p - good[::-1][wrong]) / wrong).min())
    info = max(float(_kl(good[1:], good[:-1]).max()), float(_kl(good[:-1], good[1:]).max()))
    stage = np.arange(horizon)
    left = horizon - 1 - stage
    value = -np.expm1(left * math.log1p(-p)) / p  # DeltaV
    reached = np.exp(stage * math.log1p(-p))
    seen = info * np.exp(stage * math.log1p(-float(good[0])))
    return float(0.5 * n * loss * (reached * value * _undecided(seen, n_episodes)).sum())


def _kl(p: FloatArray, q: FloatArray) -> FloatArray:
    """kl(p, q) of two coins, as p f((q-p)/p) + (1-p) f((p-q)/(1-p)) with f(x) = x - log(1 + x): nothing cancels."""

    def f(x: FloatArray) -> FloatArray:
        series = x * x * (0.5 - x * (1.0 / 3.0 - x * (0.25 - 0.2 * x)))
        return np.where(np.abs(x) < 1e-3, series, x - np.log1p(x))

    return np.asarray(p * f((q - p) / p) + (1.0 - p) * f((p - q) / (1.0 - p)))


def _undecided(info: FloatArray, n_episodes: int) -> FloatArray:
    """A lower bound of sum_{t <= T} (1 - TV_t), KL_t <= (t-1) info.

    By Pinsker sum_{t <= T'} (1 - sqrt((t-1) info/2)) >= T' - (2/3) sqrt(info/2) T'^{3/2} for every T' <= T; by
    Bretagnolle and Huber sum_t e^{-(t-1) info}/2.
    """
    cut = np.minimum(float(n_episodes), 2.0 / info)
    pinsker = cut - 2.0 / 3.0 * np.sqrt(info / 2.0) * cut**1.5
    huber = 0.5 * np.expm1(-n_episodes * info) / np.expm1(-info)
    return np.asarray(np.maximum(pinsker, huber))


def _best_gap(horizon: int, dim: int, n_episodes: int, widest: float) -> float:
    """The gap with the largest bound, on a grid refined around its best point."""
    paper = 1.0 / (4.0 * math.sqrt(2.0 * horizon * n_episodes))
    low, high = math.log(min(paper, widest)) - 3.0, math.log(widest) - 1e-9
    for _ in range(4):
        grid = np.linspace(low, high, 65)
        values = [_mean_regret(horizon, dim - 1, n_episodes, math.exp(x)) for x in grid]
        best = int(np.argmax(values))
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, 64)])
    return math.exp(0.5 * (low + high))
