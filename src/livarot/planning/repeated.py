"""Optimistic backward induction where every stage has the same features and the same parameter.

Two things are saved.

*Once per plan*: probabilities at the centre, whitened features and their norms are the same at every stage
(:func:`_centre`).  A stage reads V once, for f0 = sum p V, g0 = sum p V (y - ybar) and the range of V, which give the
variance-aware bound, and from the same numbers a bound from below,

    f0 + beta |g0| - C  <=  max over the ellipsoid  <=  f0 + beta |g0| + C.

C bounds half of |f''| <= span(V) Var(Yx) over the ellipsoid.  The variance-aware bound, which is what is reported, has
Var(Yx) <= b^2, b = beta max|y - ybar| (or beta max|y|).  To choose what to solve there is a smaller one: the variance
of a tilted distribution grows at most like e^(2b t), so C = span(V) beta^2 (sum p |y - ybar|^2) (e^d - 1 - d)/d^2 with
d = 2b; unlike the first it knows that most of the outcomes are near the mean.  For a bound from above, f'' <=
(max V - f) Var(Yx) is sharper still.  The box bound is at most f0 + sd(V) (sum p b_i^2)^(1/2) + C by the same steps.

*Only what can be best*: the joint maximum of a pair is solved only if its upper bound reaches the best lower bound of
its state, and likewise the box bound.  Values, bounds and policy are those of solving all pairs; the reported gap is
that of the solved ones.  The solver climbs, and its first point is the one that the lower bound is about; Frank-Wolfe
does not climb, so for it all pairs are solved.

The numbers are those of :func:`livarot.planning.optimistic.backward` up to rounding.  That loop is kept for everything
else: its lanes hold replicas side by side, which is better for small problems.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from livarot.core.jit import jit
from livarot.core.kernel import kernel_layout
from livarot.core.lanes64 import LANES
from livarot.core.problem import Problem
from livarot.core.ragged import FloatArray, Int32Array
from livarot.planning.backups import greedy, own_whitener, reverse_factor, value_range
from livarot.planning.bounds import largest_norm, rounded_up, rounding
from livarot.planning.candidates import candidates, make_lanes, solve_candidates
from livarot.planning.lanes import (
    BETA,
    COL,
    FT,
    GT,
    HALF,
    INNER,
    LENGTH,
    MEAN,
    NORM,
    OUT,
    PEAK,
    PROBLEM,
    SHIFTED_POWER,
    SLIP,
    TOTAL,
    WIDTH,
    Z0,
    F,
    P,
    centre_probabilities,
    centre_widths,
    two_differences,
    two_outcomes,
    whiten_each,
)
from livarot.planning.rules import JOINT_MAXIMUM, PLUG_IN, SECOND_ORDER_BONUS, VARIANCE_BONUS, RuleCode
from livarot.planning.tiles import STEP, table_tiles

MANY_ROWS = 50_000  # below this a plan is quick anyway
MANY_STAGES = 4
ROUNDS = 2  # of solving pairs and ruling out others by what was found


class Centre(NamedTuple):
    """What a plan computes once: per row (as in the tiles), per feature entry and per pair (as in ``order``)."""

    p: FloatArray  # probabilities
    z0: FloatArray  # logits, for the joint maximum
    y: FloatArray  # whitened features
    mean: FloatArray  # (pairs, largest rank) mean whitened feature
    curve: FloatArray  # beta^2 min(max|y|^2, max|y - ybar|^2) / 2: C of the variance-aware bound, without span(V)
    tight: FloatArray  # the smaller C, without span(V)
    spread: FloatArray  # sum p b^2, b the half-widths of the logits
    bonus: FloatArray  # the second-order bonus
    slip: FloatArray  # what rounding may do to a logit


def repeats(problem: Problem) -> bool:
    """Is the problem one for this loop: one table and one parameter, many rows, stages and reachable states?"""
    found = problem.cache.get("repeats")
    if found is None:
        full = problem.reachable[1:-1].mean() > 0.5 if problem.horizon >= MANY_STAGES else False
        large = problem.rows.n_rows >= MANY_ROWS and len(kernel_layout(problem).jobs) == 1
        found = problem.cache["repeats"] = bool(full and large and problem.rows.n_tables == 1)
    return bool(found)


def repeated_backward(
    problem: Problem,
    theta: FloatArray,
    whiten: FloatArray,
    radius: FloatArray,
    code: RuleCode,
    certify: bool,
    value: FloatArray,
    upper: FloatArray,
    policy: Int32Array,
    report: FloatArray,
) -> None:
    """Fill value, upper, policy and the report (see :func:`livarot.planning.optimistic.optimistic_plan`)."""
    tiles = table_tiles(problem)
    centre = _memory(problem, code.rule)
    for r in range(len(radius)):
        _centre(problem.rows.graph, tiles, theta[r, 0], whiten[r : r + 1], radius[r], code, problem.horizon, centre)
        _stages(
            tiles,
            centre,
            *problem.nodes,
            problem.reachable,
            problem.start,
            problem.reward,
            radius[r],
            code,
            certify,
            value[r : r + 1],
            upper[r : r + 1],
            policy[r : r + 1],
            report[:, r],
        )
    problem.cache["centre"] = centre


def _memory(problem: Problem, rule: int) -> Centre:
    """Memory of an earlier plan if nobody uses it (``pop`` hands it to one thread only): fresh pages are slow."""
    tiles = table_tiles(problem)
    rows, pairs = len(tiles.offset), len(tiles.order)
    logits = rows if rule == JOINT_MAXIMUM else 0
    found = problem.cache.pop("centre", None)
    if isinstance(found, Centre) and len(found.z0) >= logits:
        return found
    ranks = max(int(tiles.table[:, 3].max()), 1)
    shapes = (rows, logits, len(tiles.features), (pairs, ranks), pairs, pairs, pairs, pairs, pairs)
    return Centre(*(np.empty(shape) for shape in shapes))


@jit
def _centre(graph, tiles, theta, whiten, radius, code, horizon, centre):
    """Everything of a plan that does not depend on V."""
    most_out, most_rank, most_cols = 1, centre.mean.shape[1], 1
    for tile in range(len(tiles.table)):
        most_out = max(most_out, tiles.table[tile, 2])
    for pair in range(len(graph.col_count)):
        most_cols = max(most_cols, graph.col_count[pair])
    wo, wc, wl = np.zeros((most_out, OUT)), np.zeros((most_rank, COL)), np.zeros(PROBLEM)
    w, local = np.zeros((most_rank * most_rank, LANES)), np.zeros((most_rank, LANES))
    sub, half = np.zeros((most_rank, most_rank)), np.zeros((len(theta), most_rank))
    own = np.zeros(most_cols)
    rule = code.rule
    for tile in range(len(tiles.table)):
        begin, end, n_out, m, at, feat = tiles.table[tile]
        lanes = -(-(end - begin) // STEP) * STEP
        phi = tiles.features[feat : feat + n_out * m * lanes].reshape((n_out * m, lanes))
        y = centre.y[feat : feat + n_out * m * lanes].reshape((n_out * m, lanes))
        for lane in range(lanes):
            wl[BETA + lane] = radius
            if m > 0:
                item = min(begin + lane, end - 1)
                pair_coordinates(graph, tiles, item, m, theta, whiten, rule, local, w, sub, half, own, lane)
        for i in range(n_out):
            for lane in range(lanes):
                wo[i, Z0 + lane] = tiles.offset[at + i * lanes + lane]
            for k in range(m):
                for lane in range(lanes):
                    wo[i, Z0 + lane] += phi[i * m + k, lane] * local[k, lane]
        centre_probabilities(wo, wl, n_out, lanes)
        for i in range(n_out):
            for lane in range(lanes):
                centre.p[at + i * lanes + lane] = wo[i, P + lane]
            if rule == JOINT_MAXIMUM:
                for lane in range(lanes):
                    centre.z0[at + i * lanes + lane] = wo[i, Z0 + lane]
        centre.bonus[begin:end] = 0.0
        if m == 0 or rule == PLUG_IN:
            continue
        whiten_each(w, phi, y, n_out, m, lanes)
        centre_widths(y, wo, wc, wl, n_out, m, lanes)
        largest_norm(y, wl, n_out, m, lanes)
        for lane in range(lanes):
            wl[TOTAL + lane] = 0.0
            wl[LENGTH + lane] = 0.0
            wl[SLIP + lane] = 0.0
        for i in range(n_out):
            for lane in range(lanes):
                wl[SLIP + lane] += wo[i, P + lane] * abs(wo[i, Z0 + lane])
                part = wo[i, P + lane] * wo[i, WIDTH + lane]
                wl[TOTAL + lane] += part
                wl[LENGTH + lane] += part * wo[i, WIDTH + lane]
        for item in range(begin, end):
            lane = item - begin
            largest = wl[INNER + lane] * radius * radius
            centre.curve[item] = 0.5 * min(largest, wl[HALF + lane] * wl[HALF + lane])
            centre.slip[item] = rounding(n_out, m, wl[SLIP + lane], math.sqrt(largest))
            centre.spread[item] = wl[LENGTH + lane]
            centre.tight[item] = min(centre.curve[item], wl[LENGTH + lane] * growth(2.0 * wl[HALF + lane]))
            if rule == SECOND_ORDER_BONUS:
                centre.bonus[item] = horizon * (wl[TOTAL + lane] + code.constant * largest)
            for k in range(m):
                centre.mean[item, k] = wc[k, MEAN + lane]


@jit
def growth(d):
    """(e^d - 1 - d) / d^2, and 1/2 at 0; infinite where it does not matter any more."""
    if d < 1e-3:
        return 0.5 + d / 5.9
    return (math.exp(d) - 1.0 - d) / (d * d) if d < 30.0 else math.inf


@jit
def pair_coordinates(graph, tiles, item, m, theta, whiten, rule, local, w, sub, half, own, lane):
    """theta and the whitener in the coordinates of a pair's tile: B theta, and w with w'w = B gram^-1 B'."""
    pair = tiles.order[item]
    block, col, count = graph.pair_block[pair], graph.col_start[pair], graph.col_count[pair]
    first, at = graph.block_start[block], graph.gram_start[block]
    size = graph.block_start[block + 1] - first
    basis = tiles.basis_start[item]
    for j in range(count):
        own[j] = theta[graph.block_coords[first + graph.cols[col + j]]]
    if basis < 0:
        for k in range(m):
            local[k, lane] = own[k]
        if rule != PLUG_IN:
            own_whitener(graph.cols, col, m, whiten, 0, 0, at, size, w, sub, lane)
        return
    for k in range(m):
        local[k, lane] = 0.0
        for j in range(count):
            local[k, lane] += tiles.basis[basis + k * count + j] * own[j]
    if rule == PLUG_IN:
        return
    for i in range(size):  # half = W B', and gram^-1 = W'W
        for k in range(m):
            half[i, k] = 0.0
            for j in range(count):
                if graph.cols[col + j] <= i:
                    entry = whiten[0, 0, at + i * size + graph.cols[col + j]]
                    half[i, k] += entry * tiles.basis[basis + k * count + j]
    for k in range(m):
        for j in range(k + 1):
            sub[k, j] = 0.0
            for i in range(size):
                sub[k, j] += half[i, k] * half[i, j]
    reverse_factor(sub, m, w, lane)


