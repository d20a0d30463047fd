"""Closed-form optimism for problems with one informative stage: bandits, and decisions embedded in certain moves.

If only one stage has anything to learn, what its outcomes are worth is known exactly, and a plan needs one upper bound
per (s, a) of that stage and no recursion over uncertain values.  With W the whitener of the Gram matrix, y_i = W phi_i,
p = p(theta_hat), v the values of the outcomes and vbar = p . v:

``GRADIENT_BOUND``  p.v + beta |sum_i p_i (v_i - vbar) y_i| + c R beta^2 lambda_max(Y Y'),  R = |v|_2    (OFUL-MLogB)
``UTILITY_BOX``     max over |z_i - phi_i . theta_hat| <= beta |y_i| of softmax(z) . v                   (OFU-MNL++)
``RAISED_UTILITY``  softmax(z) . v at z_i = phi_i . theta_hat + beta |y_i|: no bound in general          (as printed)

All three are at most max_i v_i.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from livarot.core.inner import inner
from livarot.core.jit import jit
from livarot.core.lanes import exp
from livarot.core.law import expectation, pair_columns, pair_law
from livarot.core.model import plan_model
from livarot.core.plan import Estimate, Plan, check_estimate
from livarot.core.problem import Problem
from livarot.core.views import matrix, opened, part, view
from livarot.errors import bad
from livarot.planning.bounds import box_bound, box_weights, rounding
from livarot.planning.lanes import FT, LOW, OUT, PEAK, PROBLEM, SLIP, WIDTH, Z0
from livarot.planning.steps import greedy

GRADIENT_BOUND, UTILITY_BOX, RAISED_UTILITY = 0, 1, 2


def informative_stage(problem: Problem, agent: str) -> int:
    """The one stage where a reachable state has something to learn; our error if there are more, or none."""
    if "informative stages" not in problem.cache:
        rows, per_table = problem.rows, problem.n_states * problem.n_actions
        teaches = np.zeros(problem.horizon, dtype=np.bool_)
        for h in range(problem.horizon):
            first = int(problem.stage_table[h]) * per_table
            blocks = rows.pair_block[first : first + per_table].reshape(problem.n_states, -1)
            teaches[h] = (blocks[problem.reachable[h]] >= 0).any()
        problem.cache["informative stages"] = np.flatnonzero(teaches)
    found = problem.cache["informative stages"]
    if len(found) != 1:
        several = f"{len(found)} stages have something to learn"
        raise bad(
            "problem",
            f"{several if len(found) else 'no stage has anything to learn'}, {agent} is defined for one",
            index=int(found[1]) if len(found) else None,
            cure="use livarot.envs.mnl_bandit, or an agent for MDPs such as Livarot()",
        )
    return int(found[0])


def one_stage_plan(problem: Problem, estimate: Estimate, radius: float, rule: int, constant: float, agent: str) -> Plan:
    """The optimistic policy of every replica; ``upper`` is certified unless the rule is RAISED_UTILITY."""
    informative_stage(problem, agent)
    check_estimate(problem, estimate)
    replicas = len(estimate.theta)
    value = np.zeros((replicas, problem.horizon + 1, problem.n_states))
    policy = np.zeros((replicas, problem.horizon, problem.n_states), dtype=np.int32)
    n, n_actions = problem.max_reachable, problem.n_actions
    memory = np.empty((n + 1) * (problem.dim + 2) + n_actions), np.empty((n, OUT)), np.empty(PROBLEM)
    theta, whiten = np.ascontiguousarray(estimate.theta), np.ascontiguousarray(estimate.whiten)
    _plan(plan_model(problem), (float(radius), float(constant)), rule, theta, whiten, *memory, policy, value)
    start_value = value[:, 0] @ problem.start
    return Plan(
        policy,
        value,
        start_value,
        None if rule == RAISED_UTILITY else start_value,
        None,
        estimate.theta,
        estimate.gram,
        np.full(replicas, radius),
    )


class _Room(NamedTuple):
    """Memory of one pair."""

    local: Any
    p: Any  # (U,)
    v: Any  # (U,) what the outcomes are worth
    y: Any  # (U, n) whitened features
    q: Any  # (A,)


@inner
def _room(numbers, n, size, n_actions):
    return _Room(
        part(numbers, 0, size),
        part(numbers, size, n),
        part(numbers, size + n, n),
        matrix(numbers, size + 2 * n, n, size),
        part(numbers, size + 2 * n + n * size, n_actions),
    )


@jit
def _plan(model, how, rule, theta, whiten, numbers, wo, wl, policy, value):
    m = opened(model)
    room = _room(view(numbers), m.most_out, m.most_size, m.reward.shape[2])
    horizon, n_states, n_actions = m.reward.shape
    for r in range(len(policy)):
        own, values = view(policy)[r], view(value)[r]
        for h in range(horizon - 1, -1, -1):
            k = m.stage_parameter[h]
            for node in range(m.node_start[h], m.node_start[h + 1]):
                s = m.node_state[node]
                for a in range(n_actions):
                    pair = (m.stage_table[h] * n_states + s) * n_actions + a
                    hope = _hope(
                        m.graph, pair, view(theta)[r, k], view(whiten)[r, k], values[h + 1], how, rule, room, wo, wl
                    )
                    room.q[a] = m.reward[h, s, a] + hope
                values[h, s], own[h, s] = greedy(room.q)


@inner
def _hope(graph, pair, theta, whiten, follow, how, rule, room, wo, wl):
    """The upper bound of E[V] of a pair; E[V] itself where the law is known."""
    row, n = graph.row_start[pair], graph.row_start[pair + 1] - graph.row_start[pair]
    p, v, block, m = part(room.p, 0, n), part(room.v, 0, n), graph.pair_block[pair], pair_columns(graph, pair)
    for i in range(n):
        v[i] = follow[graph.next_state[row + i]]
    pair_law(graph, pair, theta, room.local, p)
    if block < 0:
        return expectation(p, v)
    size, phi = (
        graph.block_start[block + 1] - graph.block_start[block],
        matrix(graph.feat, graph.feat_start[pair], n, m),
    )
    whiten_rows(
        matrix(whiten, graph.gram_start[block], size, size), part(graph.cols, graph.col_start[pair], m), phi, room.y
    )
    radius, constant = how
    if rule == GRADIENT_BOUND:
        return gradient_bound(p, v, room.y, n, size, radius, constant)
    for i in range(n):
        z = graph.offset[row + i]
        for j in range(m):
            z += phi[i, j] * room.local[j]
        wo[i, Z0] = z
    return utility_bound(v, room.y, n, size, m, radius, rule == UTILITY_BOX, wo, wl)


@inner
def whiten_rows(whiten, cols, phi, y):
    """y_i = W phi_i in the coordinates of the pair's block."""
    n, m = phi.shape
    for i in range(n):
        for row in range(len(whiten)):
            total = 0.0
            for j in range(m):
                total += whiten[row, cols[j]] * phi[i, j]
            y[i, row] = total


