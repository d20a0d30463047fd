"""Which pairs a plan has to visit at each stage, grouped so that a batch has one shape.

Large groups of pairs that share one block are also *packed*: their features, offsets and next states are copied once
into the layout of the lane kernels, batch after batch, so that a plan reads them in order.  This doubles the memory of
the features and saves a transposition in every plan.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livarot.core.jit import jit
from livarot.core.lanes64 import LANES
from livarot.core.problem import Problem
from livarot.core.ragged import NO_BLOCK, FloatArray, Int32Array, IntArray

PACK = 32  # smaller groups are gathered replica by replica instead


class Batches(NamedTuple):
    """Pairs of the reachable states, stage by stage; stages with the same pairs share a list."""

    stage_list: Int32Array  # (H,) the list a stage uses
    plain_start: IntArray  # (lists + 1,) pairs that theta does not touch ...
    plain: IntArray  # ... (their outcome is certain, or known from the offsets)
    group_start: IntArray  # (lists + 1,) groups of a list
    groups: IntArray  # (n, 5): first and last + 1 in `order`, outcomes, columns, where its pack begins or -1
    feature_start: IntArray  # (n,) where the pack's features begin
    order: IntArray  # pairs, group after group
    features: FloatArray  # packs: per batch (outcomes * columns, LANES)
    offset: FloatArray  # per batch (outcomes, LANES), at (pack)
    next_state: Int32Array  # the same


def plan_batches(problem: Problem) -> Batches:
    """The batches of a problem (made once and kept with it)."""
    found = problem.cache.get("batches")
    if isinstance(found, Batches):
        return found
    rows = problem.rows
    per_table = problem.n_states * problem.n_actions
    sizes = np.diff(rows.block_start)
    outcomes = rows.outcomes
    lists: dict[bytes, int] = {}
    stage_list = np.zeros(problem.horizon, dtype=np.int32)
    plain: list[IntArray] = []
    order: list[IntArray] = []
    groups: list[tuple[int, int, int, int, int]] = []
    group_start = [0]
    placed, packed, wide = 0, 0, 0
    for h in range(problem.horizon):
        reach = problem.reachable[h]
        key = int(problem.stage_table[h]).to_bytes(4, "little") + reach.tobytes()
        if key in lists:
            stage_list[h] = lists[key]
            continue
        stage_list[h] = lists[key] = len(plain)
        pairs = problem.stage_table[h] * per_table + np.flatnonzero(np.repeat(reach, problem.n_actions))
        informative = rows.pair_block[pairs] != NO_BLOCK
        plain.append(pairs[~informative])
        pairs = pairs[informative]
        block = rows.pair_block[pairs]
        pairs = pairs[np.lexsort((pairs, block, rows.col_count[pairs], outcomes[pairs]))]
        shape = np.stack((outcomes[pairs], rows.col_count[pairs]), axis=1)
        cuts = np.flatnonzero(np.any(shape[1:] != shape[:-1], axis=1)) + 1
        for first, last in zip([0, *cuts], [*cuts, len(pairs)], strict=True):
            if last > first:
                members = rows.pair_block[pairs[first:last]]
                n_out, columns = int(shape[first, 0]), int(shape[first, 1])
                whole = bool(np.all(members == members[0])) and columns == sizes[members[0]]
                groups.append((placed + first, placed + last, n_out, columns, -1))
                if whole and last - first >= PACK:
                    room = -(-(last - first) // LANES) * n_out * LANES
                    groups[-1] = (placed + first, placed + last, n_out, columns, packed)
                    packed += room
                    wide += room * columns
        placed += len(pairs)
        order.append(pairs)
        group_start.append(len(groups))
    features, offset = np.zeros(wide), np.zeros(packed)
    next_state = np.zeros(packed, dtype=np.int32)
    table, pairs = np.asarray(groups, dtype=np.int64).reshape(-1, 5), np.concatenate(order).astype(np.int64)
    # packs of different widths follow each other in `features`, so a group carries where its own begins
    feature_start = np.zeros(len(table), dtype=np.int64)
    has_pack = np.flatnonzero(table[:, 4] >= 0)
    rooms = -(-(table[:, 1] - table[:, 0]) // LANES) * table[:, 2] * LANES * table[:, 3]
    feature_start[has_pack] = np.concatenate(([0], np.cumsum(rooms[has_pack])))[:-1]
    _pack(rows.graph, table, feature_start, pairs, features, offset, next_state)
    made = Batches(
        stage_list=stage_list,
        plain_start=np.concatenate(([0], np.cumsum([len(p) for p in plain]))).astype(np.int64),
        plain=np.concatenate(plain).astype(np.int64),
        group_start=np.asarray(group_start, dtype=np.int64),
        groups=table,
        feature_start=feature_start,
        order=pairs,
        features=features,
        offset=offset,
        next_state=next_state,
    )
    problem.cache["batches"] = made
    return made


@jit
def _pack(graph, groups, feature_start, order, features, offset, next_state):
    for group in range(len(groups)):
        begin, end, n_out, m, at = groups[group]
        if at < 0:
            continue
        first = feature_start[group]
        for item in range(begin, end):
            pair = order[item]
            batch, lane = (item - begin) // LANES, (item - begin) % LANES
            row, feat = graph.row_start[pair], graph.feat_start[pair]
            for i in range(n_out):
                offset[at + (batch * n_out + i) * LANES + lane] = graph.offset[row + i]
                next_state[at + (batch * n_out + i) * LANES + lane] = graph.next_state[row + i]
                for j in range(m):
                    to = first + ((batch * n_out + i) * m + j) * LANES + lane
                    features[to] = graph.feat[feat + i * m + j]
