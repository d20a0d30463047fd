"""Where else to climb from: starts for one inner problem whose expectation may have several local maxima.

A local method stops on the nearest hill, and on a wide ellipsoid much of the way is flat: where one outcome has all the
weight the gradient vanishes, and the maximum may be a narrow ridge between two such plains, or inside.  Along a
**chord** of the ball the logits are linear, z + Yx + s Yd, so that f at many points of it costs their exponentials
only.  The chords searched have the directions

- of the first axes of the differences y_i - y_0 (Gram-Schmidt, the longest first: a thin direction is not hidden by a
  thick one), and
- of the pushes of the top-valued outcomes, y_i - (mean of the others at the centre),

and pass through the best point so far, the centre and (the axes and the first push only) both ends of every axis; the
points on them lie at 1, 1/4, 1/16 and 1/64 of the way to either end.  The best one of all is the next start.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from livarot.core.jit import jit
from livarot.core.mnl import exp

AXES, PUSHES, SAMPLES = 4, 8, 8  # at most so many axes and pushes; points of a chord
STEP, TOP, TOTAL, MEAN, SIZE = (SAMPLES * name for name in range(5))
END = 0.9  # of an axis: a chord through its very end would have no length across
THIN = 1e-12  # shorter axes, relative to the first, are rounding


@jit
def unit(rows, at, k):
    """Make rows[at] a unit vector, whatever its size; False, and left as it is, if it is zero."""
    largest = 0.0
    for j in range(k):
        largest = max(largest, abs(rows[at, j]))
    if not largest > 0.0:
        return False
    square = 0.0
    for j in range(k):
        rows[at, j] /= largest
        square += rows[at, j] * rows[at, j]
    for j in range(k):
        rows[at, j] /= math.sqrt(square)
    return True


@jit
def next_best(v, n, last):
    """The outcome that follows ``last`` in decreasing value (ties by index)."""
    pick = -1
    for i in range(n):
        after = last < 0 or v[i] < v[last] or (v[i] == v[last] and i > last)
        if after and (pick < 0 or v[i] > v[pick]):
            pick = i
    return pick if pick >= 0 else last


@jit
def push(z, y, n, k, pick, rows, at):
    """rows[at] = the unit vector along y_pick - ybar, ybar = sum_i p_i y_i at the centre; False if it is zero.

    Along it the log-probability of the outcome grows fastest.  It is the direction from the mean of the *other*
    outcomes, their weights relative to the largest of them: y_pick - ybar itself cancels when p_pick is near 1.
    """
    top = -math.inf
    for i in range(n):
        top = max(top, z[i]) if i != pick else top
    for j in range(k):
        rows[at, j] = 0.0
    for i in range(n):
        if i != pick:
            weight = exp(z[i] - top)
            for j in range(k):
                rows[at, j] += weight * (y[pick, j] - y[i, j])
    return unit(rows, at, k)


@jit
def directions(z, y, v, n, k):
    """Unit vectors (count, k), the axes first, and how many of them are axes."""
    ways, rest = np.zeros((AXES + PUSHES, k)), np.empty((n, k))
    for i in range(n):
        for j in range(k):
            rest[i, j] = y[i, j] - y[0, j]
    count, least = 0, 0.0
    for _ in range(min(AXES, min(k, n - 1))):
        pick, most = -1, least
        for i in range(n):
            square = 0.0
            for j in range(k):
                square += rest[i, j] * rest[i, j]
            if square > most:
                pick, most = i, square
        if pick < 0:
            break
        least = THIN * THIN * most if count == 0 else least
        for j in range(k):
            ways[count, j] = rest[pick, j]
        unit(ways, count, k)
        for i in range(n):
            inner = 0.0
            for j in range(k):
                inner += rest[i, j] * ways[count, j]
            for j in range(k):
                rest[i, j] -= inner * ways[count, j]
        count += 1
    axes, pick = count, -1
    for _ in range(min(PUSHES, n)):
        pick = next_best(v, n, pick)
        count += 1 if push(z, y, n, k, pick, ways, count) else 0
    return ways[:count], axes


@jit
def expectations(z, slope, way, v, n, w):
    """w[MEAN] = sum_i p_i V_i with p = softmax(z + step slope[way]), for all of the steps in w[STEP] side by side."""
    for s in range(SAMPLES):
        w[TOP + s] = -math.inf
        w[TOTAL + s] = 0.0
        w[MEAN + s] = 0.0
    for i in range(n):
        logit, rate = z[i], slope[way, i]
        for s in range(SAMPLES):
            w[TOP + s] = max(w[TOP + s], logit + w[STEP + s] * rate)
    for i in range(n):
        logit, rate, worth = z[i], slope[way, i], v[i]
        for s in range(SAMPLES):
            weight = exp(logit + w[STEP + s] * rate - w[TOP + s])
            w[TOTAL + s] += weight
            w[MEAN + s] += weight * worth
    for s in range(SAMPLES):
        w[MEAN + s] /= w[TOTAL + s]


@jit
def best_on_chords(z, y, v, n, k, beta, at, everywhere, start):
    """start = the best point on chords through ``at`` and, if ``everywhere``, through the centre and the ends of the
    axes; all in the ball |x| <= beta.  Returns its value, -inf if there is no direction to go."""
    ways, axes = directions(z, y, v, n, k)
    slope, base, logits = np.empty((len(ways), n)), np.empty(k), np.empty(n)  # in units of beta
    w = np.empty(SIZE)
    for way in range(len(ways)):
        for i in range(n):
            slope[way, i] = 0.0
            for j in range(k):
                slope[way, i] += beta * y[i, j] * ways[way, j]
    best = -math.inf
    for turn in range(2 + 2 * axes if everywhere else 1):
        square = 0.0
        for j in range(k):
            base[j] = at[j] / beta if turn == 0 else 0.0
            if turn > 1:
                base[j] = (END if turn % 2 == 0 else -END) * ways[(turn - 2) // 2, j]
            square += base[j] * base[j]
        for i in range(n):
            logits[i] = z[i]
            for j in range(k):
                logits[i] += beta * y[i, j] * base[j]
        for way in range(len(ways) if turn < 2 else min(len(ways), axes + 1)):
            along = 0.0
            for j in range(k):
                along += base[j] * ways[way, j]
            room = math.sqrt(max(1.0 - square + along * along, 0.0))
            share = 1.0
            for s in range(0, SAMPLES, 2):
                w[STEP + s] = share * (room - along)
                w[STEP + s + 1] = share * (-room - along)
                share *= 0.25
            expectations(logits, slope, way, v, n, w)
            for s in range(SAMPLES):
                if w[MEAN + s] > best:
                    best = w[MEAN + s]
                    for j in range(k):
                        start[j] = beta * (base[j] + w[STEP + s] * ways[way, j])
    return best
