"""The law of a choice, for floats or for lanes: logits, probabilities, expectations (:mod:`livarot.core.mnl`)."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from livarot.core.compiling.inner import inner
from livarot.core.lanes import exp, maximum
from livarot.core.views import matrix, part


@inner
def logits(offset, phi, theta, z):
    """z_i = offset_i + phi_i . theta."""
    n, m = phi.shape
    for i in range(n):
        total = offset[i]
        for j in range(m):
            total += phi[i, j] * theta[j]
        z[i] = total


@inner
def softmax(z, p):
    """p = exp(z) / sum exp(z)."""
    top = z[0]
    for i in range(1, len(z)):
        top = maximum(top, z[i])
    total = 0.0
    for i in range(len(z)):
        e = exp(z[i] - top)
        p[i] = e
        total += e
    inverse = 1.0 / total
    for i in range(len(z)):
        p[i] *= inverse


@inner
def log_sum_exp(z):
    """log sum exp(z_i) of plain floats, exact where exp(z_i) is not a number any more."""
    top, total = z[0], 0.0
    for i in range(1, len(z)):
        top = max(top, z[i])
    for i in range(len(z)):
        total += math.exp(z[i] - top)
    return top + math.log(total)


@inner
def expectation(p, v):
    """sum_i p_i V_i."""
    total = p[0] * v[0]
    for i in range(1, len(p)):
        total += p[i] * v[i]
    return total


@inner
def pair_columns(graph, pair):
    """How many coordinates of theta the law of a pair depends on: 0 where it is known."""
    return np.int64(graph.col_count[pair]) if graph.pair_block[pair] >= 0 else 0


@inner
def coordinate(graph, pair, j):
    """Which coordinate of theta the j-th column of a pair is."""
    base = graph.block_start[graph.pair_block[pair]]
    return graph.block_coords[base + graph.cols[graph.col_start[pair] + j]]


@inner
def pair_law(graph, pair, theta, local, p):
    """p_i = softmax(offset_i + phi_i . theta) of a pair's outcomes (:mod:`livarot.model.ragged`).

    ``local`` is memory for the coordinates of theta that the pair uses, ``p`` has room for the pair's outcomes.
    """
    row = graph.row_start[pair]
    n, m = graph.row_start[pair + 1] - row, pair_columns(graph, pair)
    if n == 0:  # the pair does not exist
        return
    for j in range(m):
        local[j] = theta[coordinate(graph, pair, j)]
    own = part(p, 0, n)
    if n > 0:  # an action that does not exist has no outcomes
        logits(part(graph.offset, row, n), matrix(graph.feat, graph.feat_start[pair], n, m), local, own)
        softmax(own, own)


@inner
def mean_row(p, phi, mean):
    """mean = sum_i p_i phi_i."""
    n, m = phi.shape
    for j in range(m):
        total = p[0] * phi[0, j]
        for i in range(1, n):
            total += p[i] * phi[i, j]
        mean[j] = total


@inner
def spread(p, phi, mean, weight, away):
    """Weights w_k and columns a_k with sum_i p_i (phi_i - mean)(phi_i - mean)' = sum_k w_k a_k a_k', and how many.

    One column is enough for two outcomes: w = p_1 p_2, a = phi_1 - phi_2.
    """
    n, m = phi.shape
    if n == 2:
        weight[0] = p[0] * p[1]
        for j in range(m):
            away[j, 0] = phi[0, j] - phi[1, j]
        return 1
    for i in range(n):
        weight[i] = p[i]
        for j in range(m):
            away[j, i] = phi[i, j] - mean[j]
    return n


@inner
def scaled(weight, row, to):
    """to_i = w_i row_i."""
    for i in range(len(to)):
        to[i] = weight[i] * row[i]
