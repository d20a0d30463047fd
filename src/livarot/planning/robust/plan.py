"""Robust planning: backward induction against an adversary who moves each transition within a KL distance.

The nominal kernel p0_h(.|s, a) is trusted only roughly.  An adversary picks, for every (h, s, a) anew (*rectangular*
uncertainty), a distribution p on the same next states (one such choice: :mod:`livarot.planning.robust.kl`):

    radius eps    Q_h(s, a) = r_h(s, a) + min { E_p V_{h+1} : KL(p | p0) <= eps_h(s, a) }
    penalty eta   Q_h(s, a) = r_h(s, a) + min_p { E_p V_{h+1} + KL(p | p0) / eta_h(s, a) }       V_h = max_a Q_h

eta -> 0 and eps = 0 are the nominal model, eta -> infinity and eps >= log(1/p0(argmin V)) the worst next state.  The
worst-case kernel is p0 exp(-eta V_{h+1}), normalised, with the *dual* eta_h(s, a).

With ``count_penalty=False`` the divergence is left out of the value, Q = r + E_p V with the same p: the paper's
recursion, whose V is the optimal value of the MDP with the worst-case kernel (reading E39).  It is the robust value of
the ball whose radius at (h, s, a) is KL(p | p0); unlike the other two it is not a monotone operator on V, so it need
not decrease in eta (docs/robust.md).

The policy breaks ties as :func:`livarot.solve` does, with variances under the worst-case kernel.  Where rewards depend
on the next state, or are discounted, V_{h+1} is r' + discount V_{h+1} (:mod:`livarot.model.terms.after`).  Values,
penalties and dual variables are in the units of the rewards or costs that were given (a penalty in one over them).
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.core.arrays import FloatArray, Int32Array
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.lanes import W, lane, lanes, maximum, number_in
from livarot.core.views import Bundle, flat, opened, part
from livarot.errors import bad, require_finite
from livarot.model.episodes import check_policy
from livarot.model.probabilities import Kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.model.terms.after import blank_values, worth
from livarot.planning.exact import Stages, empty_solution, greedy_widest, played, solve_kernel, stages_of
from livarot.planning.robust.kl import BALL, PENALTY, PENALTY_MEAN, answer, exp_and_change, look, one_of, tie_width
from livarot.planning.robust.nominal import Nominal, as_nominal
from livarot.planning.solution import PlainSolution, Readable, Solution

CHUNK = 64  # pairs whose exponentials are taken together


class Plain(NamedTuple):
    """A robust solution in normalised units."""

    found: PlainSolution
    dual: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class RobustSolution(Readable):
    """Optimal robust values of every state and stage, with the adversary's answer."""

    value: FloatArray  # (H + 1, S)
    q: FloatArray  # (H, S, A)
    policy: Int32Array  # (H, S)
    variance: FloatArray  # (H, S) of V_{h+1} under the worst-case kernel and the policy's action
    dual: FloatArray  # (H, S, A) eta of the tilt; infinite where all mass is on the minimisers, 0 where p = p0
    gap: float  # largest duality gap of a single (h, s, a), in units of value; 0 for a penalty (closed form)
    nominal: Nominal = field(repr=False)
    plain: Plain | None = field(default=None, repr=False)  # the numbers in normalised units

    @property
    def problem(self) -> Problem:  # type: ignore[override]
        """What was planned for."""
        return self.nominal.problem

    @property
    def normalised(self) -> PlainSolution:
        """Values, policy and variances with rewards in [0, 1]."""
        own = PlainSolution(self.value, self.q, self.policy, self.variance)
        return own if self.plain is None else self.plain.found

    @cached_property
    def kernel(self) -> Kernel:
        """The worst-case kernel, one per stage, in the layout of :mod:`livarot.model.probabilities`.

        Computed from ``value`` and ``dual`` when first asked for: it holds H times as many numbers as a table has rows.
        """
        problem = self.nominal.problem
        rows, n_pairs = problem.rows, problem.n_states * problem.n_actions
        first = rows.row_start[problem.stage_table.astype(np.int64) * n_pairs]
        sizes = rows.row_start[(problem.stage_table.astype(np.int64) + 1) * n_pairs] - first
        begins = np.concatenate(([0], np.cumsum(sizes)))
        base = (begins[:-1] - first).astype(np.int64)
        prob = np.empty(int(begins[-1]))
        memory = np.empty((-(-CHUNK * problem.max_reachable // W), W))
        found, dual = self.normalised, self.dual if self.plain is None else self.plain.dual
        future = found.q - np.where(problem.exists, problem.reward, 0.0)
        arrays = found.value, future, dual, base, prob, memory
        _fill_worst(Bundle(_Worst(stages_of(problem, self.nominal.kernel), *arrays)))
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
    :func:`livarot.planning.robust.nominal.nominal_model`.
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
        return _in_units(model, solve_kernel(problem, kernel), np.zeros(shape), 0.0)
    found, dual = empty_solution(problem), np.empty(shape)
    every = np.arange(shape[1] * shape[2]).reshape(1, *shape[1:])
    memory = np.empty(shape[1:]), np.empty((2 * problem.max_reachable + 1, W))
    task = _Backward(stages_of(problem, kernel), levels, every, found.value, found.q, dual, *memory)
    gap = _solve(Bundle(task), _kind(ball, count_penalty), found.policy, found.variance)
    return _in_units(model, found, dual, float(gap))


def _in_units(model: Nominal, found: PlainSolution, dual: FloatArray, gap: float) -> RobustSolution:
    """The solution in the user's units: values are multiplied by the scale, dual variables divided by it."""
    units = model.problem.units
    if units.identity:
        return RobustSolution(*found, dual=dual, gap=gap, nominal=model)
    in_units = Solution.of(model.problem, found)
    return RobustSolution(
        *in_units, dual=dual / units.scale, gap=gap * units.scale, nominal=model, plain=Plain(found, dual)
    )


def evaluate_robust(
    nominal: MNLMDP | tuple[Problem, Kernel],
    policy: NDArray[Any],
    *,
    radius: ArrayLike | None = None,
    penalty: ArrayLike | None = None,
    count_penalty: bool = True,
) -> FloatArray:
    """The worst-case value (H + 1, S) of a policy: actions int (H, S) or probabilities float (H, S, A).

    The adversary knows the policy and answers each (h, s, a) separately, after the action is drawn.
    """
    problem, kernel = as_nominal(nominal)
    levels, ball = _levels(problem, radius, penalty)
    actions, weights = played(check_policy(problem, policy))
    value, future = blank_values(problem, 1)[0], np.empty((1, *actions.shape[1:]))
    memory = np.empty_like(future), np.empty(future.shape[1:]), np.empty((2 * problem.max_reachable + 1, W))
    pairs = actions + problem.n_actions * np.arange(problem.n_states)[:, None]
    task = _Backward(stages_of(problem, kernel), levels, pairs, value, future, *memory)
    _evaluate(Bundle(task), _kind(ball, count_penalty), weights)
    return problem.units.values(value, problem.horizon)


def _kind(ball: bool, count_penalty: bool) -> int:
    return BALL if ball else PENALTY if count_penalty else PENALTY_MEAN


def _levels(problem: Problem, radius: ArrayLike | None, penalty: ArrayLike | None) -> tuple[FloatArray, bool]:
    """The radius or penalty of every pair, (1, S A) or (H, S A), normalised, and whether it is a radius."""
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
    if not ball and problem.units.scale != 1.0:
        level = level * problem.units.scale
    return np.ascontiguousarray(level.reshape(len(level), -1)), ball


class _Backward(NamedTuple):
    """The arrays of a robust backward induction, which backs up n pairs of every state."""

    stages: Stages
    levels: Any  # (1 or H, S A)
    pairs: Any  # (1 or H, S, n)
    value: Any  # (H + 1, S)
    future: Any  # (H or 1, S, n) what the adversary leaves of the next value; then Q
    dual: Any  # (H or 1, S, n)
    spread: Any  # (S, n)
    memory: Any  # (2 U + 1, W)


@inner
def _back_up(t, h, at, kind):
    """Worst cases of V_{h+1} into entry ``at`` of future and dual, W pairs at a time; gives the largest duality gap."""
    future, dual, spread, gap = flat(t.future[at]), flat(t.dual[at]), flat(t.spread), 0.0
    follow = worth(t.stages.model.after, t.value[h + 1], t.stages.room)
    for begin in range(0, len(future), W):
        x, p, level = _gathered(t, h, begin, follow)
        found = answer(look(x, p), level, kind, lane(0.0))
        for k in range(W if begin + W <= len(future) else len(future) - begin):
            future[begin + k] = number_in(found.value, k)
            dual[begin + k] = number_in(found.dual, k)
            spread[begin + k] = number_in(found.variance, k)
            gap = maximum(gap, number_in(found.gap, k))
    return gap


@inner
def _gathered(t, h, begin, follow):
    """Next values, probabilities (0 for outcomes that a pair does not have) and levels of W pairs.

    A pair that does not exist counts as one that is certain of 0.
    """
    _, n_states, n_actions = t.stages.model.reward.shape
    starts = part(
        t.stages.model.row_start, t.stages.model.stage_table[h] * n_states * n_actions, n_states * n_actions + 1
    )
    pairs, levels = flat(t.pairs[h % len(t.pairs)]), t.levels[h % len(t.levels)]
    numbers, base, longest = flat(t.memory), t.stages.base[h], 1
    for filling in range(2):  # first the length of the longest law, then the laws themselves
        for k in range(W):
            pair = pairs[begin + k if begin + k < len(pairs) else len(pairs) - 1]
            row, n = starts[pair], starts[pair + 1] - starts[pair]
            if filling == 0:
                numbers[k], longest = levels[pair], n if n > longest else longest
                continue
            for i in range(longest):
                there = i < n
                numbers[(1 + i) * W + k] = follow[t.stages.model.kind[row + i]] if there else 0.0
                numbers[(1 + longest + i) * W + k] = t.stages.prob[base + row + i] if there else 0.0
            if n == 0:
                numbers[(1 + longest) * W + k] = 1.0
    space = lanes(t.memory)
    return part(space, 1, longest), part(space, 1 + longest, longest), space[0]


@jit
def _solve(task, kind, policy, variance):
    """Q = r + what the adversary leaves, V = max_a Q and the policy; gives the largest duality gap."""
    t, gap = opened(task), 0.0
    for h in range(len(t.future) - 1, -1, -1):
        gap = maximum(gap, _back_up(t, h, h, kind))
        for s in range(t.value.shape[1]):
            q, reward = t.future[h, s], t.stages.model.reward[h, s]
            for a in range(len(q)):
                q[a] = reward[a] + q[a]
            t.value[h, s], policy[h, s], variance[h, s] = greedy_widest(q, t.spread[s])
    return gap


@jit
def _evaluate(task, kind, weights):
    """V of a policy that plays the actions with these probabilities (H, S, n)."""
    t = opened(task)
    for h in range(len(t.value) - 2, -1, -1):
        _back_up(t, h, 0, kind)
        for s in range(t.value.shape[1]):
            total = 0.0
            for i in range(t.pairs.shape[2]):
                if weights[h, s, i] == 0.0 and flat(t.stages.model.reward[h])[t.pairs[h, s, i]] < 0.0:
                    continue  # an action that does not exist
                total += weights[h, s, i] * (flat(t.stages.model.reward[h])[t.pairs[h, s, i]] + t.future[0, s, i])
            t.value[h, s] = total


class _Worst(NamedTuple):
    """The arrays of a worst-case kernel."""

    stages: Stages
    value: Any
    future: Any  # (H, S, A) the answer f of the adversary
    dual: Any
    base: Any  # of the new kernel
    prob: Any
    memory: Any


@jit
def _fill_worst(task):
    t = opened(task)
    horizon, n_states, n_actions = t.dual.shape
    for h in range(horizon):
        follow = worth(t.stages.model.after, t.value[h + 1], t.stages.room)
        for begin in range(0, n_states * n_actions, CHUNK):
            _worst_laws(t, h, begin, min(begin + CHUNK, n_states * n_actions), follow)


@inner
def _worst_laws(t, h, begin, end, follow):
    """p0 exp(-eta (V - f)), normalised; restricted to the minimisers where eta is infinite.

    eta (f - min V) <= log(1/p0(argmin V)), so that nothing overflows (except for next states of probability 0, hence
    the limit 700).
    """
    n_pairs, eta, answer = len(flat(t.dual[h])), flat(t.dual[h]), flat(t.future[h])
    starts = part(t.stages.model.row_start, t.stages.model.stage_table[h] * n_pairs, n_pairs + 1)
    first, exponents, grown = starts[begin], flat(t.memory), lanes(t.memory)
    for pair in range(begin, end):
        row, n = starts[pair], starts[pair + 1] - starts[pair]
        nexts, weights = part(t.stages.model.kind, row, n), part(t.stages.prob, t.stages.base[h] + row, n)
        own = part(exponents, row - first, n)
        if eta[pair] == math.inf:
            _keep_minimisers(nexts, weights, follow, own)
        else:
            for i in range(n):
                own[i] = min(-eta[pair] * (follow[nexts[i]] - answer[pair]), 700.0)
    for i in range(-(-(starts[end] - first) // W)):
        grown[i] = exp_and_change(grown[i])[0]
    for pair in range(begin, end):
        row, n = starts[pair], starts[pair + 1] - starts[pair]
        weights, worst = part(t.stages.prob, t.stages.base[h] + row, n), part(t.prob, t.base[h] + row, n)
        total = 0.0
        for i in range(n):
            worst[i] = weights[i] * exponents[row - first + i]
            total += worst[i]
        scale = 1.0 / total if eta[pair] > 0.0 else 1.0  # the nominal row, number for number
        for i in range(n):
            worst[i] *= scale


@inner
def _keep_minimisers(nexts, weights, follow, exponents):
    """Logits 0 at the minimisers of V on the support, and far below elsewhere."""
    low, high = math.inf, -math.inf
    for i in range(len(nexts)):
        v = follow[nexts[i]]
        low = min(low, v if weights[i] > 0.0 else low)
        high = max(high, v if weights[i] > 0.0 else high)
    tie = tie_width(low, high)
    for i in range(len(nexts)):
        exponents[i] = 0.0 if follow[nexts[i]] - low <= tie else -1e3
