"""Robust planning: backward induction against an adversary who moves each transition within a KL distance.

The nominal kernel p0_h(.|s, a) is trusted only roughly.  An adversary picks, for every (h, s, a) anew (*rectangular*
uncertainty), a distribution p on the same next states (one such choice: :mod:`livarot.planning.softmin`):

    radius eps    Q_h(s, a) = r_h(s, a) + min { E_p V_{h+1} : KL(p | p0) <= eps_h(s, a) }
    penalty eta   Q_h(s, a) = r_h(s, a) + min_p { E_p V_{h+1} + KL(p | p0) / eta_h(s, a) }       V_h = max_a Q_h

eta -> 0 and eps = 0 are the nominal model, eta -> infinity and eps >= log(1/p0(argmin V)) the worst next state.  The
worst-case kernel is p0 exp(-eta V_{h+1}), normalised, with the *dual* eta_h(s, a).

With ``count_penalty=False`` the divergence is left out of the value, Q = r + E_p V with the same p: the paper's
recursion, whose V is the optimal value of the MDP with the worst-case kernel (reading E39).  It is the robust value of
the ball whose radius at (h, s, a) is KL(p | p0); unlike the other two it is not a monotone operator on V, so it need
not decrease in eta (docs/robust.md).

The policy breaks ties as :func:`livarot.solve` does, with variances under the worst-case kernel.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.core.jit import jit
from livarot.core.kernel import Kernel
from livarot.core.plan import check_policy
from livarot.core.problem import MNLMDP, Problem
from livarot.core.ragged import FloatArray, Int32Array
from livarot.errors import bad, require_finite
from livarot.planning.backward import TIE, solve_kernel
from livarot.planning.nominal import Nominal, as_nominal
from livarot.planning.softmin import (
    ETA,
    LANE_NUMBERS,
    LEVEL,
    LOG,
    LOW,
    PIVOT,
    REST,
    ROW,
    SHIFT,
    SPREAD,
    SURE,
    WIDTH,
    P,
    X,
    exp_and_change,
    one_of,
    prepare,
    solve_ball,
    tie_width,
    tilted_sums,
)

ONE = np.uint64(1)
CHUNK = 64  # pairs whose exponentials are taken together


@dataclass(frozen=True, eq=False)
class RobustSolution:
    """Optimal robust values of every state and stage, with the adversary's answer."""

    value: FloatArray  # (H + 1, S)
    q: FloatArray  # (H, S, A)
    policy: Int32Array  # (H, S)
    variance: FloatArray  # (H, S) of V_{h+1} under the worst-case kernel and the policy's action
    dual: FloatArray  # (H, S, A) eta of the tilt; infinite where all mass is on the minimisers, 0 where p = p0
    gap: float  # largest duality gap of a single (h, s, a), in units of value; 0 for a penalty (closed form)
    nominal: Nominal = field(repr=False)

    @cached_property
    def kernel(self) -> Kernel:
        """The worst-case kernel, one per stage, in the layout of :mod:`livarot.core.kernel`.

        Computed from ``value`` and ``dual`` when first asked for: it holds H times as many numbers as a table has rows.
        """
        problem = self.nominal.problem
        rows, n_pairs = problem.rows, problem.n_states * problem.n_actions
        first = rows.row_start[problem.stage_table.astype(np.int64) * n_pairs]
        sizes = rows.row_start[(problem.stage_table.astype(np.int64) + 1) * n_pairs] - first
        begins = np.concatenate(([0], np.cumsum(sizes)))
        base = (begins[:-1] - first).astype(np.int64)
        prob = np.empty(int(begins[-1]))
        arrays = (rows.row_start, rows.next_state, problem.stage_table, *self.nominal.kernel)
        _fill_worst(*arrays, self.value, self.q - problem.reward, self.dual, base, prob)
        return Kernel(prob, base)


