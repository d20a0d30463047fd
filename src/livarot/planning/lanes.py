"""Up to 64 inner problems side by side: the arithmetic of optimism, written so that it vectorises.

One inner problem is a pair (s, a) of one replica: logits z0 at the centre theta_hat, values V of its U outcomes and
whitened features y_i = W phi_i, where W'W = H^-1.  A parameter of the ellipsoid |theta - theta_hat|_H <= beta is
theta_hat + W'x with |x| <= beta, its logits are z0 + Yx, and

    f(x) = sum_i p_i V_i,  p = softmax(z0 + Yx),    grad f = g = Y'q,   q_i = p_i (V_i - f).

(With K = YY' = Phi H^-1 Phi' this is the problem in R^U: the move of the logits is Yx, the oracle beta K q/|q|_K.
K itself is never formed: two products with Y cost 2 U d an iteration, so the cost is linear in U.)

Workspace: ``wo[name, outcome, lane]``, ``wc[name, column, lane]`` and ``wl[name, lane]`` with the names below, one problem
per lane; ``y`` and ``phi`` are (U d, lanes).  (One array per kind, not one per name: compiled loops with two dozen array
arguments take minutes to compile.)  Each lane is computed by the same operations whatever its neighbours are, so results
do not depend on how problems were grouped.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from livarot.core.jit import jit
from livarot.core.lanes import LANES, softmax_rows
from livarot.core.mnl import exp

SHIFTED_POWER, FRANK_WOLFE = 0, 1

# per outcome: centre logits, logits, probabilities, scratch, logit half-widths, values, certified upper values
Z0, Z, P, Q, WIDTH, V, V_UP = range(7)
# per column: point, gradient, their trials, mean feature, best point
X, G, XT, GT, MEAN, BEST_X = range(6)
# per lane: radius, value range, then what the functions below say
(BETA, SCALE, VALUE, UPPER, F, FT, GAP, BEST_F, BEST_GAP, TOP, TOTAL, INNER, NORM, SIGMA, HALF, REACH, LAST, STEPS) = range(18)


@jit
def outcome_workspace(n_out):
    return np.zeros((7, n_out, LANES))


@jit
def column_workspace(m):
    return np.zeros((6, m, LANES))


@jit
def lane_workspace():
    return np.zeros((18, LANES))


@jit
def whiten_shared(w, at, phi, y, n_out, m, lanes):
    """y_i = W phi_i with one W (lower triangular, row-major at ``at``) for all lanes."""
    for i in range(n_out):
        for k in range(m):
            row = i * m + k
            for lane in range(lanes):
                y[row, lane] = 0.0
            j = 0
            while j + 3 <= k:
                w0, w1 = w[at + k * m + j], w[at + k * m + j + 1]
                w2, w3 = w[at + k * m + j + 2], w[at + k * m + j + 3]
                src = i * m + j
                for lane in range(lanes):
                    y[row, lane] += (
                        w0 * phi[src, lane] + w1 * phi[src + 1, lane] + w2 * phi[src + 2, lane] + w3 * phi[src + 3, lane]
                    )
                j += 4
            while j <= k:
                w0 = w[at + k * m + j]
                src = i * m + j
                for lane in range(lanes):
                    y[row, lane] += w0 * phi[src, lane]
                j += 1


@jit
def whiten_each(w, phi, y, n_out, m, lanes):
    """y_i = W phi_i with a W (m*m, lanes) of its own for every lane."""
    for i in range(n_out):
        for k in range(m):
            row = i * m + k
            for lane in range(lanes):
                y[row, lane] = w[k * m, lane] * phi[i * m, lane]
            for j in range(1, k + 1):
                src, entry = i * m + j, k * m + j
                for lane in range(lanes):
                    y[row, lane] += w[entry, lane] * phi[src, lane]


@jit
def softmax_lanes(wo, source, n_out, lanes, wl):
    """wo[P] = softmax(wo[source])."""
    softmax_rows(wo[source], wo[P], n_out, lanes, wl[TOP], wl[TOTAL])


@jit
def mean_value(wo, values, n_out, lanes, wl, out):
    """wl[out] = sum_i p_i V_i."""
    for lane in range(lanes):
        wl[out, lane] = wo[P, 0, lane] * wo[values, 0, lane]
    for i in range(1, n_out):
        for lane in range(lanes):
            wl[out, lane] += wo[P, i, lane] * wo[values, i, lane]


@jit
def value_gradient(y, wo, wc, wl, values, f, n_out, m, lanes):
    """wl[f] = sum_i p_i V_i and wc[GT] = sum_i p_i (V_i - f) y_i."""
    mean_value(wo, values, n_out, lanes, wl, f)
    for i in range(n_out):
        for lane in range(lanes):
            wo[Q, i, lane] = wo[P, i, lane] * (wo[values, i, lane] - wl[f, lane])
    for k in range(m):
        for lane in range(lanes):
            wc[GT, k, lane] = wo[Q, 0, lane] * y[k, lane]
        for i in range(1, n_out):
            row = i * m + k
            for lane in range(lanes):
                wc[GT, k, lane] += wo[Q, i, lane] * y[row, lane]


@jit
def centre_widths(y, wo, wc, wl, n_out, m, lanes):
    """ybar = sum_i p_i y_i in wc[MEAN], b_i = beta |y_i - ybar| in wo[WIDTH] and their maximum in wl[HALF]."""
    for k in range(m):
        for lane in range(lanes):
            wc[MEAN, k, lane] = 0.0
        for i in range(n_out):
            row = i * m + k
            for lane in range(lanes):
                wc[MEAN, k, lane] += wo[P, i, lane] * y[row, lane]
    for lane in range(lanes):
        wl[HALF, lane] = 0.0
    for i in range(n_out):
        for lane in range(lanes):
            wo[WIDTH, i, lane] = 0.0
        for k in range(m):
            row = i * m + k
            for lane in range(lanes):
                off = y[row, lane] - wc[MEAN, k, lane]
                wo[WIDTH, i, lane] += off * off
        for lane in range(lanes):
            width = wl[BETA, lane] * math.sqrt(wo[WIDTH, i, lane])
            wo[WIDTH, i, lane] = width
            wl[HALF, lane] = max(wl[HALF, lane], width)


@jit
def largest_norm(y, wl, n_out, m, lanes):
    """wl[INNER] = max_i |y_i|^2."""
    for lane in range(lanes):
        wl[INNER, lane] = 0.0
    for i in range(n_out):
        for lane in range(lanes):
            wl[NORM, lane] = 0.0
        for k in range(m):
            row = i * m + k
            for lane in range(lanes):
                wl[NORM, lane] += y[row, lane] * y[row, lane]
        for lane in range(lanes):
            wl[INNER, lane] = max(wl[INNER, lane], wl[NORM, lane])


@jit
def two_outcomes(y, wo, wl, values, out, m, lanes):
    """The exact maximum for two outcomes: the better one's logit gains beta |y_1 - y_2|."""
    for lane in range(lanes):
        wl[NORM, lane] = 0.0
    for k in range(m):
        for lane in range(lanes):
            off = y[k, lane] - y[m + k, lane]
            wl[NORM, lane] += off * off
    for lane in range(lanes):
        gain = wl[BETA, lane] * math.sqrt(wl[NORM, lane])
        high = max(wo[values, 0, lane], wo[values, 1, lane])
        low = min(wo[values, 0, lane], wo[values, 1, lane])
        sign = 1.0 if wo[values, 0, lane] >= wo[values, 1, lane] else -1.0
        gap = sign * (wo[Z0, 0, lane] - wo[Z0, 1, lane]) + gain  # logit of the better minus the worse outcome
        e = exp(-abs(gap))
        better = (1.0 if gap >= 0.0 else e) / (1.0 + e)
        wl[out, lane] = low + better * (high - low)


