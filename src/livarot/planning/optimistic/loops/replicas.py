"""Optimistic backward induction with replicas as lanes: one (state, action) after the other, W replicas at a time."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from livarot.core.compiling.basics import new_floats, new_integers
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.lanes import W, absolute, lane, lanes, maximum, minimum, put, take, where
from livarot.core.law import logits
from livarot.core.tolerances import TIE
from livarot.core.views import flat, matrix, opened, part, view
from livarot.model.terms.after import worth
from livarot.planning.optimistic.choice import (
    choice_size,
    difference_of_two,
    extremes,
    load_into,
    look,
    two_outcomes,
    whitened,
)
from livarot.planning.optimistic.loops.loop_parts import Centres, Result, own_whitener, value_range
from livarot.planning.optimistic.rule import called
from livarot.planning.steps import known_law


class Room(NamedTuple):
    """Memory of W replicas."""

    choice: Any
    theta: Any  # (d,) the stage's estimate ...
    whiten: Any  # (G,) ... and its whitener
    value: Any  # (2, S) of this stage and the next, by turns
    upper: Any  # (2, S)
    ahead: Any  # (kinds,) what outcomes are worth, if that is not V
    ahead_up: Any  # (kinds,)
    v: Any  # (U,) values of a pair's outcomes
    v_up: Any  # (U,)
    q: Any  # (A,)
    q_up: Any  # (A,)
    local: Any  # (m,) the coordinates of theta that a pair uses
    square: Any  # (m * m,) and their whitener
    step: Any  # (m,) floats
    who: Any  # (W,) which replicas; spare lanes repeat the last one
    at_theta: Any  # (W,) where they begin in the arrays of estimates ...
    at_whiten: Any  # (W,)
    at_value: Any  # (W,) ... of values ...
    at_policy: Any  # (W,) ... and of policies


@inner
def room_size(model, d, size):
    """Lanes of memory for :func:`make_room`."""
    n, m, values = model.most_out, model.most_cols, 4 * len(model.start) + 2 * len(model.after.state)
    return d + size + values + 2 * n + 2 * model.reward.shape[2] + m + m * m + choice_size(n, m)


@inner
def make_room(memory, floats, whole, model, d, size):
    n, m, n_states, n_actions = model.most_out, model.most_cols, len(model.start), model.reward.shape[2]
    values, kinds = d + size, len(model.after.state)
    outcomes = values + 4 * n_states + 2 * kinds
    actions = outcomes + 2 * n
    columns = actions + 2 * n_actions
    rest = columns + m + m * m
    return Room(
        choice=part(memory, rest, choice_size(n, m)),
        theta=part(memory, 0, d),
        whiten=part(memory, d, size),
        value=matrix(memory, values, 2, n_states),
        upper=matrix(memory, values + 2 * n_states, 2, n_states),
        ahead=part(memory, values + 4 * n_states, kinds),
        ahead_up=part(memory, values + 4 * n_states + kinds, kinds),
        v=part(memory, outcomes, n),
        v_up=part(memory, outcomes + n, n),
        q=part(memory, actions, n_actions),
        q_up=part(memory, actions + n_actions, n_actions),
        local=part(memory, columns, m),
        square=part(memory, columns + m, m * m),
        step=view(floats),
        who=part(view(whole), 0, W),
        at_theta=part(view(whole), W, W),
        at_whiten=part(view(whole), 2 * W, W),
        at_value=part(view(whole), 3 * W, W),
        at_policy=part(view(whole), 4 * W, W),
    )


@jit
def plan_replicas(task, theta, whiten, radius, value, upper, policy, report):
    """Fill the arrays of the result, W replicas at a time."""
    what = opened(task)
    memory = new_floats(room_size(what.model, theta.shape[2], whiten.shape[2]), W)
    floats, whole = new_floats(what.model.most_cols), new_integers(5 * W)
    centres = Centres(view(theta), view(whiten), view(radius))
    _blocks(what, centres, Result(view(value), view(upper), view(policy), view(report)), memory, floats, whole)


@inner
def _blocks(task, centres, result, memory, floats, whole):
    theta, whiten, radius = centres
    room = make_room(lanes(memory), floats, whole, task.model, theta.shape[2], whiten.shape[2])
    for first in range(0, len(radius), W):
        for k in range(W):
            r = min(first + k, len(radius) - 1)
            room.who[k], room.at_theta[k], room.at_whiten[k] = r, r * count_of(theta), r * count_of(whiten)
            room.at_value[k], room.at_policy[k] = r * count_of(result.value), r * count_of(result.policy)
        _stages(task.rule, task.model, theta, whiten, take(radius, room.who, 0), result, room)


@inner
def count_of(array):
    """Numbers per replica in an array (R, ., .)."""
    return array.shape[1] * array.shape[2]


@inner
def _stages(rule, model, theta, whiten, beta, result, room):
    """The stages, last to first, of W replicas."""
    horizon, n_states, n_actions = model.reward.shape
    gap = lane(0.0)
    for s in range(n_states):
        room.value[horizon % 2, s] = model.after.end[s]
        room.upper[horizon % 2, s] = model.after.end[s]
    for h in range(horizon - 1, -1, -1):
        gather(theta, room.at_theta, model.stage_parameter[h], room.theta)
        gather(whiten, room.at_whiten, model.stage_parameter[h], room.whiten)
        scale = value_range(model, h, room.value[(h + 1) % 2])
        follow = worth(model.after, room.value[(h + 1) % 2], room.ahead)
        follow_up = worth(model.after, room.upper[(h + 1) % 2], room.ahead_up)
        for node in range(model.node_start[h], model.node_start[h + 1]):
            s = model.node_state[node]
            for a in range(n_actions):
                gap = maximum(gap, back_up(rule, model, (h, s, a), beta, scale, follow, follow_up, room))
            best, action = greedy(room.q)
            if rule.clips_v:
                best = minimum(best, float(horizon))
            room.value[h % 2, s] = best
            put(flat(result.value), room.at_value, h * n_states + s, best)
            put(flat(result.policy), room.at_policy, h * n_states + s, action)
            if rule.certified:
                _, high = extremes(room.q_up)
                room.upper[h % 2, s] = high
    start, start_up = lane(0.0), lane(0.0)
    for node in range(model.node_start[0], model.node_start[1]):
        s = model.node_state[node]
        start += model.start[s] * room.value[0, s]
        start_up += model.start[s] * room.upper[0, s]
    put(result.report[0], room.who, 0, start)
    put(result.report[1], room.who, 0, start_up if rule.certified else start)
    put(result.report[2], room.who, 0, gap)


@inner
def gather(array, places, parameter, out):
    """The row of a parameter in an array (R, K, n), for the W replicas at hand."""
    for j in range(len(out)):
        out[j] = take(flat(array), places, parameter * len(out) + j)


@inner
def greedy(q):
    """max_a Q and the first action within the tie tolerance of it."""
    _, best = extremes(q)
    tie = best - TIE * (1.0 + absolute(best))
    action = lane(0.0)
    for a in range(len(q) - 1, -1, -1):
        action = where(q[a] >= tie, float(a), action)
    return best, action


@inner
def back_up(rule, model, place, beta, scale, follow, follow_up, room):
    """Q and its bound for one (h, s, a), given what outcomes are worth; gives the relative first-order gap."""
    (h, s, a), (horizon, n_states, n_actions) = place, model.reward.shape
    graph, gain, ceiling = model.graph, model.reward[h, s, a], float(horizon)
    pair = (model.stage_table[h] * n_states + s) * n_actions + a
    best, high, gap = lane(0.0), lane(0.0), lane(0.0)
    if graph.pair_block[pair] < 0:
        best = known_law(graph, pair, follow)
        if rule.certified:
            high = known_law(graph, pair, follow_up)
    elif h < horizon - 1 or not (rule.idle_at_zero and model.after.idle):
        row = graph.row_start[pair]
        n = graph.row_start[pair + 1] - row
        v, v_up = part(room.v, 0, n), part(room.v_up, 0, n)
        for i in range(n):
            v[i] = follow[graph.next_state[row + i]]
            if rule.certified:
                v_up[i] = follow_up[graph.next_state[row + i]]
        if rule.exact_for_two and n == 2:
            local, w = own_coordinates(graph, pair, room)
            phi = matrix(graph.feat, graph.feat_start[pair], 2, len(local))
            apart, reach = difference_of_two(part(graph.offset, row, 2), phi, local, w, room.step)
            best, high = two_outcomes(apart, beta * reach, v, v_up, rule.certified)
        else:
            best, high, gap = value_replicas(rule, model, pair, n, beta, scale, room)
    q = gain + best
    room.q[a] = minimum(maximum(q, 0.0), ceiling) if rule.clips_q and gain >= 0.0 else q  # -inf: it does not exist
    if rule.certified:
        room.q_up[a] = gain + high
    return gap


@inner
def value_replicas(rule, model, pair, n, beta, scale, room):
    """What a rule gives for a pair: value, bound and relative first-order gap."""
    horizon = float(model.reward.shape[0])
    choice = look(load(model.graph, pair, n, room), beta, scale, horizon, rule.set_matters)
    high = called(rule.bound, choice, part(room.v_up, 0, n), rule.settings)[0] if rule.certified else lane(0.0)
    best, gap = called(rule.value, choice, part(room.v, 0, n), rule.settings)
    return best, high, where(scale > 0.0, gap / maximum(scale, 1e-300), gap)


@inner
def own_coordinates(graph, pair, room):
    """The pair's own part of theta, and its whitener."""
    block, m = graph.pair_block[pair], np.int64(graph.col_count[pair])
    base, col = graph.block_start[block], graph.col_start[pair]
    size = graph.block_start[block + 1] - base
    local, whole = part(room.local, 0, m), matrix(room.whiten, graph.gram_start[block], size, size)
    for j in range(m):
        local[j] = room.theta[graph.block_coords[base + graph.cols[col + j]]]
    if m == size:
        return local, whole
    own = matrix(room.square, 0, m, m)
    own_whitener(whole, part(graph.cols, col, m), size, own)
    return local, own


@inner
def load(graph, pair, n, room):
    """Logits at the centre and whitened features of a pair."""
    local, w = own_coordinates(graph, pair, room)
    loaded = load_into(room.choice, n, len(local))
    phi = matrix(graph.feat, graph.feat_start[pair], n, len(local))
    logits(part(graph.offset, graph.row_start[pair], n), phi, local, loaded.z0)
    whitened(w, phi, loaded.y)
    return loaded
