"""The inner maximum for three outcomes (left, stay, right; worse, same, better), up to 64 problems side by side.

Only differences to the first outcome matter, and two differences span a plane: whatever the dimension d, the problem
is two-dimensional.  With logits l_i = z0_i - z0_0, values w_i = V_i - V_0 and the differences y_i - y_0 in an
orthonormal basis of their plane, (c11, 0) and (c21, c22),

    f(x) = p_1 w_1 + p_2 w_2,   p = softmax(0, l_1 + c11 x_1, l_2 + c21 x_1 + c22 x_2),   |x| <= beta.

The basis begins with the first difference, or with the second where the first is less than 1e-8 of it or zero (two
outcomes with the same features): then outcomes 1 and 2 change places.  So c11 = 0 only where both differences vanish.

The method is the shifted power step of :func:`livarot.planning.climb.climb`, with its stopping test and extra starts.
Here a step is one loop whose body stays in registers, about three times as fast as the general loops over columns.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from livarot.core.jit import jit
from livarot.core.lanes64 import LANES
from livarot.core.mnl import exp
from livarot.planning.climb import EASE, STUCK
from livarot.planning.climb import LEAST as SHORT
from livarot.planning.lanes import BEST_F, BEST_GAP, BETA, HALF, SCALE, WIDTH, Z0, P
from livarot.planning.starts import best_on_chords

# one flat array, a constant name per quantity: problem, point, gradient, trial point, progress, result
(
    L1, L2, W1, W2, C11, C21, C22, REACH, SLACK, LEAST, FLOOR, X1, X2, G1, G2, T1, T2, F, SIGMA, ACTIVE, ORIGIN,
    BEST, GAP, BEST1, BEST2, BEFORE,
    FLAT, SIZE,
) = (LANES * name for name in range(28))  # fmt: skip
# twelve directions of the disc, to its edge and a third of the way
AROUND = tuple(
    (length * math.cos(k * math.pi / 6.0), length * math.sin(k * math.pi / 6.0))
    for length in (1.0, 1.0 / 3.0)
    for k in range(12)
)
BROAD = 3.0  # logit half-width up to which these points are enough
CARRIED = 21  # the quantities up to ORIGIN follow a lane that is moved


@jit
def three_maximum(n_iter, tol, n_starts, wide, y, v, wo, wl, w, w2, m, lanes):
    """max of f over |x| <= beta in every lane: wl[BEST_F] and its gap wl[BEST_GAP].

    Expects what :func:`livarot.planning.climb.joint_maximum` does; ``w`` and ``w2`` are scratch of :data:`SIZE`.
    """
    set_up(tol, y, v, wo, wl, w, m, lanes)
    steps, moving = climb_three(n_iter, w, lanes, 0)
    commit(w, w, lanes, moving == 0)
    if moving > 0:
        finish(n_iter, w, w2, compact(w, w2, lanes), steps)
    for start in range(n_starts):
        count = next_starts(start, wide, wl, w, w2, lanes)
        if count == 0:
            break
        finish(n_iter, w, w2, count, 0)
    for lane in range(lanes):
        wl[BEST_F + lane] = v[0, lane] + w[BEST + lane]
        wl[BEST_GAP + lane] = w[GAP + lane]


@jit
def set_up(tol, y, v, wo, wl, w, m, lanes):
    """The plane of each problem, the start at the centre, and where the gradient nearly vanishes there."""
    for lane in range(lanes):
        w[C11 + lane] = 0.0
        w[C21 + lane] = 0.0
        w[C22 + lane] = 0.0
    for k in range(m):
        one, two = m + k, 2 * m + k
        for lane in range(lanes):
            first, second = y[one, lane] - y[k, lane], y[two, lane] - y[k, lane]
            w[C11 + lane] += first * first
            w[C21 + lane] += first * second
            w[C22 + lane] += second * second
    for lane in range(lanes):  # c21/c11 for now: the part of the second difference along the first
        turned = w[C11 + lane] <= 1e-16 * w[C22 + lane]
        w[FLAT + lane] = 1.0 if turned else 0.0
        w[C11 + lane] = w[C22 + lane] if turned else w[C11 + lane]
        w[SIGMA + lane] = w[C21 + lane] / max(w[C11 + lane], 1e-300)
        w[C22 + lane] = 0.0
    for k in range(m if m > 1 else 0):  # one column: exactly collinear
        one, two = m + k, 2 * m + k
        for lane in range(lanes):  # what is left of it; a difference of squares would cancel
            first, second = y[one, lane] - y[k, lane], y[two, lane] - y[k, lane]
            turned = w[FLAT + lane] > 0.0
            rest = first - w[SIGMA + lane] * second if turned else second - w[SIGMA + lane] * first
            w[C22 + lane] += rest * rest
    for lane in range(lanes):
        w[C11 + lane] = math.sqrt(w[C11 + lane])
        w[C21 + lane] = w[SIGMA + lane] * w[C11 + lane]
        w[C22 + lane] = math.sqrt(w[C22 + lane])
        turned = w[FLAT + lane] > 0.0
        one, two = wo[1, Z0 + lane] - wo[0, Z0 + lane], wo[2, Z0 + lane] - wo[0, Z0 + lane]
        w[L1 + lane] = two if turned else one
        w[L2 + lane] = one if turned else two
        one, two = v[1, lane] - v[0, lane], v[2, lane] - v[0, lane]
        one, two = two if turned else one, one if turned else two
        p1, p2 = wo[1, P + lane], wo[2, P + lane]
        p1, p2 = p2 if turned else p1, p1 if turned else p2
        w[W1 + lane] = one
        w[W2 + lane] = two
        reach = wl[BETA + lane]
        w[REACH + lane] = reach
        w[SLACK + lane] = tol * wl[SCALE + lane]
        w[LEAST + lane] = 1e-15 * wl[SCALE + lane]
        w[FLOOR + lane] = 2.0 / max(reach, 1e-300)
        w[ORIGIN + lane] = lane
        w[BEST + lane] = -math.inf
        w[BEFORE + lane] = -math.inf
        w[GAP + lane] = 0.0
        # beta |g0| <= span(V) sum_i p_i b_i^2 / 20: the centre may be next to a minimum
        mean = p1 * one + p2 * two
        q1, q2 = p1 * (one - mean), p2 * (two - mean)
        g1, g2 = w[C11 + lane] * q1 + w[C21 + lane] * q2, w[C22 + lane] * q2
        spread = (
            wo[0, P + lane] * wo[0, WIDTH + lane] * wo[0, WIDTH + lane]
            + wo[1, P + lane] * wo[1, WIDTH + lane] * wo[1, WIDTH + lane]
            + wo[2, P + lane] * wo[2, WIDTH + lane] * wo[2, WIDTH + lane]
        )
        flat = 0.05 * (max(0.0, max(one, two)) - min(0.0, min(one, two))) * spread
        w[FLAT + lane] = 1.0 if reach * reach * (g1 * g1 + g2 * g2) <= flat * flat else 0.0
    for lane in range(lanes):
        w[T1 + lane] = 0.0
        w[T2 + lane] = 0.0
    begin(w, lanes)


@jit
def begin(w, lanes):
    """Ready to climb from the trial points."""
    for lane in range(lanes):
        w[X1 + lane] = w[T1 + lane]
        w[X2 + lane] = w[T2 + lane]
        w[G1 + lane] = 0.0
        w[G2 + lane] = 0.0
        w[F + lane] = -math.inf
        w[SIGMA + lane] = 0.0
        w[ACTIVE + lane] = 1.0


@jit
def climb_three(n_iter, w, lanes, k):
    """Shifted power steps from the trial points until all lanes rest or at most half of them move.

    k counts the steps made so far; returns (k, lanes still moving), none when the steps are used up.
    """
    while True:
        active = 0.0
        for lane in range(lanes):
            t1, t2 = w[T1 + lane], w[T2 + lane]
            c11, c21, c22 = w[C11 + lane], w[C21 + lane], w[C22 + lane]
            w1, w2 = w[W1 + lane], w[W2 + lane]
            z1 = w[L1 + lane] + c11 * t1
            z2 = w[L2 + lane] + c21 * t1 + c22 * t2
            top = max(0.0, max(z1, z2))
            e1, e2 = exp(z1 - top), exp(z2 - top)
            inverse = 1.0 / (exp(-top) + e1 + e2)
            p1, p2 = e1 * inverse, e2 * inverse
            f = p1 * w1 + p2 * w2
            q1, q2 = p1 * (w1 - f), p2 * (w2 - f)
            g1, g2 = c11 * q1 + c21 * q2, c22 * q2
            x1, x2 = w[X1 + lane], w[X2 + lane]
            old1, old2 = w[G1 + lane], w[G2 + lane]
            d1, d2 = t1 - x1, t2 - x2
            bend = -(d1 * (g1 - old1) + d2 * (g2 - old2)) / max(d1 * d1 + d2 * d2, 1e-300)
            bend = max(0.0, bend)
            before = w[F + lane]
            take = w[ACTIVE + lane] > 0.0 and f >= before - w[LEAST + lane]
            x1, x2 = t1 if take else x1, t2 if take else x2
            g1, g2 = g1 if take else old1, g2 if take else old2
            f = f if take else before
            # at rest when beta |g| - g.x <= slack, decided without the root
            reach = w[REACH + lane]
            gg, gx = g1 * g1 + g2 * g2, g1 * x1 + g2 * x2
            last = w[SIGMA + lane]
            sigma = max(bend, EASE * last) if take else max(4.0 * last, w[FLOOR + lane] * math.sqrt(gg))
            allowed = w[SLACK + lane] + gx
            moves = allowed < 0.0 or reach * reach * gg > allowed * allowed
            moves = moves and (take or reach * reach * sigma * sigma <= STUCK * gg)
            moving = 1.0 if moves else 0.0
            length = math.sqrt(max(gg + sigma * (2.0 * gx + sigma * (x1 * x1 + x2 * x2)), 0.0))
            length = max(length, SHORT)
            outside = length > reach * sigma
            scale = (reach if outside else 1.0) / (length if outside else sigma)
            w[X1 + lane] = x1
            w[X2 + lane] = x2
            w[G1 + lane] = g1
            w[G2 + lane] = g2
            w[F + lane] = f
            w[SIGMA + lane] = sigma
            w[ACTIVE + lane] = moving
            w[T1 + lane] = scale * (g1 + sigma * x1)
            w[T2 + lane] = scale * (g2 + sigma * x2)
        for lane in range(lanes):
            active += w[ACTIVE + lane]
        if active == 0.0 or k == n_iter:
            return k, 0
        k += 1
        if 2 * active <= lanes and lanes > 1:
            return k, int(active)


@jit
def finish(n_iter, w, w2, count, steps):
    """Climb with the ``count`` lanes of ``w2`` until all rest; the better results go to ``w``."""
    while count > 0:
        steps, moving = climb_three(n_iter, w2, count, steps)
        commit(w2, w, count, moving == 0)
        count = compact(w2, w2, count) if moving > 0 else 0


@jit
def commit(source, w, lanes, everything):
    """Keep what is better than the best so far, of the lanes at rest or of all."""
    for lane in range(lanes):
        if everything or source[ACTIVE + lane] == 0.0:
            to = int(source[ORIGIN + lane])
            if source[F + lane] > w[BEST + to]:
                w[BEST + to] = source[F + lane]
                w[BEST1 + to] = source[X1 + lane]
                w[BEST2 + to] = source[X2 + lane]
                g1, g2 = source[G1 + lane], source[G2 + lane]
                along = g1 * source[X1 + lane] + g2 * source[X2 + lane]
                w[GAP + to] = max(source[REACH + lane] * math.sqrt(g1 * g1 + g2 * g2) - along, 0.0)


@jit
def compact(source, w, lanes):
    """Copy the lanes still moving to the front of ``w`` (maybe the same); returns how many."""
    count = 0
    for lane in range(lanes):
        if source[ACTIVE + lane] > 0.0:
            for name in range(CARRIED):
                w[name * LANES + count] = source[name * LANES + lane]
            count += 1
    return count


@jit
def next_starts(start, wide, wl, w, w2, lanes):
    """Into ``w2``: the lanes to climb again.  None where the ellipsoid is narrow, the best value is reached already or
    the last search brought nothing.  At half-widths up to BROAD the start is the best of :data:`AROUND`, if that is
    better than what was found; above, the best point on chords of the disc.  Returns how many."""
    count = 0
    for lane in range(lanes):
        peak = max(0.0, max(w[W1 + lane], w[W2 + lane]))
        narrow = (wl[HALF + lane] <= wide and w[FLAT + lane] == 0.0) or w[REACH + lane] == 0.0
        idle = w[BEST + lane] <= w[BEFORE + lane] + w[SLACK + lane]
        settled = narrow or idle or peak - w[BEST + lane] <= w[SLACK + lane]
        w[ACTIVE + lane] = 0.0 if settled else 1.0
        count += 0 if settled else 1
    if count == 0:
        return 0
    z, y, v = np.zeros(3), np.zeros((3, 2)), np.zeros(3)
    at, point = np.empty(2), np.empty(2)
    best_around(w, lanes)
    count = 0
    for lane in range(lanes):
        if w[ACTIVE + lane] == 0.0:
            continue
        w[BEFORE + lane] = w[BEST + lane]
        if wl[HALF + lane] > BROAD:
            z[1], z[2], v[1], v[2] = w[L1 + lane], w[L2 + lane], w[W1 + lane], w[W2 + lane]
            y[1, 0], y[2, 0], y[2, 1] = w[C11 + lane], w[C21 + lane], w[C22 + lane]
            at[0], at[1] = w[BEST1 + lane], w[BEST2 + lane]
            if best_on_chords(z, y, v, 3, 2, w[REACH + lane], at, start == 0, point) == -math.inf:
                continue
            w[T1 + lane], w[T2 + lane] = point[0], point[1]
        elif w[F + lane] <= w[BEST + lane]:
            continue
        for name in range(CARRIED):
            w2[name * LANES + count] = w[name * LANES + lane]
        w2[ORIGIN + count] = lane
        count += 1
    begin(w2, count)
    return count


@jit
def best_around(w, lanes):
    """The best of the points reach * AROUND of every lane in w[T1], w[T2], and its value in w[F]."""
    for lane in range(lanes):
        w[F + lane] = -math.inf
    for k in range(len(AROUND)):
        a, b = AROUND[k]
        for lane in range(lanes):
            t1, t2 = a * w[REACH + lane], b * w[REACH + lane]
            z1 = w[L1 + lane] + w[C11 + lane] * t1
            z2 = w[L2 + lane] + w[C21 + lane] * t1 + w[C22 + lane] * t2
            top = max(0.0, max(z1, z2))
            e1, e2 = exp(z1 - top), exp(z2 - top)
            f = (e1 * w[W1 + lane] + e2 * w[W2 + lane]) / (exp(-top) + e1 + e2)
            better = f > w[F + lane]
            w[T1 + lane] = t1 if better else w[T1 + lane]
            w[T2 + lane] = t2 if better else w[T2 + lane]
            w[F + lane] = f if better else w[F + lane]