def solve_robust(
    nominal: MNLMDP | tuple[Problem, Kernel],
    *,
    radius: ArrayLike | None = None,
    penalty: ArrayLike | None = None,
    count_penalty: bool = True,
) -> RobustSolution:
    """Robust values and policy, worst-case kernel and dual variables.

    ``nominal`` is a model, whose own kernel is the nominal one, or a pair (problem, kernel), see
    :func:`livarot.planning.nominal.nominal_model`.
    Exactly one of ``radius`` (of the KL ball) and ``penalty`` (eta) is given: a number >= 0, or an array (S, A) or
    (H, S, A).  0 everywhere is :func:`livarot.solve`, bit for bit.

    >>> import livarot
    >>> mdp = livarot.envs.river_swim(6, 20)
    >>> for radius in (0.0, 0.01, 0.1, 10.0):
    ...     print(round(float(solve_robust(mdp, radius=radius).value[0, 0]), 4))
    3.3973
    1.9712
    0.281
    0.1
    """
    model = as_nominal(nominal)
    problem, kernel = model
    levels, ball = _levels(problem, radius, penalty)
    shape = (problem.horizon, problem.n_states, problem.n_actions)
    if not levels.any():
        plain = solve_kernel(problem, kernel)
        return RobustSolution(*plain, dual=np.zeros(shape), gap=0.0, nominal=model)
    value = np.zeros((shape[0] + 1, shape[1]))
    q, dual = np.empty(shape), np.empty(shape)
    policy, variance = np.zeros(shape[:2], dtype=np.int32), np.empty(shape[:2])
    rows = problem.rows
    every = np.arange(shape[1] * shape[2], dtype=np.uint64)
    gap = _solve(
        rows.row_start,
        rows.next_state,
        problem.stage_table,
        problem.reward,
        *kernel,
        levels,
        ball,
        ball or not count_penalty,
        problem.max_reachable,
        every,
        (value, q, policy, variance, dual),
    )
    return RobustSolution(value, q, policy, variance, dual, float(gap), model)


def evaluate_robust(
    nominal: MNLMDP | tuple[Problem, Kernel],
    policy: NDArray[Any],
    *,
    radius: ArrayLike | None = None,
    penalty: ArrayLike | None = None,
    count_penalty: bool = True,
) -> FloatArray:
    """The worst-case value (H + 1, S) of a policy: actions int (H, S) or probabilities float (H, S, A).

    The adversary knows the policy and answers each (h, s, a) apart, after the action is drawn.
    """
    problem, kernel = as_nominal(nominal)
    levels, ball = _levels(problem, radius, penalty)
    table = check_policy(problem, policy)
    n_states, n_actions = problem.n_states, problem.n_actions
    value = np.zeros((problem.horizon + 1, n_states))
    sure = table if table.ndim == 2 else np.zeros((0, 0), dtype=np.int32)
    mixed = table if table.ndim == 3 else np.zeros((0, 0, 0))
    rows = problem.rows
    _evaluate(
        rows.row_start,
        rows.next_state,
        problem.stage_table,
        problem.reward,
        *kernel,
        levels,
        ball,
        ball or not count_penalty,
        problem.max_reachable,
        np.arange(n_states * n_actions, dtype=np.uint64),
        sure,
        mixed,
        value,
    )
    return value


def _levels(problem: Problem, radius: ArrayLike | None, penalty: ArrayLike | None) -> tuple[FloatArray, bool]:
    """The radius or penalty of every pair, (1, S A) or (H, S A), and whether it is a radius."""
    given, ball = one_of(radius, penalty)
    name = "radius" if ball else "penalty"
    level = require_finite(name, given)
    shape = (problem.horizon, problem.n_states, problem.n_actions)
    if level.shape not in ((), shape[1:], shape):
        raise bad(name, f"has shape {level.shape}", cure=f"give a number, or an array {shape[1:]} or {shape}")
    wrong = np.argwhere(level < 0.0)
    if len(wrong):
        index = tuple(int(i) for i in wrong[0])
        raise bad(
            name,
            f"{level[index]:.6g} is negative",
            index=index if index else None,
            count=len(wrong),
            cure=f"give {'radii' if ball else 'penalties'} >= 0; 0 is the nominal model",
        )
    if level.shape != shape:
        level = np.broadcast_to(level, (1, *shape[1:]))
    return np.ascontiguousarray(level.reshape(len(level), -1)), ball


