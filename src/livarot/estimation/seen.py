"""Transitions as the estimates read them: W at a time, as lanes.

The transitions in the lanes have blocks of one size n.  Features of a pair are spread over all coordinates of its
block, with zeros where the pair has none, and outcomes beyond those of a pair have probability 0, so that all lanes
have the same shape.  Adding these zeros changes no bit, so results do not depend on what shares the lanes.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from livarot.core.compiling.basics import new_floats, new_integers
from livarot.core.compiling.inner import inner
from livarot.core.lanes import W, lane, lanes, load_lane, number_in, put, take, where
from livarot.core.law import expectation, logits, mean_row, scaled, softmax, spread
from livarot.core.views import Bundle, matrix, part, view
from livarot.model.derived import derived
from livarot.model.problem import Problem

NEVER = -1e300  # the logit of an outcome that a pair does not have


class LearnModel(NamedTuple):
    """What an estimate reads of a problem."""

    graph: Any
    stage_table: Any  # (H,)
    stage_parameter: Any  # (H,)
    n_states: int
    n_actions: int
    n_parameters: int
    dim: int
    most_out: int  # the largest number of outcomes
    longest: int  # the largest number of outcomes or of coordinates in a block
    kind: Any  # (pairs,) equal for pairs that may share the lanes
    kinds: int  # how many there are


@derived
def learn_model(problem: Problem) -> Bundle:
    """The :class:`LearnModel` of a problem."""
    rows, sizes = problem.rows, np.diff(problem.rows.block_start)
    most_out = problem.max_reachable
    own = sizes[rows.pair_block]  # there are formulas for two outcomes, and for pairs with all columns of their block
    kind = 4 * own + 2 * (rows.col_count == own) + (rows.outcomes == 2)
    tables = rows.graph, problem.stage_table, problem.stage_parameter
    numbers = problem.n_states, problem.n_actions, *problem.theta_shape, most_out
    kinds = len(np.unique(kind[rows.pair_block >= 0]))
    return Bundle(LearnModel(*tables, *numbers, max(int(sizes.max()), most_out), kind, kinds))


# ------------------------------------------------------------------------------ which transitions


class Seen(NamedTuple):
    """Transitions that say something about theta."""

    pair: Any
    own: Any  # which parameter they belong to: replica * K + k
    chosen: Any  # which outcome


@inner
def pair_of(model, h, s, a, c):
    """The pair of a transition, or -1 if the problem has no such transition."""
    if s < 0 or s >= model.n_states or a < 0 or a >= model.n_actions or c < 0:
        return -1
    pair, start = (model.stage_table[h] * model.n_states + s) * model.n_actions + a, model.graph.row_start
    return pair if c < start[pair + 1] - start[pair] else -1


@inner
def collect(model, states, actions, choices, first, last, seen):
    """Collect the transitions of stages first to last, those of one kind together; gives their number, or -1 if one is
    not a transition of the problem."""
    blocks, found = model.graph.pair_block, 0
    for r in range(len(actions)):
        for h in range(first, last):
            choice = choices[r, h]
            pair = pair_of(model, h, states[r, h], actions[r, h], choice)
            if pair < 0:
                return -1
            if blocks[pair] >= 0:
                seen.pair[found], seen.chosen[found] = pair, choice
                seen.own[found] = r * model.n_parameters + model.stage_parameter[h]
                found += 1
    placed = found if model.kinds == 1 else 0
    while placed < found:  # one sweep for each kind: usually there are few
        lead = model.kind[seen.pair[placed]]
        for i in range(placed, found):
            if model.kind[seen.pair[i]] == lead:
                if i > placed:
                    for row in seen:
                        row[i], row[placed] = row[placed], row[i]
                placed += 1
    return found


@inner
def alike(model, seen, first, found):
    """How many transitions from ``first`` on fit into the lanes together."""
    most = min(W, found - first)
    if model.kinds == 1:
        return most
    lead, count = model.kind[seen.pair[first]], 1
    while count < most and model.kind[seen.pair[first + count]] == lead:
        count += 1
    return count


# ------------------------------------------------------------------------------ what they are, as lanes


class Room(NamedTuple):
    """W transitions with up to U outcomes in blocks of n coordinates."""

    outcomes: Any  # how many each has
    offset: Any  # (U,)
    phi: Any  # (U, n)
    chosen: Any  # (1,)
    theta: Any  # (n,)
    gram: Any  # (n, n) lower part
    p: Any  # (U,)
    mean: Any  # (n,)
    step: Any  # (n,)
    weight: Any  # (U,)
    away: Any  # (n, U)
    scaled: Any  # (U,)
    metric: Any  # (n, n) lower part
    low: Any  # (n, n)


class Places(NamedTuple):
    """Where the numbers of W transitions lie; places beyond a pair's outcomes and columns are arbitrary but valid."""

    outcome: Any  # (U, W) offsets
    row: Any  # (U, W) where the features of an outcome begin ...
    column: Any  # (n, W) ... and how far from there, unless the pairs have all columns of their blocks
    feature: Any  # (W,) one of these places
    coordinate: Any  # (n, W) in theta
    theta: Any  # (W,) the whole parameter
    gram: Any  # (W,) the block's matrix
    seen: Any  # (W,)
    numbers: Any  # (1 + n, W) floats: numbers of outcomes, then 1 where a pair has the column and 0 elsewhere


