"""Optimistic backward induction, Eq. (definition optimistic reward), for all replicas at once.

    Q_h(s, a) = r_h(s, a) + max over C_h of E_theta[V_{h+1}],   V_h = max_a Q_h   (the paper prints argmax, E16)

with C_h the confidence ellipsoid of the stage's parameter.  A maximum over true kernels never exceeds H - h, so
nothing is clipped for the joint maximum; bonuses are clipped as their papers say.

The **second recursion** does the same on certified upper bounds (the box relaxation or the variance-aware bound,
whichever is smaller): its start value is >= V* whenever the true parameters lie in the sets, even where the inner
solver found a local maximum only.  The difference of the two start values bounds the optimism lost.

Only states that can be reached from the start are planned for.  Ties: the first action within 1e-9 (1 + |Q|).
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from livarot.core.jit import jit
from livarot.core.plan import Plan
from livarot.core.problem import Problem
from livarot.core.ragged import FloatArray
from livarot.errors import bad
from livarot.planning.batches import plan_batches
from livarot.planning.lanes import (
    BEST_F,
    BEST_GAP,
    BETA,
    LANES,
    SCALE,
    UPPER,
    V_UP,
    VALUE,
    Z0,
    V,
    column_workspace,
    joint_maximum,
    lane_workspace,
    mean_value,
    outcome_workspace,
    second_order_bonus,
    softmax_lanes,
    two_outcomes,
    upper_bound,
    variance_bound,
    whiten_each,
    whiten_shared,
)
from livarot.planning.rules import (
    JOINT_MAXIMUM,
    PLUG_IN,
    SECOND_ORDER_BONUS,
    VARIANCE_BONUS,
    JointMaximum,
    Rule,
)

TIE = 1e-9
STRADDLE = 32  # groups smaller than this share a batch with other replicas


def optimistic_plan(
    problem: Problem, theta: FloatArray, whiten: FloatArray, radius: FloatArray, rule: Rule | None = None
) -> Plan:
    """Plan for R replicas: estimates ``theta`` (R, K, d), whiteners (R, K, G) and radii (R,).

    ``whiten`` holds W with W'W = gram^-1, as :class:`livarot.estimation.omd.Estimate` keeps it.
    """
    rule = JointMaximum() if rule is None else rule
    if np.any(~(radius >= 0)):
        first = int(np.flatnonzero(~(radius >= 0))[0])
        raise bad("radius", f"is {radius[first]}", index=first, cure="radii are finite and >= 0")
    replicas = len(theta)
    batches = plan_batches(problem)
    shape = (replicas, problem.horizon + 1, problem.n_states)
    code = rule.code()
    certify = code.rule == JOINT_MAXIMUM and problem.max_reachable > 2
    value = np.zeros(shape)
    upper = np.zeros(shape) if certify else value
    policy = np.zeros((replicas, problem.horizon, problem.n_states), dtype=np.int32)
    gap = np.zeros(replicas)
    backward(
        problem.rows.graph,
        batches,
        problem.stage_table,
        problem.stage_parameter,
        *problem.nodes,
        problem.reward,
        theta,
        whiten,
        radius,
        code,
        certify,
        value,
        upper,
        policy,
        gap,
    )
    bounded = code.rule in (JOINT_MAXIMUM, VARIANCE_BONUS)
    start_upper = np.minimum(upper[:, 0] @ problem.start, problem.horizon) if bounded else None
    return Plan(policy, value, start_upper, gap if code.rule == JOINT_MAXIMUM else None)


@jit
def backward(
    graph, batches, stage_table, stage_parameter, node_start, node_state, reward,
    theta, whiten, radius, code, certify, value, upper, policy, gap,
):  # fmt: skip
    """Fill value, upper, policy and gap (see :func:`optimistic_plan`)."""
    replicas, horizon, n_states = policy.shape
    n_actions = reward.shape[2]
    rule, clip = code.rule, np.float64(horizon)
    stage_list, plain_start, plain = batches.stage_list, batches.plain_start, batches.plain
    group_start, groups, order = batches.group_start, batches.groups, batches.order
    row_start, next_state, offset, pair_block = graph.row_start, graph.next_state, graph.offset, graph.pair_block
    gram_start = graph.gram_start
    most_out, most_cols = 1, 1
    for group in range(len(groups)):
        most_out = max(most_out, groups[group, 2])
        most_cols = max(most_cols, groups[group, 3])
    wo, wc, wl = outcome_workspace(most_out), column_workspace(most_cols), lane_workspace()
    phi = np.empty((most_out * most_cols, LANES))
    y = np.empty((most_out * most_cols, LANES))
    w = np.empty((most_cols * most_cols, LANES))
    sub = np.empty((most_cols, most_cols))
    owner = np.empty(LANES, dtype=np.int64)
    spread = np.zeros(replicas)
    q = np.empty((replicas, n_states * n_actions))
    q_up = np.empty((replicas if certify else 0, n_states * n_actions))
    for h in range(horizon - 1, -1, -1):
        first_pair = stage_table[h] * n_states * n_actions
        k_param = stage_parameter[h]
        if h < horizon - 1:
            value_range(node_start[h + 1], node_start[h + 2], node_state, value, h + 1, spread)
        for item in range(plain_start[stage_list[h]], plain_start[stage_list[h] + 1]):
            for which in range(2 if certify else 1):
                plain_backup(
                    row_start, next_state, offset, plain[item], first_pair, h,
                    value if which == 0 else upper, reward, q if which == 0 else q_up,
                )  # fmt: skip
        for group in range(group_start[stage_list[h]], group_start[stage_list[h] + 1]):
            begin, end, n_out, m = groups[group, 0], groups[group, 1], groups[group, 2], groups[group, 3]
            if h == horizon - 1 and rule != SECOND_ORDER_BONUS:  # nothing follows: Q is the reward
                for item in range(begin, end):
                    pair = order[item] - first_pair
                    for r in range(replicas):
                        q[r, pair] = reward[h, pair // n_actions, pair % n_actions]
                        if certify:
                            q_up[r, pair] = q[r, pair]
                continue
            members = end - begin
            total = members * replicas
            done = 0
            while done < total:
                lanes = min(LANES, total - done)
                if members >= STRADDLE:
                    lanes = min(lanes, members - done % members)
                r_first = done // members
                one = groups[group, 4] == 1 and (done + lanes - 1) // members == r_first
                for lane in range(lanes):
                    r = (done + lane) // members
                    pair = order[begin + (done + lane) % members]
                    owner[lane] = r
                    wl[BETA, lane] = radius[r]
                    wl[SCALE, lane] = spread[r]
                    gather(graph, pair, n_out, m, theta, r, k_param, phi, wo, lane)
                    for i in range(n_out):
                        wo[V, i, lane] = value[r, h + 1, next_state[row_start[pair] + i]]
                        if certify:
                            wo[V_UP, i, lane] = upper[r, h + 1, next_state[row_start[pair] + i]]
                    if not one and rule != PLUG_IN:
                        gather_whitener(graph, pair, m, whiten, r, k_param, w, sub, lane)
                if one and rule != PLUG_IN:
                    at = gram_start[pair_block[order[begin]]]
                    whiten_shared(whiten[r_first, k_param], at, phi, y, n_out, m, lanes)
                elif rule != PLUG_IN:
                    whiten_each(w, phi, y, n_out, m, lanes)
                if rule == JOINT_MAXIMUM and n_out == 2:
                    for which in range(2 if certify else 1):
                        two_outcomes(y, wo, wl, V if which == 0 else V_UP, VALUE if which == 0 else UPPER, m, lanes)
                elif rule == JOINT_MAXIMUM:
                    joint_maximum(
                        code.solver, code.n_iter, code.tol, code.n_starts, code.wide, y, wo, wc, wl, n_out, m, lanes
                    )
                    for lane in range(lanes):
                        wl[VALUE, lane] = wl[BEST_F, lane]
                        if wl[SCALE, lane] > 0.0:
                            gap[owner[lane]] = max(gap[owner[lane]], wl[BEST_GAP, lane] / wl[SCALE, lane])
                    upper_bound(y, wo, wc, wl, V_UP, UPPER, n_out, m, lanes)
                else:
                    softmax_lanes(wo, Z0, n_out, lanes, wl)
                    if rule == VARIANCE_BONUS:
                        variance_bound(y, wo, wc, wl, V, VALUE, n_out, m, lanes)
                    elif rule == SECOND_ORDER_BONUS:
                        second_order_bonus(y, wo, wc, wl, clip, code.constant, n_out, m, lanes)
                    else:
                        mean_value(wo, V, n_out, lanes, wl, VALUE)
                for lane in range(lanes):
                    pair = order[begin + (done + lane) % members] - first_pair
                    gain = reward[h, pair // n_actions, pair % n_actions]
                    target = gain + wl[VALUE, lane]
                    if rule == SECOND_ORDER_BONUS:
                        target = min(max(target, 0.0), clip)
                    q[owner[lane], pair] = target
                    if certify:
                        q_up[owner[lane], pair] = gain + wl[UPPER, lane]
                done += lanes
        greedy(node_start[h], node_start[h + 1], node_state, q, n_actions, h, value, policy)
        if certify:
            for r in range(replicas):
                for node in range(node_start[h], node_start[h + 1]):
                    s = node_state[node]
                    high = q_up[r, s * n_actions]
                    for a in range(1, n_actions):
                        high = max(high, q_up[r, s * n_actions + a])
                    upper[r, h, s] = high


@jit
def value_range(first, last, node_state, value, h, spread):
    """max - min of V_h over the reachable states, per replica."""
    for r in range(len(spread)):
        high, low = -math.inf, math.inf
        for node in range(first, last):
            high = max(high, value[r, h, node_state[node]])
            low = min(low, value[r, h, node_state[node]])
        spread[r] = high - low


@jit
def greedy(first, last, node_state, q, n_actions, h, value, policy):
    """V = max_a Q and the first action within the tie tolerance of it."""
    for r in range(len(q)):
        for node in range(first, last):
            s = node_state[node]
            high = q[r, s * n_actions]
            for a in range(1, n_actions):
                high = max(high, q[r, s * n_actions + a])
            value[r, h, s] = high
            tie = high - TIE * (1.0 + abs(high))
            a = 0
            while q[r, s * n_actions + a] < tie:
                a += 1
            policy[r, h, s] = a


@jit
def plain_backup(row_start, next_state, offset, pair, first_pair, h, value, reward, q):
    """Q of a pair whose outcome law is known: one outcome, or probabilities from the offsets alone."""
    row, end = row_start[pair], row_start[pair + 1]
    local = pair - first_pair
    n_actions = reward.shape[2]
    gain = reward[h, local // n_actions, local % n_actions]
    top = offset[row]
    for i in range(row + 1, end):
        top = max(top, offset[i])
    for r in range(len(q)):
        if end - row == 1:
            q[r, local] = gain + value[r, h + 1, next_state[row]]
            continue
        total, mean = 0.0, 0.0
        for i in range(row, end):
            weight = math.exp(offset[i] - top)
            total += weight
            mean += weight * value[r, h + 1, next_state[i]]
        q[r, local] = gain + mean / total


@jit
def gather(graph, pair, n_out, m, theta, r, k, phi, wo, lane):
    """Features and centre logits of a pair into a lane."""
    row, feat, cols = graph.row_start[pair], graph.feat_start[pair], graph.col_start[pair]
    base = graph.block_start[graph.pair_block[pair]]
    for i in range(n_out):
        wo[Z0, i, lane] = graph.offset[row + i]
    for j in range(m):
        weight = theta[r, k, graph.block_coords[base + graph.cols[cols + j]]]
        for i in range(n_out):
            value = graph.feat[feat + i * m + j]
            phi[i * m + j, lane] = value
            wo[Z0, i, lane] += value * weight


@jit
def gather_whitener(graph, pair, m, whiten, r, parameter, w, sub, lane):
    """The whitener of the pair's own columns into a lane: (m, m) lower triangular with W'W = (gram^-1)[cols, cols]."""
    block = graph.pair_block[pair]
    at = graph.gram_start[block]
    size = graph.block_start[block + 1] - graph.block_start[block]
    if m == size:
        for i in range(m):
            for j in range(i + 1):
                w[i * m + j, lane] = whiten[r, parameter, at + i * m + j]
        return
    cols = graph.col_start[pair]
    for i in range(m):  # the pair's part of gram^-1 = W'W
        for j in range(i + 1):
            ci, cj = graph.cols[cols + i], graph.cols[cols + j]
            total = 0.0
            for k in range(max(ci, cj), size):
                total += whiten[r, parameter, at + k * size + ci] * whiten[r, parameter, at + k * size + cj]
            sub[i, j] = total
    for k in range(m - 1, -1, -1):  # sub = W'W from the last row up
        pivot = math.sqrt(max(sub[k, k], 1e-300))
        w[k * m + k, lane] = pivot
        for j in range(k):
            w[k * m + j, lane] = sub[k, j] / pivot
        for i in range(k):
            for j in range(i + 1):
                sub[i, j] -= w[k * m + i, lane] * w[k * m + j, lane]
