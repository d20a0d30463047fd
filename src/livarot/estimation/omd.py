"""The online mirror descent estimate with a general step size eta (certain).

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
from livarot.core.lanes64 import LANES, cholesky_lanes, invert_lower_lanes, softmax_rows, solve_lanes
from livarot.core.linalg import (
    draw_inside,
    factor_solve,
    packed_product,
    packed_whitener,
    project_packed,
    quadratic,
)
from livarot.core.plan import Episodes, Estimate, check_episodes, check_estimate, check_shape, first_foreign, typed
from livarot.core.pool import SMALL, fresh_copy
from livarot.core.problem import Problem
from livarot.core.ragged import FloatArray
from livarot.core.sizes import require_memory

SLACK = 1e-12
PROJECTION_ROUNDS = 400


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
    require_memory(
        "n_replicas", "the estimates of all replicas", math.prod(shape) * (problem.dim + 2 * problem.rows.gram_size)
    )
    gram = np.tile(problem.rows.pack_identity(reg), (*shape, 1))
    whiten = np.tile(problem.rows.pack_identity(1.0 / math.sqrt(reg)), (*shape, 1))
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
    theta, gram, whiten = estimate
    episodes = typed(episodes)
    if gram.size < SMALL:
        new = Estimate(theta.copy(), gram.copy(), whiten.copy())
    else:
        new = Estimate(fresh_copy(theta), fresh_copy(gram), fresh_copy(whiten))
    done = _update(
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
    if not done:
        refuse_data(problem, estimate, episodes, within)
    return new


def refuse_data(problem: Problem, estimate: Estimate, episodes: Episodes, within: ParameterSet) -> None:
    """Our error for what a kernel would not read: data or an estimate of another problem."""
    check_estimate(problem, estimate)
    check_episodes(problem, episodes)
    check_shape("estimate.theta", estimate.theta, (len(episodes.states), *problem.theta_shape))
    check_shape("within.radius", within.radius, (len(episodes.states),))
    check_shape("within.center", within.center, estimate.theta.shape)
    check_shape("within.shape", within.shape, estimate.gram.shape)


@jit
def belongs(
    graph, stage_table, stage_parameter, n_states, n_actions, states, actions, choices, within, theta, gram, whiten
):
    """Do episodes, estimate and Theta belong to the problem, and to each other?"""
    if first_foreign(graph.row_start, stage_table, n_states, n_actions, states, actions, choices)[1] > 0:
        return False
    replicas, parameters = len(states), stage_parameter[len(stage_parameter) - 1] + 1
    size = (replicas, parameters, graph.gram_start[len(graph.gram_start) - 1])
    fits = (
        theta.shape == (replicas, parameters, len(graph.block_coords)) and gram.shape == size and whiten.shape == size
    )
    if within.center.size > 0:
        fits &= within.center.shape == theta.shape and within.shape.shape == size
    return fits and len(within.radius) == replicas


def project_estimate(problem: Problem, estimate: Estimate, within: ParameterSet) -> Estimate:
    """theta projected on Theta in the norm of its Gram matrix."""
    theta = estimate.theta.copy()
    scratch = np.empty(10 * problem.dim + 5 * problem.rows.gram_size)
    for r, k in np.ndindex(*theta.shape[:2]):
        project_parameter(
            problem.rows.graph, -1, np.empty((0, 0)), 0, 0, estimate.gram[r, k], within, r, k, theta[r, k], scratch
        )
    return estimate._replace(theta=theta)


@jit
def _update(
    graph, stage_table, stage_parameter, n_states, n_actions, most_out,
    states, actions, choices, eta, within, theta, gram, whiten,
):  # fmt: skip
    """All steps of an episode: at once where every stage has its own parameter, else one stage after the other.

    False, and nothing is done, if something belongs to another problem.
    """
    if not belongs(
        graph, stage_table, stage_parameter, n_states, n_actions, states, actions, choices, within, theta, gram, whiten
    ):
        return False
    replicas, horizon = actions.shape
    parameters = theta.shape[1]
    pair_block, pair_shape = graph.pair_block, graph.pair_shape
    shared = horizon > 1 and stage_parameter[1] == stage_parameter[0]
    widest = 1
    for b in range(len(graph.block_start) - 1):
        widest = max(widest, graph.block_start[b + 1] - graph.block_start[b])
    outcomes = np.empty((3, most_out, LANES))
    features = np.empty((2, most_out * widest, LANES))
    vectors = np.empty((3, widest, LANES))
    matrices = np.empty((4, widest * widest, LANES))
    scalars = np.empty((2, LANES))
    where = np.empty((6, LANES), dtype=np.int64)
    scratch = np.empty(10 * theta.shape[2] + 5 * gram.shape[2])
    pairs = np.empty(replicas * horizon, dtype=np.int64)
    mine = np.empty(replicas * horizon, dtype=np.int64)
    chosen = np.empty(replicas * horizon, dtype=np.int64)
    for wave in range(horizon if shared else 1):
        # the informative transitions of this wave, sorted by the shape of their pair so that a batch has one shape
        found = 0
        for r in range(replicas):
            for h in range(wave, wave + 1 if shared else horizon):
                pair = (stage_table[h] * n_states + states[r, h]) * n_actions + actions[r, h]
                if pair_block[pair] >= 0:
                    pairs[found] = pair
                    mine[found] = r * parameters + stage_parameter[h]
                    chosen[found] = choices[r, h]
                    found += 1
        sort_by_shape(pair_shape, pairs, mine, chosen, found)
        done = 0
        while done < found:
            lanes, lead = 1, pair_shape[pairs[done]]
            while lanes < LANES and done + lanes < found and pair_shape[pairs[done + lanes]] == lead:
                lanes += 1
            step_lanes(
                graph, pairs, mine, chosen, done, lanes, eta, within, theta, gram, whiten,
                outcomes, features, vectors, matrices, scalars, where, scratch,
            )  # fmt: skip
            done += lanes
    return True


@jit
def sort_by_shape(pair_shape, pairs, mine, chosen, found):
    """Transitions of one shape become neighbours; there are few shapes as a rule, so sweep once for each."""
    placed = 0
    while placed < found:
        lead = pair_shape[pairs[placed]]
        for i in range(placed, found):
            if pair_shape[pairs[i]] == lead:
                if i > placed:
                    pairs[i], pairs[placed] = pairs[placed], pairs[i]
                    mine[i], mine[placed] = mine[placed], mine[i]
                    chosen[i], chosen[placed] = chosen[placed], chosen[i]
                placed += 1


@jit
def step_lanes(
    graph, pairs, mine, chosen, done, lanes, eta, within, theta, gram, whiten,
    outcomes, features, vectors, matrices, scalars, where, scratch,
):  # fmt: skip
    """The OMD step of up to 64 transitions of one shape, each with a parameter (or block) of its own."""
    lead = pairs[done]
    n_out = graph.row_start[lead + 1] - graph.row_start[lead]
    m = graph.col_count[lead]
    n = graph.block_start[graph.pair_block[lead] + 1] - graph.block_start[graph.pair_block[lead]]
    d, size, parameters = theta.shape[2], gram.shape[2], theta.shape[1]
    flat_theta, flat_gram, flat_whiten = theta.reshape(-1), gram.reshape(-1), whiten.reshape(-1)
    coords, cols, feats, offsets = graph.block_coords, graph.cols, graph.feat, graph.offset
    pair_block, block_start, gram_start = graph.pair_block, graph.block_start, graph.gram_start
    col_start, feat_start, row_start = graph.col_start, graph.feat_start, graph.row_start
    offset, phi = outcomes[0], features[0]
    local, mean, step = vectors[0], vectors[1], vectors[2]
    metric, low, part, old = matrices[0], matrices[1], matrices[2], matrices[3]
    top, total = scalars[0], scalars[1]
    at, feat, row, col, base, first = where[0], where[1], where[2], where[3], where[4], where[5]
    bounded = math.isfinite(within.radius[0])
    limit = within.bound * within.bound * (1.0 + SLACK)
    for lane in range(lanes):
        pair, own = pairs[done + lane], mine[done + lane]
        block = pair_block[pair]
        at[lane] = own * size + gram_start[block]
        first[lane] = own * d
        feat[lane] = feat_start[pair]
        row[lane] = row_start[pair]
        col[lane] = col_start[pair]
        base[lane] = block_start[block]
    for i in range(n_out):
        for lane in range(lanes):
            offset[i, lane] = offsets[row[lane] + i]
    for i in range(n_out * m):
        for lane in range(lanes):
            phi[i, lane] = feats[feat[lane] + i]
    for j in range(m):
        for lane in range(lanes):
            local[j, lane] = flat_theta[first[lane] + coords[base[lane] + cols[col[lane] + j]]]
    for i in range(n * n):
        for lane in range(lanes):
            old[i, lane] = flat_gram[at[lane] + i]
    choice_lanes(outcomes, features, local, mean, part, n_out, m, lanes, top, total)
    for i in range(n * n):
        for lane in range(lanes):
            metric[i, lane] = old[i, lane]
    if m == n:
        for i in range(n * n):
            for lane in range(lanes):
                metric[i, lane] += eta * part[i, lane]
        for j in range(m):
            for lane in range(lanes):
                step[j, lane] = mean[j, lane] - phi[chosen[done + lane] * m + j, lane]
    else:
        for i in range(n):
            for lane in range(lanes):
                step[i, lane] = 0.0
        for lane in range(lanes):
            scatter_lower(part, cols, col[lane], m, n, eta, metric, lane)
            for j in range(m):
                step[cols[col[lane] + j], lane] = mean[j, lane] - phi[chosen[done + lane] * m + j, lane]
    cholesky_lanes(metric, low, n, lanes, top, total)
    solve_lanes(low, step, n, lanes)
    for i in range(n):
        for lane in range(lanes):
            flat_theta[first[lane] + coords[base[lane] + i]] -= eta * step[i, lane]
    for lane in range(lanes):
        total[lane] = 0.0
    for i in range(d):
        for lane in range(lanes):
            entry = flat_theta[first[lane] + i]
            total[lane] += entry * entry
    for lane in range(lanes):
        if bounded or total[lane] > limit:
            own = mine[done + lane]
            r, k = own // parameters, own % parameters
            block = pair_block[pairs[done + lane]]
            project_parameter(graph, block, metric, lane, n, gram[r, k], within, r, k, theta[r, k], scratch)
    for j in range(m):
        for lane in range(lanes):
            local[j, lane] = flat_theta[first[lane] + coords[base[lane] + cols[col[lane] + j]]]
    choice_lanes(outcomes, features, local, mean, part, n_out, m, lanes, top, total)
    if m == n:
        for i in range(n * n):
            for lane in range(lanes):
                old[i, lane] += part[i, lane]
    else:
        for lane in range(lanes):
            scatter_lower(part, cols, col[lane], m, n, 1.0, old, lane)
    cholesky_lanes(old, low, n, lanes, top, total)
    invert_lower_lanes(low, metric, n, lanes)
    for i in range(n):
        for j in range(i + 1):
            for lane in range(lanes):
                flat_gram[at[lane] + i * n + j] = old[i * n + j, lane]
            for lane in range(lanes):
                flat_gram[at[lane] + j * n + i] = old[i * n + j, lane]
            for lane in range(lanes):
                flat_whiten[at[lane] + i * n + j] = metric[i * n + j, lane]


@jit
def choice_lanes(outcomes, features, local, mean, part, n_out, m, lanes, top, total):
    """Probabilities, mean feature and Hessian (lower part) of every lane's choice at its ``local`` parameter.

    ``outcomes`` is (offset, p, scratch), ``features`` is (phi, phi - mean).
    """
    offset, p, weighted = outcomes[0], outcomes[1], outcomes[2]
    phi, centred = features[0], features[1]
    for i in range(n_out):
        for lane in range(lanes):
            p[i, lane] = offset[i, lane]
        for j in range(m):
            row = i * m + j
            for lane in range(lanes):
                p[i, lane] += phi[row, lane] * local[j, lane]
    softmax_rows(p, p, n_out, lanes, top, total)
    for j in range(m):
        for lane in range(lanes):
            mean[j, lane] = 0.0
        for i in range(n_out):
            row = i * m + j
            for lane in range(lanes):
                mean[j, lane] += p[i, lane] * phi[row, lane]
    if n_out == 2:  # p_1 p_2 (phi_1 - phi_2)(phi_1 - phi_2)'
        for lane in range(lanes):
            total[lane] = p[0, lane] * p[1, lane]
        for j in range(m):
            for lane in range(lanes):
                centred[j, lane] = phi[j, lane] - phi[m + j, lane]
        for j in range(m):
            for lane in range(lanes):
                top[lane] = total[lane] * centred[j, lane]
            for k in range(m):
                entry = j * m + k
                for lane in range(lanes):
                    part[entry, lane] = top[lane] * centred[k, lane] if k <= j else 0.0
        return
    for j in range(m):
        for i in range(n_out):
            row = i * m + j
            for lane in range(lanes):
                centred[row, lane] = phi[row, lane] - mean[j, lane]
    for j in range(m):
        for i in range(n_out):
            row = i * m + j
            for lane in range(lanes):
                weighted[i, lane] = p[i, lane] * centred[row, lane]
        for k in range(j + 1):
            entry = j * m + k
            for lane in range(lanes):
                part[entry, lane] = 0.0
            for i in range(n_out):
                row = i * m + k
                for lane in range(lanes):
                    part[entry, lane] += weighted[i, lane] * centred[row, lane]
        for k in range(j + 1, m):
            for lane in range(lanes):
                part[j * m + k, lane] = 0.0


@jit
def scatter_lower(part, cols, col, m, n, scale, matrix, lane):
    """matrix += scale * part at the pair's columns (lower parts; columns are in increasing order)."""
    for j in range(m):
        for k in range(j + 1):
            matrix[cols[col + j] * n + cols[col + k], lane] += scale * part[j * m + k, lane]


