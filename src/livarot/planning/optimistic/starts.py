"""Further starts for one inner problem, whose expectation may have several local maxima.

A local method stops on the nearest hill, and much of a wide ellipsoid is flat: where one outcome has all the weight the
gradient vanishes, and the maximum may lie on a narrow ridge between two such plateaus, or inside.  Along a
**chord** of the ball the logits are linear, z + Yx + s Yd, so that f at many points of it costs their exponentials
only; W points of a chord are the numbers of a lane.  The chords searched have the directions

- of the first axes of the differences y_i - y_0 (Gram-Schmidt, the longest first: a thin direction is not hidden by a
  thick one), and
- of the pushes of the top-valued outcomes, y_i - (mean of the others at the centre),

and pass through the best point so far, the centre and (the axes and the first push only) both ends of every axis; the
points on them lie at 1, 1/4, 1/16 and 1/64 of the way to either end.  The best of all these points is the next start.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

from livarot.core.compiling.inner import inner
from livarot.core.lanes import W, absolute, exp, lane, maximum, number_in, numbers_of, sqrt, with_number
from livarot.core.views import matrix, part

AXES, PUSHES = 4, 8  # the most of each
END = 0.9  # how far along an axis chords across it are laid: at its very end they would have no length
THIN = 1e-12  # axes shorter than this times the first one are rounding


class One(NamedTuple):
    """One problem out of W, and memory for its directions, all in floats."""

    z: Any  # (U,) logits at the centre
    v: Any  # (U,) values
    y: Any  # (U, m) whitened features
    rest: Any  # (U, m) what is left of the differences
    ways: Any  # (AXES + PUSHES, m) directions, unit vectors
    slope: Any  # (AXES + PUSHES, U) beta Y d
    logits: Any  # (U,) at a point
    base: Any  # (m,) the point, in units of beta
    at: Any  # (m,) the best point so far
    start: Any  # (m,) the next start


@inner
def one_size(n, m):
    """Lanes of memory for :class:`One`."""
    ways = AXES + PUSHES
    return (2 * n * m + ways * (n + m) + 3 * n + 3 * m) // W + 1


@inner
def one_of(choice, v, best, memory, k):
    """Problem k of W, as floats; ``best`` is its best point so far."""
    n, m = choice.y.shape
    room, ways = numbers_of(memory), AXES + PUSHES
    y, rest = matrix(room, 0, n, m), matrix(room, n * m, n, m)
    at = 2 * n * m
    columns, outcomes = at + ways * m, at + ways * (m + n)
    points = outcomes + 3 * n
    one = One(
        part(room, outcomes, n), part(room, outcomes + n, n), y, rest, matrix(room, at, ways, m),
        matrix(room, columns, ways, n), part(room, outcomes + 2 * n, n), part(room, points, m),
        part(room, points + m, m), part(room, points + 2 * m, m),
    )  # fmt: skip
    for i in range(n):
        one.z[i], one.v[i] = number_in(choice.z0[i], k), number_in(v[i], k)
        for j in range(m):
            y[i, j] = number_in(choice.y[i, j], k)
    for j in range(m):
        one.at[j], one.start[j] = number_in(best[j], k), 0.0
    return one


@inner
def unit(x):
    """Make x a unit vector, whatever its length; a zero vector is left as it is and gives False."""
    largest = 0.0
    for j in range(len(x)):
        largest = maximum(largest, absolute(x[j]))
    if not largest > 0.0:
        return False
    square = 0.0
    for j in range(len(x)):
        x[j] /= largest
        square += x[j] * x[j]
    for j in range(len(x)):
        x[j] /= sqrt(square)
    return True


@inner
def next_best(v, last):
    """The outcome that follows ``last`` in decreasing value (ties by index)."""
    pick = -1
    for i in range(len(v)):
        after = last < 0 or v[i] < v[last] or (v[i] == v[last] and i > last)
        if after and (pick < 0 or v[i] > v[pick]):
            pick = i
    return pick if pick >= 0 else last


@inner
def push(one, pick, way):
    """way = the unit vector along y_pick - ybar, ybar = sum_i p_i y_i at the centre; False if it is zero.

    Along it the log-probability of the outcome grows fastest.  It is the direction from the mean of the *other*
    outcomes, their weights relative to the largest of them: y_pick - ybar itself cancels when p_pick is near 1.
    """
    n, m = one.y.shape
    top = -math.inf
    for i in range(n):
        top = maximum(top, one.z[i]) if i != pick else top
    for j in range(m):
        way[j] = 0.0
    for i in range(n):
        if i != pick:
            weight = exp(one.z[i] - top)
            for j in range(m):
                way[j] += weight * (one.y[pick, j] - one.y[i, j])
    return unit(way)


@inner
def axes_of(one):
    """The first axes of the differences y_i - y_0; returns how many there are."""
    n, m = one.y.shape
    rest, least, count = one.rest, 0.0, 0
    for i in range(n):
        for j in range(m):
            rest[i, j] = one.y[i, j] - one.y[0, j]
    for _ in range(min(AXES, m, n - 1)):
        pick, most = -1, least
        for i in range(n):
            square = 0.0
            for j in range(m):
                square += rest[i, j] * rest[i, j]
            if square > most:
                pick, most = i, square
        if pick < 0:
            break
        least = THIN * THIN * most if count == 0 else least
        way = one.ways[count]
        for j in range(m):
            way[j] = rest[pick, j]
        unit(way)
        for i in range(n):
            along = 0.0
            for j in range(m):
                along += rest[i, j] * way[j]
            for j in range(m):
                rest[i, j] -= along * way[j]
        count += 1
    return count


@inner
def directions(one, beta):
    """Fill the unit vectors, the axes first, and what a step along them does to the logits; gives the numbers of axes
    and of directions."""
    n, m = one.y.shape
    axes = axes_of(one)
    count, pick = axes, -1
    for _ in range(min(PUSHES, n)):
        pick = next_best(one.v, pick)
        count += 1 if push(one, pick, one.ways[count]) else 0
    for way in range(count):
        for i in range(n):
            total = 0.0
            for j in range(m):
                total += one.y[i, j] * one.ways[way, j]
            one.slope[way, i] = beta * total
    return axes, count


@inner
def expectations(one, way, steps):
    """sum_i p_i V_i with p = softmax(logits + step slope), for W steps at a time."""
    n = len(one.v)
    top = one.logits[0] + steps * one.slope[way, 0]
    for i in range(1, n):
        top = maximum(top, one.logits[i] + steps * one.slope[way, i])
    total, mean = 0.0, 0.0
    for i in range(n):
        weight = exp(one.logits[i] + steps * one.slope[way, i] - top)
        total += weight
        mean += weight * one.v[i]
    return mean / total


@inner
def points_of_chord(one, way):
    """Steps to W points of the chord through the base point: 1, 1/4, 1/16, ... of the way to either end."""
    along, square, share, steps = 0.0, 0.0, 1.0, lane(0.0)
    for j in range(len(one.base)):
        along += one.base[j] * one.ways[way, j]
        square += one.base[j] * one.base[j]
    reach = sqrt(maximum(1.0 - square + along * along, 0.0))
    for k in range(0, W, 2):
        steps = with_number(steps, k, share * (reach - along))
        steps = with_number(steps, k + 1, share * (-reach - along))
        share *= 0.25
    return steps


@inner
def set_base(one, beta, turn):
    """The point that chords pass through in a turn: the best one, the centre, and the ends of the axes."""
    n, m = one.y.shape
    for j in range(m):
        one.base[j] = one.at[j] / beta if turn == 0 else 0.0
        if turn > 1:
            one.base[j] = (END if turn % 2 == 0 else -END) * one.ways[(turn - 2) // 2, j]
    for i in range(n):
        one.logits[i] = one.z[i]
        for j in range(m):
            one.logits[i] += beta * one.y[i, j] * one.base[j]


@inner
def best_on_chords(one, beta, everywhere):
    """one.start = the best point on chords through one.at and, if ``everywhere``, through the centre and the ends of
    the axes; all in the ball |x| <= beta.  False if there is no direction to search in."""
    axes, count = directions(one, beta)
    best = -math.inf
    for turn in range(2 + 2 * axes if everywhere else 1):
        set_base(one, beta, turn)
        for way in range(count if turn < 2 else min(count, axes + 1)):
            steps = points_of_chord(one, way)
            found = expectations(one, way, steps)
            for k in range(W):
                if number_in(found, k) > best:
                    best = number_in(found, k)
                    for j in range(len(one.start)):
                        one.start[j] = beta * (one.base[j] + number_in(steps, k) * one.ways[way, j])
    return count > 0


@inner
def farthest_push(one, beta, rank):
    """one.start = the push of the outcome of the given rank in value, to the end of the ball."""
    pick = -1
    for _ in range(rank + 1):
        pick = next_best(one.v, pick)
    push(one, pick, one.start)
    for j in range(len(one.start)):
        one.start[j] *= beta
    return True
