"""Transitions as the estimates read them: W of one shape at a time, as lanes.

Features of a pair are spread over all coordinates of its block, with zeros where the pair has none, so that the
transitions in the lanes differ in their numbers only.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from livarot.core.inner import inner
from livarot.core.lanes import W, put, take, where, with_number
from livarot.core.law import logits, mean_row, moment, softmax, spread
from livarot.core.problem import Problem
from livarot.core.views import Bundle, matrix, part


class LearnModel(NamedTuple):
    """What an estimate reads of a problem."""

    graph: Any
    stage_table: Any  # (H,)
    stage_parameter: Any  # (H,)
    n_states: int
    n_actions: int
    longest: int  # the largest number of outcomes or of coordinates in a block


def learn_model(problem: Problem) -> Bundle:
    """Made once and kept with the problem."""
    found: Bundle | None = problem.cache.get("learn model")
    if found is None:
        longest = max(int(np.diff(problem.rows.block_start).max()), problem.max_reachable)
        tables = problem.rows.graph, problem.stage_table, problem.stage_parameter
        model = LearnModel(*tables, problem.n_states, problem.n_actions, longest)
        found = problem.cache["learn model"] = Bundle(model)
    return found


# ------------------------------------------------------------------------------ which transitions


class Seen(NamedTuple):
    """Transitions that teach something."""

    pair: Any
    own: Any  # whose parameter: replica * K + k
    chosen: Any  # which outcome


@inner
def pair_of(model, h, s, a, c):
    """The pair of a transition, or -1 if the problem has no such transition."""
    if not (0 <= s < model.n_states and 0 <= a < model.n_actions and c >= 0):
        return -1
    pair = (model.stage_table[h] * model.n_states + s) * model.n_actions + a
    return pair if c < model.graph.row_start[pair + 1] - model.graph.row_start[pair] else -1


@inner
def fits(model, actions, theta, gram, whiten):
    """Do episodes and estimates have the shapes of the problem?"""
    graph, horizon, replicas = model.graph, len(model.stage_table), len(actions)
    parameters, size = model.stage_parameter[horizon - 1] + 1, graph.gram_start[len(graph.gram_start) - 1]
    return (
        actions.shape[1] == horizon
        and theta.shape == (replicas, parameters, len(graph.block_coords))
        and gram.shape == whiten.shape
        and gram.shape == (replicas, parameters, size)
    )


@inner
def n_waves(model):
    """How many steps follow each other: one per stage where these share a parameter."""
    horizon = len(model.stage_table)
    return horizon if model.stage_parameter[horizon - 1] == 0 else 1


@inner
def collect(model, states, actions, choices, wave, parameters, seen):
    """The transitions of a wave, those of one shape next to each other; their number, -1 if one is foreign."""
    graph, waves, found = model.graph, n_waves(model), 0
    for r in range(len(actions)):
        for h in range(wave, wave + 1 if waves > 1 else len(model.stage_table)):
            pair = pair_of(model, h, states[r, h], actions[r, h], choices[r, h])
            if pair < 0:
                return -1
            if graph.pair_block[pair] >= 0:
                seen.pair[found], seen.own[found] = pair, r * parameters + model.stage_parameter[h]
                seen.chosen[found] = choices[r, h]
                found += 1
    placed = 0
    while placed < found:  # there are few shapes as a rule: sweep once for each
        lead = graph.pair_shape[seen.pair[placed]]
        for i in range(placed, found):
            if graph.pair_shape[seen.pair[i]] == lead:
                if i > placed:
                    swap(seen, i, placed)
                placed += 1
    return found


@inner
def swap(seen, i, j):
    seen.pair[i], seen.pair[j] = seen.pair[j], seen.pair[i]
    seen.own[i], seen.own[j] = seen.own[j], seen.own[i]
    seen.chosen[i], seen.chosen[j] = seen.chosen[j], seen.chosen[i]


@inner
def alike(model, seen, first, found):
    """How many transitions from ``first`` on fit into the lanes together."""
    lead, count = model.graph.pair_shape[seen.pair[first]], 1
    while count < W and first + count < found and model.graph.pair_shape[seen.pair[first + count]] == lead:
        count += 1
    return count


# ------------------------------------------------------------------------------ what they are, as lanes


class Room(NamedTuple):
    """W transitions with U outcomes in blocks of n coordinates."""

    offset: Any  # (U,)
    phi: Any  # (U, n)
    chosen: Any  # (1,)
    theta: Any  # (n,)
    gram: Any  # (n, n) lower part
    p: Any  # (U,)
    mean: Any  # (n,)
    step: Any  # (n,)
    weight: Any  # (U,)
    away: Any  # (U, n)
    metric: Any  # (n, n) lower part
    low: Any  # (n, n)


class Places(NamedTuple):
    """Where the numbers of W transitions lie."""

    seen: Any  # (W,)
    row: Any
    feature: Any
    gram: Any  # of the block's matrix
    theta: Any  # of the whole parameter
    coordinate: Any  # (n, W) of the block's coordinates of theta


@inner
def make_room(model, lead, vectors, squares):
    """Room for transitions of the shape of a pair."""
    graph, block = model.graph, model.graph.pair_block[lead]
    u, n = graph.row_start[lead + 1] - graph.row_start[lead], graph.block_start[block + 1] - graph.block_start[block]
    return Room(
        offset=part(vectors[0], 0, u),
        phi=matrix(squares[0], 0, u, n),
        chosen=part(vectors[1], 0, 1),
        theta=part(vectors[2], 0, n),
        gram=matrix(squares[1], 0, n, n),
        p=part(vectors[3], 0, u),
        mean=part(vectors[4], 0, n),
        step=part(vectors[5], 0, n),
        weight=part(vectors[6], 0, u),
        away=matrix(squares[2], 0, u, n),
        metric=matrix(squares[3], 0, n, n),
        low=matrix(squares[4], 0, n, n),
    )


@inner
def make_places(rows, coordinates):
    return Places(rows[0], rows[1], rows[2], rows[3], rows[4], coordinates)


@inner
def locate(model, seen, first, count, sizes, n, to):
    """Fill :class:`Places`; ``sizes`` are d and G.  The spare lanes repeat the last transition."""
    graph = model.graph
    for k in range(W):
        place = first + min(k, count - 1)
        pair, own = seen.pair[place], seen.own[place]
        block = graph.pair_block[pair]
        to.seen[k], to.row[k], to.feature[k] = place, graph.row_start[pair], graph.feat_start[pair]
        to.gram[k], to.theta[k] = own * sizes[1] + graph.gram_start[block], own * sizes[0]
        for i in range(n):
            to.coordinate[i, k] = own * sizes[0] + graph.block_coords[graph.block_start[block] + i]


@inner
def load(model, seen, at, theta, gram, room):
    """Offsets, features, choices, parameters and Gram matrices of W transitions."""
    graph, (u, n) = model.graph, room.phi.shape
    m = np.int64(graph.col_count[seen.pair[at.seen[0]]])
    room.chosen[0] = take(seen.chosen, at.seen, 0)
    for i in range(u):
        room.offset[i] = take(graph.offset, at.row, i)
    if m == n:
        for i in range(u):
            for j in range(n):
                room.phi[i, j] = take(graph.feat, at.feature, i * n + j)
    else:
        spread_features(graph, seen, at, m, room)
    for i in range(n):
        room.theta[i] = take(theta, at.coordinate[i], 0)
        for j in range(i + 1):
            room.gram[i, j] = take(gram, at.gram, i * n + j)


@inner
def spread_features(graph, seen, at, m, room):
    """The m columns of each pair to their places among the block's."""
    u, n = room.phi.shape
    for i in range(u):
        for j in range(n):
            room.phi[i, j] = 0.0
    for k in range(W):
        first = graph.col_start[seen.pair[at.seen[k]]]
        for j in range(m):
            column = graph.cols[first + j]
            for i in range(u):
                entry = graph.feat[at.feature[k] + i * m + j]
                room.phi[i, column] = with_number(room.phi[i, column], k, entry)


