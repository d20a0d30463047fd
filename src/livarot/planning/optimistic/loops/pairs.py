"""Optimistic backward induction with pairs as lanes: one replica after the other, W (state, action) pairs at a time."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

from livarot.core.compiling.basics import new_floats, new_integers
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.lanes import W, lane, lanes, maximum, number_in, put, take, where
from livarot.core.law import logits
from livarot.core.views import flat, matrix, opened, part, view
from livarot.model.terms.after import worth
from livarot.planning.optimistic.choice import (
    choice_size,
    difference_of_two,
    load_into,
    look,
    two_outcomes,
    whitened,
)
from livarot.planning.optimistic.loops.loop_parts import Centres, Result, own_whitener, value_range
from livarot.planning.optimistic.rule import called
from livarot.planning.steps import greedy as first_best
from livarot.planning.steps import known_law


class Room(NamedTuple):
    """Memory of W pairs of one replica."""

    choice: Any
    v: Any  # (U,) values of the outcomes
    v_up: Any  # (U,)
    local: Any  # (m,) the coordinates of theta that each pair uses
    square: Any  # (m * m,) and their whitener
    step: Any  # (m,)
    numbers: Any  # the same memory, number by number
    theta: Any  # (m,) floats: where all pairs use the same coordinates
    own: Any  # (m * m,) floats
    q: Any  # (S * A,) floats
    q_up: Any  # (S * A,) floats
    ahead: Any  # (kinds,) floats: what outcomes are worth, if that is not V
    ahead_up: Any  # (kinds,) floats
    at: Any  # (W,) indices of the W pairs in an array


@jit
def plan_pairs(task, theta, whiten, radius, value, upper, policy, report):
    """Fill the arrays of the result, replica after replica."""
    what = opened(task)
    n, m = what.model.most_out, what.model.most_cols
    memory = new_floats(choice_size(n, m) + 2 * n + 2 * m + m * m, W)
    n_pairs, kinds = what.model.reward.shape[1] * what.model.reward.shape[2], len(what.model.after.state)
    floats = new_floats(m + m * m + 2 * n_pairs + 2 * kinds)
    whole = new_integers(W)
    centres = Centres(view(theta), view(whiten), view(radius))
    _replicas(what, centres, Result(view(value), view(upper), view(policy), view(report)), memory, floats, whole)


@inner
def make_room(memory, floats, whole, n, m, n_pairs, kinds):
    """Memory laid out; what ``floats`` has beyond this is the caller's."""
    space, numbers = lanes(memory), view(floats)
    size = choice_size(n, m)
    end = size + 2 * n + 2 * m
    return Room(
        choice=part(space, 0, size),
        v=part(space, size, n),
        v_up=part(space, size + n, n),
        local=part(space, size + 2 * n, m),
        square=part(space, end, m * m),
        step=part(space, size + 2 * n + m, m),
        numbers=part(flat(view(memory)), end * W, m * m * W),
        theta=part(numbers, 0, m),
        own=part(numbers, m, m * m),
        q=part(numbers, m + m * m, n_pairs),
        q_up=part(numbers, m + m * m + n_pairs, n_pairs),
        ahead=part(numbers, m + m * m + 2 * n_pairs, kinds),
        ahead_up=part(numbers, m + m * m + 2 * n_pairs + kinds, kinds),
        at=part(view(whole), 0, W),
    )


@inner
def _replicas(task, centres, result, memory, floats, whole):
    model = task.model
    n_pairs = model.reward.shape[1] * model.reward.shape[2]
    room = make_room(memory, floats, whole, model.most_out, model.most_cols, n_pairs, len(model.after.state))
    for r in range(len(centres.radius)):
        upper = result.upper[r if len(result.upper) > 1 else 0]
        own = Result(result.value[r], upper, result.policy[r], result.report)
        centre = Centres(centres.theta[r], centres.whiten[r], centres.radius[r])
        start_values(task.rule, model, own, r, _stages(task.rule, model, task.blocks, centre, own, room))


