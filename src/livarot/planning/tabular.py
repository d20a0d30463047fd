"""Backward induction on empirical kernels, for all replicas at once: what tabular agents plan with.

Counts n lie in the layout of :mod:`livarot.core.laws`, N is their sum over a pair and p = n/N.  A pair that can have
one outcome only has nothing to learn and is backed up exactly by all four planners.

``bonus_values``      Q = r + min(p.V + b, max V), b a function of N, of the variance of V and of what follows
``optimistic_values`` Q = r + max of q.V over |q - p|_1 <= width: half the width is moved from the worst next states
                      to the best one, *by value*.  (A public code moves it to the most probable one, which is wrong.)
``noisy_values``      Q = r + min(p.V + noise, max V), at least 0
``sampled_values``    Q = r + w.V / sum(w) with given weights w, e.g. gamma draws: a Dirichlet sample

Maxima of V are over the pair's possible next states; an unvisited pair is worth r + max V (``noisy_values``: r + mean V
+ noise).  Where reachable sets are known, only states that the start can reach are planned for.  Ties: the first action
within 1e-9 (1 + |Q|).
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.core.jit import jit
from livarot.core.laws import Laws
from livarot.core.plan import Plan, check_shape
from livarot.core.problem import Problem
from livarot.core.ragged import BoolArray, FloatArray, Int32Array, IntArray

TIE = 1e-9


class BonusCode(NamedTuple):
    """b = scale (over_root/sqrt N + variance sqrt(Var_p V/N) + (over_n + over_n_left (H-h))/N + the correction).

    The correction is sqrt((8/N) sum_y p(y) min(correction/N'_{h+1}(y), H^2)), N' the visits of a state at a stage; it
    is left out when ``correction`` is 0.
    """

    scale: float
    over_root: float = 0.0
    variance: float = 0.0
    over_n: float = 0.0
    over_n_left: float = 0.0
    correction: float = 0.0


class Values(NamedTuple):
    """The result of a planner."""

    policy: Int32Array  # (R, H, S)
    value: FloatArray  # (R, H + 1, S)
    start_value: FloatArray  # (R,)

    def plan(self) -> Plan:
        return Plan(self.policy, self.value, self.start_value)


def empty_values(problem: Problem, n_replicas: int) -> Values:
    shape = (n_replicas, problem.horizon, problem.n_states)
    return Values(
        np.zeros(shape, dtype=np.int32),
        np.zeros((n_replicas, problem.horizon + 1, problem.n_states)),
        np.zeros(n_replicas),
    )


def bonus_values(
    problem: Problem, laws: Laws, counts: IntArray, code: BonusCode, state_visits: IntArray, q: FloatArray
) -> Values:
    """Plan with an additive bonus.

    ``state_visits`` N' (R, H, S) is read by the correction only.  ``q`` (R, H, S, A) is lowered in place to min(q, Q)
    and the plan takes what it becomes; with an empty one there is no such minimum.
    """
    _check_counts(laws, counts)
    shape = (len(counts), *problem.reward.shape)
    if state_visits.size or code.correction > 0.0:
        check_shape("state_visits", state_visits, shape[:3])
    if q.size:
        check_shape("q", q, shape)
    values = empty_values(problem, len(counts))
    _bonus(laws, problem.reward, problem.start, counts, code, state_visits, q, *values)
    return values


def optimistic_values(
    problem: Problem, laws: Laws, counts: IntArray, width: FloatArray, due: BoolArray, values: Values
) -> None:
    """Greedy L1 optimism with the radius width[r] sqrt(n/max(N, 1)), n the number of possible next states of the pair.

    Only the replicas that are ``due`` are planned for; the arrays of ``values`` are filled in place.
    """
    _check_counts(laws, counts)
    for name, empty in empty_values(problem, len(counts))._asdict().items():
        check_shape(name, getattr(values, name), empty.shape)
    widest = int(np.diff(laws.row_start).max())
    _optimistic(laws, problem.reward, problem.start, counts, width, widest, due, *values)


def noisy_values(
    problem: Problem, laws: Laws, counts: IntArray, noise: FloatArray, scale: float, scale_left: float
) -> Values:
    """Standard normals ``noise`` (R, H, S, A) times scale/sqrt N + scale_left (H-h)/N are added to Q."""
    _check_counts(laws, counts)
    values = empty_values(problem, len(counts))
    _noisy(laws, problem.reward, problem.start, counts, noise, scale, scale_left, *values)
    return values


def sampled_values(problem: Problem, laws: Laws, weights: FloatArray) -> Values:
    """The optimal policy for the law w / sum(w) of each pair, weights (R, rows) >= 0."""
    _check_counts(laws, weights)
    values = empty_values(problem, len(weights))
    _sampled(laws, problem.reward, problem.start, weights, *values)
    return values


def _check_counts(laws: Laws, counts: NDArray[Any]) -> None:
    check_shape("counts", counts, (len(counts), len(laws.next_state)))


@jit
def _greedy(q, s, n_actions, value, policy):
    """V(s) = max_a q[a] and the first action within the tie tolerance of it."""
    high = q[0]
    for a in range(1, n_actions):
        high = max(high, q[a])
    tie = high - TIE * (1.0 + abs(high))
    a = 0
    while q[a] < tie:
        a += 1
    value[s] = high
    policy[s] = a


@jit
def _start_value(node_start, node_state, start, value):
    total = 0.0
    for node in range(node_start[0], node_start[1]):
        total += start[node_state[node]] * value[node_state[node]]
    return total


@jit
def _bonus(laws, reward, start, counts, code, state_visits, q_known, policy, value, start_value):
    row_start, next_state, first_pair, node_start, node_state, n_actions, _ = laws
    horizon = len(reward)
    q = np.empty(n_actions)
    lowered = q_known.shape[1] > 0
    for r in range(len(counts)):
        own = counts[r]
        for h in range(horizon - 1, -1, -1):
            follow = value[r, h + 1]
            for node in range(node_start[h], node_start[h + 1]):
                s = node_state[node]
                for a in range(n_actions):
                    pair = first_pair[h] + s * n_actions + a
                    row, end, gain = row_start[pair], row_start[pair + 1], reward[h, s, a]
                    if end - row == 1:
                        q[a] = gain + follow[next_state[row]]
                        continue
                    visits, best, pivot = 0, -math.inf, follow[next_state[row]]
                    first, second = 0.0, 0.0
                    for i in range(row, end):
                        n, v = own[i], follow[next_state[i]]
                        visits += n
                        best = max(best, v)
                        first += n * (v - pivot)
                        second += n * (v - pivot) * (v - pivot)
                    if visits == 0:
                        q[a] = gain + best
                    else:
                        share = 1.0 / visits
                        first *= share
                        bonus = code.over_root * math.sqrt(share)
                        if code.variance > 0.0:
                            bonus += code.variance * math.sqrt(max(second * share - first * first, 0.0) * share)
                        bonus += (code.over_n + code.over_n_left * (horizon - h)) * share
                        if code.correction > 0.0:
                            most, far = float(horizon) * horizon, 0.0
                            for i in range(row, end):
                                seen = state_visits[r, h + 1, next_state[i]] if h + 1 < horizon else 0
                                each = min(code.correction / seen, most) if seen > 0 else most
                                far += own[i] * share * each
                            bonus += math.sqrt(8.0 * share * far)
                        q[a] = gain + min(pivot + first + code.scale * bonus, best)
                    if lowered:
                        q[a] = min(q[a], q_known[r, h, s, a])
                        q_known[r, h, s, a] = q[a]
                _greedy(q, s, n_actions, value[r, h], policy[r, h])
        start_value[r] = _start_value(node_start, node_state, start, value[r, 0])


@jit
def _optimistic(laws, reward, start, counts, width, widest, due, policy, value, start_value):
    row_start, next_state, first_pair, node_start, node_state, n_actions, _ = laws
    horizon = len(reward)
    q = np.empty(n_actions)
    mass, gains = np.empty(widest), np.empty(widest)
    for r in range(len(counts)):
        if not due[r]:
            continue
        for h in range(horizon - 1, -1, -1):
            follow = value[r, h + 1]
            for node in range(node_start[h], node_start[h + 1]):
                s = node_state[node]
                for a in range(n_actions):
                    pair = first_pair[h] + s * n_actions + a
                    row, n_next = row_start[pair], row_start[pair + 1] - row_start[pair]
                    visits = 0
                    for i in range(n_next):
                        mass[i] = counts[r, row + i]
                        gains[i] = follow[next_state[row + i]]
                        visits += counts[r, row + i]
                    if n_next > 1:
                        half = 0.5 * width[r] * math.sqrt(n_next / max(visits, 1))
                        best = l1_maximum(mass, gains, n_next, visits, half)
                    else:
                        best = gains[0]
                    q[a] = reward[h, s, a] + best
                _greedy(q, s, n_actions, value[r, h], policy[r, h])
        start_value[r] = _start_value(node_start, node_state, start, value[r, 0])


@jit
def l1_maximum(mass, gains, n, visits, half):
    """max of q.gains over |q - mass/visits|_1 <= 2 half; both arrays are overwritten (no visits: the largest gain).

    ``half`` goes to the best outcome, what it brings too much is taken from the worst ones, worst first.
    """
    for i in range(1, n):  # increasing gains; reachable sets are short
        g, m, j = gains[i], mass[i], i
        while j > 0 and gains[j - 1] > g:
            gains[j], mass[j] = gains[j - 1], mass[j - 1]
            j -= 1
        gains[j], mass[j] = g, m
    top = gains[n - 1]
    if visits == 0:
        return top
    excess = min(half, 1.0 - mass[n - 1] / visits)
    total = 0.0
    for i in range(n - 1):  # measured from the top value: each outcome that keeps mass costs what it falls short
        p = mass[i] / visits
        taken = min(p, excess)
        excess -= taken
        total += (p - taken) * (gains[i] - top)
    return top + total


@jit
def _noisy(laws, reward, start, counts, noise, scale, scale_left, policy, value, start_value):
    row_start, next_state, first_pair, node_start, node_state, n_actions, _ = laws
    horizon = len(reward)
    q = np.empty(n_actions)
    for r in range(len(counts)):
        own = counts[r]
        for h in range(horizon - 1, -1, -1):
            follow = value[r, h + 1]
            for node in range(node_start[h], node_start[h + 1]):
                s = node_state[node]
                for a in range(n_actions):
                    pair = first_pair[h] + s * n_actions + a
                    row, end, gain = row_start[pair], row_start[pair + 1], reward[h, s, a]
                    if end - row == 1:
                        q[a] = gain + follow[next_state[row]]
                        continue
                    visits, mean, plain, best = 0, 0.0, 0.0, -math.inf
                    for i in range(row, end):
                        n, v = own[i], follow[next_state[i]]
                        visits += n
                        mean += n * v
                        plain += v
                        best = max(best, v)
                    mean = mean / visits if visits > 0 else plain / (end - row)
                    share = 1.0 / max(visits, 1)
                    sd = scale * math.sqrt(share) + scale_left * (horizon - h) * share
                    q[a] = max(gain + min(mean + sd * noise[r, h, s, a], best), 0.0)
                _greedy(q, s, n_actions, value[r, h], policy[r, h])
        start_value[r] = _start_value(node_start, node_state, start, value[r, 0])


@jit
def _sampled(laws, reward, start, weights, policy, value, start_value):
    row_start, next_state, first_pair, node_start, node_state, n_actions, _ = laws
    horizon = len(reward)
    q = np.empty(n_actions)
    for r in range(len(weights)):
        own = weights[r]
        for h in range(horizon - 1, -1, -1):
            follow = value[r, h + 1]
            for node in range(node_start[h], node_start[h + 1]):
                s = node_state[node]
                for a in range(n_actions):
                    pair = first_pair[h] + s * n_actions + a
                    row, end = row_start[pair], row_start[pair + 1]
                    total, mean, plain = 0.0, 0.0, 0.0
                    for i in range(row, end):
                        w, v = own[i], follow[next_state[i]]
                        total += w
                        mean += w * v
                        plain += v
                    mean = mean / total if total > 0.0 else plain / (end - row)
                    q[a] = reward[h, s, a] + mean
                _greedy(q, s, n_actions, value[r, h], policy[r, h])
        start_value[r] = _start_value(node_start, node_state, start, value[r, 0])
