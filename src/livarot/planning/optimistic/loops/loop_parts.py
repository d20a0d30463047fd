"""What an optimistic plan reads and fills, and the steps that all of its loops share."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

from livarot.core.compiling.inner import inner
from livarot.core.lanes import maximum, minimum, sqrt


class Task(NamedTuple):
    """What a loop over replicas reads."""

    rule: Any  # :class:`livarot.planning.optimistic.rule.Table`
    model: Any  # :class:`livarot.model.compiled.Model`


class PairTask(NamedTuple):
    """What loops over pairs read."""

    rule: Any
    model: Any
    blocks: Any  # :class:`livarot.planning.optimistic.loops.blocks.Blocks`


class Centres(NamedTuple):
    """The confidence ellipsoids."""

    theta: Any  # (R, K, d)
    whiten: Any  # (R, K, G)
    radius: Any  # (R,)


class Result(NamedTuple):
    """The arrays that a plan fills."""

    value: Any  # (R, H + 1, S)
    upper: Any  # (R or 1, H + 1, S) room for certified bounds, of replicas at a time or of one after the other
    policy: Any  # (R, H, S)
    report: Any  # (3, R): start value, its bound, largest first-order gap relative to the value range


@inner
def value_range(model, h, value):
    """max - min of V_{h+1} over the states that can be reached at stage h + 1 (after the last stage: over all states).

    With a discount and rewards of the next state, a bound of the range of what follows.
    """
    after = model.after
    if h + 2 >= len(model.node_start):
        if after.idle:
            return value[0] * 0.0
        low, high = value[0], value[0]
        for s in range(1, len(model.start)):
            low, high = minimum(low, value[s]), maximum(high, value[s])
        return after.discount * (high - low) + after.span
    first = value[model.node_state[model.node_start[h + 1]]]
    low, high = first, first
    for node in range(model.node_start[h + 1] + 1, model.node_start[h + 2]):
        there = value[model.node_state[node]]
        low, high = minimum(low, there), maximum(high, there)
    return high - low if len(after.state) == 0 else after.discount * (high - low) + after.span


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