@inner
def gradient_bound(p, v, y, n, size, radius, constant):
    """p.v + beta |sum p_i (v_i - vbar) y_i| + c |v|_2 beta^2 lambda_max(Y Y'), at most max v."""
    mean, top, length = 0.0, -math.inf, 0.0
    for i in range(n):
        mean += p[i] * v[i]
        top = max(top, v[i])
        length += v[i] * v[i]
    slope = 0.0
    for j in range(size):
        part = 0.0
        for i in range(n):
            part += p[i] * (v[i] - mean) * y[i, j]
        slope += part * part
    second = constant * math.sqrt(length) * radius * radius * largest_eigenvalue(y, n, size)
    return min(mean + radius * math.sqrt(slope) + second, top)


@inner
def largest_eigenvalue(y, n, size):
    """lambda_max(Y Y') of the first n rows."""
    square = np.empty((n, n))
    for i in range(n):
        for k in range(i + 1):
            part = 0.0
            for j in range(size):
                part += y[i, j] * y[k, j]
            square[i, k] = part
            square[k, i] = part
    return max(np.linalg.eigvalsh(square)[n - 1], 0.0)


@inner
def utility_bound(v, y, n, size, m, radius, box, wo, wl):
    """softmax(z) . v with every logit z in wo[Z0] raised by beta |y_i|, or its maximum over the box of these
    half-widths, rounded up (:func:`livarot.planning.bounds.box_bound`)."""
    worth, out = np.empty((n, 1)), np.empty(1)
    low, high, logit, reach, top = math.inf, -math.inf, 0.0, 0.0, -math.inf
    for i in range(n):
        square = 0.0
        for j in range(size):
            square += y[i, j] * y[i, j]
        width = radius * math.sqrt(square)
        wo[i, WIDTH] = width
        worth[i, 0] = v[i]
        low, high = min(low, v[i]), max(high, v[i])
        logit, reach, top = max(logit, abs(wo[i, Z0])), max(reach, width), max(top, wo[i, Z0] + width)
    total, weighted = 0.0, 0.0
    for i in range(n):
        weight = exp(wo[i, Z0] + wo[i, WIDTH] - top)
        total += weight
        weighted += weight * v[i]
    if not box:
        return weighted / total
    wl[FT], wl[LOW], wl[PEAK], wl[SLIP] = low, low, high, rounding(n, m, logit, reach)
    out[0] = high
    box_weights(wo, wl, n, m, 1)
    box_bound(worth, wo, wl, out, n, 1)
    return out[0]
