"""Small symmetric matrices in packed, row-major storage: Cholesky factors, their inverses, solves, projection.

A *packed* matrix is block diagonal (see :mod:`livarot.core.ragged`); ``at`` is where a block begins in the flat
array and ``n`` its size.  Factors are always recomputed from the matrix, never updated by rank one: at condition
1e9 rank-one updates lose five digits after a million steps.

A pivot that is not safely positive is raised to ``PIVOT_FLOOR`` times the largest diagonal entry and reported,
so that a near-singular matrix gives a defined answer and a flag instead of NaN.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from livarot.core.jit import jit

PIVOT_FLOOR = 1e-15
MAX_NEWTON = 100
OUTSIDE = 1e-11  # share of a radius by which a projection may be outside


@jit
def cholesky(a, at, n, low, to):
    """Lower factor of ``a`` (n x n at ``at``) into ``low`` at ``to``; False if a pivot had to be raised."""
    largest = 0.0
    for i in range(n):
        largest = max(largest, a[at + i * n + i])
    floor = PIVOT_FLOOR * largest
    if not floor > 0.0:
        floor = 1e-300
    sound = True
    for i in range(n):
        for j in range(i + 1):
            total = a[at + i * n + j]
            for k in range(j):
                total -= low[to + i * n + k] * low[to + j * n + k]
            if i > j:
                low[to + i * n + j] = total / low[to + j * n + j]
            else:
                if not total > floor:
                    total = floor
                    sound = False
                low[to + i * n + i] = math.sqrt(total)
    return sound


@jit
def invert_lower(low, at, n, inv, to):
    """Inverse of a lower triangular matrix; the strict upper part of the result is zero."""
    for j in range(n):
        for i in range(j):
            inv[to + i * n + j] = 0.0
        inv[to + j * n + j] = 1.0 / low[at + j * n + j]
        for i in range(j + 1, n):
            total = 0.0
            for k in range(j, i):
                total -= low[at + i * n + k] * inv[to + k * n + j]
            inv[to + i * n + j] = total / low[at + i * n + i]


@jit
def solve_cholesky(low, at, n, x, first):
    """Solve L L' y = x in place, ``x`` at ``first``."""
    for i in range(n):
        total = x[first + i]
        for k in range(i):
            total -= low[at + i * n + k] * x[first + k]
        x[first + i] = total / low[at + i * n + i]
    for i in range(n - 1, -1, -1):
        total = x[first + i]
        for k in range(i + 1, n):
            total -= low[at + k * n + i] * x[first + k]
        x[first + i] = total / low[at + i * n + i]


@jit
def packed_product(a, block_start, gram_start, x, out):
    """out = a x for a packed matrix and a vector in block order."""
    for b in range(len(block_start) - 1):
        first, n, at = block_start[b], block_start[b + 1] - block_start[b], gram_start[b]
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += a[at + i * n + j] * x[first + j]
            out[first + i] = total


@jit
def packed_whitener(gram, block_start, gram_start, whiten, low):
    """W with W'W = gram^-1 for every block; False if a block is numerically singular."""
    sound = True
    for b in range(len(block_start) - 1):
        n, at = block_start[b + 1] - block_start[b], gram_start[b]
        sound = cholesky(gram, at, n, low, 0) and sound
        invert_lower(low, 0, n, whiten, at)
    return sound


@jit
def project_packed(metric, shape, block_start, gram_start, target, radius, out, work):
    """Minimise |x - target|_metric over |x|_shape <= radius; the centre is the origin.

    The optimum is x(mu) = (M + mu A)^-1 M target with mu >= 0 the root of |x(mu)|_A = radius.  Newton's method on
    1/|x(mu)|_A, which is concave and nearly linear in mu, increases monotonically to the root from mu = 0 at
    every scale; each step is one Cholesky factorisation and is backward stable.  ``work`` is (4, d) plus room for
    two packed matrices: (sum of block sizes) * 4 + 2 * gram_size numbers.

    Returns (mu, steps, sound): sound is False when a pivot had to be raised.
    """
    d = block_start[-1]
    size = gram_start[-1]
    v, ax, w = work[0:d], work[d : 2 * d], work[2 * d : 3 * d]
    shifted, low = work[4 * d : 4 * d + size], work[4 * d + size : 4 * d + 2 * size]
    for i in range(d):
        out[i] = target[i]
    packed_product(shape, block_start, gram_start, out, ax)
    norm = math.sqrt(max(dot(out, ax, d), 0.0))
    if norm <= radius * (1.0 + 1e-12):
        return 0.0, 0, True
    sound = True
    if radius <= 1e-100 * norm:  # the limit mu -> infinity: x along A^-1 M target, of length radius
        packed_product(metric, block_start, gram_start, target, out)
        sound = factor_solve(shape, block_start, gram_start, low, out)
        packed_product(shape, block_start, gram_start, out, ax)
        norm = math.sqrt(max(dot(out, ax, d), 0.0))
        for i in range(d):
            out[i] = out[i] * (radius / norm) if norm > 0.0 else 0.0
        return math.inf, 0, sound
    packed_product(metric, block_start, gram_start, target, v)
    mu = 0.0
    step = 0
    while step < MAX_NEWTON:
        step += 1
        for i in range(size):
            shifted[i] = metric[i] + mu * shape[i]
        for i in range(d):
            out[i] = target[i] if mu == 0.0 else v[i]
        if mu == 0.0:
            sound = factor(shifted, block_start, gram_start, low) and sound
        else:
            sound = factor_solve(shifted, block_start, gram_start, low, out) and sound
        packed_product(shape, block_start, gram_start, out, ax)
        norm = math.sqrt(max(dot(out, ax, d), 0.0))
        if norm <= radius * (1.0 + 4e-16):
            break
        for i in range(d):
            w[i] = ax[i]
        solve_packed(low, block_start, gram_start, w)
        slope = dot(ax, w, d)
        if not slope > 0.0:
            sound = False
            break
        moved = mu + (norm / radius - 1.0) * norm * norm / slope
        if not moved > mu:
            break
        mu = moved
    if norm > radius:
        for i in range(d):
            out[i] *= radius / norm
    return mu, step, sound


