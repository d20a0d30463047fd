"""Discounted reward, planned exactly: modified policy iteration on the sparse model, with a certificate.

With L v = max_a (r + gamma P v) and d = L v - v, for any v whatsoever and any policy pi,

    v + min_s (T_pi v - v)/(1 - gamma)  <=  V^pi  <=  V*  <=  v + max_s d/(1 - gamma),

so the interval that is returned, widened by what rounding can do to d, holds for the optimal value *and* for the value
of the policy returned with it.  Between improvements the policy is evaluated: by sweeps v <- T_pi v, each shifted by
the midpoint of its rise times gamma/(1 - gamma), so that their error falls as the chain mixes and not as gamma^k; and
where the sweeps turn out to be slow (discounts near 1, chains that mix slowly), by a linear solve with a Krylov method.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array
from livarot.core.tolerances import TIE
from livarot.errors import bad
from livarot.infinite.problem import InfiniteMDP, check_stationary
from livarot.infinite.sparse import (
    DIRECT,
    EPS,
    Chain,
    all_q,
    back_up,
    chain_of,
    discounted_system,
    rounding,
    rows_of,
    solve_system,
    sweep,
)

LESS = 0.005  # an evaluation reduces the span that the improvement found to this share of it
PATIENCE = 60  # sweeps: an evaluation that would take more is done by a linear solve
WATCHED = 5  # sweeps whose progress tells how many will be needed


class DiscountedSolution(NamedTuple):
    """Discounted values, with ``lower`` <= V^policy <= V* <= ``upper`` in every state, and ``value`` between them."""

    value: FloatArray  # (S,)
    q: FloatArray  # (S, A)
    policy: Int32Array  # (S,)
    lower: FloatArray  # (S,)
    upper: FloatArray  # (S,)
    n_iter: int  # improvements


@checked
def policy_value(mdp: InfiniteMDP, policy: ArrayLike, discount: float) -> FloatArray:
    """V^pi = (I - gamma P)^-1 r, (S,), to rounding."""
    chain = chain_of(mdp, check_stationary(mdp.problem, policy))
    v, low, high, span = np.zeros(len(chain.reward)), 0.0, 0.0, math.inf
    while True:
        aim = 4.0 * rounding(mdp.problem.max_reachable, chain.reward, v)
        if span <= aim or (len(v) <= DIRECT and span < math.inf):
            return v
        before = span
        v, low, high = _evaluated(chain, discount, v, max(aim, LESS * span if span < math.inf else LESS))
        span = high - low
        if span >= before:  # neither sweeps nor a linear solve make progress
            known = span / (1.0 - discount)
            raise bad("policy", f"an error of up to {known:.3g} in its value remains", cure="lower the discount")


@checked
def solve_discounted(
    mdp: InfiniteMDP, discount: float, *, tol: float = 1e-10, max_iter: int = 1_000_000
) -> DiscountedSolution:
    """The optimal discounted values to ``upper`` - ``lower`` <= ``tol`` in every state, unless rounding allows no less.

    >>> from livarot.envs import park_two_state
    >>> found = solve_discounted(InfiniteMDP.from_mdp(park_two_state()), 0.9)
    >>> found.value.round(6).tolist(), bool((found.upper - found.lower).max() <= 1e-10)
    ([4.367418, 6.10052], True)
    """
    gamma, far = discount, 1.0 - discount
    rows, reward = rows_of(mdp), mdp.problem.reward
    n = mdp.problem.n_states
    v, best, policy = np.zeros(n), np.empty(n), np.zeros(n, dtype=np.int32)
    for done in range(1, max_iter + 1):
        error = rounding(mdp.problem.max_reachable, reward, v)
        accuracy = max(tol, 8.0 * error / far)
        tie = min(TIE, accuracy * far / (4.0 * (1.0 + float(np.abs(v).max()))))
        low, high, own = back_up(rows, reward, gamma, v, best, policy, tie)
        if (high - own + 2.0 * error) / far <= accuracy:
            lower, upper = v + (own - error) / far, v + (high + error) / far
            value = np.clip(v if n <= DIRECT else v + 0.5 * (own + high) / far, lower, upper)
            return DiscountedSolution(value, all_q(mdp, gamma, value), policy, lower, upper, done)
        v = best + 0.5 * gamma * (low + high) / far
        v, _, _ = _evaluated(chain_of(mdp, policy), gamma, v, max(LESS * (high - low), error))
    raise bad("max_iter", f"{max_iter} iterations were not enough", cure="raise max_iter or tol")


def _evaluated(chain: Chain, gamma: float, v: FloatArray, aim: float) -> tuple[FloatArray, float, float]:
    """Improve v as the value of a policy until the rise T_pi v - v has a span below ``aim``; v, and the rise's ends.

    Sweeps come first; after a few of them their rate is known, and if it is slow a linear solve does the rest.
    """
    if len(v) <= DIRECT:
        v = solve_system(discounted_system(chain, gamma), chain.reward, v, 0.0)
        return v, *sweep(*chain, gamma, v, np.empty(len(v)))
    far, out, spans = 1.0 - gamma, np.empty(len(v)), [math.inf]
    while len(spans) <= PATIENCE:
        low, high = sweep(*chain, gamma, v, out)
        v, out = out + 0.5 * gamma * (low + high) / far, v
        spans.append(high - low)
        if spans[-1] <= aim:
            return v, low, high
        if len(spans) > WATCHED and math.log(aim / spans[-1]) < (PATIENCE - len(spans)) * _rate(spans):
            share = max(0.1 * aim / spans[-1], EPS)
            v = solve_system(discounted_system(chain, gamma), chain.reward, v, share)
            break
    low, high = sweep(*chain, gamma, v, out)
    return out + 0.5 * gamma * (low + high) / far, low, high


def _rate(spans: list[float]) -> float:
    """The logarithm of the share of the span that a sweep leaves, averaged over the last few; kept below 0."""
    return min(math.log(spans[-1] / spans[-WATCHED]) / (WATCHED - 1), -1e-9)
