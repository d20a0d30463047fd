"""Transition probabilities of a model, computed once: p[base[h] + row] for a row used at stage h."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livarot.core.jit import jit
from livarot.core.mnl import pair_probabilities
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
    most = 1
    for pair in range(first, last):
        most = max(most, graph.row_start[pair + 1] - graph.row_start[pair])
    p = np.empty(most)
    for pair in range(first, last):
        n = pair_probabilities(graph, pair, theta, p)
        at = base + graph.row_start[pair]
        for i in range(n):
            prob[at + i] = p[i]
