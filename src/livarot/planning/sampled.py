"""Optimism by chance: Gaussian bonuses (RRL-MNL, ORRL-MNL of Cho et al. 2024) and posterior samples.

With p at the estimate and xi^(1..M) ~ N(0, sigma^2 gram^-1), sigma = H beta, drawn once per stage and shared by all its
(s, a): Q = min(r + p.V + nu, H), V = max_a Q, where (all certain)

    LargestNormSampling   nu = max_m phihat . xi^(m),  phihat the reachable phi of largest |phi|_{gram^-1}
    OutcomeSampling       nu = sum_i p_i max_m (phi_i - mean) . xi^(m) + 3 H beta^2 max|phi|^2_{gram^-1}

Clipped from above only: a bonus may be negative.  The M samples lie side by side, so the loops over them vectorise;
what does not depend on the stage is computed once where stages share a parameter.

Deviations: a pair with one outcome gets no bonus, since nothing about it is unknown; of equal norms (to 1e-12) the
first outcome is phihat.

The normal numbers are an argument: an agent draws them from its own stream, one per replica.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from livarot.core.arguments import checked
from livarot.core.jit import jit
from livarot.core.mnl import choice_probabilities, local_parameter
from livarot.core.plan import Estimate, Plan, check_estimate
from livarot.core.problem import Problem
from livarot.core.ragged import FloatArray, Int32Array
from livarot.errors import bad, require_non_negative
from livarot.planning.backups import greedy, plain_backup


@dataclass(frozen=True)
class LargestNormSampling:
    """RRL-MNL: the best of M samples in the direction of the least known outcome."""


@checked
@dataclass(frozen=True)
class OutcomeSampling:
    """ORRL-MNL: every outcome has its own best sample, and a second-order term is added."""

    constant: float = 3.0  # of H beta^2 max|phi|^2


SamplingRule = LargestNormSampling | OutcomeSampling


def correlated(problem: Problem, whiten: FloatArray, parameter: Int32Array, normals: FloatArray) -> FloatArray:
    """W'z ~ N(0, gram^-1) from standard normals z (R, n, M, d), the n-th with the Gram matrix of ``parameter[n]``.

    Given as (R, n, d, M): samples side by side.
    """
    out = np.empty((*normals.shape[:2], problem.dim, normals.shape[2]))
    rows = problem.rows
    _correlated(rows.block_start, rows.block_coords, rows.gram_start, whiten, parameter, normals, out)
    return out


def posterior_sample(problem: Problem, estimate: Estimate, scale: float, normals: FloatArray) -> FloatArray:
    """theta ~ N(theta_hat, scale^2 gram^-1) from standard normals (R, K, d), as (R, K, d)."""
    check_estimate(problem, estimate)
    each = np.arange(problem.n_parameters, dtype=np.int32)
    return estimate.theta + scale * correlated(problem, estimate.whiten, each, normals[:, :, None, :])[..., 0]


def sampled_plan(problem: Problem, estimate: Estimate, radius: float, rule: SamplingRule, normals: FloatArray) -> Plan:
    """Plan for R replicas with beta = ``radius`` and standard normals (R, H, M, d), M >= 1."""
    require_non_negative("radius", radius)
    check_estimate(problem, estimate)
    replicas, horizon, n_states = len(estimate.theta), problem.horizon, problem.n_states
    if normals.shape[:2] != (replicas, horizon) or normals.ndim != 4 or normals.shape[3] != problem.dim:
        raise bad("normals", f"has shape {normals.shape}", cure=f"give ({replicas}, {horizon}, M, {problem.dim})")
    per_outcome = isinstance(rule, OutcomeSampling)
    value = np.zeros((replicas, horizon + 1, n_states))
    policy = np.zeros((replicas, horizon, n_states), dtype=np.int32)
    start_value = np.zeros(replicas)
    _backward(
        problem.rows.graph,
        problem.stage_table,
        problem.stage_parameter,
        *problem.nodes,
        problem.start,
        problem.reward,
        problem.max_reachable,
        estimate.theta,
        estimate.whiten,
        correlated(problem, estimate.whiten, problem.stage_parameter, normals),
        float(horizon * radius),
        per_outcome,
        float(rule.constant * horizon * radius**2) if isinstance(rule, OutcomeSampling) else 0.0,
        value,
        policy,
        start_value,
    )
    radii = np.full(replicas, float(radius))
    return Plan(policy, value, start_value, None, None, estimate.theta, estimate.gram, radii)


@jit
def _correlated(block_start, block_coords, gram_start, whiten, parameter, normals, out):
    replicas, n, samples, _ = normals.shape
    out[:] = 0.0
    for r in range(replicas):
        for h in range(n):
            w, xi = whiten[r, parameter[h]], out[r, h]
            for b in range(len(block_start) - 1):
                first, at = block_start[b], gram_start[b]
                size = block_start[b + 1] - first
                for i in range(size):
                    for j in range(i + 1):
                        entry, to = w[at + i * size + j], block_coords[first + j]
                        for m in range(samples):
                            xi[to, m] += entry * normals[r, h, m, block_coords[first + i]]


@jit
def norms_squared(graph, pair, whiten, out):
    """|phi_i|^2_{gram^-1} of the outcomes of a pair; ``whiten`` is packed."""
    block, m = graph.pair_block[pair], graph.col_count[pair]
    at, size = graph.gram_start[block], graph.block_start[block + 1] - graph.block_start[block]
    col, feat = graph.col_start[pair], graph.feat_start[pair]
    for i in range(graph.row_start[pair + 1] - graph.row_start[pair]):
        out[i] = 0.0
        for k in range(size):
            part = 0.0
            for j in range(m):
                if graph.cols[col + j] <= k:
                    part += whiten[at + k * size + graph.cols[col + j]] * graph.feat[feat + i * m + j]
            out[i] += part * part


@jit
def _projections(graph, pair, i, xi, dots):
    """dots[m] = phi_i . xi^(m)."""
    m, col, feat = graph.col_count[pair], graph.col_start[pair], graph.feat_start[pair]
    base = graph.block_start[graph.pair_block[pair]]
    for sample in range(len(dots)):
        dots[sample] = 0.0
    for j in range(m):
        entry, row = graph.feat[feat + i * m + j], xi[graph.block_coords[base + graph.cols[col + j]]]
        for sample in range(len(dots)):
            dots[sample] += entry * row[sample]


@jit
def _backward(
    graph, stage_table, stage_parameter, node_start, node_state, start, reward, most_out,
    theta, whiten, xi, sigma, per_outcome, second, value, policy, start_value,
):  # fmt: skip
    replicas, horizon, n_states = policy.shape
    n_actions, d, samples = reward.shape[2], theta.shape[2], xi.shape[3]
    clip = np.float64(horizon)
    q = np.empty((1, n_states * n_actions))
    local, norms = np.empty(d), np.empty(most_out)
    dots, mean = np.empty((most_out, samples)), np.empty(samples)
    p = np.empty(len(graph.next_state))  # of all rows, filled as pairs are met
    largest, hat = np.empty(len(graph.pair_block)), np.empty(len(graph.pair_block), dtype=np.int64)
    known = np.full(len(graph.pair_block), -1, dtype=np.int64)  # for which (replica, parameter) the above were filled
    for r in range(replicas):
        for h in range(horizon - 1, -1, -1):
            first_pair = stage_table[h] * n_states * n_actions
            k = stage_parameter[h]
            for node in range(node_start[h], node_start[h + 1]):
                for a in range(n_actions):
                    pair = first_pair + node_state[node] * n_actions + a
                    target = pair - first_pair
                    if graph.pair_block[pair] < 0:
                        plain_backup(
                            graph.row_start, graph.next_state, graph.offset, pair, first_pair, h,
                            value[r : r + 1], reward, q,
                        )  # fmt: skip
                        q[0, target] = min(q[0, target], clip)
                        continue
                    row = graph.row_start[pair]
                    n_out = graph.row_start[pair + 1] - row
                    if known[pair] != r * theta.shape[1] + k:
                        known[pair] = r * theta.shape[1] + k
                        m, block = graph.col_count[pair], graph.pair_block[pair]
                        local_parameter(
                            theta[r, k], 0, graph.block_coords, graph.block_start[block], graph.cols,
                            graph.col_start[pair], m, local,
                        )  # fmt: skip
                        choice_probabilities(
                            graph.offset, row, n_out, graph.feat, graph.feat_start[pair], m, local, p[row:]
                        )
                        norms_squared(graph, pair, whiten[r, k], norms)
                        hat[pair], largest[pair] = 0, norms[0]
                        for i in range(1, n_out):
                            if norms[i] > largest[pair] * (1.0 + 1e-12):
                                hat[pair], largest[pair] = i, norms[i]
                    hope = reward[h, node_state[node], a]
                    for i in range(n_out):
                        hope += p[row + i] * value[r, h + 1, graph.next_state[row + i]]
                    if per_outcome:
                        for sample in range(samples):
                            mean[sample] = 0.0
                        for i in range(n_out):
                            _projections(graph, pair, i, xi[r, h], dots[i])
                            for sample in range(samples):
                                mean[sample] += p[row + i] * dots[i, sample]
                        for i in range(n_out):
                            best = -math.inf
                            for sample in range(samples):
                                best = max(best, dots[i, sample] - mean[sample])
                            hope += p[row + i] * sigma * best
                        hope += second * largest[pair]
                    else:
                        _projections(graph, pair, hat[pair], xi[r, h], dots[0])
                        best = -math.inf
                        for sample in range(samples):
                            best = max(best, dots[0, sample])
                        hope += sigma * best
                    q[0, target] = min(hope, clip)
            greedy(node_start[h], node_start[h + 1], node_state, q, n_actions, h, value[r : r + 1], policy[r : r + 1])
        for node in range(node_start[0], node_start[1]):
            start_value[r] += start[node_state[node]] * value[r, 0, node_state[node]]
