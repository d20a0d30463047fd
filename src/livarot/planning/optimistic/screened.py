"""Optimistic backward induction that solves only pairs that can be best: pairs as lanes, in two passes.

*Screening.*  For every pair, f0 = p.V at the centre, the standard deviation and the range of V give

    f0  <=  max over the ellipsoid  <=  f0 + sd(V) (sum_i p_i b_i^2)^(1/2) + C,     b_i = beta |y_i - ybar|,

since the slope at the centre is beta |sum_i p_i (V_i - f0)(y_i - ybar)|, and since f'' <= (max V - f) Var(Yx) along a
direction x.  With b = max b_i, Var(Yx) <= b^2; it also grows at most like e^(2bt) on the way from the centre, where it
is at most sum_i p_i b_i^2, and the integral of (1 - t) e^(dt) is (e^d - 1 - d)/d^2, d = 2b.  So C is (max V - min f)
times the smaller of b^2/2 and (sum_i p_i b_i^2)(e^d - 1 - d)/d^2.  The same holds for the box relaxation, which moves
every logit by b_i, and so for the certified bound of the joint maximum.

*From stage to stage.*  Where the next stage has the same pairs and the same parameter, the probabilities at the centre
are kept (:class:`Kept`), and as  max E[V'] <= max E[V] + max E[V' - V],  the bounds of a pair grow by those of what V
has changed; where the pair was solved, they start from what was found.

*Solving.*  The joint maximum and its certified bound are computed for the pair with the largest upper bound of each
state, and then for the pairs whose upper bound still reaches the best lower one.  Values and policy are those of
solving all pairs, unless the solver of a pair found a local maximum at the stage before; the bound of the start is
certified in any case, and may be smaller; the reported gap is that of the solved ones.  Pairs of almost one shape
share lanes: shorter ones are filled up with outcomes of no weight.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from livarot.core.inner import inner
from livarot.core.jit import jit
from livarot.core.lanes import W, lane, lanes, maximum, minimum, number_in, put, sqrt, take, where, with_number
from livarot.core.tolerances import TIE
from livarot.core.views import matrix, opened, part, view
from livarot.planning.optimistic.choice import choice_size, load_into, look, two_outcomes
from livarot.planning.optimistic.pairs import greedy, load, load_two, make_room, own_coordinates, start_values
from livarot.planning.optimistic.result import Result, value_range
from livarot.planning.steps import known_law

ABSENT = 460.0  # the logit of an outcome that only fills a lane is so far below the first one's: weight 1e-200
KNOWN, OPEN, CHOSEN = 0, 1, 2  # Q is computed; bounded; about to be computed


class Kept(NamedTuple):
    """What screening needs of the pairs, at the centre."""

    p: Any  # (rows, W) probabilities
    spread: Any  # (blocks, W) sum_i p_i b_i^2
    curve: Any  # (blocks, W) C without its factor max V - f


class Screen(NamedTuple):
    """Per pair of a stage: bounds of Q and of its certified bound, and what is known."""

    low: Any
    high: Any
    low_up: Any
    high_up: Any
    change: Any  # (S,) what is new in V ...
    change_up: Any  # ... and in its certified bound
    mark: Any
    phi: Any  # (m,) lanes: a row of features of each pair
    who: Any  # (W,) pairs to be solved together, ...
    row: Any  # (W,) ... where their rows ...
    feat: Any  # (W,) ... and their features begin


@jit
def plan_screened(rule, settings, model, blocks, estimate, radius, result):
    """Fill the result, replica after replica."""
    seen, packed = opened(model), opened(blocks)
    n, m, n_pairs = seen.most_out, seen.most_cols, seen.reward.shape[1] * seen.reward.shape[2]
    memory = np.empty((choice_size(n, m) + 2 * n + 3 * m + m * m, W))
    kept = np.empty((len(packed.offset) + 2 * len(packed.shape), W))
    floats = np.empty(m + m * m + 6 * n_pairs + 2 * len(seen.start))
    whole = np.empty(4 * W + n_pairs, dtype=np.int64)
    _replicas(rule, settings, seen, packed, estimate, radius, result, memory, kept, (floats, whole))


@inner
def _replicas(rule, settings, model, blocks, estimate, radius, result, memory, kept, scratch):
    found = Result(view(result.value), view(result.upper), view(result.policy), view(result.report))
    thetas, whitens = view(estimate.theta), view(estimate.whiten)
    n, m, n_pairs = model.most_out, model.most_cols, model.reward.shape[1] * model.reward.shape[2]
    floats, whole = view(scratch[0]), view(scratch[1])
    room = make_room(memory, scratch[0], scratch[1], n, m, n_pairs)
    bounds = m + m * m + 2 * n_pairs
    screen = Screen(
        part(floats, bounds, n_pairs), part(floats, bounds + n_pairs, n_pairs),
        part(floats, bounds + 2 * n_pairs, n_pairs), part(floats, bounds + 3 * n_pairs, n_pairs),
        part(floats, bounds + 4 * n_pairs, len(model.start)),
        part(floats, bounds + 4 * n_pairs + len(model.start), len(model.start)),
        part(whole, 2 * W, n_pairs), part(lanes(memory), choice_size(n, m) + 2 * n + 2 * m + m * m, m),
        part(whole, W, W), part(whole, 2 * W + n_pairs, W), part(whole, 3 * W + n_pairs, W),
    )  # fmt: skip
    space, rows, count = lanes(kept), len(blocks.offset), len(blocks.shape)
    own_kept = Kept(part(space, 0, rows), part(space, rows, count), part(space, rows + count, count))
    for r in range(len(radius)):
        own = Result(found.value[r], found.upper[r], found.policy[r], found.report)
        gap = _stages(rule, settings, model, blocks, (thetas[r], whitens[r], radius[r]), own, own_kept, room, screen)
        start_values(rule, model, own, r, gap)


@inner
def _stages(rule, settings, model, blocks, centre, result, kept, room, screen):
    """The stages, last to first, of one replica."""
    horizon, n_states, n_actions = model.reward.shape
    thetas, whitens, radius = centre
    beta, gap, last_pairs, last_k = lane(radius), 0.0, -1, -1
    for h in range(horizon - 1, -1, -1):
        k, pairs = model.stage_parameter[h], blocks.stage_list[h]
        if h == horizon - 1:
            for i in range(n_states * n_actions):
                room.q[i], room.q_up[i] = 0.0, 0.0
            greedy(rule, model, h, room, result)
            continue
        own = (thetas[k], whitens[k], beta, lane(value_range(model, h, result.value[h + 1])))
        fresh = pairs != last_pairs or k != last_k
        set_change(model, h, result, screen, fresh)
        if fresh:
            last_pairs, last_k = pairs, k
            for b in range(blocks.start[pairs], blocks.start[pairs + 1]):
                if blocks.shape[b, 0] > 2:
                    keep_centre(model.graph, blocks, b, own, kept, room)
        known_pairs(model, h, blocks, own, result, room, screen)
        for b in range(blocks.start[pairs], blocks.start[pairs + 1]):
            if blocks.shape[b, 0] > 2:
                bound_pairs(model, h, blocks, b, kept, screen, fresh)
        for others in range(2):
            choose(model, h, room, screen, others == 0)
            gap = max(gap, solve(rule, settings, model, h, blocks, own, result, room, screen))
        greedy(rule, model, h, room, result)
    return gap


@inner
def growth(d):
    """(e^d - 1 - d) / d^2, and 1/2 at 0; infinite where it does not matter any more."""
    if d < 1e-3:
        return 0.5 + d / 5.9
    return (math.exp(d) - 1.0 - d) / (d * d) if d < 30.0 else math.inf


@inner
def keep_centre(graph, blocks, b, own, kept, room):
    """Probabilities, spread and curvature of a block of pairs."""
    theta, whiten, beta, _ = own
    n, row = blocks.shape[b, 0], blocks.shape[b, 3]
    choice = look(load(graph, blocks, b, theta, whiten, room), beta, beta, 0.0, True)
    spread = choice.p[0] * choice.width[0] * choice.width[0]
    kept.p[row] = choice.p[0]
    for i in range(1, n):
        kept.p[row + i] = choice.p[i]
        spread += choice.p[i] * choice.width[i] * choice.width[i]
    curve = 0.5 * minimum(choice.longest * beta * beta, choice.widest * choice.widest)
    for k in range(W):
        tight = number_in(spread, k) * growth(2.0 * number_in(choice.widest, k))
        curve = with_number(curve, k, min(number_in(curve, k), tight))
    kept.spread[b], kept.curve[b] = spread, curve


@inner
def upper_of(mean, square, low, high, spread, curve):
    """The upper bound from the moments and the range of V; see the module's docstring."""
    span, size = high - low, maximum(high, -low)
    variance = maximum(square - mean * mean, 0.0) + 1e-13 * size * size  # what cancelling may have taken
    rise = sqrt(variance * spread)
    most = minimum(span, high - mean + rise + span * curve)
    return mean + rise + most * curve


