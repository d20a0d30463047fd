"""Optimistic backward induction, Eq. (definition optimistic reward), for all replicas at once.

    Q_h(s, a) = r_h(s, a) + max over C_h of E_theta[V_{h+1}],   V_h = max_a Q_h   (the paper prints argmax, E16)

with C_h the confidence ellipsoid of the stage's parameter.  A maximum over true kernels never exceeds H - h, so
nothing is clipped for the joint maximum; bonuses are clipped as their papers say.

The **second recursion** does the same on certified upper bounds (the box relaxation or the variance-aware bound,
whichever is smaller): its start value is >= V* whenever the true parameters lie in the sets, even where the inner
solver found a local maximum only.  The difference of the two start values bounds the optimism lost.

Where every stage has the same features and the same parameter, and there are many, what does not depend on V is
computed once per plan (:mod:`livarot.planning.repeated`).

Only states that can be reached from the start are planned for.  Ties: the first action within 1e-9 (1 + |Q|).
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np

from livarot.core.jit import jit
from livarot.core.lanes64 import LANES
from livarot.core.plan import Estimate, Plan, check_estimate
from livarot.core.problem import Problem
from livarot.core.ragged import FloatArray, Int32Array
from livarot.errors import bad, require_finite, require_non_negative
from livarot.planning.backups import greedy, own_whitener, plain_backup, two_apart, two_apart_part, value_range
from livarot.planning.batches import plan_batches
from livarot.planning.bounds import max_norm_bonus, second_order_bonus, upper_bound, variance_bound
from livarot.planning.climb import joint_maximum
from livarot.planning.lanes import (
    BEST_F,
    BEST_GAP,
    BETA,
    COL,
    FT,
    OUT,
    PROBLEM,
    SCALE,
    SHIFTED_POWER,
    Z0,
    centre_probabilities,
    centre_value,
    centre_widths,
    two_differences,
    two_outcomes,
    whiten_each,
    whiten_shared,
)
from livarot.planning.repeated import repeated_backward, repeats
from livarot.planning.rules import (
    CLIP_Q,
    CLIP_V,
    JOINT_MAXIMUM,
    MAX_NORM_BONUS,
    PLUG_IN,
    SECOND_ORDER_BONUS,
    VARIANCE_BONUS,
    JointMaximum,
    Rule,
    RuleCode,
    check_rule,
)
from livarot.planning.three import SIZE, three_maximum

_DEFAULT = JointMaximum()


def optimistic_plan(problem: Problem, estimate: Estimate, radius: float | FloatArray, rule: Rule | None = None) -> Plan:
    """Plan for R replicas over the ellipsoids |theta - estimate.theta|_gram <= radius, (R,) or one for all."""
    check_estimate(problem, estimate)
    if rule is not None:
        check_rule(rule)
    code = (_DEFAULT if rule is None else rule).code()
    replicas = len(estimate.theta)
    radii = _radii(radius, replicas)
    certify = code.rule == JOINT_MAXIMUM and problem.max_reachable > 2
    shape = (replicas, problem.horizon + 1, problem.n_states)
    value = np.zeros(shape)
    upper = np.zeros(shape) if certify else value
    policy = np.zeros((replicas, problem.horizon, problem.n_states), dtype=np.int32)
    report = np.zeros((3, replicas))  # start value, its upper bound, gap
    if repeats(problem) and code.rule != MAX_NORM_BONUS and code.clip != CLIP_V:  # that loop has neither
        repeated_backward(problem, estimate.theta, estimate.whiten, radii, code, certify, value, upper, policy, report)
    else:
        _backward(problem, estimate, radii, code, certify, value, upper, policy, report)
    bounded = code.rule == JOINT_MAXIMUM or code.rule == VARIANCE_BONUS
    optimistic = code.rule != PLUG_IN
    return Plan(
        policy,
        value,
        report[0],
        report[1] if bounded else None,
        report[2] if code.rule == JOINT_MAXIMUM else None,
        estimate.theta if optimistic else None,
        estimate.gram if optimistic else None,
        radii if optimistic else None,
    )


def _radii(radius: Any, replicas: int) -> FloatArray:
    """One radius per replica, as kernels know them: float64, finite, >= 0."""
    if isinstance(radius, float | int):
        return np.full(replicas, require_non_negative("radius", radius))
    radii = require_finite("radius", radius)
    radii = np.full(replicas, float(radii)) if radii.ndim == 0 else np.ascontiguousarray(radii)
    wrong = np.flatnonzero(radii < 0.0)
    if radii.shape != (replicas,) or len(wrong):
        first = int(wrong[0]) if len(wrong) else None
        raise bad("radius", f"{radii}", index=first, count=len(wrong), cure=f"give {replicas} numbers >= 0")
    return radii


def _backward(
    problem: Problem,
    estimate: Estimate,
    radii: FloatArray,
    code: RuleCode,
    certify: bool,
    value: FloatArray,
    upper: FloatArray,
    policy: Int32Array,
    report: FloatArray,
) -> None:
    backward(
        problem.rows.graph,
        plan_batches(problem),
        problem.stage_table,
        problem.stage_parameter,
        *problem.nodes,
        problem.start,
        problem.reward,
        estimate.theta,
        estimate.whiten,
        radii,
        code,
        certify,
        value,
        upper,
        policy,
        report,
    )


@jit
def backward(
    graph, batches, stage_table, stage_parameter, node_start, node_state, start, reward,
    theta, whiten, radius, code, certify, value, upper, policy, report,
):  # fmt: skip
    """Fill value, upper, policy and the report (see :func:`optimistic_plan`)."""
    replicas, horizon, n_states = policy.shape
    n_actions = reward.shape[2]
    rule, clip = code.rule, np.float64(horizon)
    gains = reward.reshape((horizon, n_states * n_actions))
    stage_list, plain_start, plain = batches.stage_list, batches.plain_start, batches.plain
    group_start, groups, order = batches.group_start, batches.groups, batches.order
    features, feature_start = batches.features, batches.feature_start
    pack_offset, pack_next = batches.offset, batches.next_state
    row_start, next_state, offset, pair_block = graph.row_start, graph.next_state, graph.offset, graph.pair_block
    feats, feat_start, cols, col_start = graph.feat, graph.feat_start, graph.cols, graph.col_start
    block_start, coords, gram_start = graph.block_start, graph.block_coords, graph.gram_start
    most_out, most_cols = 1, 1
    for group in range(len(groups)):
        most_out = max(most_out, groups[group, 2])
        most_cols = max(most_cols, groups[group, 3])
    wo, wc, wl = np.zeros((most_out, OUT)), np.zeros((most_cols, COL)), np.zeros(PROBLEM)
    wo2, wc2, wl2 = np.zeros((most_out, OUT)), np.zeros((most_cols, COL)), np.zeros(PROBLEM)
    v, v_up, v2 = np.zeros((most_out, LANES)), np.zeros((most_out, LANES)), np.zeros((most_out, LANES))
    loose, y = np.empty((most_out * most_cols, LANES)), np.empty((most_out * most_cols, LANES))
    y2 = np.empty((most_out * most_cols, LANES))
    w = np.empty((most_cols * most_cols, LANES))
    t, t2 = np.zeros(SIZE), np.zeros(SIZE)
    best, box = np.zeros(LANES), np.zeros(LANES)
    sub, step = np.empty((most_cols, most_cols)), np.empty(most_cols)
    owner, target = np.empty(LANES, dtype=np.int64), np.empty(LANES, dtype=np.int64)
    spread = np.zeros(replicas)
    q = np.empty((replicas, n_states * n_actions))
    q_up = np.empty((replicas if certify else 0, n_states * n_actions))
    for h in range(horizon - 1, -1, -1):
        first_pair = stage_table[h] * n_states * n_actions
        k_param = stage_parameter[h]
        if h < horizon - 1 and certify:  # the scale of the solver's tolerance
            value_range(node_start[h + 1], node_start[h + 2], node_state, value, h + 1, spread)
        for item in range(plain_start[stage_list[h]], plain_start[stage_list[h] + 1]):
            for which in range(2 if certify else 1):
                plain_backup(
                    row_start, next_state, offset, plain[item], first_pair, h,
                    value if which == 0 else upper, reward, q if which == 0 else q_up,
                )  # fmt: skip
            if code.clip == CLIP_Q:
                for r in range(replicas):
                    local = plain[item] - first_pair
                    q[r, local] = min(max(q[r, local], 0.0), clip)
        for group in range(group_start[stage_list[h]], group_start[stage_list[h] + 1]):
            begin, end, n_out, m, pack = groups[group]
            if h == horizon - 1 and rule < SECOND_ORDER_BONUS:  # nothing follows: Q is the reward
                for item in range(begin, end):
                    pair = order[item] - first_pair
                    for r in range(replicas):
                        q[r, pair] = gains[h, pair]
                        if certify:
                            q_up[r, pair] = q[r, pair]
                continue
            members = end - begin
            total = members * replicas
            done = 0
            while done < total:
                lanes = min(LANES, total - done)
                direct = False
                if pack >= 0:  # one replica, many pairs, laid out beforehand
                    r = done // members
                    batch = done % members // LANES
                    lanes = min(lanes, members - done % members)
                    size = n_out * m * LANES
                    first = feature_start[group] + batch * size
                    phi = features[first : first + size].reshape((n_out * m, LANES))
                    at = pack + batch * n_out * LANES
                    block = pair_block[order[begin]]
                    for lane in range(lanes):
                        owner[lane] = r
                        target[lane] = order[begin + batch * LANES + lane] - first_pair
                        wl[BETA + lane] = radius[r]
                        wl[SCALE + lane] = spread[r]
                    for i in range(n_out):
                        for lane in range(lanes):
                            wo[i, Z0 + lane] = pack_offset[at + i * LANES + lane]
                            v[i, lane] = value[r, h + 1, pack_next[at + i * LANES + lane]]
                        if certify:
                            for lane in range(lanes):
                                v_up[i, lane] = upper[r, h + 1, pack_next[at + i * LANES + lane]]
                        for j in range(m):
                            weight = theta[r, k_param, coords[block_start[block] + j]]
                            row = i * m + j
                            for lane in range(lanes):
                                wo[i, Z0 + lane] += phi[row, lane] * weight
                    if rule != PLUG_IN:
                        whiten_shared(whiten[r, k_param], gram_start[block], phi, y, n_out, m, lanes)
                else:  # pair after pair, all replicas of a pair side by side: its features are read once
                    lane = 0
                    while lane < lanes:
                        pair = order[begin + (done + lane) // replicas]
                        r = (done + lane) % replicas
                        last = min(lanes, lane + replicas - r)
                        shift = r - lane
                        row, feat, col = row_start[pair], feat_start[pair], col_start[pair]
                        block = pair_block[pair]
                        base, at = block_start[block], gram_start[block]
                        size = block_start[block + 1] - base
                        for into in range(lane, last):
                            owner[into] = into + shift
                            target[into] = pair - first_pair
                            wl[BETA + into] = radius[into + shift]
                            wl[SCALE + into] = spread[into + shift]
                        for i in range(n_out):
                            follow = next_state[row + i]
                            for into in range(lane, last):
                                v[i, into] = value[into + shift, h + 1, follow]
                            if certify:
                                for into in range(lane, last):
                                    v_up[i, into] = upper[into + shift, h + 1, follow]
                        direct = n_out == 2 and rule == JOINT_MAXIMUM
                        if direct:
                            for j in range(m):
                                step[j] = feats[feat + j] - feats[feat + m + j]
                            apart = offset[row] - offset[row + 1]
                            if m == size:
                                two_apart(
                                    theta, whiten, k_param, coords, base, at, step, apart, m, shift, wl, lane, last
                                )
                            else:
                                for into in range(lane, last):
                                    own_whitener(cols, col, m, whiten, into + shift, k_param, at, size, w, sub, into)
                                    own = theta[into + shift, k_param]
                                    two_apart_part(own, coords, base, cols, col, step, apart, m, w, wl, into)
                            lane = last
                            continue
                        for i in range(n_out):
                            for into in range(lane, last):
                                wo[i, Z0 + into] = offset[row + i]
                            for j in range(m):
                                entry = feats[feat + i * m + j]
                                coordinate = coords[base + cols[col + j]]
                                for into in range(lane, last):
                                    loose[i * m + j, into] = entry
                                    wo[i, Z0 + into] += entry * theta[into + shift, k_param, coordinate]
                        if rule != PLUG_IN and m == size:
                            for i in range(m):
                                for j in range(i + 1):
                                    for into in range(lane, last):
                                        w[i * m + j, into] = whiten[into + shift, k_param, at + i * m + j]
                        elif rule != PLUG_IN:
                            for into in range(lane, last):
                                own_whitener(cols, col, m, whiten, into + shift, k_param, at, size, w, sub, into)
                        lane = last
                    if rule != PLUG_IN and not direct:
                        whiten_each(w, loose, y, n_out, m, lanes)
                if rule == JOINT_MAXIMUM and n_out == 2:
                    if not direct:
                        two_differences(y, wo, wl, m, lanes)
                    two_outcomes(v, wl, best, lanes)
                    if certify:
                        two_outcomes(v_up, wl, box, lanes)
                else:
                    centre_probabilities(wo, wl, n_out, lanes)
                    if rule == PLUG_IN:
                        centre_value(v, wo, wl, n_out, lanes)
                        for lane in range(lanes):
                            best[lane] = wl[FT + lane]
                    else:
                        centre_widths(y, wo, wc, wl, n_out, m, lanes)
                    if rule == JOINT_MAXIMUM:
                        upper_bound(y, v_up, wo, wc, wl, box, n_out, m, lanes)
                        if n_out == 3 and code.solver == SHIFTED_POWER:
                            three_maximum(
                                code.n_iter, code.tol, code.n_starts, code.wide, y, v, wo, wl, t, t2, m, lanes
                            )
                        else:
                            joint_maximum(
                            code.solver, code.n_iter, code.tol, code.n_starts, code.wide,
                            y, v, wo, wc, wl, y2, v2, wo2, wc2, wl2, n_out, m, lanes,
                        )  # fmt: skip
                        for lane in range(lanes):
                            best[lane] = wl[BEST_F + lane]
                            if wl[SCALE + lane] > 0.0:
                                relative = wl[BEST_GAP + lane] / wl[SCALE + lane]
                                report[2, owner[lane]] = max(report[2, owner[lane]], relative)
                    elif rule == VARIANCE_BONUS:
                        variance_bound(y, v, wo, wc, wl, best, n_out, m, lanes)
                    elif rule == SECOND_ORDER_BONUS:
                        second_order_bonus(y, v, wo, wl, best, clip, code.constant, n_out, m, lanes)
                    elif rule == MAX_NORM_BONUS:
                        max_norm_bonus(y, v, wo, wl, best, clip * code.constant, n_out, m, lanes)
                for lane in range(lanes):
                    pair = target[lane]
                    gain = gains[h, pair]
                    hope = gain + best[lane]
                    if code.clip == CLIP_Q:
                        hope = min(max(hope, 0.0), clip)
                    q[owner[lane], pair] = hope
                    if certify:
                        q_up[owner[lane], pair] = gain + box[lane]
                done += lanes
        greedy(node_start[h], node_start[h + 1], node_state, q, n_actions, h, value, policy)
        if code.clip == CLIP_V:
            for r in range(replicas):
                for node in range(node_start[h], node_start[h + 1]):
                    value[r, h, node_state[node]] = min(value[r, h, node_state[node]], clip)
        if certify:
            for r in range(replicas):
                for node in range(node_start[h], node_start[h + 1]):
                    s = node_state[node]
                    high = q_up[r, s * n_actions]
                    for a in range(1, n_actions):
                        high = max(high, q_up[r, s * n_actions + a])
                    upper[r, h, s] = high
    for r in range(replicas):
        for node in range(node_start[0], node_start[1]):
            s = node_state[node]
            report[0, r] += start[s] * value[r, 0, s]
            report[1, r] += start[s] * upper[r, 0, s]
