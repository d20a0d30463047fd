"""One uncertain choice, W of them side by side: what a rule of optimism is given, and the arithmetic to write it with.

A (state, action) has U outcomes with values V.  Its confidence ellipsoid |theta - theta_hat|_H <= beta moves the logits
z0 at the centre theta_hat to z0 + Yx with |x| <= beta, where y_i = W phi_i are the whitened features, W'W = H^-1.  The
expected value and its gradient are

    f(x) = sum_i p_i V_i,  p = softmax(z0 + Y x),      g = Y' q,  q_i = p_i (V_i - f).

(With K = YY' = Phi H^-1 Phi' this is the problem in R^U: the move of the logits is Yx, the oracle beta K q/|q|_K.
K itself is never formed: two products with Y cost 2 U d an iteration, so the cost is linear in U.)
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

from livarot.core.compiling.inner import inner
from livarot.core.lanes import absolute, any_of, exp, lane, maximum, minimum, sqrt, where
from livarot.core.law import expectation, mean_row, softmax
from livarot.core.views import matrix, part
from livarot.planning.optimistic.starts import one_size


class Choice(NamedTuple):
    """What a rule is given about W choices of one shape, with U outcomes and m columns."""

    z0: Any  # (U,) logits at the centre
    p: Any  # (U,) probabilities there
    y: Any  # (U, m) whitened features
    mean: Any  # (m,) sum_i p_i y_i
    width: Any  # (U,) half-widths of the logits, beta |y_i - mean|
    widest: Any  # the largest of them
    longest: Any  # max_i |y_i|^2
    beta: Any  # radius of the ellipsoid
    scale: Any  # range of the values of the next stage
    horizon: Any  # H
    room: Any  # memory for a rule's own vectors: see solver_room


class Loaded(NamedTuple):
    """A choice as a loop loads it; :func:`look` makes a :class:`Choice` of it."""

    z0: Any
    y: Any
    room: Any


class SolverRoom(NamedTuple):
    """Vectors for a solver."""

    weight: Any  # (U,)
    other: Any  # (U,)
    x: Any  # (m,)
    g: Any  # (m,)
    x_new: Any  # (m,)
    g_new: Any  # (m,)
    best: Any  # (m,) the best point
    steps: Any  # (1,) steps made
    one: Any  # for one of the problems, to look for starts


@inner
def choice_size(n, m):
    """Lanes of memory for choices of at most n outcomes and m columns."""
    return n * m + 5 * n + 6 * m + 1 + one_size(n, m)


@inner
def load_into(memory, n, m):
    """Where the logits and whitened features of choices of n outcomes and m columns go."""
    return Loaded(
        part(memory, 0, n), matrix(memory, n, n, m), part(memory, n + n * m, 4 * n + 6 * m + 1 + one_size(n, m))
    )


@inner
def solver_room(choice):
    """The vectors of a solver, in the room of the choice."""
    n, m = choice.y.shape
    room, at = choice.room, 2 * n
    return SolverRoom(
        part(room, 0, n), part(room, n, n), part(room, at, m), part(room, at + m, m), part(room, at + 2 * m, m),
        part(room, at + 3 * m, m), part(room, at + 4 * m, m), part(room, at + 5 * m, 1),
        part(room, at + 5 * m + 1, one_size(n, m)),
    )  # fmt: skip


@inner
def look(loaded, beta, scale, horizon, set_matters):
    """The choice as seen from its centre: probabilities, mean feature, half-widths."""
    z0, y, room = loaded.z0, loaded.y, loaded.room
    n, m = y.shape
    p, width, mean = part(room, 0, n), part(room, n, n), part(room, 2 * n, m)
    softmax(z0, p)
    widest, longest = beta * 0.0, beta * 0.0
    if set_matters:
        mean_row(p, y, mean)
        for i in range(n):
            square, own = 0.0, 0.0
            for k in range(m):
                off = y[i, k] - mean[k]
                square += off * off
                own += y[i, k] * y[i, k]
            width[i] = beta * sqrt(square)
            widest, longest = maximum(widest, width[i]), maximum(longest, own)
    rest = part(room, 2 * n + m, 2 * n + 5 * m + 1 + one_size(n, m))
    return Choice(z0, p, y, mean, width, widest, longest, beta, scale, horizon, rest)


@inner
def whitened(w, phi, y):
    """y_i = W phi_i, W lower triangular (m, m)."""
    n, m = phi.shape
    for i in range(n):
        for k in range(m):
            total = w[k, 0] * phi[i, 0]
            for j in range(1, k + 1):
                total += w[k, j] * phi[i, j]
            y[i, k] = total


@inner
def extremes(v):
    """min V and max V."""
    low, high = v[0], v[0]
    for i in range(1, len(v)):
        low, high = minimum(low, v[i]), maximum(high, v[i])
    return low, high


@inner
def dot(x, y):
    """x . y."""
    total = x[0] * y[0]
    for k in range(1, len(x)):
        total += x[k] * y[k]
    return total


@inner
def gradient(y, q, g):
    """g = Y'q."""
    mean_row(q, y, g)