@inner
def bound_pairs(model, h, blocks, b, kept, screen, fresh):
    """Add the bounds of E[D], D the change of V since the stage before, to those of a block of pairs."""
    n, row, pairs = blocks.shape[b, 0], blocks.shape[b, 3], blocks.pair[b]
    v, u = take(screen.change, blocks.next_state[row], 0), take(screen.change_up, blocks.next_state[row], 0)
    mean, square, low, high = lane(0.0), lane(0.0), v, v
    mean_up, square_up, low_up, high_up = lane(0.0), lane(0.0), u, u
    for i in range(row, row + n):
        p = kept.p[i]
        v, u = take(screen.change, blocks.next_state[i], 0), take(screen.change_up, blocks.next_state[i], 0)
        pv, pu = p * v, p * u
        mean, square, low, high = mean + pv, square + pv * v, minimum(low, v), maximum(high, v)
        mean_up, square_up, low_up, high_up = mean_up + pu, square_up + pu * u, minimum(low_up, u), maximum(high_up, u)
    first, spread, curve = first_pair(model, h), kept.spread[b], kept.curve[b]
    high = upper_of(mean, square, low, high, spread, curve)
    high_up = upper_of(mean_up, square_up, low_up, high_up, spread, curve)
    if not fresh:
        mean, high = mean + take(screen.low, pairs, -first), high + take(screen.high, pairs, -first)
        mean_up += take(screen.low_up, pairs, -first)
        high_up += take(screen.high_up, pairs, -first)
    put(screen.low, pairs, -first, mean)
    put(screen.high, pairs, -first, high)
    put(screen.low_up, pairs, -first, mean_up)
    put(screen.high_up, pairs, -first, high_up)
    for k in range(W):
        screen.mark[pairs[k] - first] = OPEN