@inner
def memory_of(model):
    """The memory of :class:`Places` and :class:`Room`; it has to outlive them."""
    u, n = model.most_out, model.longest
    return (
        new_integers(2, u, W),
        new_integers(2, n, W),
        new_integers(1, 4, W),
        new_floats(1, n + 1, W),
        new_floats(8, n, W),
        new_floats(5, n * n, W),
    )


@inner
def make_places(memory):
    outcomes, coordinates, rows = view(memory[0]), view(memory[1]), view(memory[2])[0]
    return Places(
        outcome=outcomes[0],
        row=outcomes[1],
        column=coordinates[0],
        coordinate=coordinates[1],
        feature=rows[0],
        theta=rows[1],
        gram=rows[2],
        seen=rows[3],
        numbers=view(memory[3])[0],
    )


@inner
def locate(graph, seen, first, count, sizes, at):
    """Fill :class:`Places`; ``sizes`` are d and G.  Spare lanes repeat the last transition.

    Gives the largest U, n, and whether the pairs have all columns of their blocks.
    """
    most, n, every = 0, 0, False
    for k in range(W):
        place = first + (k if k < count else count - 1)
        pair, own = seen.pair[place], seen.own[place]
        block, u, m = graph.pair_block[pair], graph.row_start[pair + 1] - graph.row_start[pair], graph.col_count[pair]
        base, column = graph.block_start[block], graph.col_start[pair]
        n = graph.block_start[block + 1] - base
        every = m == n
        at.seen[k], at.theta[k], at.gram[k] = place, own * sizes[0], own * sizes[1] + graph.gram_start[block]
        at.numbers[0, k] = u
        for i in range(n):
            at.coordinate[i, k] = own * sizes[0] + graph.block_coords[base + i]
        if not every:
            for i in range(n):
                at.column[i, k], at.numbers[1 + i, k] = 0, 0.0
            for j in range(m):
                i = graph.cols[column + j]
                at.column[i, k], at.numbers[1 + i, k] = j, 1.0
        for i in range(len(at.outcome)):
            inside = i if i < u else 0
            at.outcome[i, k], at.row[i, k] = graph.row_start[pair] + inside, graph.feat_start[pair] + inside * m
        most = u if u > most else most
    return most, n, every


