"""Steps that several planners share."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from livarot.core.compiling.inner import inner
from livarot.core.tolerances import TIE


@inner
def known_law(graph, pair, follow):
    """E[V] of a pair whose law is known: one outcome, or probabilities from the offsets alone; 0 if it has no row."""
    row, end = graph.row_start[pair], graph.row_start[pair + 1]
    if end == row:
        return follow[0] * 0.0
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
