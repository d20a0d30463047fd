"""Optimism by chance: Gaussian bonuses (RRL-MNL, ORRL-MNL of Cho et al. 2024) and posterior samples.

With p at the estimate and xi^(1..M) ~ N(0, sigma^2 gram^-1), sigma = H beta, drawn once per stage and shared by all its
(s, a): Q = min(r + p.V + nu, H), V = max_a Q, where (all certain)

    LargestNormSampling   nu = max_m phihat . xi^(m),  phihat the reachable phi of largest |phi|_{gram^-1}
    OutcomeSampling       nu = sum_i p_i max_m (phi_i - mean) . xi^(m) + 3 H beta^2 max|phi|^2_{gram^-1}

Q is clipped from above only: a bonus may be negative.  The M samples lie side by side, so that the loops over them
vectorise; what does not depend on the stage is computed once where stages share a parameter.

Deviations: a pair with one outcome gets no bonus, since nothing about it is unknown; of equal norms (to 1e-12) the
first outcome is phihat.

The normal numbers are an argument: an agent draws them from its own stream, one per replica.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.law import coordinate, pair_columns, pair_law
from livarot.core.views import matrix, opened, part, view
from livarot.errors import bad, require_non_negative
from livarot.model.compiled import plan_model
from livarot.model.episodes import Estimate, Plan, check_estimate
from livarot.model.problem import Problem
from livarot.model.terms.after import after, blank_policy, blank_values, worth
from livarot.planning.steps import greedy, known_law, mean_at_start


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
    """W'z ~ N(0, gram^-1) from standard normals z (R, n, M, d); entry i of n has the Gram matrix of ``parameter[i]``.

    The result is (R, n, d, M): samples side by side.
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
    replicas, horizon = len(estimate.theta), problem.horizon
    if normals.shape[:2] != (replicas, horizon) or normals.ndim != 4 or normals.shape[3] != problem.dim:
        raise bad("normals", f"has shape {normals.shape}", cure=f"give ({replicas}, {horizon}, M, {problem.dim})")
    value, policy, start_value = blank_values(problem, replicas), blank_policy(problem, replicas), np.zeros(replicas)
    xi = correlated(problem, estimate.whiten, problem.stage_parameter, normals).reshape(replicas, horizon, -1)
    second = rule.constant * horizon * radius**2 if isinstance(rule, OutcomeSampling) else 0.0
    how = float(horizon * radius), isinstance(rule, OutcomeSampling), float(second)
    theta, whiten = np.ascontiguousarray(estimate.theta), np.ascontiguousarray(estimate.whiten)
    n, rows, samples = problem.max_reachable, problem.rows, normals.shape[2]
    size = problem.n_actions + problem.dim + n + samples + n * samples + rows.n_rows + rows.n_pairs
    numbers = np.empty(size + len(after(problem).state))
    memory = numbers, np.full((2, rows.n_pairs), -1)
    _backward(plan_model(problem), how, theta, whiten, xi, *memory, policy, value, start_value)
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


class _Room(NamedTuple):
    """Memory of a plan; what does not depend on the stage is kept from stage to stage."""

    q: Any  # (A,)
    local: Any  # (d,)
    norms: Any  # (U,) |phi_i|^2_{gram^-1}
    mean: Any  # (M,)
    dots: Any  # (U, M) phi_i . xi^(m)
    p: Any  # (rows,)
    largest: Any  # (pairs,) the largest norm
    ahead: Any  # (kinds,) what outcomes are worth, if that is not V
    hat: Any  # (pairs,) the outcome that has it
    known: Any  # (pairs,) for which (replica, parameter) these three were filled


@inner
def _room(model, dim, samples, numbers, whole):
    n_actions, n = model.reward.shape[2], model.most_out
    first = n_actions + dim + n
    last = first + samples + n * samples + len(model.graph.next_state)
    return _Room(
        part(numbers, 0, n_actions),
        part(numbers, n_actions, dim),
        part(numbers, n_actions + dim, n),
        part(numbers, first, samples),
        matrix(numbers, first + samples, n, samples),
        part(numbers, first + samples + n * samples, len(model.graph.next_state)),
        part(numbers, last, len(model.graph.pair_block)),
        part(numbers, last + len(model.graph.pair_block), len(model.after.state)),
        whole[0],
        whole[1],
    )


