"""Weighted maximum likelihood with a ridge, by damped Newton steps, on R^d or on the B-ball.

    minimise  sum_n w_n (-log p_{pair_n}(choice_n; theta)) + reg/2 |theta|^2

A Newton step is theta - Hess^-1 grad; on the ball it is that point projected in the Hessian's norm (the minimiser of
the quadratic model over the ball), then a backtracking line search on the objective.  The certificate is the
(projected) Newton decrement.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from livarot.core.jit import jit
from livarot.core.linalg import dot, factor, project_packed, solve_packed
from livarot.core.mnl import add_columns, choice_hessian, choice_probabilities, local_parameter
from livarot.core.problem import Problem
from livarot.core.ragged import FloatArray, Int32Array, IntArray
from livarot.errors import bad, require_finite, require_non_negative


class MaximumLikelihood(NamedTuple):
    """The estimate, the Hessian of the objective there (packed, ridge included) and how it ended."""

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
    tol: float = 1e-10,
    max_iter: int = 200,
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
    theta = np.zeros(problem.dim)
    hessian = np.zeros(rows.gram_size)
    objective, decrement, n_iter, converged = _newton(
        rows.graph,
        pairs,
        choices,
        w,
        float(reg),
        float(bound),
        float(tol),
        int(max_iter),
        problem.max_reachable,
        theta,
        hessian,
    )
    return MaximumLikelihood(theta, hessian, objective, decrement, n_iter, converged)


@jit
def sample_probabilities(graph, pair, theta, local, p):
    """p of a pair at theta; returns the number of its outcomes."""
    block, m = graph.pair_block[pair], graph.col_count[pair]
    local_parameter(theta, 0, graph.block_coords, graph.block_start[block], graph.cols, graph.col_start[pair], m, local)
    row = graph.row_start[pair]
    n = graph.row_start[pair + 1] - row
    choice_probabilities(graph.offset, row, n, graph.feat, graph.feat_start[pair], m, local, p)
    return n


@jit
def _objective(graph, pairs, choices, weights, reg, theta, local, p):
    total = 0.5 * reg * dot(theta, theta, len(theta))
    for i in range(len(pairs)):
        if graph.pair_block[pairs[i]] >= 0:
            sample_probabilities(graph, pairs[i], theta, local, p)
            total -= weights[i] * math.log(p[choices[i]])
    return total


@jit
def derivatives(graph, pairs, choices, weights, reg, theta, local, p, mean, part, gradient, hessian):
    """Gradient (d,) and packed Hessian of the objective."""
    for i in range(len(theta)):
        gradient[i] = reg * theta[i]
    for i in range(len(hessian)):
        hessian[i] = 0.0
    for b in range(len(graph.block_start) - 1):
        n = graph.block_start[b + 1] - graph.block_start[b]
        for i in range(n):
            hessian[graph.gram_start[b] + i * n + i] = reg
    for i in range(len(pairs)):
        pair = pairs[i]
        block = graph.pair_block[pair]
        if block < 0:
            continue
        n = sample_probabilities(graph, pair, theta, local, p)
        m, cols, feat = graph.col_count[pair], graph.col_start[pair], graph.feat_start[pair]
        size = graph.block_start[block + 1] - graph.block_start[block]
        choice_hessian(graph.feat, feat, n, m, p, mean, part)
        add_columns(part, graph.cols, cols, m, weights[i], hessian, graph.gram_start[block], size)
        for j in range(m):
            coordinate = graph.block_coords[graph.block_start[block] + graph.cols[cols + j]]
            gradient[coordinate] += weights[i] * (mean[j] - graph.feat[feat + choices[i] * m + j])


@jit
def _newton(graph, pairs, choices, weights, reg, bound, tol, max_iter, most_out, theta, hessian):
    """Improve ``theta`` in place and leave the Hessian there: (objective, decrement, steps, converged)."""
    d = len(theta)
    size = len(hessian)
    p, local, mean, gradient = np.empty(most_out), np.empty(d), np.empty(d), np.empty(d)
    part = np.empty(d * d)
    step, trial, target, out = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    low, work = np.empty(size), np.empty(4 * d + 2 * size)
    identity = np.zeros(size)
    for b in range(len(graph.block_start) - 1):
        n = graph.block_start[b + 1] - graph.block_start[b]
        for i in range(n):
            identity[graph.gram_start[b] + i * n + i] = 1.0
    current = _objective(graph, pairs, choices, weights, reg, theta, local, p)
    decrement, converged, rounds = math.inf, False, 0
    for rounds in range(1, max_iter + 1):  # noqa: B007 (the count is returned)
        derivatives(graph, pairs, choices, weights, reg, theta, local, p, mean, part, gradient, hessian)
        factor(hessian, graph.block_start, graph.gram_start, low)
        for i in range(d):  # block order from here
            step[i] = -gradient[graph.block_coords[i]]
        solve_packed(low, graph.block_start, graph.gram_start, step)
        if math.isfinite(bound):
            for i in range(d):
                target[i] = theta[graph.block_coords[i]] + step[i]
            project_packed(hessian, identity, graph.block_start, graph.gram_start, target, bound, out, work)
            for i in range(d):
                step[i] = out[i] - theta[graph.block_coords[i]]
        slope = 0.0
        for i in range(d):
            slope += step[i] * gradient[graph.block_coords[i]]
        decrement = math.sqrt(max(-slope, 0.0))
        if decrement <= tol:
            converged = True
            break
        length = 1.0
        for _ in range(60):
            for i in range(d):
                trial[graph.block_coords[i]] = theta[graph.block_coords[i]] + length * step[i]
            value = _objective(graph, pairs, choices, weights, reg, trial, local, p)
            # a decrease below the rounding of the objective cannot be seen: trust the Newton step
            if value <= current + 1e-4 * length * slope or -slope <= 1e-13 * (1.0 + abs(current)):
                break
            length *= 0.5
        for i in range(d):
            theta[i] = trial[i]
        current = value
    derivatives(graph, pairs, choices, weights, reg, theta, local, p, mean, part, gradient, hessian)
    return current, decrement, rounds, converged