@jit
def _solve(row_start, next_state, stage_table, reward, prob, base, levels, ball, plain, widest, every, out):
    """Backward induction; ``plain``: the value is E_p V.  Returns the largest duality gap."""
    value, q, policy, variance, dual = out
    horizon, n_states, n_actions = q.shape
    spread = np.empty(n_states * n_actions)
    wo, wl = np.zeros(widest * ROW), np.zeros(LANE_NUMBERS)
    gap = 0.0
    for h in range(horizon - 1, -1, -1):
        table, targets, weights = _stage(row_start, next_state, stage_table[h] * len(every), len(every), prob, base[h])
        level, future = levels[min(h, len(levels) - 1)], q[h].reshape(-1)
        arrays = (table, targets, weights, value[h + 1], level)
        gap = max(gap, _backup(every, arrays, ball, plain, wo, wl, future, dual[h].reshape(-1), spread))
        for s in range(n_states):
            best = -math.inf
            for a in range(n_actions):
                total = reward[h, s, a] + future[s * n_actions + a]
                future[s * n_actions + a] = total
                best = max(best, total)
            tie = best - TIE * (1.0 + abs(best))
            widest_spread = -1.0
            for a in range(n_actions):
                now = spread[s * n_actions + a]
                if future[s * n_actions + a] >= tie and (
                    widest_spread < 0.0 or now > widest_spread + TIE * (1.0 + widest_spread)
                ):
                    widest_spread = now
                    policy[h, s] = a
            value[h, s] = best
            variance[h, s] = widest_spread
    return gap


@jit
def _evaluate(
    row_start, next_state, stage_table, reward, prob, base, levels, ball, plain, widest, every, sure, mix, value
):
    """The same for a policy: actions ``sure`` (H, S), or probabilities ``mix`` (H, S, A) if ``sure`` is empty."""
    horizon, n_states, n_actions = reward.shape
    mixed = len(sure) == 0
    which = every if mixed else every[:n_states].copy()
    future, dual, spread = np.empty(len(which)), np.empty(len(which)), np.empty(len(which))
    wo, wl = np.zeros(widest * ROW), np.zeros(LANE_NUMBERS)
    for h in range(horizon - 1, -1, -1):
        table, targets, weights = _stage(row_start, next_state, stage_table[h] * len(every), len(every), prob, base[h])
        if not mixed:
            for s in range(n_states):
                which[s] = s * n_actions + sure[h, s]
        arrays = (table, targets, weights, value[h + 1], levels[min(h, len(levels) - 1)])
        _backup(which, arrays, ball, plain, wo, wl, future, dual, spread)
        for s in range(n_states):
            if mixed:
                total = 0.0
                for a in range(n_actions):
                    total += mix[h, s, a] * (reward[h, s, a] + future[s * n_actions + a])
                value[h, s] = total
            else:
                value[h, s] = reward[h, s, sure[h, s]] + future[s]


@jit
def _stage(row_start, next_state, first_pair, n_pairs, prob, base):
    """Where the rows of a stage's pairs begin, their next states and probabilities, all counted from its first row."""
    first, last = row_start[first_pair], row_start[first_pair + n_pairs]
    table = row_start[first_pair : first_pair + n_pairs + 1].view(np.uint64)
    return table, next_state[first:last].view(np.uint32), prob[base + first : base + last]


