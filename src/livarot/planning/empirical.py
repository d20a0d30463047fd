"""Backward induction on empirical kernels, for all replicas at once: what tabular agents plan with.

Counts n lie in the layout of :mod:`livarot.model.tabular_view`, N is their sum over a pair and p = n/N.  About a pair
with only one possible outcome there is nothing to learn: all four planners back it up exactly.

``bonus_values``      Q = r + min(p.V + b, max V), b a function of N, of the variance of V and of what follows
``optimistic_values`` Q = r + max of q.V over |q - p|_1 <= width: half the width is moved from the worst next states
                      to the best one, *by value*.  (A public code moves it to the most probable one, which is wrong.)
``noisy_values``      Q = r + min(p.V + noise, max V), at least 0
``sampled_values``    Q = r + w.V / sum(w) with given weights w, e.g. gamma draws: a Dirichlet sample

Maxima of V are over the pair's possible next states; an unvisited pair is worth r + max V (``noisy_values``: r + mean V
+ noise).  Where reachable sets are known, only states that the start can reach are planned for.  Ties: the first action
within 1e-9 (1 + |Q|).  V stands for what outcomes are worth, r' + discount V (:mod:`livarot.model.terms.after`);
actions that do not exist have Q = -inf.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.views import Bundle, opened, part, view
from livarot.model.compiled import own
from livarot.model.derived import derived
from livarot.model.episodes import Plan, check_shape
from livarot.model.problem import Problem
from livarot.model.tabular_view import Laws, law_kinds
from livarot.model.terms.after import After, blank_policy, blank_values, gains, worth
from livarot.planning.steps import greedy, mean_at_start


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
    return Values(blank_policy(problem, n_replicas), blank_values(problem, n_replicas), np.zeros(n_replicas))


def bonus_values(
    problem: Problem, laws: Laws, counts: IntArray, code: BonusCode, state_visits: IntArray, q: FloatArray
) -> Values:
    """Plan with an additive bonus.

    ``state_visits`` N' (R, H, S) is read by the correction only.  ``q`` (R, H, S, A) is lowered in place to min(q, Q),
    and the plan is greedy in the lowered q; an empty ``q`` lowers nothing.
    """
    _check_counts(laws, counts)
    shape = (len(counts), *problem.reward.shape)
    if state_visits.size or code.correction > 0.0:
        check_shape("state_visits", state_visits, shape[:3])
    if q.size:
        check_shape("q", q, shape)
    values = empty_values(problem, len(counts))
    visits = state_visits if state_visits.size else np.zeros((1, 0, 0), dtype=np.int64)
    lowered = np.ascontiguousarray(q).reshape((*shape[:2], -1) if q.size else (1, 0, 0))
    model = _model(problem, laws)
    _bonus(model, code, counts, visits, lowered, _memory(model), *values)
    if q.size and not q.flags.c_contiguous:
        q[...] = lowered.reshape(shape)
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
    model = _model(problem, laws)
    memory = np.empty((3, max(int(np.diff(laws.row_start).max()), len(_memory(model)))))
    _optimistic(model, counts, width, due, memory, *values)


def noisy_values(
    problem: Problem, laws: Laws, counts: IntArray, noise: FloatArray, scale: float, scale_left: float
) -> Values:
    """Standard normals ``noise`` (R, H, S, A) times scale/sqrt N + scale_left (H-h)/N are added to Q."""
    _check_counts(laws, counts)
    values = empty_values(problem, len(counts))
    flat = np.ascontiguousarray(noise).reshape(len(counts), problem.horizon, -1)
    model = _model(problem, laws)
    _noisy(model, counts, flat, (float(scale), float(scale_left)), _memory(model), *values)
    return values


def sampled_values(problem: Problem, laws: Laws, weights: FloatArray) -> Values:
    """The optimal policy for the law w / sum(w) of each pair, weights (R, rows) >= 0."""
    _check_counts(laws, weights)
    values = empty_values(problem, len(weights))
    model = _model(problem, laws)
    _sampled(model, weights, _memory(model), *values)
    return values


def _check_counts(laws: Laws, counts: NDArray[Any]) -> None:
    check_shape("counts", counts, (len(counts), len(laws.next_state)))


class _Model(NamedTuple):
    """What the planners read."""

    laws: Laws
    kind: Int32Array  # (rows,) of outcomes ...
    after: After  # ... and what they are worth (:mod:`livarot.model.terms.after`)
    reward: FloatArray  # (H, S, A), -inf where the pair does not exist
    start: FloatArray


@derived
def _models(problem: Problem) -> dict[bool, Bundle]:
    """The :class:`_Model` for each ``Laws.known``, filled when first asked for."""
    return {}


def _model(problem: Problem, laws: Laws) -> Bundle:
    found = _models(problem).get(laws.known)
    if found is None or found.fields.laws is not laws:
        kinds = law_kinds(problem, laws)
        found = _models(problem)[laws.known] = Bundle(_Model(laws, *kinds, gains(problem), problem.start))
    return found


def _memory(model: Bundle) -> FloatArray:
    """Q of a state's actions, and what outcomes are worth."""
    return np.empty(model.fields.laws.n_actions + len(model.fields.after.state))