@inner
def make_room(u, n, memory):
    """Room for transitions whose :class:`Places` are already filled."""
    vectors, squares = lanes(memory[4]), lanes(memory[5])
    return Room(
        outcomes=lanes(memory[3])[0, 0],
        offset=part(vectors[0], 0, u),
        phi=matrix(squares[0], 0, u, n),
        chosen=vectors[1],
        theta=part(vectors[2], 0, n),
        gram=matrix(squares[1], 0, n, n),
        p=part(vectors[3], 0, u),
        mean=vectors[4],
        step=part(vectors[5], 0, n),
        weight=vectors[6],
        away=matrix(squares[2], 0, n, u),
        scaled=vectors[7],
        metric=matrix(squares[3], 0, n, n),
        low=matrix(squares[4], 0, n, n),
    )


@inner
def load(graph, seen, at, every, theta, gram, room):
    """Offsets, features, choices, parameters and Gram matrices of W transitions."""
    u, n = room.phi.shape
    room.chosen[0] = take(seen.chosen, at.seen, 0)
    present = lanes(at.numbers)
    for i in range(u):
        room.offset[i] = where(room.outcomes > i, take(graph.offset, at.outcome[i], 0), NEVER)
        for j in range(n):
            if every:
                room.phi[i, j] = take(graph.feat, at.row[i], j)
            else:
                for k in range(W):
                    at.feature[k] = at.row[i, k] + at.column[j, k]
                room.phi[i, j] = take(graph.feat, at.feature, 0) * present[1 + j]
    for i in range(n):
        room.theta[i] = take(theta, at.coordinate[i], 0)
        for j in range(i + 1):
            room.gram[i, j] = take(gram, at.gram, i * n + j)


@inner
def law(room):
    """Probabilities and mean feature at room.theta."""
    logits(room.offset, room.phi, room.theta, room.p)
    softmax(room.p, room.p)
    for i in range(len(room.p)):
        room.p[i] = where(room.outcomes > i, room.p[i], 0.0)
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
    add_squares(room, spread(room.p, room.phi, room.mean, room.weight, room.away), scale, to)


@inner
def add_squares(room, count, scale, to):
    """to += scale * sum_{i < count} w_i a_i a_i' (lower part)."""
    for j in range(len(to)):
        row = part(room.scaled, 0, count)
        scaled(room.weight, room.away[j], row)
        for k in range(j + 1):
            to[j, k] += scale * expectation(row, room.away[k])


@inner
def add_outcomes(room, scale, to):
    """to += scale * sum_i phi_i phi_i' (lower part)."""
    u, n = room.phi.shape
    for i in range(u):
        room.weight[i] = where(room.outcomes > i, 1.0, 0.0)
        for j in range(n):
            room.away[j, i] = room.phi[i, j]
    add_squares(room, u, scale, to)


@inner
def square_length(theta, first, d):
    """|theta|^2 of one whole parameter."""
    whole, total, rest = d // W * W, lane(0.0), 0.0
    for i in range(0, whole, W):
        x = load_lane(theta, first + i)
        total += x * x
    for k in range(W if whole > 0 else 0):
        rest += number_in(total, k)
    for i in range(first + whole, first + d):
        rest += theta[i] * theta[i]
    return rest


@inner
def move(room, rate, at, theta, d, limit):
    """theta <- theta - rate * step; True if the square length of some whole parameter exceeds ``limit``."""
    for i in range(len(room.step)):
        room.theta[i] -= rate * room.step[i]
        put(theta, at.coordinate[i], 0, room.theta[i])
    longer = False
    for k in range(W):
        longer |= square_length(theta, at.theta[k], d) > limit
    return longer


@inner
def store(gram, whiten, at, to_gram, to_whiten):
    """Store a symmetric and a lower triangular matrix where the blocks' matrices lie."""
    n = len(gram)
    for i in range(n):
        for j in range(i + 1):
            put(to_gram, at.gram, i * n + j, gram[i, j])
            put(to_gram, at.gram, j * n + i, gram[i, j])
            put(to_whiten, at.gram, i * n + j, whiten[i, j])