@jit
def _stages(
    tiles, centre, node_start, node_state, reachable, start, reward, radius, code, certify,
    value, upper, policy, report,
):  # fmt: skip
    """The stages, last to first, of one replica."""
    horizon, n_states, n_actions = reward.shape
    n_pairs = n_states * n_actions
    rule, clip = code.rule, np.float64(horizon)
    gains = reward.reshape((horizon, n_pairs))
    most_out, most_rank = 1, centre.mean.shape[1]
    for tile in range(len(tiles.table)):
        most_out = max(most_out, tiles.table[tile, 2])
    wo, wc, wl = np.zeros((most_out, OUT)), np.zeros((most_rank, COL)), np.zeros(PROBLEM)
    w2, c2 = np.zeros(PROBLEM), np.zeros((most_rank, COL))  # the upper recursion's
    work = make_lanes(most_out, most_rank)
    spread = np.zeros(1)
    wl[BETA : BETA + LANES] = radius
    w2[BETA : BETA + LANES] = radius
    q, q_up = np.zeros((1, n_pairs)), np.zeros((1, n_pairs))
    # per recursion, for pairs whose maximum is not known in closed form: bounds from above and below
    high, low = np.zeros((2, n_pairs)), np.zeros((2, n_pairs))
    todo, now = np.zeros(n_pairs, dtype=np.bool_), np.zeros(n_pairs, dtype=np.bool_)
    for h in range(horizon - 1, -1, -1):
        if h < horizon - 1 and certify:  # the scale of the solver's tolerance
            value_range(node_start[h + 1], node_start[h + 2], node_state, value, h + 1, spread)
        last = h == horizon - 1 and rule != SECOND_ORDER_BONUS  # nothing follows: Q is the reward
        if last:
            q[0, :] = gains[h]
            q_up[0, :] = gains[h]
        follow, follow_up = value[0, h + 1], upper[0, h + 1]
        for tile in range(len(tiles.table) if last else 0, len(tiles.table)):
            begin, end, n_out, m, at, feat = tiles.table[tile]
            lanes = -(-(end - begin) // STEP) * STEP
            y = centre.y[feat : feat + n_out * m * lanes].reshape((n_out * m, lanes))
            closed = m == 0 or rule in (PLUG_IN, SECOND_ORDER_BONUS)
            if not closed and rule == JOINT_MAXIMUM and n_out == 2:
                for i in range(2):
                    for lane in range(lanes):
                        wo[i, Z0 + lane] = centre.z0[at + i * lanes + lane]
                two_differences(y, wo, wl, m, lanes)
                pairs_of_two(tiles, begin, end, at, lanes, gains[h], follow, wl, q)
                if certify:
                    pairs_of_two(tiles, begin, end, at, lanes, gains[h], follow_up, wl, q_up)
                continue
            mean_features(centre.mean, begin, end, wc, 0 if closed else m, lanes)
            moments(tiles.next_state, centre.p, at, follow, y, wc, wl, n_out, 0 if closed else m, lanes)
            if certify:
                mean_features(centre.mean, begin, end, c2, 0 if closed else m, lanes)
                moments(tiles.next_state, centre.p, at, follow_up, y, c2, w2, n_out, 0 if closed else m, lanes)
            for item in range(begin, end):
                pair, lane = tiles.order[item], item - begin
                gain = gains[h, pair]
                if closed:
                    hope = gain + (wl[FT + lane] + centre.bonus[item])
                    q[0, pair] = min(max(hope, 0.0), clip) if rule == SECOND_ORDER_BONUS else hope
                    q_up[0, pair] = gain + w2[FT + lane]
                elif rule == VARIANCE_BONUS:
                    q[0, pair] = gain + variance_bounds(wl, lane, radius, centre.curve[item], centre.slip[item])[1]
                else:
                    tight = centre.tight[item]
                    rise = radius * math.sqrt(wl[NORM + lane])
                    low[0, pair] = gain + variance_bounds(wl, lane, radius, tight, 0.0)[0]
                    high[0, pair] = gain + (wl[FT + lane] + (rise + upward(wl, lane, rise, tight)))
                    low[1, pair] = gain + variance_bounds(w2, lane, radius, tight, 0.0)[0]
                    above = variance_bounds(w2, lane, radius, centre.curve[item], centre.slip[item])[1]
                    rise = math.sqrt(max(w2[F + lane] - w2[FT + lane] * w2[FT + lane], 0.0) * centre.spread[item])
                    box = w2[FT + lane] + (rise + upward(w2, lane, rise, tight))
                    high[1, pair] = gain + min(above, box)
                if rule == JOINT_MAXIMUM:
                    todo[pair] = not closed
        if certify and not last:
            climbs = code.solver == SHIFTED_POWER
            for rounds in range(ROUNDS):  # the pairs of the largest bounds first, then what still may be better
                only_top = rounds < ROUNDS - 1
                candidates(reachable[h], climbs, n_actions, q, q_up, low, high, todo, now, only_top)
                gap = solve_candidates(
                    tiles, centre, gains[h], follow, follow_up, radius, spread[0], code, now, q, q_up, work
                )
                report[2] = max(report[2], gap)
        greedy(node_start[h], node_start[h + 1], node_state, q, n_actions, h, value, policy)
        if certify:
            for node in range(node_start[h], node_start[h + 1]):
                s = node_state[node]
                upper[0, h, s] = q_up[0, s * n_actions : (s + 1) * n_actions].max()
    for node in range(node_start[0], node_start[1]):
        s = node_state[node]
        report[0] += start[s] * value[0, 0, s]
        report[1] += start[s] * upper[0, 0, s]


@jit
def pairs_of_two(tiles, begin, end, at, lanes, gains, follow, wl, q):
    """Q of pairs with two outcomes (wl as :func:`two_differences` leaves it)."""
    v, out = np.empty((2, LANES)), np.empty(LANES)
    for i in range(2):
        for lane in range(lanes):
            v[i, lane] = follow[tiles.next_state[at + i * lanes + lane]]
    two_outcomes(v, wl, out, lanes)
    for item in range(begin, end):
        q[0, tiles.order[item]] = gains[tiles.order[item]] + out[item - begin]


@jit
def mean_features(mean, begin, end, wc, m, lanes):
    for k in range(m):
        for lane in range(lanes):
            wc[k, MEAN + lane] = mean[min(begin + lane, end - 1), k]


@jit
def moments(next_state, p, at, value, y, wc, wl, n_out, m, lanes):
    """f0 = sum p V in wl[FT], sum p V^2 in wl[F], g0 = sum p V (y - ybar) in wc[GT], its squared length in wl[NORM],
    max V in wl[PEAK] and min V in wl[TOTAL]."""
    for lane in range(lanes):
        first = value[next_state[at + lane]]
        wl[FT + lane] = 0.0
        wl[F + lane] = 0.0
        wl[PEAK + lane] = first
        wl[TOTAL + lane] = first
        wl[NORM + lane] = 0.0
    for k in range(m):
        for lane in range(lanes):
            wc[k, GT + lane] = 0.0
    for i in range(n_out):
        row = at + i * lanes
        for lane in range(lanes):
            v = value[np.uint32(next_state[row + lane])]  # a signed index would be tested for "from the end"
            part = p[row + lane] * v
            wl[LENGTH + lane] = part
            wl[FT + lane] += part
            wl[F + lane] += part * v
            wl[PEAK + lane] = max(wl[PEAK + lane], v)
            wl[TOTAL + lane] = min(wl[TOTAL + lane], v)
        for k in range(m):
            for lane in range(lanes):
                wc[k, GT + lane] += wl[LENGTH + lane] * y[i * m + k, lane]
    for k in range(m):
        for lane in range(lanes):
            wc[k, GT + lane] -= wl[FT + lane] * wc[k, MEAN + lane]
            wl[NORM + lane] += wc[k, GT + lane] * wc[k, GT + lane]


@jit
def upward(wl, lane, rise, tight):
    """C for a bound from above: (max V - inf f) ``tight``, where f >= f0 - rise - C along the way."""
    top, span = wl[PEAK + lane], wl[PEAK + lane] - wl[TOTAL + lane]
    return min(span, top - wl[FT + lane] + rise + span * tight) * tight


@jit
def variance_bounds(wl, lane, radius, curve, slip):
    """f0 + max(beta |g0| - C, 0) and min(f0 + beta |g0| + C, max V), rounded up, with C = span(V) ``curve``."""
    c = (wl[PEAK + lane] - wl[TOTAL + lane]) * curve
    rise = radius * math.sqrt(wl[NORM + lane])
    return wl[FT + lane] + max(rise - c, 0.0), rounded_up(
        wl[FT + lane], rise + c, slip, wl[TOTAL + lane], wl[PEAK + lane]
    )