@jit
def _backward(model, how, theta, whiten, xi, numbers, whole, policy, value, start_value):
    m = opened(model)
    room = _room(m, theta.shape[2], xi.shape[2] // theta.shape[2], view(numbers), view(whole))
    replicas, horizon, n_actions = policy.shape[0], policy.shape[1], len(room.q)
    for r in range(replicas):
        own, values = view(policy)[r], view(value)[r]
        for h in range(horizon - 1, -1, -1):
            k, first = m.stage_parameter[h], m.stage_table[h] * m.reward.shape[1] * n_actions
            drawn = matrix(view(xi)[r, h], 0, theta.shape[2], len(room.mean))
            follow = worth(m.after, values[h + 1], room.ahead)
            for node in range(m.node_start[h], m.node_start[h + 1]):
                s = m.node_state[node]
                for a in range(n_actions):
                    pair, gain = first + s * n_actions + a, m.reward[h, s, a]
                    if m.graph.pair_block[pair] < 0:
                        hope = gain + known_law(m.graph, pair, follow)
                    else:
                        if room.known[pair] != r * theta.shape[1] + k:
                            room.known[pair] = r * theta.shape[1] + k
                            _remember(m.graph, pair, view(theta)[r, k], view(whiten)[r, k], room)
                        hope = _sampled_q(m.graph, pair, gain, follow, drawn, how, room)
                    room.q[a] = min(hope, float(horizon))
                values[h, s], own[h, s] = greedy(room.q)
        start_value[r] = mean_at_start(m.node_start, m.node_state, m.start, values[0])


@inner
def _remember(graph, pair, theta, whiten, room):
    """The law of a pair at the estimate, its largest |phi|^2_{gram^-1} and the outcome that has it."""
    row, n = graph.row_start[pair], graph.row_start[pair + 1] - graph.row_start[pair]
    pair_law(graph, pair, theta, room.local, part(room.p, row, n))
    _norms_squared(graph, pair, whiten, room.norms)
    room.hat[pair], room.largest[pair] = 0, room.norms[0]
    for i in range(1, n):
        if room.norms[i] > room.largest[pair] * (1.0 + 1e-12):
            room.hat[pair], room.largest[pair] = i, room.norms[i]


@inner
def _norms_squared(graph, pair, whiten, out):
    """|phi_i|^2_{gram^-1} of the outcomes of a pair; ``whiten`` is packed."""
    block, m = graph.pair_block[pair], pair_columns(graph, pair)
    size, n = graph.block_start[block + 1] - graph.block_start[block], graph.row_start[pair + 1] - graph.row_start[pair]
    w, cols = matrix(whiten, graph.gram_start[block], size, size), part(graph.cols, graph.col_start[pair], m)
    phi = matrix(graph.feat, graph.feat_start[pair], n, m)
    for i in range(n):
        out[i] = 0.0
        for k in range(size):
            total = 0.0
            for j in range(m):
                if cols[j] <= k:
                    total += w[k, cols[j]] * phi[i, j]
            out[i] += total * total


@inner
def _sampled_q(graph, pair, gain, follow, xi, how, room):
    """r + p.V + nu."""
    sigma, per_outcome, second = how
    row, n, samples = graph.row_start[pair], graph.row_start[pair + 1] - graph.row_start[pair], len(room.mean)
    hope = gain
    for i in range(n):
        hope += room.p[row + i] * follow[graph.next_state[row + i]]
    if not per_outcome:
        _projections(graph, pair, room.hat[pair], xi, room.dots[0])
        best = -math.inf
        for sample in range(samples):
            best = max(best, room.dots[0, sample])
        return hope + sigma * best
    for sample in range(samples):
        room.mean[sample] = 0.0
    for i in range(n):
        _projections(graph, pair, i, xi, room.dots[i])
        for sample in range(samples):
            room.mean[sample] += room.p[row + i] * room.dots[i, sample]
    for i in range(n):
        best = -math.inf
        for sample in range(samples):
            best = max(best, room.dots[i, sample] - room.mean[sample])
        hope += room.p[row + i] * sigma * best
    return hope + second * room.largest[pair]


@inner
def _projections(graph, pair, i, xi, dots):
    """dots[m] = phi_i . xi^(m)."""
    m = pair_columns(graph, pair)
    at = graph.feat_start[pair] + i * m
    for sample in range(len(dots)):
        dots[sample] = 0.0
    for j in range(m):
        entry, row = graph.feat[at + j], xi[coordinate(graph, pair, j)]
        for sample in range(len(dots)):
            dots[sample] += entry * row[sample]
