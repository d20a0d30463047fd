"""Elementary operations on up to 64 small problems side by side, one per lane (the last axis).

Loops over lanes are the inner ones and vectorise; each lane is computed by the same operations whatever its neighbours
are.  Matrices are (n * n, lanes), row-major, vectors (n, lanes).
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

from livarot.core.jit import jit
from livarot.core.linalg import PIVOT_FLOOR
from livarot.core.mnl import exp

LANES = 64


@jit
def softmax_rows(z, p, n, lanes, top, total):
    """p = softmax(z) down the n rows; ``top`` and ``total`` are scratch (lanes,)."""
    for lane in range(lanes):
        top[lane] = z[0, lane]
        total[lane] = 0.0
    for i in range(1, n):
        for lane in range(lanes):
            top[lane] = max(top[lane], z[i, lane])
    for i in range(n):
        for lane in range(lanes):
            e = exp(z[i, lane] - top[lane])
            p[i, lane] = e
            total[lane] += e
    for lane in range(lanes):
        total[lane] = 1.0 / total[lane]
    for i in range(n):
        for lane in range(lanes):
            p[i, lane] *= total[lane]


@jit
def cholesky_lanes(a, low, n, lanes, floor, total):
    """Lower factors with *reciprocal* diagonals; an unsafe pivot is raised (see :mod:`livarot.core.linalg`)."""
    for lane in range(lanes):
        floor[lane] = 1e-300
    for i in range(n):
        for lane in range(lanes):
            floor[lane] = max(floor[lane], PIVOT_FLOOR * a[i * n + i, lane])
    for i in range(n):
        for j in range(i + 1):
            for lane in range(lanes):
                total[lane] = a[i * n + j, lane]
            for k in range(j):
                for lane in range(lanes):
                    total[lane] -= low[i * n + k, lane] * low[j * n + k, lane]
            if i > j:
                for lane in range(lanes):
                    low[i * n + j, lane] = total[lane] * low[j * n + j, lane]
            else:
                for lane in range(lanes):
                    low[i * n + i, lane] = 1.0 / math.sqrt(max(total[lane], floor[lane]))


@jit
def solve_lanes(low, x, n, lanes):
    """Solve L L' y = x in place (reciprocal diagonals)."""
    for i in range(n):
        for k in range(i):
            for lane in range(lanes):
                x[i, lane] -= low[i * n + k, lane] * x[k, lane]
        for lane in range(lanes):
            x[i, lane] *= low[i * n + i, lane]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            for lane in range(lanes):
                x[i, lane] -= low[k * n + i, lane] * x[k, lane]
        for lane in range(lanes):
            x[i, lane] *= low[i * n + i, lane]


@jit
def invert_lower_lanes(low, inv, n, lanes):
    """Inverses of lower triangular matrices with reciprocal diagonals (the strict upper part is not written)."""
    for j in range(n):
        for lane in range(lanes):
            inv[j * n + j, lane] = low[j * n + j, lane]
        for i in range(j + 1, n):
            for lane in range(lanes):
                inv[i * n + j, lane] = 0.0
            for k in range(j, i):
                for lane in range(lanes):
                    inv[i * n + j, lane] -= low[i * n + k, lane] * inv[k * n + j, lane]
            for lane in range(lanes):
                inv[i * n + j, lane] *= low[i * n + i, lane]