@jit
def climb(solver, n_iter, tol, y, wo, wc, wl, n_out, m, lanes, fresh):
    """Maximise f over |x| <= wl[REACH] from the points wc[XT]; leaves wc[X], wl[F], wl[GAP] and counts wl[STEPS].

    Shifted power: x+ = s (g + sigma x), s = min(beta/|g + sigma x|, 1/sigma), a projected gradient step of length
    1/sigma, sigma = max(0, Barzilai-Borwein curvature); a step that lowers f is taken back and sigma grows
    fourfold.  It stays inside the ball when the maximum is there.  Frank-Wolfe: x+ = x + gamma (beta g/|g| - x),
    gamma = 2/(k + 2); from a start that is not ``fresh`` k begins at 1, since gamma = 1 would forget it.

    The gap beta |g| - g.x is the first-order (Frank-Wolfe) gap; a lane rests when gap <= tol * wl[SCALE].
    """
    for lane in range(lanes):
        wl[SIGMA, lane] = 0.0
        wl[GAP, lane] = math.inf
    k = 0
    active = True
    while active:
        # f and its gradient at the trial points: z = z0 + Y xt, p = softmax(z), gt = Y'(p (V - f))
        for i in range(n_out):
            for lane in range(lanes):
                wo[Z, i, lane] = wo[Z0, i, lane]
            for j in range(m):
                row = i * m + j
                for lane in range(lanes):
                    wo[Z, i, lane] += y[row, lane] * wc[XT, j, lane]
        softmax_lanes(wo, Z, n_out, lanes, wl)
        value_gradient(y, wo, wc, wl, V, FT, n_out, m, lanes)
        # the step's curvature, then lane by lane: take it (INNER = 1) or stay (INNER = 0)
        for lane in range(lanes):
            wl[TOP, lane] = 0.0
            wl[TOTAL, lane] = 0.0
            wl[INNER, lane] = 0.0
        if k > 0:
            for j in range(m):
                for lane in range(lanes):
                    dx = wc[XT, j, lane] - wc[X, j, lane]
                    wl[TOP, lane] += dx * (wc[GT, j, lane] - wc[G, j, lane])
                    wl[TOTAL, lane] += dx * dx
                    wl[INNER, lane] += wc[G, j, lane] * wc[G, j, lane]
        for lane in range(lanes):
            lower = k > 0 and solver == SHIFTED_POWER and wl[FT, lane] < wl[F, lane] - 1e-15 * wl[SCALE, lane]
            if wl[GAP, lane] <= tol * wl[SCALE, lane]:
                wl[INNER, lane] = 0.0
            elif lower:
                floor = 1e-3 * math.sqrt(wl[INNER, lane]) / max(wl[REACH, lane], 1e-300)
                wl[SIGMA, lane] = max(4.0 * wl[SIGMA, lane], floor)
                wl[INNER, lane] = 0.0
                wl[STEPS, lane] += 1.0
            else:
                bend = -wl[TOP, lane] / wl[TOTAL, lane] if wl[TOTAL, lane] > 0.0 else 0.0
                wl[SIGMA, lane] = max(0.0, bend)
                wl[F, lane] = wl[FT, lane]
                wl[INNER, lane] = 1.0
                wl[STEPS, lane] += 1.0
        for lane in range(lanes):
            wl[TOP, lane] = 0.0
            wl[TOTAL, lane] = 0.0
        for j in range(m):
            for lane in range(lanes):
                take = wl[INNER, lane] > 0.0
                xj = wc[XT, j, lane] if take else wc[X, j, lane]
                gj = wc[GT, j, lane] if take else wc[G, j, lane]
                wc[X, j, lane] = xj
                wc[G, j, lane] = gj
                wl[TOP, lane] += gj * gj
                wl[TOTAL, lane] += gj * xj
        active = False
        for lane in range(lanes):
            wl[GAP, lane] = max(wl[REACH, lane] * math.sqrt(wl[TOP, lane]) - wl[TOTAL, lane], 0.0)
        for lane in range(lanes):
            active = active or wl[GAP, lane] > tol * wl[SCALE, lane]
        if k == n_iter:
            active = False
        # the next trial points: TOP * g + TOTAL * x
        if solver == FRANK_WOLFE:
            gamma = 2.0 / (k + 2.0 if fresh else k + 3.0)
            for lane in range(lanes):
                length = math.sqrt(wl[TOP, lane])
                wl[TOP, lane] = gamma * wl[REACH, lane] / length if length > 0.0 else 0.0
                wl[TOTAL, lane] = 1.0 - gamma
        else:
            for lane in range(lanes):
                wl[TOTAL, lane] = 0.0
            for j in range(m):
                for lane in range(lanes):
                    moved = wc[G, j, lane] + wl[SIGMA, lane] * wc[X, j, lane]
                    wl[TOTAL, lane] += moved * moved
            for lane in range(lanes):
                length = math.sqrt(wl[TOTAL, lane])
                outside = length > wl[REACH, lane] * wl[SIGMA, lane]
                over = wl[REACH, lane] if outside else 1.0
                under = length if outside else max(wl[SIGMA, lane], 1e-300)
                scale = over / under if length > 0.0 else 0.0
                wl[TOP, lane] = scale
                wl[TOTAL, lane] = scale * wl[SIGMA, lane]
        for j in range(m):
            for lane in range(lanes):
                wc[XT, j, lane] = wl[TOP, lane] * wc[G, j, lane] + wl[TOTAL, lane] * wc[X, j, lane]
        k += 1