@inner
def value_at(choice, v, x, weight, g):
    """f(x); its gradient goes to g."""
    n, m = choice.y.shape
    top = choice.z0[0] * 0.0 - math.inf
    for i in range(n):
        z = choice.z0[i]
        for k in range(m):
            z += choice.y[i, k] * x[k]
        weight[i] = z
        top = maximum(top, z)
    total, worth = 0.0, 0.0
    for i in range(n):
        e = exp(weight[i] - top)
        weight[i] = e
        total += e
        worth += e * v[i]
    inverse = 1.0 / total
    f = worth * inverse
    for i in range(n):
        weight[i] = weight[i] * inverse * (v[i] - f)
    gradient(choice.y, weight, g)
    return f


@inner
def value_at_centre(choice, v, weight, g):
    """f(0) from the probabilities at the centre; its gradient goes to g."""
    f = expectation(choice.p, v)
    for i in range(len(v)):
        weight[i] = choice.p[i] * (v[i] - f)
    gradient(choice.y, weight, g)
    return f


@inner
def difference_of_two(offset, phi, theta, w, step):
    """z0_1 - z0_2 and |y_1 - y_2| of two outcomes; phi_1 - phi_2 goes to ``step``."""
    m = len(theta)
    apart = offset[0] - offset[1] + (phi[0, 0] - phi[1, 0]) * theta[0]
    step[0] = phi[0, 0] - phi[1, 0]
    for j in range(1, m):
        step[j] = phi[0, j] - phi[1, j]
        apart += step[j] * theta[j]
    square = apart * 0.0
    for k in range(m):
        y = w[k, 0] * step[0]
        for j in range(1, k + 1):
            y += w[k, j] * step[j]
        square += y * y
    return apart, sqrt(square)


@inner
def weight_of_better(apart, gain, first_is_better):
    """The probability of the better outcome of two when its logit gains ``gain``; ``apart`` is z0_1 - z0_2."""
    gap = where(first_is_better, apart, -apart) + gain
    e = exp(-absolute(gap))
    return where(gap >= 0.0, 1.0, e) / (1.0 + e)


@inner
def between(weight, one, two):
    """The mean of two values with ``weight`` on the larger one."""
    return minimum(one, two) + weight * absolute(one - two)


@inner
def two_outcomes(apart, gain, v, v_up, certified):
    """The exact maxima for two outcomes of values v, and of v_up if ``certified``: the logit of the better one gains
    beta |y_1 - y_2| = ``gain``; ``apart`` is z0_1 - z0_2.  The better one is mostly the same for v and v_up."""
    first = v[0] >= v[1]
    weight = weight_of_better(apart, gain, first)
    best, high = between(weight, v[0], v[1]), lane(0.0)
    if certified:
        first_up = v_up[0] >= v_up[1]
        if any_of((first & ~first_up) | (first_up & ~first)):
            weight = weight_of_better(apart, gain, first_up)
        high = between(weight, v_up[0], v_up[1])
    return best, high