@jit
def project_parameter(graph, block, metric, lane, n, gram, within, r, k, own, scratch):
    """:func:`nearest_parameter`, drawn inside where rounding left it outside of an ill-conditioned ellipsoid."""
    nearest_parameter(graph, block, metric, lane, n, gram, within, r, k, own, scratch)
    if math.isfinite(within.radius[r]):
        layout = graph.block_start, graph.gram_start, graph.block_coords
        draw_inside(within.shape[r, k], *layout, within.center[r, k], within.radius[r], within.bound, own)


@jit
def nearest_parameter(graph, block, metric, lane, n, gram, within, r, k, own, scratch):
    """Project theta on Theta in the norm of ``gram`` with ``block`` replaced by a lane of ``metric`` (lower part).

    A projection on one of the two sets that lies in the other one is the projection on both (round 0: the ball alone,
    round 1: the ellipsoid alone).  When both constraints bind, the answer is the projection x(mu) on the ellipsoid in
    the metric M + mu I, of (M + mu I)^-1 M theta, at the mu where |x(mu)| = B: |x(mu)| decreases in mu, so a bracket
    and bisection find it.
    """
    d, size = len(own), len(gram)
    full = scratch[4 * d + 2 * size : 4 * d + 3 * size]
    shape = scratch[4 * d + 3 * size : 4 * d + 4 * size]
    plain = scratch[4 * d + 4 * size : 4 * d + 5 * size]
    vectors = scratch[4 * d + 5 * size :]
    origin, target, out = vectors[0:d], vectors[d : 2 * d], vectors[2 * d : 3 * d]
    bounded = math.isfinite(within.radius[r])
    limit = within.bound * within.bound
    for i in range(size):
        full[i] = gram[i]
    if block >= 0:
        at = graph.gram_start[block]
        for i in range(n):
            for j in range(i + 1):
                full[at + i * n + j] = metric[i * n + j, lane]
                full[at + j * n + i] = metric[i * n + j, lane]
    for i in range(d):
        origin[i] = own[graph.block_coords[i]]
    mu, low, high = 0.0, 0.0, math.inf
    for turn in range(PROJECTION_ROUNDS):
        on_ball = turn == 0
        for i in range(size):
            shape[i] = 0.0 if on_ball else within.shape[r, k, i]
        move_diagonal(shape, graph.block_start, graph.gram_start, 1.0 if on_ball else 0.0)
        for i in range(d):
            target[i] = origin[i]
        if turn > 1:  # (M + mu I)^-1 M origin
            packed_product(full, graph.block_start, graph.gram_start, origin, target)
            for i in range(size):
                plain[i] = full[i]
            move_diagonal(full, graph.block_start, graph.gram_start, mu)
            factor_solve(full, graph.block_start, graph.gram_start, scratch[4 * d : 4 * d + size], target)
        if not on_ball:
            for i in range(d):
                target[i] -= within.center[r, k, graph.block_coords[i]]
        radius = within.bound if on_ball else within.radius[r]
        project_packed(full, shape, graph.block_start, graph.gram_start, target, radius, out, scratch)
        if turn > 1:
            for i in range(size):
                full[i] = plain[i]
        length = 0.0
        for i in range(d):
            if not on_ball:
                out[i] += within.center[r, k, graph.block_coords[i]]
            length += out[i] * out[i]
            own[graph.block_coords[i]] = out[i]
        if turn == 0:
            away = 0.0
            if bounded:
                away = quadratic(
                    within.shape[r, k],
                    graph.block_start,
                    graph.gram_start,
                    graph.block_coords,
                    own,
                    within.center[r, k],
                )
            if away <= within.radius[r] * (1.0 + SLACK):
                return
        elif turn == 1:
            if length <= limit * (1.0 + SLACK):
                return
            for i in range(size):
                mu = max(mu, full[i])
        else:
            if abs(length - limit) <= 1e-13 * limit or (math.isfinite(high) and high - low <= 1e-15 * high):
                return
            if length > limit:
                low = mu
                mu = 2.0 * mu if math.isinf(high) else 0.5 * (low + high)
            else:
                high = mu
                mu = 0.5 * (low + high)


@jit
def move_diagonal(a, block_start, gram_start, by):
    """a += by * I for a packed matrix."""
    for b in range(len(block_start) - 1):
        n = block_start[b + 1] - block_start[b]
        for i in range(n):
            a[gram_start[b] + i * n + i] += by
