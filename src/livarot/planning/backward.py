"""Exact planning in a known MNL MDP: optimal values and policy evaluation by backward induction.

    Q_h(s, a) = r_h(s, a) + sum_{s'} P_h(s'|s, a) V_{h+1}(s'),   V_h = max_a Q_h   (or the policy's action),  V_H = 0.

The optimal policy follows Eq. (well state def pi star): among the actions within 1e-9 (1 + |Q|) of the best one, the
action with the largest variance of V*_{h+1}; the first one if that ties too.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.core.jit import jit
from livarot.core.kernel import Kernel, transition_kernel
from livarot.core.plan import check_policy, check_shape
from livarot.core.problem import MNLMDP, Problem, require_model
from livarot.core.ragged import FloatArray, Int32Array
from livarot.errors import bad, require_finite

TIE = 1e-9
ONE, TWO = np.uint64(1), np.uint64(2)


class Solution(NamedTuple):
    """Optimal values of every state and stage, reachable or not."""

    value: FloatArray  # (H + 1, S)
    q: FloatArray  # (H, S, A)
    policy: Int32Array  # (H, S)
    variance: FloatArray  # (H, S) of V*_{h+1} under the policy's action


def solve(mdp: MNLMDP) -> Solution:
    """The optimal values and the paper's optimal policy.

    >>> import livarot
    >>> mdp = livarot.envs.hard_chain(10, n_episodes=1000, param_bound="tight")
    >>> round(float(livarot.solve(mdp).value[0, 0]), 4)
    3.5332
    """
    return solve_kernel(require_model(mdp), transition_kernel(mdp))


def solve_kernel(problem: Problem, kernel: Kernel) -> Solution:
    """:func:`solve` for probabilities that are already there."""
    shape = (problem.horizon, problem.n_states)
    value = np.zeros((problem.horizon + 1, problem.n_states))
    q = np.empty((*shape, problem.n_actions))
    policy = np.zeros(shape, dtype=np.int32)
    variance = np.empty(shape)
    rows = problem.rows
    _solve(rows.row_start, rows.next_state, problem.stage_table, problem.reward, *kernel, value, q, policy, variance)
    return Solution(value, q, policy, variance)


def checked_solution(problem: Problem, solution: Any) -> Solution:
    """A solution that was given, refused unless its arrays are those of this problem."""
    shape = problem.reward.shape
    expected = {"value": (shape[0] + 1, shape[1]), "q": shape, "policy": shape[:2], "variance": shape[:2]}
    if not isinstance(solution, Solution):
        raise bad("solution", f"{type(solution).__name__} is not a Solution", cure="give livarot.solve(mdp)")
    for name, size in expected.items():
        check_shape(f"solution.{name}", getattr(solution, name), size)
    numbers = {name: require_finite(f"solution.{name}", getattr(solution, name)) for name in ("value", "q", "variance")}
    return solution._replace(policy=check_policy(problem, solution.policy), **numbers)


def evaluate(mdp: MNLMDP, policy: NDArray[Any]) -> FloatArray:
    """V^pi_h(s), (H + 1, S), of a policy: actions int (H, S) or probabilities float (H, S, A)."""
    problem = require_model(mdp)
    table = check_policy(problem, policy)
    kernel = transition_kernel(mdp)
    value = np.zeros((problem.horizon + 1, problem.n_states))
    rows = problem.rows
    arrays = (rows.row_start, rows.next_state, problem.stage_table, problem.reward, *kernel)
    if table.ndim == 2:
        _evaluate(*arrays, table, value)
    else:
        _evaluate_mixed(*arrays, table, value)
    return value


@jit
def _solve(row_start, next_state, stage_table, reward, prob, base, value, q, policy, variance):
    # unsigned numbers as indices: a signed one would be tested for "from the end" at every access
    starts, nexts = row_start.view(np.uint64), next_state.view(np.uint32)
    horizon, n_states, n_actions = q.shape
    spread = np.empty(n_actions)
    for h in range(horizon - 1, -1, -1):
        follow = value[h + 1]
        first_pair = stage_table[h] * n_states * n_actions
        table = starts[first_pair : first_pair + n_states * n_actions + 1]
        targets = nexts[row_start[first_pair] : row_start[first_pair + n_states * n_actions]]
        weights = prob[base[h] + row_start[first_pair] : base[h] + row_start[first_pair + n_states * n_actions]]
        origin = table[0]
        for s in range(n_states):
            best = -1.0
            for a in range(n_actions):
                # moments around the value of the first outcome: one pass, and no cancellation in the variance
                row, end = table[s * n_actions + a] - origin, table[s * n_actions + a + 1] - origin
                pivot = follow[targets[row]]
                first, second, other_first, other_second = 0.0, 0.0, 0.0, 0.0
                while row + TWO <= end:  # two sums side by side hide their latency
                    off, other = follow[targets[row]] - pivot, follow[targets[row + ONE]] - pivot
                    part, other_part = weights[row] * off, weights[row + ONE] * other
                    first += part
                    other_first += other_part
                    second += part * off
                    other_second += other_part * other
                    row += TWO
                if row < end:
                    off = follow[targets[row]] - pivot
                    first += weights[row] * off
                    second += weights[row] * off * off
                first += other_first
                total = reward[h, s, a] + (pivot + first)
                q[h, s, a] = total
                spread[a] = max(second + other_second - first * first, 0.0)
                best = max(best, total)
            tie = best - TIE * (1.0 + abs(best))
            widest = -1.0
            for a in range(n_actions):
                if q[h, s, a] >= tie and (widest < 0.0 or spread[a] > widest + TIE * (1.0 + widest)):
                    widest = spread[a]
                    policy[h, s] = a
            value[h, s] = best
            variance[h, s] = widest


@jit
def _evaluate(row_start, next_state, stage_table, reward, prob, base, policy, value):
    horizon, n_states, n_actions = reward.shape
    for h in range(horizon - 1, -1, -1):
        for s in range(n_states):
            a = policy[h, s]
            pair = (stage_table[h] * n_states + s) * n_actions + a
            total = reward[h, s, a]
            for row in range(row_start[pair], row_start[pair + 1]):
                total += prob[base[h] + row] * value[h + 1, next_state[row]]
            value[h, s] = total


@jit
def _evaluate_mixed(row_start, next_state, stage_table, reward, prob, base, policy, value):
    horizon, n_states, n_actions = reward.shape
    for h in range(horizon - 1, -1, -1):
        for s in range(n_states):
            mixed = 0.0
            for a in range(n_actions):
                if policy[h, s, a] > 0.0:
                    pair = (stage_table[h] * n_states + s) * n_actions + a
                    total = reward[h, s, a]
                    for row in range(row_start[pair], row_start[pair + 1]):
                        total += prob[base[h] + row] * value[h + 1, next_state[row]]
                    mixed += policy[h, s, a] * total
            value[h, s] = mixed
