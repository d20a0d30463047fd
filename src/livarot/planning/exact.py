"""Exact planning in a known MNL MDP: optimal values and policy evaluation by backward induction.

    Q_h(s, a) = r_h(s, a) + sum_{s'} P_h(s'|s, a) V_{h+1}(s'),   V_h(s) = max_a Q_h(s, a),   V_H = 0,

and V_h(s) = Q_h(s, pi_h(s)) for a policy pi.

With a discount, rewards of the next state and terminal rewards g, it is r'(s, a, s') + discount V_{h+1}(s') in place of
V_{h+1}(s'), and V_H = g (:mod:`livarot.model.terms.after`).  Functions named ``..._kernel`` take and give normalised
values, the others speak in the units of the rewards or costs that were given.

The optimal policy follows Eq. (well state def pi star): among the actions within 1e-9 (1 + |Q|) of the best one, the
action with the largest variance of V*_{h+1}; the first one if that ties too.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import FloatArray, Int32Array, IntArray
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.lanes import maximum
from livarot.core.tolerances import TIE
from livarot.core.views import Bundle, listing_of, opened, part
from livarot.errors import bad, require_finite
from livarot.model.derived import derived
from livarot.model.episodes import check_policy, check_shape
from livarot.model.probabilities import Kernel, transition_kernel
from livarot.model.problem import MNLMDP, Problem, require_model
from livarot.model.terms.after import After, after, first_actions, gains, last_filled, outcome_kinds, worth
from livarot.planning.solution import PlainSolution, Solution


class Layout(NamedTuple):
    """What backward induction reads of a problem."""

    row_start: IntArray
    kind: Int32Array  # (rows,) of outcomes: their next states, or as :mod:`livarot.model.terms.after` numbers them
    stage_table: Int32Array
    reward: FloatArray  # (H, S, A), -inf where the pair does not exist
    after: After


class ListedLayout(Layout):
    """A layout that is listed once for all bundles; a copy is a plain :class:`Layout`."""

    listing: Any = None

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return Layout, tuple(self)


class Stages(NamedTuple):
    """What every backward induction with known probabilities reads."""

    model: Layout
    room: FloatArray  # (kinds,)
    prob: FloatArray
    base: IntArray  # (H,)


def solve(mdp: MNLMDP) -> Solution:
    """The optimal values and the paper's optimal policy.

    >>> import livarot
    >>> mdp = livarot.envs.hard_chain(10, n_episodes=1000, param_bound="tight")
    >>> round(float(livarot.solve(mdp).value[0, 0]), 4)
    3.5332
    """
    problem = require_model(mdp)
    return Solution.of(problem, solve_kernel(problem, transition_kernel(mdp)))


def solve_kernel(problem: Problem, kernel: Kernel) -> PlainSolution:
    """:func:`solve` for probabilities that are already computed, in normalised units."""
    found = empty_solution(problem)
    _solve(Bundle(_Solving(stages_of(problem, kernel), *found, np.zeros(problem.n_actions))))
    return found


def empty_solution(problem: Problem) -> PlainSolution:
    """The arrays of a solution, to be filled."""
    h, s, a = problem.reward.shape
    policy = np.zeros((h, s), dtype=np.int32) if problem.all_exist else first_actions(problem).copy()
    return PlainSolution(last_filled(problem, np.zeros((h + 1, s))), np.empty((h, s, a)), policy, np.empty((h, s)))


def evaluate_kernel(problem: Problem, kernel: Kernel, policy: NDArray[Any]) -> FloatArray:
    """:func:`evaluate` for probabilities that are already computed and a policy that was checked; normalised."""
    value = last_filled(problem, np.zeros((problem.horizon + 1, problem.n_states)))
    _evaluate(Bundle(_Evaluating(stages_of(problem, kernel), *played(policy), value)))
    return value


def played(policy: NDArray[Any]) -> tuple[Int32Array, FloatArray]:
    """The actions (H, S, n) that a policy may play, and their probabilities."""
    if policy.ndim == 2:
        return np.array(policy[..., None], dtype=np.int32, order="C"), np.ones((*policy.shape, 1))
    return np.tile(np.arange(policy.shape[2], dtype=np.int32), (*policy.shape[:2], 1)), np.ascontiguousarray(policy)


def stages_of(problem: Problem, kernel: Kernel) -> Stages:
    """The :class:`Stages` of a problem with a kernel."""
    layout = _layout(problem)
    return Stages(layout, np.empty(len(layout.after.state)), kernel.prob, kernel.base)


@derived
def _layout(problem: Problem) -> Layout:
    parts = outcome_kinds(problem), problem.stage_table, gains(problem), after(problem)
    layout = ListedLayout(problem.rows.row_start, *parts)
    layout.listing = listing_of(layout)
    return layout


def checked_solution(problem: Problem, solution: Any) -> PlainSolution:
    """The given solution in normalised units; refused unless its arrays fit this problem."""
    shape = problem.reward.shape
    expected = {"value": (shape[0] + 1, shape[1]), "q": shape, "policy": shape[:2], "variance": shape[:2]}
    if not isinstance(solution, PlainSolution):
        raise bad("solution", f"{type(solution).__name__} is not a Solution", cure="give livarot.solve(mdp)")
    solution = solution.normalised if isinstance(solution, Solution) else solution
    for name, size in expected.items():
        check_shape(f"solution.{name}", getattr(solution, name), size)
    q = solution.q if problem.all_exist else np.where(problem.exists, solution.q, 0.0)
    numbers = {"value": solution.value, "q": q, "variance": solution.variance}
    numbers = {name: require_finite(f"solution.{name}", part) for name, part in numbers.items()}
    return PlainSolution(numbers["value"], solution.q, check_policy(problem, solution.policy), numbers["variance"])


def evaluate(mdp: MNLMDP, policy: NDArray[Any]) -> FloatArray:
    """V^pi_h(s), (H + 1, S), of a policy: actions int (H, S) or probabilities float (H, S, A)."""
    problem = require_model(mdp)
    found = evaluate_kernel(problem, transition_kernel(mdp), check_policy(problem, policy))
    return problem.units.values(found, problem.horizon)


class _Solving(NamedTuple):
    """The arrays of :func:`solve_kernel`."""

    stages: Any
    value: Any
    q: Any
    policy: Any
    variance: Any
    spread: Any  # (A,)


class _Evaluating(NamedTuple):
    """The arrays of :func:`evaluate_kernel`."""

    stages: Any
    actions: Any  # (H, S, n)
    weights: Any  # (H, S, n)
    value: Any


@jit
def _solve(task):
    t = opened(task)
    horizon, n_states, n_actions = t.q.shape
    n_pairs, stages, model = n_states * n_actions, t.stages, t.stages.model
    for h in range(horizon - 1, -1, -1):
        starts = part(model.row_start, model.stage_table[h] * n_pairs, n_pairs + 1)
        weights = part(stages.prob, stages.base[h] + starts[0], starts[n_pairs] - starts[0])
        follow = worth(model.after, t.value[h + 1], stages.room)
        nexts = part(model.kind, starts[0], starts[n_pairs] - starts[0])
        for s in range(n_states):
            q = t.q[h, s]
            for a in range(n_actions):
                total = model.reward[h, s, a]
                if h + 1 < horizon or not model.after.idle:  # after the last stage all values are 0
                    pair = s * n_actions + a
                    mean, spread = moments(
                        weights, nexts, follow, starts[pair] - starts[0], starts[pair + 1] - starts[0]
                    )
                    t.spread[a] = spread
                    total += mean
                q[a] = total
            t.value[h, s], t.policy[h, s], t.variance[h, s] = greedy_widest(q, t.spread)


@inner
def moments(weights, nexts, follow, row, end):
    """Mean and variance of the next value: in one pass around the value of the first outcome, so that nothing cancels.

    Two sums side by side hide the latency of additions.  Both are 0 for a pair without rows, which does not exist.
    """
    if row == end:
        return 0.0, 0.0
    pivot = follow[nexts[row]]
    first, second, other_first, other_second = 0.0, 0.0, 0.0, 0.0
    while row + 2 <= end:
        off, other = follow[nexts[row]] - pivot, follow[nexts[row + 1]] - pivot
        weighted, other_weighted = weights[row] * off, weights[row + 1] * other
        first += weighted
        second += weighted * off
        other_first += other_weighted
        other_second += other_weighted * other
        row += 2
    if row < end:
        off = follow[nexts[row]] - pivot
        first += weights[row] * off
        second += weights[row] * off * off
    first += other_first
    return pivot + first, maximum(second + other_second - first * first, 0.0)


@inner
def greedy_widest(q, spread):
    """max_a Q, the first of the actions within the tie tolerance of it that have the largest spread, and its spread."""
    best, action = q[0], 0
    for a in range(1, len(q)):
        action, best = a if q[a] > best else action, maximum(best, q[a])
    tie, near = best - TIE * (1.0 + abs(best)), 0
    for a in range(len(q)):
        near += q[a] >= tie
    if near > 1:
        action = -1
        for a in range(len(q)):
            if q[a] >= tie and (action < 0 or spread[a] > spread[action] + TIE * (1.0 + spread[action])):
                action = a
    return best, np.int32(action), spread[action]


@jit
def _evaluate(task):
    t = opened(task)
    horizon, n_states, n_played = t.actions.shape
    for h in range(horizon - 1, -1, -1):
        follow = worth(t.stages.model.after, t.value[h + 1], t.stages.room)
        for s in range(n_states):
            mixed = 0.0
            for i in range(n_played):
                if t.weights[h, s, i] > 0.0:
                    mixed += t.weights[h, s, i] * _expected(t.stages, h, s, t.actions[h, s, i], follow)
            t.value[h, s] = mixed


@inner
def _expected(stages, h, s, a, follow):
    """r + E[v] of one pair."""
    model = stages.model
    _, n_states, n_actions = model.reward.shape
    pair = (model.stage_table[h] * n_states + s) * n_actions + a
    total = model.reward[h, s, a]
    for row in range(model.row_start[pair], model.row_start[pair + 1]):
        total += stages.prob[stages.base[h] + row] * follow[model.kind[row]]
    return total