def _inducting(expected: Any) -> Any:
    """Backward induction for one replica: Q = r + expected(model, data, h, pair of the law, pair of the stage, V)."""

    @inner
    def induct(model, data, memory, policy, value):
        laws, n_actions = model.laws, model.laws.n_actions
        q, room = part(memory, 0, n_actions), part(memory, n_actions, len(model.after.state))
        for h in range(len(policy) - 1, -1, -1):
            follow = worth(model.after, value[h + 1], room)
            for node in range(laws.node_start[h], laws.node_start[h + 1]):
                s = laws.node_state[node]
                for a in range(n_actions):
                    local = s * n_actions + a
                    q[a] = -math.inf
                    if model.reward[h, s, a] >= 0.0:  # the action exists
                        q[a] = expected(model, data, h, laws.first_pair[h] + local, local, follow)
                value[h, s], policy[h, s] = greedy(q)
        return mean_at_start(laws.node_start, laws.node_state, model.start, value[0])

    return induct


@inner
def _gain(model, h, local):
    n_actions = model.laws.n_actions
    return model.reward[h, local // n_actions, local % n_actions]


class _Bonus(NamedTuple):
    code: BonusCode
    counts: Any  # (rows,)
    visits: Any  # (H, S) of states, or empty
    known: Any  # (H, S A) the lowered Q so far, or empty


@inner
def _with_bonus(model, data, h, pair, local, follow):
    laws, code = model.laws, data.code
    row, end, gain = laws.row_start[pair], laws.row_start[pair + 1], _gain(model, h, local)
    if end - row == 1:
        return gain + follow[model.kind[row]]
    visits, best, pivot = 0, -math.inf, follow[model.kind[row]]
    first, second = 0.0, 0.0
    for i in range(row, end):
        n, v = data.counts[i], follow[model.kind[i]]
        visits += n
        best = max(best, v)
        first += n * (v - pivot)
        second += n * (v - pivot) * (v - pivot)
    hope = gain + best
    if visits > 0:
        share, left = 1.0 / visits, len(model.reward) - h
        first *= share
        bonus = code.over_root * math.sqrt(share)
        if code.variance > 0.0:
            bonus += code.variance * math.sqrt(max(second * share - first * first, 0.0) * share)
        bonus += (code.over_n + code.over_n_left * left) * share
        if code.correction > 0.0:
            bonus += math.sqrt(8.0 * share * _correction(model, data, h, row, end, share))
        hope = gain + min(pivot + first + code.scale * bonus, best)
    if len(data.known):
        hope = min(hope, data.known[h, local])
        data.known[h, local] = hope
    return hope


@inner
def _correction(model, data, h, row, end, share):
    """sum_y p(y) min(correction/N'_{h+1}(y), H^2)."""
    horizon, far = len(model.reward), 0.0
    most = float(horizon) * horizon
    for i in range(row, end):
        seen = data.visits[h + 1, model.laws.next_state[i]] if h + 1 < horizon else 0
        each = min(data.code.correction / seen, most) if seen > 0 else most
        far += data.counts[i] * share * each
    return far


_induct_bonus = _inducting(_with_bonus)


@jit
def _bonus(model, code, counts, visits, known, q, policy, value, start_value):
    m = opened(model)
    for r in range(len(counts)):
        data = _Bonus(code, view(counts)[r], own(visits, r), own(known, r))
        start_value[r] = _induct_bonus(m, data, view(q), view(policy)[r], view(value)[r])


class _Width(NamedTuple):
    counts: Any
    width: float
    mass: Any
    gains: Any


@inner
def _in_l1_ball(model, data, h, pair, local, follow):
    laws = model.laws
    row, n = laws.row_start[pair], laws.row_start[pair + 1] - laws.row_start[pair]
    visits = 0
    for i in range(n):
        data.mass[i] = data.counts[row + i]
        data.gains[i] = follow[model.kind[row + i]]
        visits += data.counts[row + i]
    best = data.gains[0]
    if n > 1:
        best = l1_maximum(data.mass, data.gains, n, visits, 0.5 * data.width * math.sqrt(n / max(visits, 1)))
    return _gain(model, h, local) + best


_induct_optimistic = _inducting(_in_l1_ball)


@jit
def _optimistic(model, counts, width, due, memory, policy, value, start_value):
    m, room = opened(model), view(memory)
    for r in range(len(counts)):
        if due[r]:
            data = _Width(view(counts)[r], width[r], room[0], room[1])
            start_value[r] = _induct_optimistic(m, data, room[2], view(policy)[r], view(value)[r])


@inner
def l1_maximum(mass, gains, n, visits, half):
    """max of q.gains over |q - mass/visits|_1 <= 2 half; both arrays are overwritten (no visits: the largest gain).

    The best outcome gains the mass ``half`` (to 1 at most); as much is taken from the others, from the worst one first.
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
    for i in range(n - 1):  # relative to the top value: an outcome that keeps mass costs its distance from the top
        p = mass[i] / visits
        taken = min(p, excess)
        excess -= taken
        total += (p - taken) * (gains[i] - top)
    return top + total


class _Noise(NamedTuple):
    counts: Any
    noise: Any  # (H, S A)
    scales: Any


@inner
def _with_noise(model, data, h, pair, local, follow):
    laws = model.laws
    row, end, gain = laws.row_start[pair], laws.row_start[pair + 1], _gain(model, h, local)
    if end - row == 1:
        return gain + follow[model.kind[row]]
    visits, mean, plain, best = 0, 0.0, 0.0, -math.inf
    for i in range(row, end):
        n, v = data.counts[i], follow[model.kind[i]]
        visits += n
        mean += n * v
        plain += v
        best = max(best, v)
    mean = mean / visits if visits > 0 else plain / (end - row)
    share = 1.0 / max(visits, 1)
    sd = data.scales[0] * math.sqrt(share) + data.scales[1] * (len(model.reward) - h) * share
    return max(gain + min(mean + sd * data.noise[h, local], best), 0.0)


_induct_noisy = _inducting(_with_noise)


@jit
def _noisy(model, counts, noise, scales, q, policy, value, start_value):
    m = opened(model)
    for r in range(len(counts)):
        data = _Noise(view(counts)[r], view(noise)[r], scales)
        start_value[r] = _induct_noisy(m, data, view(q), view(policy)[r], view(value)[r])


@inner
def _with_weights(model, weights, h, pair, local, follow):
    laws = model.laws
    row, end = laws.row_start[pair], laws.row_start[pair + 1]
    total, mean, plain = 0.0, 0.0, 0.0
    for i in range(row, end):
        w, v = weights[i], follow[model.kind[i]]
        total += w
        mean += w * v
        plain += v
    return _gain(model, h, local) + (mean / total if total > 0.0 else plain / (end - row))


_induct_sampled = _inducting(_with_weights)


@jit
def _sampled(model, weights, q, policy, value, start_value):
    m = opened(model)
    for r in range(len(weights)):
        start_value[r] = _induct_sampled(m, view(weights)[r], view(q), view(policy)[r], view(value)[r])
