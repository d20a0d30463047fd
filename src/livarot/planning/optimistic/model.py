"""What a plan reads and what it fills, and the steps that both of its loops take."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

from livarot.core.inner import inner
from livarot.core.lanes import maximum, minimum, sqrt
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


class Result(NamedTuple):
    """What a plan fills."""

    value: Any  # (R, H + 1, S)
    upper: Any  # the same, of certified bounds
    policy: Any  # (R, H, S)
    report: Any  # (3, R): start value, its bound, largest first-order gap relative to the value range


def plan_model(problem: Problem) -> Bundle:
    """Made once and kept with the problem."""
    found = problem.cache.get("plan model")
    if not isinstance(found, Bundle):
        rows = problem.rows
        sizes = rows.block_start[1:] - rows.block_start[:-1]
        fields = Model(
            rows.graph,
            problem.stage_table,
            problem.stage_parameter,
            *problem.nodes,
            problem.start,
            problem.reward,
            problem.max_reachable,
            max(int(rows.col_count.max()), 1),
            max(int(sizes.max()), 1),
        )
        found = problem.cache["plan model"] = Bundle(fields)
    return found


@inner
def value_range(model, h, value):
    """max - min of V_{h+1} over the states that can be reached at stage h + 1; 0 after the last stage."""
    if h + 2 >= len(model.node_start):
        return value[0] * 0.0
    first = value[model.node_state[model.node_start[h + 1]]]
    low, high = first, first
    for node in range(model.node_start[h + 1] + 1, model.node_start[h + 2]):
        there = value[model.node_state[node]]
        low, high = minimum(low, there), maximum(high, there)
    return high - low


@inner
def known_law(graph, pair, follow):
    """E[V] of a pair whose law is known: one outcome, or probabilities from the offsets alone."""
    row, end = graph.row_start[pair], graph.row_start[pair + 1]
    if end - row == 1:
        return follow[graph.next_state[row]]
    top = graph.offset[row]
    for i in range(row + 1, end):
        top = max(top, graph.offset[i])
    weight = math.exp(graph.offset[row] - top)
    total, mean = weight, weight * follow[graph.next_state[row]]
    for i in range(row + 1, end):
        weight = math.exp(graph.offset[i] - top)
        total += weight
        mean += weight * follow[graph.next_state[i]]
    return mean / total


@inner
def own_whitener(whiten, cols, size, w):
    """w (m, m), lower triangular, with w'w = (gram^-1)[cols, cols], from W (size, size) with W'W = gram^-1."""
    m = len(cols)
    for i in range(m):
        for j in range(i + 1):
            first, second = max(cols[i], cols[j]), min(cols[i], cols[j])
            total = whiten[first, first] * whiten[first, second]
            for k in range(first + 1, size):
                total += whiten[k, first] * whiten[k, second]
            w[i, j] = total
    for k in range(m - 1, -1, -1):
        pivot = sqrt(maximum(w[k, k], 1e-300))
        w[k, k] = pivot
        for j in range(k):
            w[k, j] /= pivot
        for i in range(k):
            for j in range(i + 1):
                w[i, j] -= w[k, i] * w[k, j]
