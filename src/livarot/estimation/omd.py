"""The online mirror descent estimate with a general step size eta (algorithms section 0, certain).

With g and Hs the gradient and Hessian of the episode's loss at a stage,

    Ht          = Hcal + eta Hs(theta_t)
    theta'      = theta_t - eta Ht^-1 g                     minimises <g, theta> + |theta - theta_t|^2_Ht / (2 eta)
    theta_{t+1} = projection of theta' on Theta in the Ht norm (not the Euclidean one)
    Hcal       += Hs(theta_{t+1})                           the Hessian at the NEW point

eta = 1 is the update the paper prints (reading E15).  Theta is the B-ball, or an ellipsoid, or both intersected.
Per stage and episode: O(U d^2 + d^3) with d the size of the pair's block.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from livarot.core.jit import jit
from livarot.core.linalg import cholesky, invert_lower, packed_whitener, project_packed, quadratic, solve_cholesky
from livarot.core.mnl import add_hessian, pair_probabilities
from livarot.core.plan import Episodes
from livarot.core.problem import Problem
from livarot.core.ragged import FloatArray

SLACK = 1e-12
DYKSTRA_ROUNDS = 500


class Estimate(NamedTuple):
    """theta with its Gram matrix, per replica and parameter; ``whiten`` is W with W'W = gram^-1.

    W is recomputed from ``gram`` whenever a block changes, so it cannot drift away from it.
    """

    theta: FloatArray  # (R, K, d)
    gram: FloatArray  # (R, K, G) packed
    whiten: FloatArray  # (R, K, G) packed, lower triangular blocks


class ParameterSet(NamedTuple):
    """Theta: the ball |theta| <= bound, intersected with |theta - center|_shape <= radius where radius is finite."""

    bound: float
    center: FloatArray  # (R, K, d)
    shape: FloatArray  # (R, K, G)
    radius: FloatArray  # (R,)


def ball(problem: Problem, bound: float, n_replicas: int) -> ParameterSet:
    """The B-ball alone; an infinite bound is no constraint at all."""
    return ParameterSet(bound, np.zeros((0, 0, 0)), np.zeros((0, 0, 0)), np.full(n_replicas, math.inf))


def initial_estimate(problem: Problem, n_replicas: int, reg: float) -> Estimate:
    """theta = 0 and gram = reg I."""
    shape = (n_replicas, problem.n_parameters)
    gram = np.ascontiguousarray(np.broadcast_to(problem.rows.pack_identity(reg), (*shape, problem.rows.gram_size)))
    whiten = np.ascontiguousarray(
        np.broadcast_to(problem.rows.pack_identity(1.0 / math.sqrt(reg)), (*shape, problem.rows.gram_size))
    )
    return Estimate(np.zeros((*shape, problem.dim)), gram, whiten)


def whitened(problem: Problem, theta: FloatArray, gram: FloatArray) -> Estimate:
    """An estimate from theta (R, K, d) and packed Gram matrices (R, K, G)."""
    whiten = np.empty_like(gram)
    rows = problem.rows
    low = np.empty(int(np.diff(rows.block_start).max()) ** 2)
    for r, k in np.ndindex(*gram.shape[:2]):
        packed_whitener(gram[r, k], rows.block_start, rows.gram_start, whiten[r, k], low)
    return Estimate(theta, gram, whiten)


def omd_update(
    problem: Problem, estimate: Estimate, episodes: Episodes, step_size: float, within: ParameterSet
) -> Estimate:
    """One OMD step per stage with the transitions of one episode per replica, in stage order."""
    new = Estimate(estimate.theta.copy(), estimate.gram.copy(), estimate.whiten.copy())
    _update(
        problem.rows.graph,
        problem.stage_table,
        problem.stage_parameter,
        problem.n_states,
        problem.n_actions,
        problem.max_reachable,
        *episodes,
        float(step_size),
        within,
        *new,
    )
    return new


def project_estimate(problem: Problem, estimate: Estimate, within: ParameterSet) -> Estimate:
    """theta projected on Theta in the norm of its Gram matrix."""
    theta = estimate.theta.copy()
    scratch = np.empty(10 * problem.dim + 4 * problem.rows.gram_size)
    for r, k in np.ndindex(*theta.shape[:2]):
        project_parameter(
            problem.rows.graph, -1, np.empty(0), estimate.gram[r, k], within, r, k, theta[r, k], scratch
        )
    return estimate._replace(theta=theta)


@jit
def _update(
    graph, stage_table, stage_parameter, n_states, n_actions, most_out,
    states, actions, choices, eta, within, theta, gram, whiten,
):  # fmt: skip
    replicas, horizon = actions.shape
    d = theta.shape[2]
    size = gram.shape[2]
    widest = 1
    for b in range(len(graph.block_start) - 1):
        widest = max(widest, graph.block_start[b + 1] - graph.block_start[b])
    p = np.empty(most_out)
    mean = np.empty(widest)
    metric = np.empty(widest * widest)
    low = np.empty(widest * widest)
    step = np.empty(widest)
    scratch = np.empty(0)
    for r in range(replicas):
        for h in range(horizon):
            s, a, y = states[r, h], actions[r, h], choices[r, h]
            pair = (stage_table[h] * n_states + s) * n_actions + a
            block = graph.pair_block[pair]
            if block < 0:  # nothing to learn from a certain outcome
                continue
            k = stage_parameter[h]
            base, at = graph.block_start[block], graph.gram_start[block]
            n = graph.block_start[block + 1] - base
            m, cols, feat = graph.col_count[pair], graph.col_start[pair], graph.feat_start[pair]
            own = theta[r, k]
            pair_probabilities(graph, pair, own, p)
            for i in range(n * n):
                metric[i] = gram[r, k, at + i]
            add_hessian(graph, pair, p, mean, eta, metric, 0)
            for i in range(n):
                step[i] = 0.0
            for j in range(m):
                step[graph.cols[cols + j]] = mean[j] - graph.feat[feat + y * m + j]
            cholesky(metric, 0, n, low, 0)
            solve_cholesky(low, 0, n, step, 0)
            for i in range(n):
                own[graph.block_coords[base + i]] -= eta * step[i]
            total = 0.0
            for i in range(d):
                total += own[i] * own[i]
            bounded = math.isfinite(within.radius[r])
            if total > within.bound * within.bound * (1.0 + SLACK) or bounded:
                if len(scratch) == 0:
                    scratch = np.empty(10 * d + 4 * size)
                project_parameter(graph, block, metric, gram[r, k], within, r, k, own, scratch)
            pair_probabilities(graph, pair, own, p)
            add_hessian(graph, pair, p, mean, 1.0, gram[r, k], at)
            cholesky(gram[r, k], at, n, low, 0)
            invert_lower(low, 0, n, whiten[r, k], at)


@jit
def project_parameter(graph, block, metric, gram, within, r, k, own, scratch):
    """Project theta on Theta in the norm of ``gram`` with ``block`` replaced by ``metric``.

    A projection on one of the two sets that lies in the other one is the projection on both; when both constraints
    bind, Dykstra's alternating projections (in the same norm) converge to it.  Rounds: 0 the ball alone, 1 the
    ellipsoid alone, from 2 on Dykstra's with the ball at even ones.
    """
    d, size = len(own), len(gram)
    full = scratch[4 * d + 2 * size : 4 * d + 3 * size]
    shape = scratch[4 * d + 3 * size : 4 * d + 4 * size]
    vectors = scratch[4 * d + 4 * size :]
    origin, target, x, out = vectors[0:d], vectors[d : 2 * d], vectors[2 * d : 3 * d], vectors[3 * d : 4 * d]
    carry = vectors[4 * d : 6 * d]
    bounded = math.isfinite(within.radius[r])
    for i in range(size):
        full[i] = gram[i]
    if block >= 0:
        at = graph.gram_start[block]
        for i in range(graph.gram_start[block + 1] - at):
            full[at + i] = metric[i]
    for i in range(d):
        origin[i] = own[graph.block_coords[i]]
        x[i] = origin[i]
    for i in range(2 * d):
        carry[i] = 0.0
    for turn in range(2 * DYKSTRA_ROUNDS):
        on_ball = turn % 2 == 0
        mine = 0 if on_ball else d
        for i in range(size):
            shape[i] = 0.0 if on_ball else within.shape[r, k, i]
        if on_ball:
            for b in range(len(graph.block_start) - 1):
                n = graph.block_start[b + 1] - graph.block_start[b]
                for i in range(n):
                    shape[graph.gram_start[b] + i * n + i] = 1.0
        for i in range(d):
            if turn == 1 or turn == 2:  # the ellipsoid alone, and the beginning of Dykstra's rounds
                x[i] = origin[i]
            target[i] = x[i] + carry[mine + i]
            if not on_ball:
                target[i] -= within.center[r, k, graph.block_coords[i]]
        radius = within.bound if on_ball else within.radius[r]
        project_packed(full, shape, graph.block_start, graph.gram_start, target, radius, out, scratch)
        moved, length = 0.0, 0.0
        for i in range(d):
            if not on_ball:
                target[i] += within.center[r, k, graph.block_coords[i]]
                out[i] += within.center[r, k, graph.block_coords[i]]
            if turn >= 2:
                carry[mine + i] = target[i] - out[i]
            moved += (out[i] - x[i]) ** 2
            length += out[i] ** 2
            x[i] = out[i]
            own[graph.block_coords[i]] = out[i]
        if turn == 0:
            away = 0.0
            if bounded:
                away = quadratic(
                    within.shape[r, k], graph.block_start, graph.gram_start, graph.block_coords, own, within.center[r, k]
                )
            if away <= within.radius[r] * (1.0 + SLACK):
                return
        elif turn == 1:
            if length <= within.bound * within.bound * (1.0 + SLACK):
                return
        elif turn > 2 and moved <= 1e-27 * length:
            return
