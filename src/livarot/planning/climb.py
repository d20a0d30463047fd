"""The inner maximum of up to 64 problems side by side (workspace and mathematics: :mod:`livarot.planning.lanes`)."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from livarot.core.jit import jit
from livarot.core.lanes64 import LANES
from livarot.planning.lanes import (
    BEST_F,
    BEST_GAP,
    BEST_X,
    BETA,
    FINAL,
    FLAT,
    FRANK_WOLFE,
    FT,
    GAP,
    GT,
    HALF,
    INNER,
    LAST,
    LENGTH,
    NORM,
    ORIGIN,
    PEAK,
    REACH,
    SCALE,
    SHIFTED_POWER,
    SIGMA,
    STEPS,
    TOP,
    TOTAL,
    WIDTH,
    XT,
    Z0,
    F,
    G,
    P,
    X,
    centre_weights,
    gradient,
    logits_and_weights,
)
from livarot.planning.starts import best_on_chords, next_best, push

EASE = 0.03  # the shift falls at most so much from one step to the next
STUCK = (
    1e32  # a refused step shorter than 1e-16 beta is rounding, and the next one would be shorter: a lane rests there
)
LEAST = 1e-140  # shorter gradients have no square: a step along them is not lengthened to the radius


@jit
def climb(solver, n_iter, tol, y, v, wo, wc, wl, n_out, m, lanes, fresh, k):
    """Maximise f over |x| <= wl[REACH], from the trial points wc[XT]; k counts the steps made so far.

    Shifted power: x+ = s (g + sigma x), s = min(beta/|g + sigma x|, 1/sigma), a projected gradient step of length
    1/sigma, sigma = max(0, Barzilai-Borwein curvature), but not less than EASE times the last one (on a plateau the
    curvature says "as far as you can" after every success); a step that lowers f is taken back and sigma grows
    fourfold, to 2|g|/beta at least.  It stays inside the ball when the maximum is there.
    Frank-Wolfe: x+ = x + gamma (beta g/|g| - x), gamma = 2/(k + 2); from a start that is not ``fresh`` k begins at 1,
    since gamma = 1 would forget it.

    The first-order (Frank-Wolfe) gap is beta |g| - g.x; a lane rests (wl[GAP] = 0, else infinite) when it is at most
    tol * wl[SCALE], or when a step is refused that is shorter than rounding.  wl[NORM] is 2/beta.  Leaves wc[X], wl[F],
    wl[FINAL] = gap, counts wl[STEPS], and returns (steps, lanes still moving): it stops early when most lanes rest, so
    that the caller can move the others together.
    """
    while True:
        if k > 0 or not fresh:
            logits_and_weights(y, v, wo, wc, wl, n_out, m, lanes)
        else:
            centre_weights(v, wo, wl, n_out, lanes)
        gradient(y, wo, wc, n_out, m, lanes)
        # the step's curvature, then lane by lane: take it (INNER = 1) or stay (INNER = 0)
        for lane in range(lanes):
            wl[TOP + lane] = 0.0
            wl[TOTAL + lane] = 0.0
        if k > 0:
            for j in range(m):
                for lane in range(lanes):
                    dx = wc[j, XT + lane] - wc[j, X + lane]
                    wl[TOP + lane] += dx * (wc[j, GT + lane] - wc[j, G + lane])
                    wl[TOTAL + lane] += dx * dx
        ascent = k > 0 and solver == SHIFTED_POWER
        for lane in range(lanes):
            resting = wl[GAP + lane] == 0.0
            lower = ascent and not wl[FT + lane] >= wl[F + lane] - 1e-15 * wl[SCALE + lane]
            take = not (resting or lower)
            bend = max(0.0, -wl[TOP + lane] / max(wl[TOTAL + lane], 1e-300))
            wl[SIGMA + lane] = max(bend, EASE * wl[SIGMA + lane]) if take else 4.0 * wl[SIGMA + lane]
            wl[F + lane] = wl[FT + lane] if take else wl[F + lane]
            wl[STEPS + lane] += 0.0 if resting else 1.0
            wl[INNER + lane] = 1.0 if take else 0.0
            wl[TOP + lane] = 0.0
            wl[TOTAL + lane] = 0.0
            wl[LENGTH + lane] = 0.0
        for j in range(m):
            for lane in range(lanes):
                take = wl[INNER + lane] > 0.0
                xj = wc[j, XT + lane] if take else wc[j, X + lane]
                gj = wc[j, GT + lane] if take else wc[j, G + lane]
                wc[j, X + lane] = xj
                wc[j, G + lane] = gj
                wl[TOP + lane] += gj * gj
                wl[TOTAL + lane] += gj * xj
                wl[LENGTH + lane] += xj * xj
        # beta |g| - g.x > t, decided without the root: the gap itself is needed at the end only
        if k == 0 and fresh:
            for lane in range(lanes):  # does the gradient nearly vanish at the centre?
                low = wl[REACH + lane] * wl[REACH + lane] * wl[TOP + lane] <= wl[FLAT + lane] * wl[FLAT + lane]
                wl[FLAT + lane] = 1.0 if low else 0.0
        active = 0
        for lane in range(lanes):
            allowed = tol * wl[SCALE + lane] + wl[TOTAL + lane]
            moves = allowed < 0.0 or wl[REACH + lane] * wl[REACH + lane] * wl[TOP + lane] > allowed * allowed
            shift = wl[REACH + lane] * wl[SIGMA + lane]
            moves = moves and (wl[INNER + lane] > 0.0 or shift * shift <= STUCK * wl[TOP + lane])
            wl[GAP + lane] = math.inf if moves else 0.0
            active += 1 if moves else 0
        if active == 0 or k == n_iter or (2 * active <= lanes and lanes > 1):
            for lane in range(lanes):
                gap = max(wl[REACH + lane] * math.sqrt(wl[TOP + lane]) - wl[TOTAL + lane], 0.0)
                wl[FINAL + lane] = gap
        if active == 0 or k == n_iter:
            return k, 0
        # the next trial points: TOP * g + TOTAL * x
        if solver == FRANK_WOLFE:
            gamma = 2.0 / (k + 2.0 if fresh else k + 3.0)
            for lane in range(lanes):
                wl[TOP + lane] = gamma * wl[REACH + lane] / max(math.sqrt(wl[TOP + lane]), LEAST)
                wl[TOTAL + lane] = 1.0 - gamma
        else:
            for lane in range(lanes):  # |g + sigma x| from g.g, g.x and x.x
                refused = max(wl[SIGMA + lane], wl[NORM + lane] * math.sqrt(wl[TOP + lane]))
                sigma = wl[SIGMA + lane] if wl[INNER + lane] > 0.0 else refused
                wl[SIGMA + lane] = sigma
                square = wl[TOP + lane] + sigma * (2.0 * wl[TOTAL + lane] + sigma * wl[LENGTH + lane])
                length = max(math.sqrt(max(square, 0.0)), LEAST)
                outside = length > wl[REACH + lane] * sigma
                scale = (wl[REACH + lane] if outside else 1.0) / (length if outside else sigma)
                wl[TOP + lane] = scale
                wl[TOTAL + lane] = scale * sigma
        for j in range(m):
            for lane in range(lanes):
                wc[j, XT + lane] = wl[TOP + lane] * wc[j, G + lane] + wl[TOTAL + lane] * wc[j, X + lane]
        k += 1
        if 2 * active <= lanes and lanes > 1:
            return k, active


@jit
def joint_maximum(solver, n_iter, tol, n_starts, wide, y, v, wo, wc, wl, y2, v2, wo2, wc2, wl2, n_out, m, lanes):
    """max of f over |x| <= beta in every lane: wl[BEST_F], its gap wl[BEST_GAP] and its point wc[BEST_X].

    From the centre, and then from up to ``n_starts`` others where the ellipsoid is wide (logit half-width above
    ``wide``): a local method alone misses the global maximum of a wide ellipsoid in several per cent of the cases; and
    also where the gradient at the centre nearly vanishes, beta |g0| <= span(V) sum_i p_i b_i^2 / 20, since the centre
    may then be next to a minimum.  The shifted power method starts again from the best point on chords of the ball
    (:mod:`livarot.planning.starts`), for as long as that brings something better; Frank-Wolfe from the points that push
    the top-valued outcomes.  Expects p at the centre in wo[P] and :func:`centre_widths` done.  The second workspace
    takes the lanes that still move when most have come to rest.
    """
    for k in range(m):
        for lane in range(lanes):
            wc[k, XT + lane] = 0.0
    for lane in range(lanes):
        wl[PEAK + lane] = v[0, lane]
        wl[FLAT + lane] = v[0, lane]
        wl[TOTAL + lane] = 0.0
    for i in range(n_out):
        for lane in range(lanes):
            wl[PEAK + lane] = max(wl[PEAK + lane], v[i, lane])
            wl[FLAT + lane] = min(wl[FLAT + lane], v[i, lane])
            wl[TOTAL + lane] += wo[i, P + lane] * wo[i, WIDTH + lane] * wo[i, WIDTH + lane]
    for lane in range(lanes):
        wl[FLAT + lane] = 0.05 * (wl[PEAK + lane] - wl[FLAT + lane]) * wl[TOTAL + lane]
        wl[STEPS + lane] = 0.0
        wl[LAST + lane] = -1.0 if solver == FRANK_WOLFE else -math.inf
        wl[BEST_F + lane] = -math.inf
        wl[BEST_GAP + lane] = 0.0
        wl[REACH + lane] = wl[BETA + lane]
        wl[GAP + lane] = math.inf
    one_start(solver, n_iter, tol, y, v, wo, wc, wl, y2, v2, wo2, wc2, wl2, n_out, m, lanes, lanes, True)
    broad = 0
    for lane in range(lanes):
        broad += 1 if wl[HALF + lane] > wide or wl[FLAT + lane] > 0.0 else 0
    start = 0
    while broad > 0 and start < (min(n_starts, n_out) if solver == FRANK_WOLFE else n_starts):
        broad = next_starts(solver, start, tol, wide, y, v, wo, wc, wl, n_out, m, lanes)
        start += 1
        if broad > 0:
            one_start(solver, n_iter, tol, y, v, wo, wc, wl, y2, v2, wo2, wc2, wl2, n_out, m, lanes, broad, False)


@jit
def one_start(
    solver, n_iter, tol, y, v, wo, wc, wl, y2, v2, wo2, wc2, wl2, n_out, m, lanes, count, fresh
):  # fmt: skip
    """Climb from the trial points of ``count`` moving lanes and keep what is better than the best so far."""
    for lane in range(lanes):
        wl[SIGMA + lane] = 0.0
        wl[F + lane] = -math.inf
        wl[NORM + lane] = 2.0 / max(wl[REACH + lane], 1e-300)
        wl[ORIGIN + lane] = lane
    steps = 0
    if 2 * count > lanes:
        steps, count = climb(solver, n_iter, tol, y, v, wo, wc, wl, n_out, m, lanes, fresh, 0)
        for lane in range(lanes):
            rests = count == 0 or wl[GAP + lane] == 0.0
            better = rests and wl[F + lane] > wl[BEST_F + lane]
            wl[BEST_GAP + lane] = wl[FINAL + lane] if better else wl[BEST_GAP + lane]
            wl[BEST_F + lane] = wl[F + lane] if better else wl[BEST_F + lane]
            wl[INNER + lane] = 1.0 if better else 0.0
        for k in range(m):
            for lane in range(lanes):
                best = wc[k, X + lane] if wl[INNER + lane] > 0.0 else wc[k, BEST_X + lane]
                wc[k, BEST_X + lane] = best
    if count > 0:
        move_active(y, v, wo, wc, wl, y2, v2, wo2, wc2, wl2, n_out, m, lanes)
    while count > 0:
        moved = count
        steps, count = climb(solver, n_iter, tol, y2, v2, wo2, wc2, wl2, n_out, m, moved, fresh, steps)
        commit(wc2, wl2, wc, wl, m, moved, count == 0)
        if count > 0:
            move_active(y2, v2, wo2, wc2, wl2, y2, v2, wo2, wc2, wl2, n_out, m, moved)


@jit
def next_starts(solver, start, tol, wide, y, v, wo, wc, wl, n_out, m, lanes):
    """The next start of every lane in wc[XT].  Returns how many lanes there are to do: none where the ellipsoid is
    narrow, the best value is reached already, or the last search of chords brought nothing."""
    z, worth, rows = np.empty(n_out), np.empty(n_out), np.empty((n_out, m))
    at, point = np.empty(m), np.empty((1, m))
    todo = 0
    for lane in range(lanes):
        beta = wl[BETA + lane]
        narrow = (wl[HALF + lane] <= wide and wl[FLAT + lane] == 0.0) or beta == 0.0
        settled = narrow or wl[PEAK + lane] - wl[BEST_F + lane] <= tol * wl[SCALE + lane]
        chords = solver != FRANK_WOLFE
        settled = settled or (chords and wl[BEST_F + lane] <= wl[LAST + lane] + tol * wl[SCALE + lane])
        if not settled:
            for i in range(n_out):
                z[i], worth[i] = wo[i, Z0 + lane], v[i, lane]
                for k in range(m):
                    rows[i, k] = y[i * m + k, lane]
            for k in range(m):
                at[k] = wc[k, BEST_X + lane]
                point[0, k] = 0.0
            if chords:
                wl[LAST + lane] = wl[BEST_F + lane]
                found = best_on_chords(z, rows, worth, n_out, m, beta, at, start == 0, point[0])
                settled = found == -math.inf
            else:
                pick = next_best(worth, n_out, int(wl[LAST + lane]))
                wl[LAST + lane] = pick
                push(z, rows, n_out, m, pick, point, 0)
                for k in range(m):
                    point[0, k] *= beta
            for k in range(m):
                wc[k, XT + lane] = point[0, k]
        wl[REACH + lane] = 0.0 if settled else beta
        wl[GAP + lane] = 0.0 if settled else math.inf
        todo += 0 if settled else 1
    return todo


@jit
def commit(from_wc, from_wl, wc, wl, m, lanes, everything):
    """Bring back the better results of moved lanes that came to rest (or of all of them)."""
    for lane in range(lanes):
        if everything or from_wl[GAP + lane] == 0.0:
            to = int(from_wl[ORIGIN + lane])
            wl[STEPS + to] = from_wl[STEPS + lane]
            if from_wl[F + lane] > wl[BEST_F + to]:
                wl[BEST_F + to] = from_wl[F + lane]
                wl[BEST_GAP + to] = from_wl[FINAL + lane]
                for k in range(m):
                    wc[k, BEST_X + to] = from_wc[k, X + lane]


@jit
def move_active(y, v, wo, wc, wl, y2, v2, wo2, wc2, wl2, n_out, m, lanes):
    """Copy what the next steps need of the lanes still moving to the front of the second workspace (maybe the same)."""
    index = np.empty(LANES, dtype=np.int64)
    count = 0
    for lane in range(lanes):
        if wl[GAP + lane] > 0.0:
            index[count] = lane
            count += 1
    for row in range(n_out * m):
        for to in range(count):
            y2[row, to] = y[row, index[to]]
    for i in range(n_out):
        for to in range(count):
            wo2[i, Z0 + to] = wo[i, Z0 + index[to]]
            v2[i, to] = v[i, index[to]]
    for k in range(m):
        for to in range(count):
            wc2[k, X + to] = wc[k, X + index[to]]
            wc2[k, G + to] = wc[k, G + index[to]]
            wc2[k, XT + to] = wc[k, XT + index[to]]
    for to in range(count):
        lane = index[to]
        wl2[SCALE + to] = wl[SCALE + lane]
        wl2[REACH + to] = wl[REACH + lane]
        wl2[F + to] = wl[F + lane]
        wl2[GAP + to] = wl[GAP + lane]
        wl2[NORM + to] = wl[NORM + lane]
        wl2[SIGMA + to] = wl[SIGMA + lane]
        wl2[STEPS + to] = wl[STEPS + lane]
        wl2[ORIGIN + to] = wl[ORIGIN + lane]