@jit
def joint_maximum(solver, n_iter, tol, n_starts, wide, y, wo, wc, wl, n_out, m, lanes):
    """max of f over |x| <= beta in every lane: wl[BEST_F], its point wc[BEST_X] and its gap wl[BEST_GAP].

    From the centre, and again from the points that push the logits of the ``n_starts`` top-valued outcomes when the
    ellipsoid is wide there (logit half-width above ``wide``): a local method alone misses the global maximum of a
    wide ellipsoid in several per cent of the cases.
    """
    softmax_lanes(wo, Z0, n_out, lanes, wl)
    centre_widths(y, wo, wc, wl, n_out, m, lanes)
    any_wide = False
    for lane in range(lanes):
        wl[STEPS, lane] = 0.0
        wl[LAST, lane] = -1.0
        wl[BEST_F, lane] = -math.inf
        wl[BEST_GAP, lane] = 0.0
        wl[REACH, lane] = wl[BETA, lane]
        any_wide = any_wide or wl[HALF, lane] > wide
    for start in range(1 + (min(n_starts, n_out) if any_wide else 0)):
        for lane in range(lanes):
            push = 0.0
            pick = 0
            if start > 0:
                wl[REACH, lane] = wl[BETA, lane] if wl[HALF, lane] > wide else 0.0  # 0: nothing more to do here
                pick = _next_best(wo, n_out, lane, int(wl[LAST, lane]))
                wl[LAST, lane] = pick
                length = wo[WIDTH, pick, lane]
                push = wl[REACH, lane] * wl[BETA, lane] / length if length > 0.0 else 0.0
            for k in range(m):
                wc[XT, k, lane] = push * (y[pick * m + k, lane] - wc[MEAN, k, lane])
        climb(solver, n_iter, tol, y, wo, wc, wl, n_out, m, lanes, start == 0)
        for lane in range(lanes):
            if wl[F, lane] > wl[BEST_F, lane]:
                wl[BEST_F, lane] = wl[F, lane]
                wl[BEST_GAP, lane] = wl[GAP, lane]
                for k in range(m):
                    wc[BEST_X, k, lane] = wc[X, k, lane]