@inner
def law(room):
    """Probabilities and mean feature at room.theta."""
    logits(room.offset, room.phi, room.theta, room.p)
    softmax(room.p, room.p)
    mean_row(room.p, room.phi, room.mean)


@inner
def load_gradient(room):
    """step <- the gradient of the loss, mean - phi_chosen."""
    u, n = room.phi.shape
    for j in range(n):
        picked = room.phi[0, j]
        for i in range(1, u):
            picked = where(room.chosen[0] == i, room.phi[i, j], picked)
        room.step[j] = room.mean[j] - picked


@inner
def add_hessian(room, scale, to):
    """to += scale * Hessian of the loss (lower part)."""
    count = spread(room.p, room.phi, room.mean, room.weight, room.away)
    for j in range(len(to)):
        for k in range(j + 1):
            to[j, k] += scale * moment(room.weight, room.away, count, j, k)


@inner
def add_outcomes(room, scale, to):
    """to += scale * sum_i phi_i phi_i' (lower part)."""
    u, n = room.phi.shape
    for i in range(u):
        room.weight[i] = 1.0
    for j in range(n):
        for k in range(j + 1):
            to[j, k] += scale * moment(room.weight, room.phi, u, j, k)


@inner
def move(room, rate, at, theta):
    """theta <- theta - rate * step."""
    for i in range(len(room.step)):
        room.theta[i] -= rate * room.step[i]
        put(theta, at.coordinate[i], 0, room.theta[i])


@inner
def square_length(theta, at, d):
    """|theta|^2 of the whole parameters."""
    total = take(theta, at.theta, 0) * take(theta, at.theta, 0)
    for i in range(1, d):
        x = take(theta, at.theta, i)
        total += x * x
    return total


@inner
def store(lower, at, to):
    """The lower part of a matrix to where the block's matrix lies."""
    n = len(lower)
    for i in range(n):
        for j in range(i + 1):
            put(to, at.gram, i * n + j, lower[i, j])


@inner
def store_symmetric(lower, at, to):
    store(lower, at, to)
    n = len(lower)
    for i in range(n):
        for j in range(i):
            put(to, at.gram, j * n + i, lower[i, j])


@inner
def mark(seen, at, flag, pending):
    """Set the flags of W parameters."""
    for k in range(W):
        pending[seen.own[at.seen[k]]] = flag
