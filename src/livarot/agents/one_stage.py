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

import numpy as np

from livarot.core.jit import jit
from livarot.core.mnl import choice_probabilities, exp, local_parameter
from livarot.core.plan import Estimate, Plan, check_estimate
from livarot.core.problem import Problem
from livarot.errors import bad
from livarot.planning.bounds import box_bound, box_weights, rounding
from livarot.planning.lanes import FT, LOW, OUT, PEAK, PROBLEM, SLIP, WIDTH, Z0

GRADIENT_BOUND, UTILITY_BOX, RAISED_UTILITY = 0, 1, 2
TIE = 1e-9


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
    _plan(
        problem.rows.graph,
        problem.stage_table,
        problem.stage_parameter,
        *problem.nodes,
        problem.reward,
        problem.max_reachable,
        estimate.theta,
        estimate.whiten,
        float(radius),
        rule,
        float(constant),
        value,
        policy,
    )
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


@jit
def _plan(
    graph, stage_table, stage_parameter, node_start, node_state, reward, most_out,
    theta, whiten, radius, rule, constant, value, policy,
):  # fmt: skip
    replicas, horizon, n_states = policy.shape
    n_actions = reward.shape[2]
    widest = 1
    for b in range(len(graph.block_start) - 1):
        widest = max(widest, graph.block_start[b + 1] - graph.block_start[b])
    local, p, v = np.empty(widest), np.empty(most_out), np.empty(most_out)
    y = np.empty((most_out, widest))
    wo, wl = np.empty((most_out, OUT)), np.empty(PROBLEM)
    q = np.empty(n_actions)
    for r in range(replicas):
        for h in range(horizon - 1, -1, -1):
            k = stage_parameter[h]
            for node in range(node_start[h], node_start[h + 1]):
                s = node_state[node]
                best = -math.inf
                for a in range(n_actions):
                    pair = (stage_table[h] * n_states + s) * n_actions + a
                    row, n = graph.row_start[pair], graph.row_start[pair + 1] - graph.row_start[pair]
                    block, m = graph.pair_block[pair], graph.col_count[pair]
                    for i in range(n):
                        v[i] = value[r, h + 1, graph.next_state[row + i]]
                    if block < 0:
                        choice_probabilities(graph.offset, row, n, graph.feat, graph.feat_start[pair], 0, local, p)
                        expected = 0.0
                        for i in range(n):
                            expected += p[i] * v[i]
                    else:
                        at, col, base = graph.feat_start[pair], graph.col_start[pair], graph.block_start[block]
                        local_parameter(theta[r, k], 0, graph.block_coords, base, graph.cols, col, m, local)
                        choice_probabilities(graph.offset, row, n, graph.feat, at, m, local, p)
                        size = graph.block_start[block + 1] - base
                        whiten_rows(
                            whiten[r, k], graph.gram_start[block], size, graph.feat, at, graph.cols, col, n, m, y
                        )
                        if rule == GRADIENT_BOUND:
                            expected = gradient_bound(p, v, y, n, size, radius, constant)
                        else:
                            for i in range(n):
                                wo[i, Z0] = graph.offset[row + i]
                                for j in range(m):
                                    wo[i, Z0] += graph.feat[at + i * m + j] * local[j]
                            expected = utility_bound(v, y, n, size, m, radius, rule == UTILITY_BOX, wo, wl)
                    q[a] = reward[h, s, a] + expected
                    best = max(best, q[a])
                tie = best - TIE * (1.0 + abs(best))
                for a in range(n_actions):
                    if q[a] >= tie:
                        policy[r, h, s] = a
                        break
                value[r, h, s] = best


@jit
def whiten_rows(whiten, first, size, feat, at, cols, col, n, m, y):
    """y_i = W phi_i, i < n, in the coordinates of the pair's block."""
    for i in range(n):
        for row in range(size):
            part = 0.0
            for j in range(m):
                part += whiten[first + row * size + cols[col + j]] * feat[at + i * m + j]
            y[i, row] = part


@jit
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


@jit
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


@jit
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