@inner
def start_values(rule, model, result, r, gap):
    """Fill the report of replica r."""
    start, start_up = 0.0, 0.0
    for node in range(model.node_start[0], model.node_start[1]):
        s = model.node_state[node]
        start += model.start[s] * result.value[0, s]
        start_up += model.start[s] * result.upper[0, s]
    result.report[0, r] = start
    result.report[1, r] = start_up if rule.certified else start
    result.report[2, r] = gap


@inner
def _stages(rule, model, blocks, centre, result, room):
    """The stages, last to first, of one replica."""
    horizon, n_states, n_actions = model.reward.shape
    beta, gap = lane(centre.radius), 0.0
    for h in range(horizon - 1, -1, -1):
        k, pairs = model.stage_parameter[h], blocks.stage_list[h]
        first = model.stage_table[h] * n_states * n_actions
        own = (centre.theta[k], centre.whiten[k], beta, lane(value_range(model, h, result.value[h + 1])))
        follow = worth(model.after, result.value[h + 1], room.ahead)
        follow_up = worth(model.after, result.upper[h + 1], room.ahead_up)
        for item in range(blocks.plain_start[pairs], blocks.plain_start[pairs + 1]):
            pair = blocks.plain[item]
            room.q[pair - first] = known_law(model.graph, pair, follow)
            if rule.certified:
                room.q_up[pair - first] = known_law(model.graph, pair, follow_up)
        for b in range(blocks.start[pairs], blocks.start[pairs + 1]):
            if h == horizon - 1 and rule.idle_at_zero and model.after.idle:
                put(room.q, blocks.pair[b], -first, 0.0)
                put(room.q_up, blocks.pair[b], -first, 0.0)
                continue
            gap = max(gap, back_up(rule, model, h, blocks, b, own, (follow, follow_up), room))
        greedy(rule, model, h, room, result)
    return gap


@inner
def greedy(rule, model, h, room, result):
    """V = max_a Q, the first action within the tie tolerance of it, and the bound of V."""
    horizon, _, n_actions = model.reward.shape
    ceiling = float(horizon)
    for node in range(model.node_start[h], model.node_start[h + 1]):
        s = model.node_state[node]
        q, q_up = part(room.q, s * n_actions, n_actions), part(room.q_up, s * n_actions, n_actions)
        for a in range(n_actions):
            gain = model.reward[h, s, a]
            hope = gain + q[a]
            q[a] = min(max(hope, 0.0), ceiling) if rule.clips_q and gain >= 0.0 else hope  # -inf: it does not exist
        best, result.policy[h, s] = first_best(q)
        result.value[h, s] = min(best, ceiling) if rule.clips_v else best
        if rule.certified:
            high = model.reward[h, s, 0] + q_up[0]
            for a in range(1, n_actions):
                high = max(high, model.reward[h, s, a] + q_up[a])
            result.upper[h, s] = high


@inner
def common_coordinates(graph, block, theta, room):
    """The part of theta that all pairs of a block use."""
    base, local = graph.block_start[block], part(room.theta, 0, graph.block_start[block + 1] - graph.block_start[block])
    for j in range(len(local)):
        local[j] = theta[graph.block_coords[base + j]]
    return local


@inner
def load(graph, blocks, b, theta, whiten, room):
    """Logits at the centre and whitened features of a block of pairs."""
    n, m, block = blocks.shape[b, 0], blocks.shape[b, 1], blocks.shape[b, 2]
    loaded = load_into(room.choice, n, m)
    offset = part(lanes(blocks.offset), blocks.shape[b, 3], n)
    phi = matrix(lanes(blocks.feature), blocks.shape[b, 4], n, m)
    if block >= 0:
        logits(offset, phi, common_coordinates(graph, block, theta, room), loaded.z0)
        whitened(matrix(whiten, graph.gram_start[block], m, m), phi, loaded.y)
    else:
        own_coordinates(graph, blocks.pair[b], m, theta, whiten, room)
        logits(offset, phi, part(room.local, 0, m), loaded.z0)
        whitened(matrix(room.square, 0, m, m), phi, loaded.y)
    return loaded


