"""Which pairs a plan visits at each stage, W of one shape side by side, with their features laid out for it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from livarot.core.lanes import W
from livarot.core.views import Bundle
from livarot.model.derived import derived
from livarot.model.problem import Problem
from livarot.model.ragged import NO_BLOCK, Graph
from livarot.model.terms.after import outcome_kinds

CHUNK = 256  # blocks laid out at once
ALMOST = 0.95  # stages share a list if at least this share of its states is reachable at each of them


class Blocks(NamedTuple):
    """Pairs of the reachable states, list after list; stages with the same pairs, or almost, share a list."""

    stage_list: Int32Array  # (H,) the list a stage uses
    reachable: NDArray[np.uint8]  # (H + 1, S)
    plain_start: IntArray  # (lists + 1,) pairs that theta does not touch ...
    plain: IntArray  # ... (their outcome is certain, or known from the offsets)
    plain_row: IntArray  # (plain + 1,) where their outcomes begin if listed pair after pair
    start: IntArray  # (lists + 1,) the blocks of a list
    shape: IntArray  # (blocks, 6): outcomes, columns, common block of theta or -1, first row, first feature, block size
    pair: IntArray  # (blocks, W); spare lanes repeat the last pair
    offset: FloatArray  # (rows, W)
    next_state: Int32Array  # (rows, W) kinds of outcomes (:mod:`livarot.model.terms.after`)
    feature: FloatArray  # (features, W): per block (outcomes, columns)


@derived
def pair_blocks(problem: Problem) -> Bundle:
    """The :class:`Blocks` of a problem."""
    return Bundle(_pair_blocks(problem))


def _pair_blocks(problem: Problem) -> Blocks:
    rows = problem.rows
    per_table = problem.n_states * problem.n_actions
    sizes = np.append(np.diff(rows.block_start), 0)
    lists: dict[bytes, int] = {}
    stage_list = np.zeros(problem.horizon, dtype=np.int32)
    plain: list[IntArray] = []
    pairs_of: list[IntArray] = []
    shapes: list[tuple[int, ...]] = []
    start = [0]
    for h, reach in enumerate(_lists(problem)):
        key = int(problem.stage_table[h]).to_bytes(4, "little") + reach.tobytes()
        if key in lists:
            stage_list[h] = lists[key]
            continue
        stage_list[h] = lists[key] = len(plain)
        pairs = problem.stage_table[h] * per_table + np.flatnonzero(np.repeat(reach, problem.n_actions))
        block = rows.pair_block[pairs]
        plain.append(pairs[block == NO_BLOCK])
        pairs = pairs[block != NO_BLOCK]
        block = rows.pair_block[pairs]
        # pairs that use all of one large block are put side by side: they share its whitener
        whole = rows.col_count[pairs] == sizes[block]
        common = np.where(whole & (np.bincount(block, minlength=1)[block] >= W), block, -1)
        shape = np.stack((rows.outcomes[pairs], rows.col_count[pairs], sizes[block], common), axis=1)
        order = np.lexsort((pairs, shape[:, 3], shape[:, 0], shape[:, 2], shape[:, 1]))
        pairs, shape = pairs[order], shape[order]
        cuts = np.flatnonzero(np.any(shape[1:] != shape[:-1], axis=1)) + 1
        for first, last in zip([0, *cuts], [*cuts, len(pairs)], strict=True):
            if last == first:
                continue
            count = -(-(last - first) // W)
            spread = np.minimum(np.arange(count * W), last - first - 1) + first
            pairs_of.append(pairs[spread].reshape(-1, W))
            shapes += [tuple(shape[first, [0, 1, 3, 2]].tolist())] * count
        start.append(len(shapes))
    table = np.asarray(shapes, dtype=np.int64).reshape(-1, 4)
    n_rows, n_features = table[:, 0], table[:, 0] * table[:, 1]
    row = np.concatenate(([0], np.cumsum(n_rows))).astype(np.int64)
    feature = np.concatenate(([0], np.cumsum(n_features))).astype(np.int64)
    made = Blocks(
        stage_list=stage_list,
        reachable=problem.reachable.view(np.uint8),
        plain_start=np.concatenate(([0], np.cumsum([len(p) for p in plain]))).astype(np.int64),
        plain=np.concatenate(plain).astype(np.int64),
        plain_row=np.concatenate(([0], np.cumsum(rows.outcomes[np.concatenate(plain)]))).astype(np.int64),
        start=np.asarray(start, dtype=np.int64),
        shape=np.ascontiguousarray(np.column_stack((table[:, :3], row[:-1], feature[:-1], table[:, 3]))),
        pair=np.concatenate([np.empty((0, W), dtype=np.int64), *pairs_of]).astype(np.int64),
        offset=np.empty((int(row[-1]), W)),
        next_state=np.empty((int(row[-1]), W), dtype=np.int32),
        feature=np.empty((int(feature[-1]), W)),
    )
    _lay_out(rows.graph._replace(next_state=outcome_kinds(problem)), made)
    return made


def _lists(problem: Problem) -> Iterator[BoolArray]:
    """The states of each stage's list: those of all stages with this table, where almost all are reachable."""
    reachable, tables = problem.reachable[: problem.horizon], problem.stage_table
    union = {table: reachable[tables == table].any(axis=0) for table in np.unique(tables).tolist()}
    for own, table in zip(reachable, tables.tolist(), strict=True):
        yield union[table] if own.sum() >= ALMOST * union[table].sum() else own


def _lay_out(graph: Graph, blocks: Blocks) -> None:
    """Offsets, next states and features of the blocks, those of one shape at once."""
    shape = blocks.shape
    cuts = np.flatnonzero(np.any(shape[1:, :2] != shape[:-1, :2], axis=1)) + 1
    for first, last in pairwise([0, *cuts.tolist(), len(shape)]):
        for begin in range(first, last, CHUNK):
            end = min(begin + CHUNK, last)
            n, m, pairs = int(shape[begin, 0]), int(shape[begin, 1]), blocks.pair[begin:end, None, :]
            rows = graph.row_start[pairs] + np.arange(n)[:, None]
            to = slice(shape[begin, 3], shape[end - 1, 3] + n)
            blocks.offset[to] = graph.offset[rows].reshape(-1, W)
            blocks.next_state[to] = graph.next_state[rows].reshape(-1, W)
            to = slice(shape[begin, 4], shape[end - 1, 4] + n * m)
            blocks.feature[to] = graph.feat[graph.feat_start[pairs] + np.arange(n * m)[:, None]].reshape(-1, W)
