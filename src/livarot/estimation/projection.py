"""The point of Theta nearest to a parameter, in the norm of a packed matrix.

Theta is the ball |x| <= bound, intersected with |x - center|_shape <= radius where the radius is finite.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

from livarot.core.compiling.basics import new_floats
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.linalg import (
    add,
    copy,
    distance,
    dot,
    draw_inside,
    factor,
    identity,
    make_room,
    product,
    project_packed,
    solve_packed,
)
from livarot.core.views import opened, view

SLACK = 1e-12
ROUNDS = 400


class _Task(NamedTuple):
    """One projection; vectors are in the order of the blocks."""

    metric: Any  # (G,)
    unit: Any  # (G,) the identity
    raised: Any  # (G,) metric + mu I
    shape: Any  # (G,) of the ellipsoid; any matrix where there is none
    center: Any  # (d,)
    origin: Any  # (d,) what is projected
    target: Any  # (d,)
    out: Any  # (d,)


@jit
def project_parameters(bundle, order, gram, bound, center, shape, radius, theta, chosen):
    """theta[r, k] <- the nearest point of Theta in the norm of gram[r, k], where ``chosen``.

    ``order`` (d,) are the coordinates in the order of the blocks; center and shape are empty where Theta is a ball.
    """
    matrices, vectors = new_floats(4, gram.shape[2]), new_floats(7, theta.shape[2])
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            if chosen[r, k] > 0:
                metric, x = view(gram)[r, k], view(theta)[r, k]
                region = bound, math.inf, x, metric
                if center.size > 0 and math.isfinite(radius[r]):
                    region = bound, radius[r], view(center)[r, k], view(shape)[r, k]
                project_one(opened(bundle), view(order), metric, region, x, matrices, vectors)


@inner
def project_one(blocks, order, metric, region, x, matrices, vectors):
    """One projection; ``region`` is (bound, radius, center, shape), the last two for an ellipsoid only."""
    bound, radius, center, shape = region
    squares, rows, bounded = view(matrices), view(vectors), math.isfinite(radius)
    unit = squares[2]
    identity(blocks, 1.0, unit)
    task = _Task(metric, unit, squares[3], shape if bounded else unit, rows[3], rows[4], rows[5], rows[6])
    for i in range(len(x)):
        task.origin[i] = x[order[i]]
        task.center[i] = center[order[i]] if bounded else 0.0
    nearest(blocks, task, bound, radius, make_room(squares, rows))
    if bounded:
        draw_inside(blocks, shape, task.center, radius, bound, task.out)
    for i in range(len(x)):
        x[order[i]] = task.out[i]


@inner
def nearest(blocks, task, bound, radius, room):
    """task.out <- the projection of task.origin.

    A projection on one of the two sets that lies in the other one is the projection on both.  When both constraints
    bind, the answer is the projection x(mu) on the ellipsoid in the metric M + mu I, of (M + mu I)^-1 M origin, at the
    mu where |x(mu)| = B: |x(mu)| decreases in mu, so a bracket and bisection find it.
    """
    project_packed(blocks, task.metric, task.unit, task.origin, bound, task.out, room)
    if math.isinf(radius) or distance(blocks, task.shape, task.out, task.center) <= radius * (1.0 + SLACK):
        return
    copy(task.origin, task.target)
    if on_ellipsoid(blocks, task, task.metric, radius, room) <= bound * bound * (1.0 + SLACK):
        return
    limit, mu, low, high = bound * bound, 0.0, 0.0, math.inf
    for i in range(len(task.metric)):
        mu = max(mu, task.metric[i])
    for _ in range(ROUNDS):
        add(task.metric, mu, task.unit, task.raised)
        product(blocks, task.metric, task.origin, task.target)
        factor(blocks, task.raised, room.low)
        solve_packed(blocks, room.low, task.target)
        length = on_ellipsoid(blocks, task, task.raised, radius, room)
        if abs(length - limit) <= 1e-13 * limit or (math.isfinite(high) and high - low <= 1e-15 * high):
            return
        if length > limit:
            low = mu
        else:
            high = mu
        mu = 2.0 * mu if math.isinf(high) else 0.5 * (low + high)


@inner
def on_ellipsoid(blocks, task, metric, radius, room):
    """task.out <- the projection of task.target on the ellipsoid alone; the square of its length."""
    add(task.target, -1.0, task.center, task.target)
    project_packed(blocks, metric, task.shape, task.target, radius, task.out, room)
    add(task.out, 1.0, task.center, task.out)
    return dot(task.out, task.out)