@inner
def load_two(graph, blocks, b, theta, whiten, room):
    """z0_1 - z0_2 and |y_1 - y_2| of a block of pairs with two outcomes."""
    m, block = blocks.shape[b, 1], blocks.shape[b, 2]
    offset = part(lanes(blocks.offset), blocks.shape[b, 3], 2)
    phi = matrix(lanes(blocks.feature), blocks.shape[b, 4], 2, m)
    if block >= 0:
        w = matrix(whiten, graph.gram_start[block], m, m)
        return difference_of_two(offset, phi, common_coordinates(graph, block, theta, room), w, room.step)
    own_coordinates(graph, blocks.pair[b], m, theta, whiten, room)
    return difference_of_two(offset, phi, part(room.local, 0, m), matrix(room.square, 0, m, m), room.step)


@inner
def own_coordinates(graph, pairs, m, theta, whiten, room):
    """theta and the whitener of every pair's own columns."""
    for j in range(m):
        for k in range(W):
            base, col = graph.block_start[graph.pair_block[pairs[k]]], graph.col_start[pairs[k]]
            room.at[k] = graph.block_coords[base + graph.cols[col + j]]
        room.local[j] = take(theta, room.at, 0)
    block = graph.pair_block[pairs[0]]
    size = graph.block_start[block + 1] - graph.block_start[block]
    if m == size:
        for k in range(W):
            room.at[k] = graph.gram_start[graph.pair_block[pairs[k]]]
        for i in range(m * m):
            room.square[i] = take(whiten, room.at, i)
        return
    own = matrix(room.own, 0, m, m)
    for k in range(W):
        whole = matrix(whiten, graph.gram_start[graph.pair_block[pairs[k]]], size, size)
        own_whitener(whole, part(graph.cols, graph.col_start[pairs[k]], m), size, own)
        for i in range(m * m):
            room.numbers[i * W + k] = room.own[i]


@inner
def back_up(rule, model, h, blocks, b, own, ahead, room):
    """The optimistic expectations of a block of pairs and their bounds; gives the largest relative first-order gap."""
    (theta, whiten, beta, _), (follow, follow_up) = own, ahead
    _, n_states, n_actions = model.reward.shape
    n, row = blocks.shape[b, 0], blocks.shape[b, 3]
    v, v_up = part(room.v, 0, n), part(room.v_up, 0, n)
    for i in range(n):
        v[i] = take(follow, blocks.next_state[row + i], 0)
        if rule.certified:
            v_up[i] = take(follow_up, blocks.next_state[row + i], 0)
    best, high, gap, largest = lane(0.0), lane(0.0), lane(0.0), 0.0
    if rule.exact_for_two and n == 2:
        apart, reach = load_two(model.graph, blocks, b, theta, whiten, room)
        best, high = two_outcomes(apart, beta * reach, v, v_up, rule.certified)
    else:
        best, high, gap = value_pairs(rule, model, blocks, b, own, room)
    first = model.stage_table[h] * n_states * n_actions
    put(room.q, blocks.pair[b], -first, best)
    if rule.certified:
        put(room.q_up, blocks.pair[b], -first, high)
    for k in range(W):  # a list may hold states that this stage cannot reach: they do not count
        if number_in(gap, k) > largest and blocks.reachable[h, (blocks.pair[b, k] - first) // n_actions]:
            largest = number_in(gap, k)
    return largest


@inner
def value_pairs(rule, model, blocks, b, own, room):
    """What a rule gives for a block of pairs: value, bound and relative first-order gap."""
    theta, whiten, beta, scale = own
    n, horizon = blocks.shape[b, 0], float(model.reward.shape[0])
    choice = look(load(model.graph, blocks, b, theta, whiten, room), beta, scale, horizon, rule.set_matters)
    high = called(rule.bound, choice, part(room.v_up, 0, n), rule.settings)[0] if rule.certified else lane(0.0)
    best, gap = called(rule.value, choice, part(room.v, 0, n), rule.settings)
    return best, high, where(scale > 0.0, gap / maximum(scale, 1e-300), gap)
