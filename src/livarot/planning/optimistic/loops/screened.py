"""Optimistic backward induction that solves only pairs that can be best: pairs as lanes.

In each state the joint maximum and its certified bound are computed for the action that is best at the next stage, for
the pair with the largest bound (:mod:`livarot.planning.optimistic.loops.screening`), and then for the pairs whose bound
still reaches the best value found.  Values and policy are those of solving all pairs, unless the solver of a pair found
only a local maximum at the next stage; the bound of the start is certified in any case, and may be smaller; the
reported gap is that of the solved pairs.  Pairs of almost the same shape share lanes: shorter ones are filled up with
outcomes of negligible weight.

It is for values without a discount, rewards of next states or terminal rewards; others are planned pair by pair.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from livarot.core.compiling.basics import new_floats, new_integers
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.lanes import W, lane, lanes, maximum, number_in, put, take, where, with_number
from livarot.core.law import softmax
from livarot.core.tolerances import TIE
from livarot.core.views import matrix, opened, part, view
from livarot.planning.optimistic.choice import choice_size, load_into, look, two_outcomes
from livarot.planning.optimistic.loops.loop_parts import Centres, Result, value_range
from livarot.planning.optimistic.loops.pairs import greedy, load_two, make_room, own_coordinates, start_values
from livarot.planning.optimistic.loops.screening import CHOSEN, KNOWN, OPEN, Kept, Screen, bound_all, first_pair
from livarot.planning.optimistic.rule import called

ABSENT = 460.0  # the logit of an outcome that only fills a lane is this far below the first one's: weight 1e-200


@jit
def plan_screened(task, theta, whiten, radius, value, upper, policy, report):
    """Fill the arrays of the result, replica after replica."""
    what = opened(task)
    model, blocks = what.model, what.blocks
    n, m, n_pairs = model.most_out, model.most_cols, model.reward.shape[1] * model.reward.shape[2]
    memory = new_floats(choice_size(n, m) + 2 * n + 3 * m + m * m, W)
    kept = new_floats(2 * len(blocks.offset) + 2 * len(blocks.shape), W)
    floats = new_floats(m + m * m + 4 * n_pairs + 2 * len(model.start) + blocks.plain_row[len(blocks.plain)])
    whole = new_integers(4 * W + n_pairs)
    centres = Centres(view(theta), view(whiten), view(radius))
    _replicas(what, centres, Result(view(value), view(upper), view(policy), view(report)), memory, kept, floats, whole)


@inner
def _replicas(task, centres, result, memory, kept, floats, whole):
    model, blocks = task.model, task.blocks
    n, m, n_pairs = model.most_out, model.most_cols, model.reward.shape[1] * model.reward.shape[2]
    room = make_room(memory, floats, whole, n, m, n_pairs, 0)
    screen = make_screen(memory, floats, whole, model, blocks)
    space, rows, count = lanes(kept), len(blocks.offset), len(blocks.shape)
    own_kept = Kept(
        even=part(space, 0, rows),
        odd=part(space, rows, rows),
        total=part(space, 2 * rows, count),
        least=part(space, 2 * rows + count, count),
    )
    for r in range(len(centres.radius)):
        upper = result.upper[r if len(result.upper) > 1 else 0]
        own = Result(result.value[r], upper, result.policy[r], result.report)
        centre = Centres(centres.theta[r], centres.whiten[r], centres.radius[r])
        gap = _stages(task.rule, model, blocks, centre, own, own_kept, room, screen)
        start_values(task.rule, model, own, r, gap)


@inner
def make_screen(memory, floats, whole, model, blocks):
    n, m, n_pairs = model.most_out, model.most_cols, model.reward.shape[1] * model.reward.shape[2]
    numbers, places, n_states, first = view(floats), view(whole), len(model.start), m + m * m + 2 * n_pairs
    return Screen(
        high=part(numbers, first, n_pairs),
        high_up=part(numbers, first + n_pairs, n_pairs),
        change=part(numbers, first + 2 * n_pairs, n_states),
        change_up=part(numbers, first + 2 * n_pairs + n_states, n_states),
        law=part(numbers, first + 2 * n_pairs + 2 * n_states, blocks.plain_row[len(blocks.plain)]),
        mark=part(places, 2 * W, n_pairs),
        phi=part(lanes(memory), choice_size(n, m) + 2 * n + 2 * m + m * m, m),
        who=part(places, W, W),
        row=part(places, 2 * W + n_pairs, W),
        feat=part(places, 3 * W + n_pairs, W),
    )


@inner
def _stages(rule, model, blocks, centre, result, kept, room, screen):
    """The stages, last to first, of one replica."""
    horizon, n_states, n_actions = model.reward.shape
    beta, gap, last_pairs, last_k = lane(centre.radius), 0.0, -1, -1
    for h in range(horizon - 1, -1, -1):
        k, pairs = model.stage_parameter[h], blocks.stage_list[h]
        if h == horizon - 1:
            for i in range(n_states * n_actions):
                room.q[i], room.q_up[i] = 0.0, 0.0
            greedy(rule, model, h, room, result)
            continue
        own = (centre.theta[k], centre.whiten[k], beta, lane(value_range(model, h, result.value[h + 1])))
        fresh = pairs != last_pairs or k != last_k
        last_pairs, last_k = pairs, k
        known_pairs(rule, model, h, blocks, own, result, room, screen, fresh)
        bound_all(rule, model, h, blocks, own, result, kept, room, screen, fresh)
        for turn in range(3):
            choose(model, h, result, room, screen, 1 if fresh and turn == 0 else turn)
            gap = max(gap, solve(rule, model, h, blocks, own, result, room, screen))
        greedy(rule, model, h, room, result)
    return gap


@inner
def known_pairs(rule, model, h, blocks, own, result, room, screen, fresh):
    """E[V] of the pairs whose law is known; its maximum for pairs with two outcomes, if the rule is exact for two."""
    theta, whiten, beta, _ = own
    first, pairs = first_pair(model, h), blocks.stage_list[h]
    value, upper = result.value[h + 1], result.upper[h + 1]
    for item in range(blocks.plain_start[pairs], blocks.plain_start[pairs + 1]):
        pair, at = blocks.plain[item], blocks.plain_row[item]
        row, law = model.graph.row_start[pair], part(screen.law, at, blocks.plain_row[item + 1] - at)
        if fresh and len(law) > 0:
            softmax(part(model.graph.offset, row, len(law)), law)
        mean, mean_up = 0.0, 0.0
        for i in range(len(law)):
            s = model.graph.next_state[row + i]
            mean, mean_up = mean + law[i] * value[s], mean_up + law[i] * upper[s]
        room.q[pair - first], room.q_up[pair - first] = mean, mean_up
        screen.mark[pair - first] = KNOWN
    for b in range(blocks.start[pairs], blocks.start[pairs + 1]):
        if rule.exact_for_two and blocks.shape[b, 0] == 2:
            row = blocks.shape[b, 3]
            apart, reach = load_two(model.graph, blocks, b, theta, whiten, room)
            for i in range(2):
                room.v[i] = take(value, blocks.next_state[row + i], 0)
                room.v_up[i] = take(upper, blocks.next_state[row + i], 0)
            best, high = two_outcomes(apart, beta * reach, room.v, room.v_up, True)
            put(room.q, blocks.pair[b], -first, best)
            put(room.q_up, blocks.pair[b], -first, high)
            for k in range(W):
                screen.mark[blocks.pair[b, k] - first] = KNOWN


@inner
def choose(model, h, result, room, screen, turn):
    """Mark the open pairs to be solved.  Turn 0: the action that is best at the next stage; 1: the pairs with the
    largest bounds; 2: all that may be best, in either recursion.  Pairs that cannot be best get -inf as value."""
    n_actions = model.reward.shape[2]
    for node in range(model.node_start[h], model.node_start[h + 1]):
        s = model.node_state[node]
        if turn == 0:
            pair = s * n_actions + result.policy[h + 1, s]
            screen.mark[pair] = CHOSEN if screen.mark[pair] == OPEN else KNOWN
            continue
        best, best_up, most, most_up, top, top_up = -math.inf, -math.inf, 0.0, 0.0, -1, -1
        for a in range(n_actions):
            pair, gain = s * n_actions + a, model.reward[h, s, a]
            if screen.mark[pair] == KNOWN:
                best, best_up = max(best, gain + room.q[pair]), max(best_up, gain + room.q_up[pair])
                continue
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
                room.q[pair], room.q_up[pair] = -math.inf, -math.inf
            elif turn == 2 or pair in (top, top_up):
                screen.mark[pair] = CHOSEN


@inner
def solve(rule, model, h, blocks, own, result, room, screen):
    """Q and its bound for the chosen pairs, W at a time.  Gives the largest gap relative to the value range."""
    first, pairs = first_pair(model, h), blocks.stage_list[h]
    filled, gap, columns, size = 0, 0.0, -1, -1
    for b in range(blocks.start[pairs], blocks.start[pairs + 1]):
        if rule.exact_for_two and blocks.shape[b, 0] == 2:
            continue
        other = blocks.shape[b, 1] != columns or blocks.shape[b, 5] != size
        if filled > 0 and other:
            gap = max(gap, solve_some(rule, model, h, filled, own, result, room, screen))
            filled = 0
        columns, size = blocks.shape[b, 1], blocks.shape[b, 5]
        for k in range(W):
            pair = blocks.pair[b, k]
            if screen.mark[pair - first] == CHOSEN:
                screen.mark[pair - first] = KNOWN
                screen.who[filled] = pair
                filled += 1
                if filled == W:
                    gap = max(gap, solve_some(rule, model, h, filled, own, result, room, screen))
                    filled = 0
    if filled > 0:
        gap = max(gap, solve_some(rule, model, h, filled, own, result, room, screen))
    return gap


@inner
def solve_some(rule, model, h, filled, own, result, room, screen):
    """Q and its bound for the pairs in screen.who, which have equal numbers of columns."""
    theta, whiten, beta, scale = own
    first, n = first_pair(model, h), 0
    for k in range(W):
        screen.who[k] = screen.who[min(k, filled - 1)]
        n = max(n, model.graph.row_start[screen.who[k] + 1] - model.graph.row_start[screen.who[k]])
    v, v_up = part(room.v, 0, n), part(room.v_up, 0, n)
    loaded = gather(model.graph, n, theta, whiten, result.value[h + 1], result.upper[h + 1], room, screen)
    choice = look(loaded, beta, scale, float(model.reward.shape[0]), True)
    best, first_order = lane(0.0), lane(0.0)
    high = best
    if rule.certified:  # first, since computing the value may overwrite the choice's memory
        high, _ = called(rule.bound, choice, v_up, rule.settings)
    best, first_order = called(rule.value, choice, v, rule.settings)
    if not rule.certified:
        high = best
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
            for k in range(W):  # beyond its last outcome a pair repeats the first one, with next to no weight
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
