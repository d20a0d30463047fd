"""Which pairs a plan has to visit at each stage, grouped so that a batch has one shape."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livarot.core.problem import Problem
from livarot.core.ragged import NO_BLOCK, Int32Array, IntArray


class Batches(NamedTuple):
    """Pairs of the reachable states, stage by stage; stages with the same pairs share a list."""

    stage_list: Int32Array  # (H,) the list a stage uses
    plain_start: IntArray  # (lists + 1,) pairs that theta does not touch ...
    plain: IntArray  # ... (their outcome is certain, or known from the offsets)
    group_start: IntArray  # (lists + 1,) groups of a list
    groups: IntArray  # (n, 5): first and last + 1 in `order`, outcomes, columns, 1 if one full block
    order: IntArray  # pairs, group after group


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
    placed = 0
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
                whole = int(np.all(members == members[0]) and shape[first, 1] == sizes[members[0]])
                groups.append((placed + first, placed + last, shape[first, 0], shape[first, 1], whole))
        placed += len(pairs)
        order.append(pairs)
        group_start.append(len(groups))
    made = Batches(
        stage_list=stage_list,
        plain_start=np.concatenate(([0], np.cumsum([len(p) for p in plain]))).astype(np.int64),
        plain=np.concatenate(plain).astype(np.int64),
        group_start=np.asarray(group_start, dtype=np.int64),
        groups=np.asarray(groups, dtype=np.int64).reshape(-1, 5),
        order=np.concatenate(order).astype(np.int64),
    )
    problem.cache["batches"] = made
    return made
