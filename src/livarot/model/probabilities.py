"""Transition probabilities of a model, computed once: p[base[h] + row] for a row used at stage h."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from livarot.core.arrays import FloatArray, IntArray
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.lanes import W, lanes, put, take
from livarot.core.law import coordinate, logits, pair_columns, pair_law, softmax
from livarot.core.views import Bundle, flat, matrix, opened, part, view
from livarot.model.derived import derived
from livarot.model.problem import MNLMDP, Problem

MANY = 1 << 14  # from this number of probabilities on, pairs are computed W at a time


class Kernel(NamedTuple):
    """Probabilities of every (table, parameter) that some stage uses; stages that use the same one share it."""

    prob: FloatArray
    base: IntArray  # (H,) the probability of row i at stage h is prob[base[h] + i]


class Layout(NamedTuple):
    """Which (table, parameter) goes where: rows (table, parameter, base), base (H,) and the number of probabilities."""

    jobs: IntArray
    base: IntArray
    size: int


@derived
def kernel_layout(problem: Problem) -> Layout:
    """The :class:`Layout` of a problem."""
    rows, per_table = problem.rows, problem.n_states * problem.n_actions
    base = np.zeros(problem.horizon, dtype=np.int64)
    jobs: dict[tuple[int, int], int] = {}
    size = 0
    for h in range(problem.horizon):
        table, parameter = int(problem.stage_table[h]), int(problem.stage_parameter[h])
        first, last = int(rows.row_start[table * per_table]), int(rows.row_start[(table + 1) * per_table])
        if (table, parameter) not in jobs:
            jobs[table, parameter] = size - first
            size += last - first
        base[h] = jobs[table, parameter]
    listed = np.array([(table, parameter, where) for (table, parameter), where in jobs.items()], dtype=np.int64)
    return Layout(listed, base, size)


class _Fill(NamedTuple):
    """What the laws of all jobs are computed from."""

    graph: Any
    jobs: IntArray
    per_table: int
    most_out: int
    most_cols: int


class _Room(NamedTuple):
    """Memory of W pairs of one shape."""

    local: Any  # (m,) the coordinates of theta that each pair uses
    offset: Any  # (n,)
    p: Any  # (n,)
    phi: Any  # (n * m,)
    at: Any  # (W,) places


@derived
def _model(problem: Problem) -> Bundle:
    sizes = problem.n_states * problem.n_actions, problem.max_reachable, int(problem.rows.col_count.max())
    return Bundle(_Fill(problem.rows.graph, kernel_layout(problem).jobs, *sizes))


def transition_kernel(mdp: MNLMDP) -> Kernel:
    """P_h(s'|s, a) for all rows of all stages."""
    problem = mdp.problem
    layout, model = kernel_layout(problem), _model(problem)
    n, m = model.fields.most_out, model.fields.most_cols
    prob = np.empty(layout.size)
    if layout.size < MANY:
        _fill(model, mdp.theta, prob, np.empty(m))
    else:
        _fill_many(model, mdp.theta, prob, np.empty((2 * m + 2 * n + n * m, W)), np.empty(W, dtype=np.int64))
    return Kernel(prob, layout.base)


@jit
def _fill(model, theta, prob, local):
    """Pair by pair: compiled in less time than :func:`_fill_many`, with the same bits."""
    seen = opened(model)
    for job in range(len(seen.jobs)):
        first, base = seen.jobs[job, 0] * seen.per_table, seen.jobs[job, 2]
        for pair in range(first, first + seen.per_table):
            row, end = seen.graph.row_start[pair], seen.graph.row_start[pair + 1]
            own = part(view(prob), base + row, end - row)
            pair_law(seen.graph, pair, view(theta)[seen.jobs[job, 1]], view(local), own)


@jit
def _fill_many(model, theta, prob, memory, places):
    """W pairs at a time."""
    seen, space = opened(model), lanes(memory)
    n, m = seen.most_out, seen.most_cols
    local, end = part(flat(view(memory)), 0, m), 2 * m + 2 * n
    room = _Room(
        part(space, m, m), part(space, 2 * m, n), part(space, 2 * m + n, n), part(space, end, n * m), view(places)
    )
    for job in range(len(seen.jobs)):
        first, last = seen.jobs[job, 0] * seen.per_table, (seen.jobs[job, 0] + 1) * seen.per_table
        _fill_table(seen.graph, first, last, view(theta)[seen.jobs[job, 1]], view(prob), seen.jobs[job, 2], local, room)


@inner
def _fill_table(graph, first, last, theta, prob, base, local, room):
    """The laws of pairs first..last-1: W at a time where W neighbours have the same shape."""
    pair = first
    while pair < last:
        row, end = graph.row_start[pair], graph.row_start[pair + 1]
        if pair + W <= last and _alike(graph, pair):
            _many_laws(graph, pair, end - row, theta, prob, base, room)
            pair += W
        else:
            pair_law(graph, pair, theta, local, part(prob, base + row, end - row))
            pair += 1


@inner
def _alike(graph, pair):
    """Do W pairs, from this one on, have equal numbers of outcomes and columns?"""
    n, m = graph.row_start[pair + 1] - graph.row_start[pair], pair_columns(graph, pair)
    if n == 0:
        return False
    for other in range(pair + 1, pair + W):
        if graph.row_start[other + 1] - graph.row_start[other] != n or pair_columns(graph, other) != m:
            return False
    return True


@inner
def _many_laws(graph, pair, n, theta, prob, base, room):
    """:func:`livarot.core.law.pair_law` of W pairs with n outcomes."""
    m = pair_columns(graph, pair)
    local, offset, p = part(room.local, 0, m), part(room.offset, 0, n), part(room.p, 0, n)
    for j in range(m):
        for k in range(W):
            room.at[k] = coordinate(graph, pair + k, j)
        local[j] = take(theta, room.at, 0)
    for k in range(W):
        room.at[k] = graph.feat_start[pair + k]
    for i in range(n * m):
        room.phi[i] = take(graph.feat, room.at, i)
    for k in range(W):
        room.at[k] = graph.row_start[pair + k]
    for i in range(n):
        offset[i] = take(graph.offset, room.at, i)
    logits(offset, matrix(room.phi, 0, n, m), local, p)
    softmax(p, p)
    for i in range(n):
        put(prob, room.at, base + i, p[i])