@jit
def dot(x, y, n):
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total


@jit
def factor(a, block_start, gram_start, low):
    sound = True
    for b in range(len(block_start) - 1):
        n, at = block_start[b + 1] - block_start[b], gram_start[b]
        sound = cholesky(a, at, n, low, at) and sound
    return sound


@jit
def solve_packed(low, block_start, gram_start, x):
    for b in range(len(block_start) - 1):
        first, n, at = block_start[b], block_start[b + 1] - block_start[b], gram_start[b]
        solve_cholesky(low, at, n, x, first)


@jit
def factor_solve(a, block_start, gram_start, low, x):
    sound = factor(a, block_start, gram_start, low)
    solve_packed(low, block_start, gram_start, x)
    return sound


@jit
def quadratic(gram, block_start, gram_start, block_coords, x, y):
    """|x - y|_gram for vectors in coordinate order."""
    total = 0.0
    for b in range(len(block_start) - 1):
        first, n, at = block_start[b], block_start[b + 1] - block_start[b], gram_start[b]
        for i in range(n):
            ci = block_coords[first + i]
            di = x[ci] - y[ci]
            row = 0.0
            for j in range(n):
                cj = block_coords[first + j]
                row += gram[at + i * n + j] * (x[cj] - y[cj])
            total += di * row
    return math.sqrt(max(total, 0.0))


@jit
def product_and_error(a, b):
    """a b rounded, and what rounding took away, exactly (Dekker 1971)."""
    far_a, far_b = 134217729.0 * a, 134217729.0 * b  # 2^27 + 1
    high_a, high_b = far_a - (far_a - a), far_b - (far_b - b)
    low_a, low_b = a - high_a, b - high_b
    rounded = a * b
    return rounded, ((high_a * high_b - rounded) + high_a * low_b + low_a * high_b) + low_a * low_b


@jit
def accurate_quadratic(gram, block_start, gram_start, block_coords, x, y):
    """:func:`quadratic` with twice the digits: that one is wrong by rounding times the condition of the matrix."""
    total, lost = 0.0, 0.0
    for b in range(len(block_start) - 1):
        first, n, at = block_start[b], block_start[b + 1] - block_start[b], gram_start[b]
        for i in range(n):
            di = x[block_coords[first + i]] - y[block_coords[first + i]]
            for j in range(n):
                dj = x[block_coords[first + j]] - y[block_coords[first + j]]
                pair, pair_error = product_and_error(di, dj)
                term, term_error = product_and_error(gram[at + i * n + j], pair)
                before = total
                total = before + term
                added = total - before
                lost += (before - (total - added)) + (term - added) + term_error + gram[at + i * n + j] * pair_error
    return math.sqrt(max(total + lost, 0.0))


@jit
def draw_inside(shape, block_start, gram_start, block_coords, center, radius, bound, x):
    """Move x straight to the centre, as far as |x - center|_shape <= radius and |x| <= bound ask for it."""
    away = accurate_quadratic(shape, block_start, gram_start, block_coords, x, center)
    share = radius / away if away > radius * (1.0 + OUTSIDE) else 1.0
    length, inner, square, cross = 0.0, 0.0, 0.0, 0.0
    for i in range(len(x)):
        step = x[i] - center[i]
        length += x[i] * x[i]
        inner += center[i] * center[i]
        square += step * step
        cross += center[i] * step
    room = bound * bound - inner
    if length > bound * bound * (1.0 + OUTSIDE) and room > 0.0:  # the root of |center + share step| = bound
        share = min(share, room / (cross + math.sqrt(cross * cross + square * room)))
    if share < 1.0:
        for i in range(len(x)):
            x[i] = center[i] + (x[i] - center[i]) * share


def projection_workspace(dim: int, gram_size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Scratch space for :func:`project_packed`."""
    return np.empty(4 * dim + 2 * gram_size)
