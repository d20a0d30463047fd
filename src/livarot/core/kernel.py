"""Transition probabilities of a model, computed once: p[base[h] + row] for a row used at stage h."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livarot.core.jit import jit
from livarot.core.mnl import choice_probabilities, local_parameter
from livarot.core.problem import MNLMDP
from livarot.core.ragged import FloatArray, IntArray


class Kernel(NamedTuple):
    """Probabilities of every (table, parameter) that some stage uses; stages that use the same one share it."""

    prob: FloatArray
    base: IntArray  # (H,) the probability of row i at stage h is prob[base[h] + i]


def transition_kernel(mdp: MNLMDP) -> Kernel:
    """P_h(s'|s, a) for all rows of all stages."""
    problem, rows = mdp.problem, mdp.problem.rows
    per_table = problem.n_states * problem.n_actions
    base = np.zeros(problem.horizon, dtype=np.int64)
    seen: dict[tuple[int, int], int] = {}
    jobs: list[tuple[int, int, int]] = []
    size = 0
    for h in range(problem.horizon):
        table, parameter = int(problem.stage_table[h]), int(problem.stage_parameter[h])
        first, last = rows.row_start[table * per_table], rows.row_start[(table + 1) * per_table]
        if (table, parameter) not in seen:
            seen[table, parameter] = size - int(first)
            jobs.append((table, parameter, size - int(first)))
            size += int(last - first)
        base[h] = seen[table, parameter]
    prob = np.empty(size)
    for table, parameter, where in jobs:
        _fill(rows.graph, table * per_table, (table + 1) * per_table, mdp.theta[parameter], prob, where)
    return Kernel(prob, base)


@jit
def _fill(graph, first, last, theta, prob, base):
    row_start, offset, feat, col_count = graph.row_start, graph.offset, graph.feat, graph.col_count
    most, widest = 1, 1
    for pair in range(first, last):
        most = max(most, row_start[pair + 1] - row_start[pair])
        widest = max(widest, col_count[pair])
    p, local = np.empty(most), np.empty(widest)
    for pair in range(first, last):
        row = row_start[pair]
        n = row_start[pair + 1] - row
        block = graph.pair_block[pair]
        m = col_count[pair] if block >= 0 else 0
        if m > 0:
            local_parameter(
                theta, 0, graph.block_coords, graph.block_start[block], graph.cols, graph.col_start[pair], m, local
            )
        choice_probabilities(offset, row, n, feat, graph.feat_start[pair], m, local, p)
        for i in range(n):
            prob[base + row + i] = p[i]