@inner
def set_change(model, h, result, screen, fresh):
    """What is new in the values of the next stage: all of them, or their change since the stage after it."""
    for s in range(len(model.start)):
        screen.change[s], screen.change_up[s] = result.value[h + 1, s], result.upper[h + 1, s]
        if not fresh:
            screen.change[s] -= result.value[h + 2, s]
            screen.change_up[s] -= result.upper[h + 2, s]


@inner
def first_pair(model, h):
    """The number of the stage's first pair."""
    return np.int64(model.stage_table[h]) * model.reward.shape[1] * model.reward.shape[2]


@inner
def known_pairs(model, h, blocks, own, result, room, screen):
    """E[V] of the pairs whose law is known, or that have two outcomes."""
    theta, whiten, beta, _ = own
    first, pairs = first_pair(model, h), blocks.stage_list[h]
    value, upper = result.value[h + 1], result.upper[h + 1]
    for item in range(blocks.plain_start[pairs], blocks.plain_start[pairs + 1]):
        pair = blocks.plain[item]
        room.q[pair - first] = known_law(model.graph, pair, value)
        room.q_up[pair - first] = known_law(model.graph, pair, upper)
        screen.mark[pair - first] = KNOWN
    for b in range(blocks.start[pairs], blocks.start[pairs + 1]):
        if blocks.shape[b, 0] == 2:
            one, two = blocks.next_state[blocks.shape[b, 3]], blocks.next_state[blocks.shape[b, 3] + 1]
            apart, reach = load_two(model.graph, blocks, b, theta, whiten, room)
            best = two_outcomes(apart, beta * reach, take(value, one, 0), take(value, two, 0))
            put(room.q, blocks.pair[b], -first, best)
            best = two_outcomes(apart, beta * reach, take(upper, one, 0), take(upper, two, 0))
            put(room.q_up, blocks.pair[b], -first, best)
            for k in range(W):
                screen.mark[blocks.pair[b, k] - first] = KNOWN


@inner
def choose(model, h, room, screen, only_top):
    """Which open pairs may be the best one of their state, in one of the two recursions: all of them, or only those
    of the largest bound.  The hopeless ones are known: any Q that is not the best will do."""
    n_actions = model.reward.shape[2]
    for node in range(model.node_start[h], model.node_start[h + 1]):
        s = model.node_state[node]
        best, best_up, most, most_up, top, top_up = -math.inf, -math.inf, 0.0, 0.0, -1, -1
        for a in range(n_actions):
            pair, gain = s * n_actions + a, model.reward[h, s, a]
            if screen.mark[pair] == KNOWN:
                best, best_up = max(best, gain + room.q[pair]), max(best_up, gain + room.q_up[pair])
                continue
            best, best_up = max(best, gain + screen.low[pair]), max(best_up, gain + screen.low_up[pair])
            if top < 0 or gain + screen.high[pair] > most:
                top, most = pair, gain + screen.high[pair]
            if top_up < 0 or gain + screen.high_up[pair] > most_up:
                top_up, most_up = pair, gain + screen.high_up[pair]
        best -= 2.0 * TIE * (1.0 + abs(best))
        best_up -= 2.0 * TIE * (1.0 + abs(best_up))
        for a in range(n_actions):
            pair, gain = s * n_actions + a, model.reward[h, s, a]
            if screen.mark[pair] != OPEN:
                continue
            if gain + screen.high[pair] < best and gain + screen.high_up[pair] < best_up:
                screen.mark[pair] = KNOWN
                room.q[pair], room.q_up[pair] = screen.low[pair], screen.low_up[pair]
            elif not only_top or pair in (top, top_up):
                screen.mark[pair] = CHOSEN


