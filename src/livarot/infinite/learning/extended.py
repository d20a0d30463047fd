"""Discounted extended value iteration over L1 balls around the estimated kernel, by the greedy solution.

    V(s) <- max_a ( r(s, a) + gamma max { q . V : q a distribution on the reachable set, |q - p_hat|_1 <= R(s, a) } )

The inner maximum moves min(R/2, 1 - p_best) of mass to the reachable state of largest value (not the most probable one)
and takes it from those of least value, the worst first (certain).  V begins at max r/(1 - gamma), above the answer, and
the operator is monotone: every round decreases V and stays above the fixed point, so that stopping early keeps
optimism.  After a round that changes no value by more than ``step``, V exceeds the fixed point by at most
gamma step/(1 - gamma), which is gamma step in units of the gain.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from livarot.core.arrays import BoolArray, FloatArray, Int32Array
from livarot.core.compiling.basics import new_floats, new_integers
from livarot.core.compiling.jit import jit
from livarot.core.mnl import choice_probabilities, local_parameter
from livarot.infinite.problem import InfiniteProblem
from livarot.model.episodes import Estimate
from livarot.planning.steps import greedy


class Rounds(NamedTuple):
    """How values are iterated: the discount, the change below which a round is the last one, and the most rounds."""

    discount: float
    step: float
    most: int


def _pays(problem: InfiniteProblem, rounds: Rounds) -> tuple[FloatArray, FloatArray]:
    """r(s, a), (S, A), and r(s, a, s')/gamma of every row, in units of the model's rewards."""
    extra = problem.scaled_outcome_reward
    more = np.zeros(problem.rows.n_rows) if extra is None else extra / rounds.discount
    return problem.scaled_pay(rounds.discount), more


def plan_replicas(
    problem: InfiniteProblem,
    estimate: Estimate,
    replan: BoolArray,
    radius: FloatArray,
    constant: float,
    rounds: Rounds,
    value: FloatArray,
    policy: Int32Array,
) -> None:
    """New values (R, S) and policies (R, S), in place, of the replicas in ``replan``.

    R(s, a) = min(constant * radius * max_i |phi_i|_{gram^-1}, 2): two distributions are never further apart than 2.
    """
    learned, pays = (estimate.theta, estimate.whiten), _pays(problem, rounds)
    _plan_replicas(problem.rows.graph, pays, *learned, replan, radius, constant, rounds, value, policy)
    value[replan] *= problem.terms.unit


@jit
def _plan_replicas(graph, pays, theta, whiten, replan, radius, constant, rounds, value, policy):
    prob, worth = new_floats(len(graph.next_state)), new_floats(len(graph.next_state))
    reward, extra = pays
    half = np.empty(reward.shape)
    order = new_integers(len(graph.next_state))
    for r in range(len(replan)):
        if replan[r]:
            fill_estimate(graph, theta[r, 0], whiten[r, 0], prob, half.reshape(-1))
            for s in range(half.shape[0]):
                for a in range(half.shape[1]):
                    half[s, a] = min(0.5 * constant * radius[r] * half[s, a], 1.0)
            iterate(graph, prob, half, reward, extra, rounds, (order, worth), value[r], policy[r])


@jit
def fill_estimate(graph, theta, whiten, prob, width):
    """Probabilities of all rows at theta, and the largest |W phi_i| of every pair."""
    row_start, feat, cols = graph.row_start, graph.feat, graph.cols
    widest = 1
    for pair in range(len(graph.col_count)):
        widest = max(widest, graph.col_count[pair])
    local = new_floats(widest)
    for pair in range(len(row_start) - 1):
        row, n = row_start[pair], row_start[pair + 1] - row_start[pair]
        block = graph.pair_block[pair]
        m = graph.col_count[pair] if block >= 0 else 0
        at, col = graph.feat_start[pair], graph.col_start[pair]
        width[pair] = 0.0
        if m > 0:
            base = graph.block_start[block]
            size, first = graph.block_start[block + 1] - base, graph.gram_start[block]
            local_parameter(theta, 0, graph.block_coords, base, cols, col, m, local)
            for i in range(n):
                square = 0.0
                for k in range(size):
                    part = 0.0
                    for j in range(m):
                        part += whiten[first + k * size + cols[col + j]] * feat[at + i * m + j]
                    square += part * part
                width[pair] = max(width[pair], math.sqrt(square))
        if n > 0:  # else the action does not exist
            choice_probabilities(graph.offset, row, n, feat, at, m, local, prob[row : row + n])


@jit
def optimistic_mean(prob, row, n, worth, half, order):
    """max of q . worth over distributions within 2 half of prob in L1; ``order`` keeps rows by worth between calls."""
    for i in range(1, n):  # insertion: nearly sorted already after the first round
        moved = order[row + i]
        own = worth[moved]
        j = i - 1
        while j >= 0 and worth[order[row + j]] > own:
            order[row + j + 1] = order[row + j]
            j -= 1
        order[row + j + 1] = moved
    best = order[row + n - 1]
    total = 0.0
    for i in range(row, row + n):
        total += prob[i] * worth[i]
    top = worth[best]
    left = min(half, 1.0 - prob[best])
    for i in range(n - 1):
        if left <= 0.0:
            break
        worst = order[row + i]
        taken = min(left, prob[worst])
        total += taken * (top - worth[worst])
        left -= taken
    return total


@jit
def iterate(graph, prob, half, reward, extra, rounds, room, value, policy):
    """Rounds from above until one changes no value by more than ``rounds.step``; returns their number.

    The rows of a pair are worth V(s') + ``extra``; a pair without rows has the reward -inf and is never taken.
    """
    n_states, n_actions = reward.shape
    order, worth = room
    row_start, next_state = graph.row_start, graph.next_state
    top = 0.0
    for s in range(n_states):
        for a in range(n_actions):
            high, pair = 0.0, s * n_actions + a
            for row in range(row_start[pair], row_start[pair + 1]):
                high = max(high, extra[row])
            top = max(top, reward[s, a] + rounds.discount * high)
    for s in range(n_states):
        value[s] = top / (1.0 - rounds.discount)
        policy[s] = 0
    for row in range(len(order)):
        order[row] = row
    new, q = new_floats(n_states), new_floats(n_actions)
    for done in range(rounds.most):
        change = 0.0
        for row in range(len(worth)):
            worth[row] = value[next_state[row]] + extra[row]
        for s in range(n_states):
            for a in range(n_actions):
                pair = s * n_actions + a
                row, n = row_start[pair], row_start[pair + 1] - row_start[pair]
                q[a] = reward[s, a]
                if n > 0:
                    q[a] += rounds.discount * optimistic_mean(prob, row, n, worth, half[s, a], order)
            best, policy[s] = greedy(q)
            new[s] = min(best, value[s])  # rounding must not raise what the mathematics lowers
            change = max(change, value[s] - new[s])
        for s in range(n_states):
            value[s] = new[s]
        if change <= rounds.step:
            return done + 1
    return rounds.most


@jit
def log_determinants(whiten, block_start, gram_start, out):
    """log det gram = -2 sum log W_ii of every replica, (R,)."""
    for r in range(len(out)):
        total = 0.0
        for b in range(len(block_start) - 1):
            n = block_start[b + 1] - block_start[b]
            for i in range(n):
                total -= 2.0 * math.log(whiten[r, 0, gram_start[b] + i * n + i])
        out[r] = total
