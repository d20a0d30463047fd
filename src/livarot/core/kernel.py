"""Transition probabilities of a model, computed once: p[base[h] + row] for a row used at stage h."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livarot.core.jit import jit
from livarot.core.mnl import choice_probabilities, local_parameter
from livarot.core.problem import MNLMDP, Problem
from livarot.core.ragged import FloatArray, IntArray


class Kernel(NamedTuple):
    """Probabilities of every (table, parameter) that some stage uses; stages that use the same one share it."""

    prob: FloatArray
    base: IntArray  # (H,) the probability of row i at stage h is prob[base[h] + i]


class Layout(NamedTuple):
    """Which (table, parameter) goes where: rows (table, parameter, base), base (H,) and the number of probabilities."""

    jobs: IntArray
    base: IntArray
    size: int


def kernel_layout(problem: Problem) -> Layout:
    """Made once and kept with the problem."""
    found = problem.cache.get("kernel layout")
    if isinstance(found, Layout):
        return found
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
    made = problem.cache["kernel layout"] = Layout(listed, base, size)
    return made


def transition_kernel(mdp: MNLMDP) -> Kernel:
    """P_h(s'|s, a) for all rows of all stages."""
    problem = mdp.problem
    layout = kernel_layout(problem)
    prob = np.empty(layout.size)
    _fill(problem.rows.graph, layout.jobs, problem.n_states * problem.n_actions, mdp.theta, prob)
    return Kernel(prob, layout.base)


@jit
def _fill(graph, jobs, per_table, theta, prob):
    row_start, offset, feat, col_count = graph.row_start, graph.offset, graph.feat, graph.col_count
    pair_block, coords, block_start = graph.pair_block, graph.block_coords, graph.block_start
    cols, col_start, feat_start = graph.cols, graph.col_start, graph.feat_start
    widest = 1
    for pair in range(len(col_count)):
        widest = max(widest, col_count[pair])
    local = np.empty(widest)
    for job in range(len(jobs)):
        table, parameter, base = jobs[job]
        for pair in range(table * per_table, (table + 1) * per_table):
            row = row_start[pair]
            n = row_start[pair + 1] - row
            block = pair_block[pair]
            m = col_count[pair] if block >= 0 else 0
            if m > 0:
                local_parameter(theta[parameter], 0, coords, block_start[block], cols, col_start[pair], m, local)
            choice_probabilities(offset, row, n, feat, feat_start[pair], m, local, prob[base + row : base + row + n])
