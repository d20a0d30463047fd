"""The likelihood of many multinomial-logistic choices, block by block, without padding (all certain).

A choice set g has rows ``phi_i`` (ragged, CSR), known offsets ``o_i`` and counts ``c_i``: how often each row was
chosen; ``N_g`` is their sum.  With ``p = softmax(o + phi theta)`` within each set and ``mu_g = sum_i p_i phi_i``:

    log-likelihood  sum_g sum_i c_i log p_i
    gradient        sum_g sum_i c_i (mu_g - phi_i)                              of minus the log-likelihood
    Hessian         sum_g N_g sum_i p_i (phi_i - mu_g)(phi_i - mu_g)'

Counts are sufficient statistics: a thousand equal choice sets cost as much as one.

Along a direction v the third derivative is at most ``D_v`` times the second, where ``D_v`` is the largest range of
``phi . v`` within a set (a third central moment is at most the range times the variance).  :func:`reach` bounds it over
the directions with ``|v|_H = 1``.

Numerics: the first row of a set is subtracted from all of them before anything else, so that features of 1e6 with
differences of 1 lose nothing.  Rows are taken ``CHUNK`` at a time: compiled loops centre and scale them, BLAS forms
the d x d products while they are in cache, and memory does not grow with the data.  Sums run in a fixed order.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from livarot.core.arrays import FloatArray, IntArray
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.lanes import exp
from livarot.core.views import part, view

if TYPE_CHECKING:
    from livarot.data.reading.choices import Choices

CHUNK = 4096  # rows at a time: 20 features of it stay in a second-level cache


class Derivatives(NamedTuple):
    """Log-likelihood, and gradient and Hessian of minus the log-likelihood."""

    log_likelihood: float
    gradient: FloatArray  # (d,)
    hessian: FloatArray  # (d, d)
    spread: FloatArray  # (d,) largest |phi_i - mu_g| of each column, over the sets that were met


class Block(NamedTuple):
    """Consecutive sets: ``shifted`` are their rows minus the first row of each set (overwritten by the next block)."""

    first: int  # sets first .. last - 1
    last: int
    begin: int  # rows begin .. end - 1
    end: int
    shifted: FloatArray  # (rows, d)


def blocks(choices: Choices, stride: int = 1) -> Iterator[Block]:
    """The data block by block; ``stride`` k takes every k-th block, as a sample."""
    start, source = choices.start, choices.features
    cuts = block_starts(start)
    buffer = np.empty((int(np.diff(start[cuts]).max(initial=0)), choices.dim))
    for k in range(0, len(cuts) - 1, stride):
        first, last = int(cuts[k]), int(cuts[k + 1])
        begin, end = int(start[first]), int(start[last])
        rows = buffer[: end - begin]
        if isinstance(source, tuple):
            for j, column in enumerate(source):
                rows[:, j] = column[begin:end]
            _shift(rows, start, first, last, rows)
        else:
            _shift(source[begin:end], start, first, last, rows)
        yield Block(first, last, begin, end, rows)


def block_starts(start: IntArray) -> IntArray:
    """First sets of the blocks: at most CHUNK rows each, or one set."""
    cuts = np.searchsorted(start, np.arange(0, start[-1], CHUNK))
    return np.unique(np.concatenate(([0], cuts, [len(start) - 1]))).astype(np.int64)


def derivatives(choices: Choices, theta: FloatArray, stride: int = 1, *, counted: bool = False) -> Derivatives:
    """The module's three formulas at theta, in one pass over the data.

    ``counted=True`` weighs the squares by the counts instead of ``N_g p_i``: the Hessian becomes the sum of the outer
    products of the scores (the sandwich's middle).
    """
    d = choices.dim
    sums, hessian = np.zeros((3, d)), np.zeros((d, d))
    total, count = 0.0, np.ascontiguousarray(choices.count)
    for block in blocks(choices, stride):
        z = _logits(choices, block, theta)
        place = choices.start, block.first, block.last
        total += _centre(block.shifted, z, *place, choices.weight, count, counted, sums)
        hessian += block.shifted.T @ block.shifted
    return Derivatives(total, sums[0], hessian, sums[1])


def log_likelihood(choices: Choices, theta: FloatArray) -> float:
    """sum of c_i log p_i."""
    total = 0.0
    for block in blocks(choices):
        z = _logits(choices, block, theta)
        _log_softmax(z, choices.start, block.first, block.last)
        counts = choices.count[block.begin : block.end]
        seen = counts > 0
        total += float(counts[seen] @ z[seen])
    return total


def log_probabilities(choices: Choices, theta: FloatArray) -> FloatArray:
    """log p_i of every row."""
    out = np.empty(choices.n_rows)
    for block in blocks(choices):
        z = _logits(choices, block, theta)
        _log_softmax(z, choices.start, block.first, block.last)
        out[block.begin : block.end] = z
    return out


def centred_rows(choices: Choices, block: Block, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """phi_i - mu_g (a view of the block's own rows) and p_i, for the rows of a block."""
    z = _logits(choices, block, theta)
    _log_softmax(z, choices.start, block.first, block.last)
    p = np.exp(z)
    _subtract_mean(block.shifted, p, choices.start, block.first, block.last)
    return block.shifted, p


class Reach(NamedTuple):
    """How far rows lie apart within a set, in the norm of H^-1: bounds how much curvature is lost along a unit step."""

    farthest: float  # max |phi_i - mu_g|_{H^-1} over the sets that were met
    widest: float  # max over sets of D_g
    average: float  # largest eigenvalue of H^{-1/2} (sum_g D_g H_g) H^{-1/2}


def reach(choices: Choices, theta: FloatArray, root: FloatArray) -> Reach:
    """D_g = the sum of the two largest ``|phi_i - mu_g|_{H^-1}`` of a set, H = root root', H_g its share of H.

    For |v|_H <= 1 no ``|(phi_i - phi_j) . v|`` within set g exceeds D_g.  The second derivative along v at distance t
    is at least ``sum_g |v|^2_{H_g} exp(-D_g t)``, and with |v|_H = 1, by Jensen, at least ``exp(-average t)``.
    """
    d = choices.dim
    total, widest, farthest = np.zeros((d, d)), 0.0, 0.0
    for block in blocks(choices):
        rows, p = centred_rows(choices, block, theta)
        place = choices.start, block.first, block.last
        white = np.ascontiguousarray(solve_triangular(root, rows.T, lower=True).T)
        square = np.einsum("ij,ij->i", white, white)
        apart = np.empty(len(square))
        _two_largest(square, *place, choices.weight, apart)
        widest = max(widest, float(apart.max(initial=0.0)))
        farthest = max(farthest, float(square[apart > 0.0].max(initial=0.0)))
        sizes = np.diff(choices.start[block.first : block.last + 1])
        scaled = white * np.sqrt(apart * p * np.repeat(choices.weight[block.first : block.last], sizes))[:, None]
        total += scaled.T @ scaled
    return Reach(math.sqrt(farthest), widest, float(np.linalg.eigvalsh(total)[-1]))


def _logits(choices: Choices, block: Block, theta: FloatArray) -> FloatArray:
    z = block.shifted @ theta
    if choices.offset is not None:
        z += choices.offset[block.begin : block.end]
    return z


@jit
def _shift(rows, start, first, last, out):
    """out = rows minus the first row of their set (out may be rows)."""
    base = start[first]
    for g in range(first, last):
        a, b = start[g] - base, start[g + 1] - base
        for i in range(b - 1, a - 1, -1):  # the first row, which the others need, comes last
            for j in range(rows.shape[1]):
                out[i, j] = rows[i, j] - rows[a, j]


@jit
def _log_softmax(z, start, first, last):
    """Logits to log-probabilities, in place."""
    base = start[first]
    for g in range(first, last):
        a, b = start[g] - base, start[g + 1] - base
        best = a
        for i in range(a + 1, b):
            if z[i] > z[best]:
                best = i
        top, rest = z[best], 0.0
        for i in range(a, b):
            if i != best:
                rest += math.exp(z[i] - top)
        log_total = math.log1p(rest)
        for i in range(a, b):
            z[i] = z[i] - top - log_total


@jit
def _two_largest(square, start, first, last, weight, out):
    """For the rows of each set: the sum of the roots of its two largest squares; 0 where the set was never met."""
    base = start[first]
    for g in range(first, last):
        a, b = start[g] - base, start[g + 1] - base
        one, two = 0.0, 0.0
        for i in range(a, b):
            if square[i] > one:
                one, two = square[i], one
            elif square[i] > two:
                two = square[i]
        value = math.sqrt(one) + math.sqrt(two) if weight[g] > 0.0 else 0.0
        for i in range(a, b):
            out[i] = value


@jit
def _subtract_mean(rows, p, start, first, last):
    d = rows.shape[1]
    base = start[first]
    mean = np.empty(d)
    for g in range(first, last):
        a, b = start[g] - base, start[g + 1] - base
        mean[:] = 0.0
        for i in range(a, b):
            for j in range(d):
                mean[j] += p[i] * rows[i, j]
        for i in range(a, b):
            for j in range(d):
                rows[i, j] -= mean[j]


@jit
def _centre(rows, z, start, first, last, weight, count, counted, sums):
    """Rows to sqrt(N_g p_i) (phi_i - mu_g), in place; z to p; the log-likelihood.

    ``sums`` has gradient and spread, which are added to, and room for the mean of a set.
    """
    sides = view(rows), view(z), part(view(count), start[first], len(z))
    total = 0.0
    for g in range(first, last):
        a, b = start[g] - start[first], start[g + 1] - start[first]
        total += _centre_set(sides, a, b, weight[g], counted, view(sums))
    return total


@inner
def _centre_set(sides, a, b, w, counted, sums):
    """:func:`_centre` of the set with rows a to b - 1."""
    rows, z, count = sides
    gradient, spread, middle = sums[0], sums[1], sums[2]
    d = rows.shape[1]
    if w == 0.0:  # never met: no information
        for i in range(a, b):
            for j in range(d):
                rows[i, j] = 0.0
        return 0.0
    best, total, rest = a, 0.0, 0.0
    for i in range(a + 1, b):
        if z[i] > z[best]:
            best = i
    top = z[best]
    for i in range(a, b):
        z[i] -= top
        if count[i] != 0.0:
            total += count[i] * z[i]
    for i in range(a, b):
        z[i] = exp(z[i])
        if i != best:
            rest += z[i]
    for j in range(d):
        middle[j] = 0.0
    norm = 1.0 / (1.0 + rest)
    for i in range(a, b):
        z[i] *= norm
        for j in range(d):
            middle[j] += z[i] * rows[i, j]
    for i in range(a, b):
        size = math.sqrt(count[i]) if counted else math.sqrt(w * z[i])
        for j in range(d):
            away = rows[i, j] - middle[j]
            spread[j] = max(spread[j], abs(away))
            if count[i] != 0.0:
                gradient[j] -= count[i] * away
            rows[i, j] = away * size
    return total - w * math.log1p(rest)