@jit
def _backup(which, arrays, ball, plain, wo, wl, future, dual, spread):
    """Worst case of the next value for the pairs ``which``, a block of lanes at a time; the largest duality gap."""
    table, targets, weights, follow, level = arrays
    origin, gap = table[0], 0.0
    for begin in range(0, len(which), WIDTH):
        lanes = min(WIDTH, len(which) - begin)
        longest = np.uint64(1)
        for lane in range(lanes):
            pair = which[begin + lane]
            longest = max(longest, table[pair + ONE] - table[pair])
        n_out = np.int64(longest)
        for lane in range(WIDTH):
            at = lane
            if lane < lanes:
                pair = which[begin + lane]
                wl[LEVEL + lane] = level[pair]
                for row in range(table[pair] - origin, table[pair + ONE] - origin):
                    wo[X + at] = follow[targets[row]]
                    wo[P + at] = weights[row]
                    at += ROW
            else:  # nobody's lane: one sure outcome
                wl[LEVEL + lane] = 0.0
                wo[X + at] = 0.0
                wo[P + at] = 1.0
                at += ROW
            while at < n_out * ROW:
                wo[X + at] = 0.0
                wo[P + at] = 0.0
                at += ROW
        prepare(wo, wl, n_out, ball)
        if ball:
            solve_ball(wo, wl, n_out)
        else:
            tilted_sums(wo, wl, n_out)
        for lane in range(lanes):
            eta = wl[ETA + lane]
            add = wl[SHIFT + lane] if plain or eta == 0.0 else -wl[LOG + lane] / eta
            sure = ball and wl[SURE + lane] > 0.0
            future[begin + lane] = wl[LOW + lane] + (0.0 if sure else wl[PIVOT + lane] + add)
            dual[begin + lane] = math.inf if sure else eta
            spread[begin + lane] = 0.0 if sure else wl[SPREAD + lane]
            if ball and eta > 0.0:
                gap = max(gap, abs(wl[REST + lane]) / eta)
    return gap


@jit
def _fill_worst(row_start, next_state, stage_table, prob, base, value, future, dual, new_base, out):
    """out = p0 exp(-eta (V - f)), normalised; restricted to the minimisers where eta is infinite.

    ``future`` f is the answer of the adversary, so that eta (f - min V) <= log(1/p0(argmin V)) and
    nothing overflows (a next state of probability 0 might: hence the 700).
    """
    horizon, n_states, n_actions = dual.shape
    n_pairs = n_states * n_actions
    for h in range(horizon):
        first_pair = stage_table[h] * n_pairs
        table, targets, weights = _stage(row_start, next_state, first_pair, n_pairs, prob, base[h])
        follow, eta, shift = value[h + 1], dual[h].reshape(-1), future[h].reshape(-1)
        worst = out[new_base[h] + row_start[first_pair] : new_base[h] + row_start[first_pair + n_pairs]]
        origin = table[0]
        for begin in range(0, n_pairs, CHUNK):
            end = min(begin + CHUNK, n_pairs)
            for pair in range(begin, end):
                row, last = table[pair] - origin, table[pair + 1] - origin
                if eta[pair] == math.inf:
                    _keep_minimisers(row, last, targets, weights, follow, worst)
                else:
                    slope, at = -eta[pair], shift[pair]
                    while row < last:
                        worst[row] = min(slope * (follow[targets[row]] - at), 700.0)
                        row += ONE
            # unsigned bounds: a signed index would be tested for "from the end", and the loop not be vectorised
            for i in range(table[begin] - origin, table[end] - origin):
                worst[i] = weights[i] * exp_and_change(worst[i])[0]
            for pair in range(begin, end):
                if eta[pair] == 0.0:  # the nominal row, number for number
                    continue
                row, last = table[pair] - origin, table[pair + 1] - origin
                total = 0.0
                while row < last:
                    total += worst[row]
                    row += ONE
                total, row = 1.0 / total, table[pair] - origin
                while row < last:
                    worst[row] *= total
                    row += ONE


@jit
def _keep_minimisers(first, last, targets, weights, follow, worst):
    """Logits 0 at the minimisers of V on the support, and far below elsewhere."""
    low, high = math.inf, -math.inf
    for row in range(first, last):
        v = follow[targets[row]]
        low = min(low, v if weights[row] > 0.0 else low)
        high = max(high, v if weights[row] > 0.0 else high)
    tie = tie_width(low, high)
    for row in range(first, last):
        worst[row] = 0.0 if follow[targets[row]] - low <= tie else -1e3
