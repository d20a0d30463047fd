"""Packed symmetric matrices and vectors in the order of their blocks: products, factors, whiteners, projection.

A *packed* matrix is block diagonal (:mod:`livarot.model.ragged`): block after block, each dense and row-major.  The
arithmetic of a block is that of :mod:`livarot.core.small`.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from livarot.core.compiling.basics import new_floats
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.small import cholesky, invert, solve
from livarot.core.views import Bundle, matrix, opened, part, view

MAX_NEWTON = 100
OUTSIDE = 1e-11  # share of a radius by which a projection may be outside


class Blocks(NamedTuple):
    """Where block b begins: coordinates ``first[b]`` to ``first[b + 1]``, numbers of a packed matrix from ``at[b]``."""

    first: Any  # (blocks + 1,)
    at: Any  # (blocks + 1,)


class Room(NamedTuple):
    """Memory that a projection writes to: a packed matrix and its factor, and vectors."""

    shifted: Any  # (G,)
    low: Any  # (G,)
    product: Any  # (d,)
    image: Any  # (d,)
    solved: Any  # (d,)


@inner
def make_room(matrices, vectors):
    """The room in two rows of ``matrices`` and three rows of ``vectors``, which have to outlive it."""
    return Room(matrices[0], matrices[1], vectors[0], vectors[1], vectors[2])


@inner
def block_of(blocks, a, b):
    """Block b of a packed matrix."""
    n = blocks.first[b + 1] - blocks.first[b]
    return matrix(a, blocks.at[b], n, n)


@inner
def rows_of(blocks, x, b):
    """Block b of a vector."""
    return part(x, blocks.first[b], blocks.first[b + 1] - blocks.first[b])


@inner
def dot(x, y):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@inner
def copy(x, to):
    for i in range(len(to)):
        to[i] = x[i]


@inner
def add(x, by, y, to):
    """to = x + by y."""
    for i in range(len(to)):
        to[i] = x[i] + by * y[i]


@inner
def identity(blocks, scale, to):
    """to = scale * I."""
    for i in range(len(to)):
        to[i] = 0.0
    for b in range(len(blocks.first) - 1):
        own = block_of(blocks, to, b)
        for i in range(len(own)):
            own[i, i] = scale


@inner
def product(blocks, a, x, out):
    """out = a x."""
    for b in range(len(blocks.first) - 1):
        own, entries, result = block_of(blocks, a, b), rows_of(blocks, x, b), rows_of(blocks, out, b)
        for i in range(len(own)):
            result[i] = dot(own[i], entries)


@inner
def factor(blocks, a, low):
    """The factors of all blocks; True if no pivot was raised."""
    sound = True
    for b in range(len(blocks.first) - 1):
        sound &= cholesky(block_of(blocks, a, b), block_of(blocks, low, b))
    return sound


@inner
def solve_packed(blocks, low, x):
    """x <- a^-1 x, from the factors of a."""
    for b in range(len(blocks.first) - 1):
        solve(block_of(blocks, low, b), rows_of(blocks, x, b))


@inner
def whitener(blocks, gram, whiten, low):
    """W with W'W = gram^-1, lower triangular blocks."""
    factor(blocks, gram, low)
    for b in range(len(blocks.first) - 1):
        own = block_of(blocks, whiten, b)
        invert(block_of(blocks, low, b), own)
        for i in range(len(own)):
            for j in range(i + 1, len(own)):
                own[i, j] = 0.0


@inner
def project_packed(blocks, metric, shape, target, radius, out, room):
    """Minimise |x - target|_metric over |x|_shape <= radius; the centre is the origin.

    The optimum is x(mu) = (M + mu A)^-1 M target with mu >= 0 the root of |x(mu)|_A = radius.  Newton's method on
    1/|x(mu)|_A, which is concave and nearly linear in mu, increases monotonically to the root from mu = 0 at
    every scale; each step is one Cholesky factorisation and is backward stable.

    Returns (mu, steps, sound): sound is False when a pivot had to be raised.
    """
    copy(target, out)
    norm = image_norm(blocks, shape, out, room.image)
    if norm <= radius * (1.0 + 1e-12):
        return 0.0, 0, True
    product(blocks, metric, target, room.product)
    if radius <= 1e-100 * norm:  # the limit mu -> infinity: x along A^-1 M target, of length radius
        copy(room.product, out)
        sound = factor(blocks, shape, room.low)
        solve_packed(blocks, room.low, out)
        norm = image_norm(blocks, shape, out, room.image)
        scale(out, radius / norm if norm > 0.0 else 0.0)
        return math.inf, 0, sound
    mu, steps, sound = 0.0, 0, True
    while steps < MAX_NEWTON:
        steps += 1
        add(metric, mu, shape, room.shifted)
        sound &= factor(blocks, room.shifted, room.low)
        if mu > 0.0:
            copy(room.product, out)
            solve_packed(blocks, room.low, out)
        norm = image_norm(blocks, shape, out, room.image)
        if norm <= radius * (1.0 + 4e-16):
            break
        copy(room.image, room.solved)
        solve_packed(blocks, room.low, room.solved)
        slope = dot(room.image, room.solved)
        if not slope > 0.0:
            sound = False
            break
        moved = mu + (norm / radius - 1.0) * norm * norm / slope
        if not moved > mu:
            break
        mu = moved
    if norm > radius:
        scale(out, radius / norm)
    return mu, steps, sound


