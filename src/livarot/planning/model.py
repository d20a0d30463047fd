"""What planners read of a problem, and the steps that several of them take."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from livarot.core.inner import inner
from livarot.core.problem import Problem
from livarot.core.views import Bundle

TIE = 1e-9


class Model(NamedTuple):
    """What a plan reads of a problem."""

    graph: Any  # the rows
    stage_table: Any  # (H,)
    stage_parameter: Any  # (H,)
    node_start: Any  # (H + 1,)
    node_state: Any
    start: Any  # (S,)
    reward: Any  # (H, S, A)
    most_out: int  # largest numbers of outcomes, columns and coordinates of a block
    most_cols: int
    most_size: int


def plan_model(problem: Problem) -> Bundle:
    """Made once and kept with the problem."""
    found = problem.cache.get("plan model")
    if not isinstance(found, Bundle):
        rows = problem.rows
        fields = Model(
            rows.graph,
            problem.stage_table,
            problem.stage_parameter,
            *problem.nodes,
            problem.start,
            problem.reward,
            problem.max_reachable,
            max(int(rows.col_count.max()), 1),
            max(int(np.diff(rows.block_start).max()), 1),
        )
        found = problem.cache["plan model"] = Bundle(fields)
    return found


@inner
def known_law(graph, pair, follow):
    """E[V] of a pair whose law is known: one outcome, or probabilities from the offsets alone."""
    row, end = graph.row_start[pair], graph.row_start[pair + 1]
    if end - row == 1:
        return follow[graph.next_state[row]]
    top = graph.offset[row]
    for i in range(row + 1, end):
        top = max(top, graph.offset[i])
    total, mean = 0.0, 0.0
    for i in range(row, end):
        weight = math.exp(graph.offset[i] - top)
        total += weight
        mean += weight * follow[graph.next_state[i]]
    return mean / total


@inner
def greedy(q):
    """max_a Q and the first action within the tie tolerance of it."""
    best = q[0]
    for a in range(1, len(q)):
        best = max(best, q[a])
    tie, action = best - TIE * (1.0 + abs(best)), 0
    while q[action] < tie:
        action += 1
    return best, np.int32(action)


@inner
def mean_at_start(node_start, node_state, start, value):
    """start . V_0 over the states where an episode may begin."""
    total = 0.0
    for node in range(node_start[0], node_start[1]):
        total += start[node_state[node]] * value[node_state[node]]
    return total
