"""Weighted maximum likelihood with a ridge, by damped Newton steps, on R^d or on the B-ball.

    minimise  sum_n w_n (-log p_{pair_n}(choice_n; theta)) + reg/2 |theta|^2

The loss depends on the data only through the total weight ("count") of each outcome of a pair.  A Newton step is
theta - Hess^-1 grad; on the ball it is that point projected in the Hessian's norm (the minimiser of the quadratic model
over the ball), then a backtracking line search on the objective.  The certificate is the (projected) Newton decrement.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from livarot.core.arrays import FloatArray, Int32Array, IntArray
from livarot.core.compiling.basics import new_floats
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.law import expectation, log_sum_exp, logits, mean_row, scaled, softmax, spread
from livarot.core.linalg import (
    Blocks,
    add,
    block_of,
    copy,
    dot,
    factor,
    identity,
    make_room,
    project_packed,
    solve_packed,
)
from livarot.core.views import matrix, opened, part, view
from livarot.errors import bad, require_finite, require_non_negative
from livarot.estimation.seen import learn_model
from livarot.model.problem import Problem

TOL = 1e-10  # of the Newton decrement
MAX_ITER = 200
IMPOSSIBLE = 1e-300  # probabilities stop at e^-700


class MaximumLikelihood(NamedTuple):
    """The estimate, the Hessian of the objective there (packed, ridge included) and how the solver ended."""

    theta: FloatArray  # (d,)
    hessian: FloatArray  # (G,)
    objective: float
    decrement: float  # sqrt(step' Hess step) of the last step
    n_iter: int
    converged: bool


def fit_mle(
    problem: Problem,
    pairs: IntArray,
    choices: Int32Array,
    weights: FloatArray | None = None,
    *,
    reg: float,
    bound: float = math.inf,
) -> MaximumLikelihood:
    """Fit one theta to observed choices: pair numbers (n,), chosen outcomes (n,) and weights (n,)."""
    require_non_negative("reg", reg)
    n = len(pairs)
    w = np.ones(n) if weights is None else require_finite("weights", weights)
    require_non_negative("weights", w.min(initial=np.inf) if w.size else 0.0)
    if len(choices) != n or len(w) != n:
        raise bad("choices", f"{n} pairs, {len(choices)} choices and {len(w)} weights")
    rows = problem.rows
    pairs, choices = np.asarray(pairs, dtype=np.int64), np.asarray(choices, dtype=np.int32)
    wrong = (pairs < 0) | (pairs >= rows.n_pairs) | (choices < 0)
    wrong |= choices >= rows.outcomes[np.where(wrong, 0, pairs)]
    if wrong.any():
        first = int(wrong.argmax())
        told = f"outcome {choices[first]} of pair {pairs[first]} is not one of the problem's"
        raise bad("choices", told, index=first, count=int(wrong.sum()))
    theta, hessian = np.zeros((1, 1, problem.dim)), np.zeros((1, 1, rows.gram_size))
    data, limit = _counted(problem, pairs, choices, w), float(bound) if math.isfinite(bound) else None
    ((objective, decrement, steps),) = fit_counts(problem, data, reg, TOL, MAX_ITER, limit, theta, hessian)[0]
    return MaximumLikelihood(theta[0, 0], hessian[0, 0], objective, decrement, int(steps), bool(decrement <= TOL))


def hessian_at(problem: Problem, pairs: IntArray, choices: Int32Array, theta: FloatArray) -> FloatArray:
    """The packed Hessian of the loss at theta (d,), without a ridge."""
    point, hessian = theta.reshape(1, 1, -1).copy(), np.zeros((1, 1, problem.rows.gram_size))
    fit_counts(problem, _counted(problem, pairs, choices, np.ones(len(pairs))), 0.0, 0.0, 0, None, point, hessian)
    return np.asarray(hessian[0, 0])


Counted = tuple[IntArray, FloatArray, IntArray]


def _counted(problem: Problem, pairs: IntArray, choices: Int32Array, weights: FloatArray) -> Counted:
    """Distinct pairs that say something about theta (1, 1, C), the weights of their outcomes (1, 1, C, U), C (1, 1)."""
    teaches = problem.rows.pair_block[pairs] >= 0
    distinct, place = np.unique(pairs[teaches], return_inverse=True)
    counts = np.zeros((1, 1, len(distinct), problem.max_reachable))
    np.add.at(counts[0, 0], (place, choices[teaches]), weights[teaches])
    return distinct.reshape(1, 1, -1), counts, np.full((1, 1), len(distinct))


def fit_counts(
    problem: Problem,
    data: Counted,
    reg: float,
    tol: float,
    max_iter: int,
    bound: float | None,
    theta: FloatArray,
    hessian: FloatArray,
) -> FloatArray:
    """Improve theta (R, K, d) and fill the Hessians (R, K, G), in place; gives objective, decrement, steps (R, K, 3).

    ``data`` are pairs (R, K, C), counts (R, K, C, U) and how many of the C places are used (R, K).
    """
    report = np.empty((*theta.shape[:2], 3))
    limit = math.inf if bound is None else float(bound)
    _fit(learn_model(problem), *data, (float(reg), float(tol)), int(max_iter), limit, theta, hessian, report)
    return report


class _Data(NamedTuple):
    """What was seen of one parameter."""

    pairs: Any  # (n,)
    counts: Any  # (n, U)
    reg: Any


class _Point(NamedTuple):
    """A parameter in the order of the blocks, with the objective's derivatives and what they are made of."""

    x: Any  # (d,)
    gradient: Any  # (d,)
    hessian: Any  # (G,)
    local: Any  # (longest,)
    p: Any
    mean: Any
    weight: Any
    scaled: Any
    away: Any  # (longest^2,)