@inner
def image_norm(blocks, a, x, image):
    """|x|_a; ``image`` becomes a x."""
    product(blocks, a, x, image)
    return math.sqrt(max(dot(x, image), 0.0))


@inner
def scale(x, by):
    for i in range(len(x)):
        x[i] *= by


@inner
def product_and_error(a, b):
    """The rounded product a b and its exact rounding error (Dekker 1971)."""
    far_a, far_b = 134217729.0 * a, 134217729.0 * b  # 2^27 + 1
    high_a, high_b = far_a - (far_a - a), far_b - (far_b - b)
    low_a, low_b = a - high_a, b - high_b
    rounded = a * b
    return rounded, ((high_a * high_b - rounded) + high_a * low_b + low_a * high_b) + low_a * low_b


@inner
def distance(blocks, a, x, y):
    """|x - y|_a with twice the digits: plain sums are wrong by rounding times the condition of the matrix."""
    total, lost = 0.0, 0.0
    for b in range(len(blocks.first) - 1):
        own, first = block_of(blocks, a, b), blocks.first[b]
        for i in range(len(own)):
            for j in range(len(own)):
                pair, pair_error = product_and_error(x[first + i] - y[first + i], x[first + j] - y[first + j])
                term, term_error = product_and_error(own[i, j], pair)
                before = total
                total = before + term
                added = total - before
                lost += (before - (total - added)) + (term - added) + term_error + own[i, j] * pair_error
    return math.sqrt(max(total + lost, 0.0))


@inner
def draw_inside(blocks, shape, center, radius, bound, x):
    """Move x straight towards the centre, as far as |x - center|_shape <= radius and |x| <= bound require."""
    away = distance(blocks, shape, x, center)
    share = radius / away if away > radius * (1.0 + OUTSIDE) else 1.0
    length, core, square, cross = 0.0, 0.0, 0.0, 0.0
    for i in range(len(x)):
        step = x[i] - center[i]
        length += x[i] * x[i]
        core += center[i] * center[i]
        square += step * step
        cross += center[i] * step
    left = bound * bound - core
    if length > bound * bound * (1.0 + OUTSIDE) and left > 0.0:  # the root of |center + share step| = bound
        share = min(share, left / (cross + math.sqrt(cross * cross + square * left)))
    if share < 1.0:
        for i in range(len(x)):
            x[i] = center[i] + (x[i] - center[i]) * share


# ------------------------------------------------------------------------------ called from Python


@jit
def whiten_all(bundle, gram, whiten):
    """The whiteners of packed matrices (R, K, G); the bundle is one of :class:`Blocks`."""
    blocks, low = opened(bundle), new_floats(gram.shape[2])
    for r in range(gram.shape[0]):
        for k in range(gram.shape[1]):
            whitener(blocks, view(gram)[r, k], view(whiten)[r, k], view(low))


@jit
def packed_distance(bundle, a, x, y):
    """|x - y|_a for vectors in the order of the blocks."""
    return distance(opened(bundle), view(a), view(x), view(y))


@jit
def factor_dense(a, low):
    """The lower factor (n, n) of a matrix, with reciprocal diagonal; True if no pivot was raised."""
    return cholesky(view(a), view(low))


@jit
def solve_dense(low, x):
    """x <- a^-1 x, from the factor of a."""
    solve(view(low), view(x))


@jit
def invert_lower(low, at, n, inv, to):
    """Inverse of a lower factor (n x n at ``at``) into ``inv`` at ``to``."""
    invert(matrix(view(low), at, n, n), matrix(view(inv), to, n, n))


@jit
def project_dense(bundle, metric, shape, target, radius, out, matrices, vectors):
    """:func:`project_packed`, with memory (2, G) and (3, d)."""
    room = make_room(view(matrices), view(vectors))
    return project_packed(opened(bundle), view(metric), view(shape), view(target), radius, view(out), room)


def one_block(dim: int) -> Bundle:
    """The blocks of a dense matrix."""
    return Bundle(Blocks(np.array([0, dim]), np.array([0, dim * dim])))
