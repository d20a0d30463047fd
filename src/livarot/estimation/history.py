"""Everything seen so far, and the ridge maximum likelihood estimate of it, for R replicas.

    theta_hat = argmin  sum over all transitions of -log p + reg/2 |theta|^2

The loss depends on the data only through how often each outcome of a pair was seen, so those counts are kept instead of
a log of episodes: the same estimate, and neither memory nor time grows with the number of episodes once every pair has
been met.  Newton's method starts at the last estimate and takes two to four steps as a rule; a step costs
O(n U d^2 + d^3) with n the distinct pairs of the parameter: at most the transitions so far, and at most the pairs of
the model.  (The papers' algorithms cost O(t) per episode and keep O(t) numbers.)
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import logging
import math
from typing import NamedTuple

import numpy as np

from livarot.core.jit import jit
from livarot.core.linalg import dot, factor, packed_whitener, solve_packed
from livarot.core.mnl import add_columns, choice_hessian
from livarot.core.plan import Episodes, Estimate, check_episodes, check_shape
from livarot.core.problem import Problem
from livarot.core.ragged import FloatArray, IntArray
from livarot.errors import bad
from livarot.estimation.mle import sample_probabilities

logger = logging.getLogger(__name__)
FIRST_ROOM = 8


class History(NamedTuple):
    """The distinct pairs of every parameter and how often each outcome followed; room C doubles when it is short."""

    pairs: IntArray  # (R, K, C)
    counts: FloatArray  # (R, K, C, U)
    used: IntArray  # (R, K) how much of C


def empty_history(problem: Problem, n_replicas: int) -> History:
    """Nothing seen yet."""
    used = np.zeros((n_replicas, problem.n_parameters), dtype=np.int64)
    room = (*used.shape, FIRST_ROOM)
    return History(np.zeros(room, dtype=np.int64), np.zeros((*room, problem.max_reachable)), used)


def record(problem: Problem, history: History, episodes: Episodes) -> History:
    """The history with one more episode per replica; transitions of pairs with one outcome are left out."""
    episodes = check_episodes(problem, episodes)
    check_history(problem, history, len(episodes.states))
    room = history.pairs.shape[2]
    short = int(history.used.max()) + (problem.horizon if problem.shared_parameter else 1) - room
    new = History(history.pairs.copy(), history.counts.copy(), history.used.copy())
    if short > 0 and room < problem.rows.n_pairs:
        extra = max(room, short)
        new = new._replace(
            pairs=np.pad(history.pairs, ((0, 0), (0, 0), (0, extra))),
            counts=np.pad(history.counts, ((0, 0), (0, 0), (0, extra), (0, 0))),
        )
    _record(
        problem.rows.graph,
        problem.stage_table,
        problem.stage_parameter,
        problem.n_states,
        problem.n_actions,
        *episodes,
        *new,
    )
    return new


def fit_history(
    problem: Problem, theta: FloatArray, history: History, reg: float, tol: float = 1e-10, max_iter: int = 100
) -> Estimate:
    """The ridge estimate of every replica and parameter, started at ``theta`` (R, K, d), which is left as it is.

    ``gram`` is the Hessian of the objective at the estimate, ridge included.  ``tol`` bounds the Newton decrement.
    """
    check_history(problem, history, len(theta))
    check_shape("theta", theta, (len(theta), *problem.theta_shape))
    new = Estimate(theta.copy(), *(np.empty((*theta.shape[:2], problem.rows.gram_size)) for _ in range(2)))
    failed = _fit(problem.rows.graph, *history, float(reg), float(tol), int(max_iter), *new)
    if failed:
        logger.warning("Newton's method stopped after %d steps in %d of the fits", max_iter, failed)
    return new


def check_history(problem: Problem, history: History, replicas: int) -> None:
    """Refuse the history of another problem, or of other replicas: kernels index with its pairs."""
    shape = (replicas, problem.n_parameters)
    room = history.pairs.shape[2:]
    check_shape("history.used", history.used, shape)
    check_shape("history.pairs", history.pairs, (*shape, *room[:1]))
    check_shape("history.counts", history.counts, (*shape, *room[:1], problem.max_reachable))
    last = problem.rows.n_pairs - 1
    if history.pairs.size and not 0 <= history.pairs.min() <= history.pairs.max() <= last:
        raise bad("history.pairs", f"has other pairs than 0..{last}", cure="use a state that was made for this problem")
    if history.used.min() < 0 or history.used.max() > room[0]:
        raise bad("history.used", f"says that more than {room[0]} pairs are kept, or less than none")


@jit
def _record(graph, stage_table, stage_parameter, n_states, n_actions, states, actions, choices, pairs, counts, used):
    for r in range(actions.shape[0]):
        for h in range(actions.shape[1]):
            pair = (stage_table[h] * n_states + states[r, h]) * n_actions + actions[r, h]
            if graph.pair_block[pair] >= 0:
                k, at = stage_parameter[h], 0
                while at < used[r, k] and pairs[r, k, at] != pair:
                    at += 1
                pairs[r, k, at] = pair
                counts[r, k, at, choices[r, h]] += 1.0
                used[r, k] = max(used[r, k], at + 1)


@jit
def _fit(graph, pairs, counts, used, reg, tol, max_iter, theta, gram, whiten):
    """Damped Newton steps for every (replica, parameter); the number of those that did not reach ``tol``."""
    d, size = theta.shape[2], gram.shape[2]
    work, part = np.empty((4, max(d, counts.shape[3]))), np.empty(size)
    step, trial, low = np.empty(d), np.empty(d), np.empty(size)
    failed = 0
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            n, own, hessian = used[r, k], theta[r, k], gram[r, k]
            gradient = work[0]
            current = _derivatives(graph, pairs[r, k], counts[r, k], n, reg, own, work, part, hessian)
            reached = False
            for _ in range(max_iter):
                factor(hessian, graph.block_start, graph.gram_start, low)
                for i in range(d):  # in block order
                    step[i] = -gradient[graph.block_coords[i]]
                solve_packed(low, graph.block_start, graph.gram_start, step)
                slope = 0.0
                for i in range(d):
                    slope += step[i] * gradient[graph.block_coords[i]]
                if math.sqrt(max(-slope, 0.0)) <= tol:
                    reached = True
                    break
                length = 1.0
                for _ in range(60):
                    for i in range(d):
                        trial[graph.block_coords[i]] = own[graph.block_coords[i]] + length * step[i]
                    value = _derivatives(graph, pairs[r, k], counts[r, k], n, reg, trial, work, part, hessian)
                    # a decrease below the rounding of the objective cannot be seen: trust the Newton step
                    if value <= current + 1e-4 * length * slope or -slope <= 1e-13 * (1.0 + abs(current)):
                        break
                    length *= 0.5
                own[:] = trial
                current = value
            failed += 0 if reached else 1
            packed_whitener(hessian, graph.block_start, graph.gram_start, whiten[r, k], low)
    return failed


@jit
def _derivatives(graph, pairs, counts, n, reg, theta, work, part, hessian):
    """The objective; its gradient into work[0] and its packed Hessian, from one pass over the counts."""
    gradient, local, p, mean = work[0], work[1], work[2], work[3]
    for i in range(len(theta)):
        gradient[i] = reg * theta[i]
    for i in range(len(hessian)):
        hessian[i] = 0.0
    for b in range(len(graph.block_start) - 1):
        size = graph.block_start[b + 1] - graph.block_start[b]
        for i in range(size):
            hessian[graph.gram_start[b] + i * size + i] = reg
    total = 0.5 * reg * dot(theta, theta, len(theta))
    for at in range(n):
        pair = pairs[at]
        n_out = sample_probabilities(graph, pair, theta, local, p)
        m, col, feat = graph.col_count[pair], graph.col_start[pair], graph.feat_start[pair]
        block = graph.pair_block[pair]
        base, size = graph.block_start[block], graph.block_start[block + 1] - graph.block_start[block]
        choice_hessian(graph.feat, feat, n_out, m, p, mean, part)
        weight = 0.0
        for i in range(n_out):
            weight += counts[at, i]
            if counts[at, i] > 0.0:
                total -= counts[at, i] * math.log(p[i])
        add_columns(part, graph.cols, col, m, weight, hessian, graph.gram_start[block], size)
        for j in range(m):
            slope = weight * mean[j]
            for i in range(n_out):
                slope -= counts[at, i] * graph.feat[feat + i * m + j]
            gradient[graph.block_coords[base + graph.cols[col + j]]] += slope
    return total