@jit
def _next_best(wo, n_out, lane, last):
    """The outcome that follows ``last`` in decreasing value (ties by index)."""
    pick = -1
    for i in range(n_out):
        after = last < 0 or wo[V, i, lane] < wo[V, last, lane] or (wo[V, i, lane] == wo[V, last, lane] and i > last)
        if after and (pick < 0 or wo[V, i, lane] > wo[V, pick, lane]):
            pick = i
    return pick if pick >= 0 else last


@jit
def variance_bound(y, wo, wc, wl, values, out, n_out, m, lanes):
    """f0 + beta |g0| + span(V) beta^2 min(max|y_i|^2, max|y_i - ybar|^2) / 2, at most max V.

    The variance-aware bound of algorithms section 1 (certain): the first term is the gradient at the centre, the
    second bounds half the second derivative, |f''| <= span(V) Var(Yx), and Var(Yx) <= max ((y_i - c).x)^2 for any c.
    """
    value_gradient(y, wo, wc, wl, values, out, n_out, m, lanes)
    centre_widths(y, wo, wc, wl, n_out, m, lanes)
    largest_norm(y, wl, n_out, m, lanes)
    for lane in range(lanes):
        wl[NORM, lane] = 0.0
        wl[TOP, lane] = wo[values, 0, lane]
        wl[TOTAL, lane] = wo[values, 0, lane]
    for k in range(m):
        for lane in range(lanes):
            wl[NORM, lane] += wc[GT, k, lane] * wc[GT, k, lane]
    for i in range(1, n_out):
        for lane in range(lanes):
            wl[TOP, lane] = max(wl[TOP, lane], wo[values, i, lane])
            wl[TOTAL, lane] = min(wl[TOTAL, lane], wo[values, i, lane])
    for lane in range(lanes):
        beta = wl[BETA, lane]
        curve = min(wl[INNER, lane] * beta * beta, wl[HALF, lane] * wl[HALF, lane])
        bound = wl[out, lane] + beta * math.sqrt(wl[NORM, lane]) + 0.5 * (wl[TOP, lane] - wl[TOTAL, lane]) * curve
        wl[out, lane] = min(bound, wl[TOP, lane])