@inner
def solve(rule, settings, model, h, blocks, own, result, room, screen):
    """Q and its bound of the chosen pairs, W at a time.  Gives the largest gap relative to the value range."""
    first, pairs = first_pair(model, h), blocks.stage_list[h]
    filled, gap, columns, size = 0, 0.0, -1, -1
    for b in range(blocks.start[pairs], blocks.start[pairs + 1]):
        if blocks.shape[b, 0] == 2:
            continue
        other = blocks.shape[b, 1] != columns or blocks.shape[b, 5] != size
        if filled > 0 and other:
            gap = max(gap, solve_some(rule, settings, model, h, filled, own, result, room, screen))
            filled = 0
        columns, size = blocks.shape[b, 1], blocks.shape[b, 5]
        for k in range(W):
            pair = blocks.pair[b, k]
            if screen.mark[pair - first] == CHOSEN:
                screen.mark[pair - first] = KNOWN
                screen.who[filled] = pair
                filled += 1
                if filled == W:
                    gap = max(gap, solve_some(rule, settings, model, h, filled, own, result, room, screen))
                    filled = 0
    if filled > 0:
        gap = max(gap, solve_some(rule, settings, model, h, filled, own, result, room, screen))
    return gap


@inner
def solve_some(rule, settings, model, h, filled, own, result, room, screen):
    """Q and its bound of the pairs in screen.who, all with as many columns."""
    theta, whiten, beta, scale = own
    first, n = first_pair(model, h), 0
    for k in range(W):
        screen.who[k] = screen.who[min(k, filled - 1)]
        n = max(n, model.graph.row_start[screen.who[k] + 1] - model.graph.row_start[screen.who[k]])
    v, v_up = part(room.v, 0, n), part(room.v_up, 0, n)
    loaded = gather(model.graph, n, theta, whiten, result.value[h + 1], result.upper[h + 1], room, screen)
    choice = look(loaded, beta, scale, float(model.reward.shape[0]), True)
    high = rule.bound(choice, v_up, settings)
    best, first_order = rule.value(choice, v, settings)
    put(room.q, screen.who, -first, best)
    put(room.q_up, screen.who, -first, high)
    put(screen.high, screen.who, -first, best)
    put(screen.high_up, screen.who, -first, high)
    gaps, gap = where(scale > 0.0, first_order / maximum(scale, 1e-300), 0.0), 0.0
    for k in range(W):
        gap = max(gap, number_in(gaps, k))
    return gap


@inner
def gather(graph, n, theta, whiten, value, upper, room, screen):
    """Logits, whitened features and values of the pairs in screen.who, those with fewer than n outcomes filled up."""
    m = np.int64(graph.col_count[screen.who[0]])
    own_coordinates(graph, screen.who, m, theta, whiten, room)
    loaded, w, phi = load_into(room.choice, n, m), matrix(room.square, 0, m, m), screen.phi
    absent, fewest = lane(0.0), n
    for k in range(W):
        screen.row[k], screen.feat[k] = graph.row_start[screen.who[k]], graph.feat_start[screen.who[k]]
        fewest = min(fewest, graph.row_start[screen.who[k] + 1] - screen.row[k])
    for i in range(n):
        if i >= fewest:
            for k in range(W):  # from its end on, a pair repeats its first outcome, without weight
                if screen.row[k] + i == graph.row_start[screen.who[k] + 1] or number_in(absent, k) > 0.0:
                    absent = with_number(absent, k, ABSENT)
                    screen.row[k] = graph.row_start[screen.who[k]] - i
                    screen.feat[k] = graph.feat_start[screen.who[k]] - i * m
        z = take(graph.offset, screen.row, i)
        for j in range(m):
            phi[j] = take(graph.feat, screen.feat, i * m + j)
            z += phi[j] * room.local[j]
        loaded.z0[i] = z - absent
        for c in range(m):
            total = w[c, 0] * phi[0]
            for j in range(1, c + 1):
                total += w[c, j] * phi[j]
            loaded.y[i, c] = total
        for k in range(W):
            room.at[k] = graph.next_state[screen.row[k] + i]
        room.v[i], room.v_up[i] = take(value, room.at, 0), take(upper, room.at, 0)
    return loaded