@jit
def _fit(bundle, pairs, counts, used, settings, max_iter, bound, theta, gram, report):
    """Newton's method for every (replica, parameter)."""
    model, d = opened(bundle), theta.shape[2]
    memory = new_floats(8, d), new_floats(3, gram.shape[2]), new_floats(5, model.longest), new_floats(model.longest**2)
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            data = _Data(part(view(pairs)[r, k], 0, used[r, k]), view(counts[r, k]), settings[0])
            own = view(theta)[r, k], view(gram)[r, k]
            ended = _newton(model.graph, data, own, settings[1], max_iter, bound, memory)
            report[r, k, 0], report[r, k, 1], report[r, k, 2] = ended


@inner
def _newton(graph, data, own, tol, max_iter, bound, memory):
    """Improve a parameter; gives (objective, decrement, steps)."""
    (theta, hessian), blocks, order = own, Blocks(graph.block_start, graph.gram_start), graph.block_coords
    rows, squares, local = view(memory[0]), view(memory[1]), view(memory[2])
    point = _Point(rows[0], rows[1], hessian, local[0], local[1], local[2], local[3], local[4], view(memory[3]))
    step, start, room = rows[2], rows[3], make_room(squares, (rows[5], rows[6], rows[7]))
    for i in range(len(theta)):
        point.x[i] = theta[order[i]]
    current, decrement, steps = derivatives(graph, blocks, data, point), math.inf, 0
    while steps < max_iter:
        steps += 1
        factor(blocks, point.hessian, room.low)
        for i in range(len(step)):
            step[i] = -point.gradient[i]
        solve_packed(blocks, room.low, step)
        if bound < math.inf:
            keep_on_ball(blocks, point, bound, step, rows[4], squares[2], room)
        slope = dot(step, point.gradient)
        decrement = math.sqrt(max(-slope, 0.0))
        if decrement <= tol:
            break
        copy(point.x, start)
        length = 1.0
        for _ in range(60):
            add(start, length, step, point.x)
            value = derivatives(graph, blocks, data, point)
            # a decrease below the rounding of the objective cannot be seen: trust the Newton step
            if value <= current + 1e-4 * length * slope or -slope <= 1e-13 * (1.0 + abs(current)):
                break
            length *= 0.5
        current = value
    for i in range(len(theta)):
        theta[order[i]] = point.x[i]
    return current, decrement, float(steps)


@inner
def keep_on_ball(blocks, point, bound, step, target, unit, room):
    """step <- the step to the projection of x + step on the ball, in the norm of the Hessian."""
    identity(blocks, 1.0, unit)
    add(point.x, 1.0, step, target)
    project_packed(blocks, point.hessian, unit, target, bound, step, room)
    add(step, -1.0, point.x, step)


@inner
def derivatives(graph, blocks, data, point):
    """The objective; its gradient and packed Hessian into ``point``, from one pass over the counts."""
    for i in range(len(point.x)):
        point.gradient[i] = data.reg * point.x[i]
    identity(blocks, data.reg, point.hessian)
    total = 0.5 * data.reg * dot(point.x, point.x)
    for n in range(len(data.pairs)):
        pair = data.pairs[n]
        block, m = graph.pair_block[pair], graph.col_count[pair]
        first, column, begin = blocks.first[block], graph.col_start[pair], graph.row_start[pair]
        u = graph.row_start[pair + 1] - begin
        phi, p, mean = matrix(graph.feat, graph.feat_start[pair], u, m), part(point.p, 0, u), part(point.mean, 0, m)
        away, hessian = matrix(point.away, 0, m, u), block_of(blocks, point.hessian, block)
        for j in range(m):
            point.local[j] = point.x[first + graph.cols[column + j]]
        logits(part(graph.offset, begin, u), phi, point.local, p)
        softmax(p, p)
        mean_row(p, phi, mean)
        weight = 0.0
        for i in range(u):
            weight += data.counts[n, i]
            if data.counts[n, i] > 0.0 and p[i] > IMPOSSIBLE:
                total -= data.counts[n, i] * math.log(p[i])
            elif data.counts[n, i] > 0.0:  # exp stops falling there, and the loss must not
                z = part(point.away, 0, u)
                logits(part(graph.offset, begin, u), phi, point.local, z)
                total += data.counts[n, i] * (log_sum_exp(z) - z[i])
        row = part(point.scaled, 0, spread(p, phi, mean, point.weight, away))
        for j in range(m):
            cj = graph.cols[column + j]
            slope = weight * mean[j]
            for i in range(u):
                slope -= data.counts[n, i] * phi[i, j]
            point.gradient[first + cj] += slope
            scaled(point.weight, away[j], row)
            for k in range(j + 1):
                ck = graph.cols[column + k]
                hessian[cj, ck] += weight * expectation(row, away[k])
                hessian[ck, cj] = hessian[cj, ck]
    return total
