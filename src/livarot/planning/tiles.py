"""The pairs of one table in tiles of equal shape, each pair's features in as few columns as they have rank.

Features of a pair are often dependent: a dose times a few properties of the outcome spans those properties only,
however many doses there are.  If Phi = C B with C (U, r) and B (r, m), then Phi gram^-1 Phi' = C (B gram^-1 B') C', so
the ellipsoid acts on the logits of this pair as one in r dimensions.  The split is exact to rounding: dependent means a
residual below 1e-14 of the column.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from livarot.core.jit import jit
from livarot.core.lanes64 import LANES
from livarot.core.problem import Problem
from livarot.core.ragged import NO_BLOCK, FloatArray, Int32Array, IntArray

STEP = 8  # tiles are padded to whole vectors with copies of their last pair
DEPENDENT = 1e-14


class Tiles(NamedTuple):
    """Up to 64 pairs with the same numbers of outcomes and columns, side by side."""

    table: IntArray  # (n, 6): first and last + 1 in `order`, outcomes, rank, where its rows and its features begin
    order: IntArray  # pairs, tile after tile
    offset: FloatArray  # per tile (outcomes, width), width = pairs rounded up to STEP
    next_state: Int32Array  # the same
    features: FloatArray  # per tile (outcomes * rank, width): C
    basis: FloatArray  # per pair (rank, columns): B
    basis_start: IntArray  # (len(order),) or -1 where C are the features themselves


def width_of(pairs: int) -> int:
    """The width of a tile, or of each of several, of that many pairs."""
    return -(-pairs // STEP) * STEP


def table_tiles(problem: Problem) -> Tiles:
    """The tiles of the first table's pairs (made once and kept with the problem)."""
    found = problem.cache.get("tiles")
    if isinstance(found, Tiles):
        return found
    rows = problem.rows
    per_table = problem.n_states * problem.n_actions
    rank = np.zeros(per_table, dtype=np.int64)
    columns = np.where(rows.pair_block[:per_table] == NO_BLOCK, 0, rows.col_count[:per_table]).astype(np.int64)
    most_out, most_cols = int(rows.outcomes[:per_table].max()), int(columns.max(initial=1))
    _ranks(rows.graph, columns, np.empty((most_cols, most_out + 1)), rank)
    outcomes = rows.outcomes[:per_table]
    # states side by side: the actions worth a closer look are often the same ones, and then lie together
    by_action = np.arange(per_table).reshape(-1, problem.n_actions).T.reshape(-1)
    order = by_action[np.lexsort((outcomes[by_action], rank[by_action]))].astype(np.int64)
    shape = np.stack((outcomes[order], rank[order]), axis=1)
    cuts = np.flatnonzero(np.any(shape[1:] != shape[:-1], axis=1)) + 1
    table, at, feat = [], 0, 0
    for first, last in zip([0, *cuts], [*cuts, per_table], strict=True):
        n_out, r = (int(x) for x in shape[first])
        share = width_of(-(-(last - first) // -(-(last - first) // LANES)))  # tiles of one shape are about equal
        for begin in range(first, last, share):
            end = min(begin + share, last)
            table.append((begin, end, n_out, r, at, feat))
            at += n_out * width_of(end - begin)
            feat += n_out * r * width_of(end - begin)
    room = np.where(rank < columns, rank * columns, 0)[order]
    start = np.concatenate(([0], np.cumsum(room)))
    made = Tiles(
        table=np.array(table, dtype=np.int64),
        order=order,
        offset=np.empty(at),
        next_state=np.empty(at, dtype=np.int32),
        features=np.empty(feat),
        basis=np.empty(int(start[-1])),
        basis_start=np.where(room > 0, start[:-1], -1),
    )
    _lay(rows.graph, columns, np.empty((most_cols, most_out + 1)), *made)
    problem.cache["tiles"] = made
    return made


@jit
def orthogonalise(feat, at, n, m, q):
    """Gram-Schmidt with column pivoting, twice over: q (r, n) spans the columns of the features (n, m) at ``at``.

    The pivot is the column that kept the largest share of its size; the rest has kept none.  q has a column more,
    for the sizes.
    """
    for j in range(m):
        q[j, n] = 0.0
        for i in range(n):
            q[j, i] = feat[at + i * m + j]
            q[j, n] = max(q[j, n], abs(q[j, i]))
    rank = 0
    while rank < m:
        pick, most = rank, -1.0
        for j in range(rank, m):
            kept = 0.0
            for i in range(n):
                kept = max(kept, abs(q[j, i]))
            if q[j, n] > 0.0 and kept / q[j, n] > most:
                pick, most = j, kept / q[j, n]
        if most <= DEPENDENT:
            break
        q[rank, n], q[pick, n] = q[pick, n], q[rank, n]
        norm = 0.0
        for i in range(n):
            q[rank, i], q[pick, i] = q[pick, i], q[rank, i]
            norm += q[rank, i] * q[rank, i]
        if norm < 1e-200:  # squares of numbers so small are lost
            norm = 0.0
            for i in range(n):
                q[rank, i] *= 2.0**600
                norm += q[rank, i] * q[rank, i]
        norm = 1.0 / math.sqrt(norm)
        for i in range(n):
            q[rank, i] *= norm
        for j in range(rank + 1, m):
            for _ in range(2):
                inner = 0.0
                for i in range(n):
                    inner += q[rank, i] * q[j, i]
                for i in range(n):
                    q[j, i] -= inner * q[rank, i]
        rank += 1
    return rank


@jit
def _ranks(graph, columns, q, rank):
    for pair in range(len(rank)):
        n = graph.row_start[pair + 1] - graph.row_start[pair]
        if columns[pair] > 0:
            rank[pair] = orthogonalise(graph.feat, graph.feat_start[pair], n, columns[pair], q)


@jit
def _lay(graph, columns, q, table, order, offset, next_state, features, basis, basis_start):
    for tile in range(len(table)):
        begin, end, n_out, r, at, feat = table[tile]
        width = -(-(end - begin) // STEP) * STEP
        for lane in range(width):
            item = min(begin + lane, end - 1)
            pair = order[item]
            row, m = graph.row_start[pair], columns[pair]
            for i in range(n_out):
                offset[at + i * width + lane] = graph.offset[row + i]
                next_state[at + i * width + lane] = graph.next_state[row + i]
            if r == m:
                for i in range(n_out * m):
                    features[feat + i * width + lane] = graph.feat[graph.feat_start[pair] + i]
                continue
            orthogonalise(graph.feat, graph.feat_start[pair], n_out, m, q)
            for i in range(n_out):
                for k in range(r):
                    features[feat + (i * r + k) * width + lane] = q[k, i]
            for k in range(r):
                for j in range(m):
                    inner = 0.0
                    for i in range(n_out):
                        inner += q[k, i] * graph.feat[graph.feat_start[pair] + i * m + j]
                    basis[basis_start[item] + k * m + j] = inner
