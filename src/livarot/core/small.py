"""Small symmetric matrices as (n, n) views, of floats or of lanes: factors, solves, inverses.

Factors are lower triangular with *reciprocal* diagonals.  They are always recomputed from the matrix, never updated by
rank one: at condition 1e9 rank-one updates lose five digits after a million steps.  A pivot that is not safely
positive is raised to ``PIVOT_FLOOR`` times its diagonal entry, or ``LEAST_FLOOR`` times the largest one where its own
is not positive, and the caller is told: a near-singular matrix gives a defined answer and a flag instead of NaN.
Coordinates in other units have the same factors in these units.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from livarot.core.compiling.inner import inner
from livarot.core.lanes import maximum, sqrt, where

PIVOT_FLOOR = 1e-15
LEAST_FLOOR = 1e-30  # where a diagonal entry is not positive


@inner
def cholesky(a, low):
    """low low' = a, with reciprocal diagonal; only the lower part of ``a`` is read.  True if no pivot was raised."""
    n = len(a)
    most = a[0, 0]
    for i in range(1, n):
        most = maximum(most, a[i, i])
    sound = most > 0.0
    for i in range(n):
        own = PIVOT_FLOOR * a[i, i]  # relative to its own entry: units of the coordinates do not matter
        floor = where(own > 1e-300, own, maximum(LEAST_FLOOR * most, 1e-300))
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= low[i, k] * low[j, k]
            if i > j:
                low[i, j] = total * low[j, j]
            else:
                sound = sound & (total > floor)
                low[i, i] = 1.0 / sqrt(maximum(total, floor))
    return sound


@inner
def solve(low, x):
    """x <- (low low')^-1 x."""
    n = len(x)
    for i in range(n):
        total = x[i]
        for k in range(i):
            total -= low[i, k] * x[k]
        x[i] = total * low[i, i]
    for i in range(n - 1, -1, -1):
        total = x[i]
        for k in range(i + 1, n):
            total -= low[k, i] * x[k]
        x[i] = total * low[i, i]


@inner
def invert(low, inverse):
    """The inverse of a lower factor; only its lower part is written."""
    n = len(low)
    for j in range(n):
        inverse[j, j] = low[j, j]
        for i in range(j + 1, n):
            total = -(low[i, j] * inverse[j, j])
            for k in range(j + 1, i):
                total -= low[i, k] * inverse[k, j]
            inverse[i, j] = total * low[i, i]