@jit
def box_bound(wo, wl, values, out, n_out, lanes):
    """max of the expected value when logit i may move by b_i on its own: an upper bound, solved exactly.

    The maximiser raises the logits with V_i > t and lowers the others, where t is the optimal value; iterating
    t <- value (Dinkelbach) reaches it from below in at most U + 1 rounds.
    """
    for lane in range(lanes):
        wl[TOP, lane] = wo[Z0, 0, lane] + wo[WIDTH, 0, lane]
        wl[out, lane] = -math.inf
    for i in range(1, n_out):
        for lane in range(lanes):
            wl[TOP, lane] = max(wl[TOP, lane], wo[Z0, i, lane] + wo[WIDTH, i, lane])
    for i in range(n_out):
        for lane in range(lanes):
            wo[Z, i, lane] = exp(wo[Z0, i, lane] + wo[WIDTH, i, lane] - wl[TOP, lane])
            wo[Q, i, lane] = exp(wo[Z0, i, lane] - wo[WIDTH, i, lane] - wl[TOP, lane])
    changed = True
    rounds = 0
    while changed and rounds < n_out + 2:
        changed = False
        rounds += 1
        for lane in range(lanes):
            wl[TOTAL, lane] = 0.0
            wl[INNER, lane] = 0.0
        for i in range(n_out):
            for lane in range(lanes):
                weight = wo[Z, i, lane] if wo[values, i, lane] > wl[out, lane] else wo[Q, i, lane]
                wl[TOTAL, lane] += weight
                wl[INNER, lane] += weight * wo[values, i, lane]
        for lane in range(lanes):
            t = wl[INNER, lane] / wl[TOTAL, lane]
            changed = changed or t > wl[out, lane] + 1e-15 * abs(t)
            wl[out, lane] = max(t, wl[out, lane])
    for lane in range(lanes):
        wl[out, lane] += 1e-14 * abs(wl[out, lane])  # rounding must not make it less than the maximum


@jit
def upper_bound(y, wo, wc, wl, values, out, n_out, m, lanes):
    """wl[out] = the smaller of the box relaxation and the variance-aware bound."""
    softmax_lanes(wo, Z0, n_out, lanes, wl)
    variance_bound(y, wo, wc, wl, values, out, n_out, m, lanes)
    box_bound(wo, wl, values, FT, n_out, lanes)
    for lane in range(lanes):
        wl[out, lane] = min(wl[out, lane], wl[FT, lane])


@jit
def second_order_bonus(y, wo, wc, wl, factor, constant, n_out, m, lanes):
    """wl[VALUE] = p.V + F beta sum_i p_i |y_i - ybar| + c F beta^2 max|y_i|^2 (Li et al.: F = H, c = 5/2)."""
    mean_value(wo, V, n_out, lanes, wl, VALUE)
    centre_widths(y, wo, wc, wl, n_out, m, lanes)
    largest_norm(y, wl, n_out, m, lanes)
    for lane in range(lanes):
        wl[TOTAL, lane] = 0.0
    for i in range(n_out):
        for lane in range(lanes):
            wl[TOTAL, lane] += wo[P, i, lane] * wo[WIDTH, i, lane]
    for lane in range(lanes):
        second = constant * wl[BETA, lane] * wl[BETA, lane] * wl[INNER, lane]
        wl[VALUE, lane] += factor * (wl[TOTAL, lane] + second)
