"""Closed-form bounds and bonuses for up to 64 inner problems side by side (see :mod:`livarot.planning.lanes`)."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

from livarot.core.jit import jit
from livarot.core.mnl import exp
from livarot.planning.lanes import (
    BETA,
    FT,
    GT,
    HALF,
    INNER,
    NORM,
    PEAK,
    TOP,
    TOTAL,
    WIDTH,
    Z0,
    P,
    Q,
    Z,
    centre_value,
    centre_weights,
    gradient,
)


@jit
def largest_norm(y, wl, n_out, m, lanes):
    """wl[INNER] = max_i |y_i|^2."""
    for lane in range(lanes):
        wl[INNER + lane] = 0.0
    for i in range(n_out):
        for lane in range(lanes):
            wl[NORM + lane] = 0.0
        for k in range(m):
            row = i * m + k
            for lane in range(lanes):
                wl[NORM + lane] += y[row, lane] * y[row, lane]
        for lane in range(lanes):
            wl[INNER + lane] = max(wl[INNER + lane], wl[NORM + lane])


@jit
def variance_bound(y, v, wo, wc, wl, out, n_out, m, lanes):
    """f0 + beta |g0| + span(V) beta^2 min(max|y_i|^2, max|y_i - ybar|^2) / 2, at most max V.

    The variance-aware bound (certain): the first term is the gradient at the centre, the
    second bounds half the second derivative, |f''| <= span(V) Var(Yx), and Var(Yx) <= max ((y_i - c).x)^2 for any c.
    Expects p at the centre in wo[P] and :func:`centre_widths` done; leaves max V in wl[PEAK].
    """
    centre_weights(v, wo, wl, n_out, lanes)
    gradient(y, wo, wc, n_out, m, lanes)
    largest_norm(y, wl, n_out, m, lanes)
    for lane in range(lanes):
        wl[PEAK + lane] = v[0, lane]
        wl[TOTAL + lane] = v[0, lane]
    for i in range(1, n_out):
        for lane in range(lanes):
            wl[PEAK + lane] = max(wl[PEAK + lane], v[i, lane])
            wl[TOTAL + lane] = min(wl[TOTAL + lane], v[i, lane])
    variance_formula(wc, wl, out, m, lanes)


@jit
def variance_formula(wc, wl, out, m, lanes):
    """:func:`variance_bound` from f0 in wl[FT], g0 in wc[GT], max and min V in wl[PEAK] and wl[TOTAL], max|y|^2 in
    wl[INNER] and the largest half-width in wl[HALF]."""
    for lane in range(lanes):
        wl[NORM + lane] = 0.0
    for k in range(m):
        for lane in range(lanes):
            wl[NORM + lane] += wc[k, GT + lane] * wc[k, GT + lane]
    for lane in range(lanes):
        beta = wl[BETA + lane]
        curve = min(wl[INNER + lane] * beta * beta, wl[HALF + lane] * wl[HALF + lane])
        rise = beta * math.sqrt(wl[NORM + lane]) + 0.5 * (wl[PEAK + lane] - wl[TOTAL + lane]) * curve
        out[lane] = min(wl[FT + lane] + rise, wl[PEAK + lane])


@jit
def box_weights(wo, wl, n_out, lanes):
    """The weights of raised and lowered logits, e^(z + b - top) in wo[Z] and e^(z - b - top) in wo[Q]; wl[NORM] is how
    far the largest lowered logit lies below the largest raised one."""
    for lane in range(lanes):
        wl[TOP + lane] = wo[0, Z0 + lane] + wo[0, WIDTH + lane]
        wl[NORM + lane] = wo[0, Z0 + lane] - wo[0, WIDTH + lane]
    for i in range(1, n_out):
        for lane in range(lanes):
            wl[TOP + lane] = max(wl[TOP + lane], wo[i, Z0 + lane] + wo[i, WIDTH + lane])
            wl[NORM + lane] = max(wl[NORM + lane], wo[i, Z0 + lane] - wo[i, WIDTH + lane])
    for i in range(n_out):
        for lane in range(lanes):
            wo[i, Z + lane] = exp(wo[i, Z0 + lane] + wo[i, WIDTH + lane] - wl[TOP + lane])
            wo[i, Q + lane] = exp(wo[i, Z0 + lane] - wo[i, WIDTH + lane] - wl[TOP + lane])
    for lane in range(lanes):
        wl[NORM + lane] = wl[TOP + lane] - wl[NORM + lane]


@jit
def box_bound(v, wo, wl, out, n_out, lanes):
    """out = the smaller of out and the maximum when logit i may move by b_i on its own: a bound, solved exactly.

    The maximiser raises the logits with V_i > t and lowers the others, where t is the optimal value; iterating
    t <- value (Dinkelbach) reaches it from below, from the value at the centre in wl[FT], in at most U + 1 rounds.  A
    lane whose t has passed ``out`` needs no more of them.  Expects :func:`box_weights`.  Where the widths are so large
    that exponentials would underflow, max V (in wl[PEAK]) is the bound.
    """
    changed = 1
    rounds = 0
    while changed > 0 and rounds < n_out + 2:
        changed = 0
        rounds += 1
        for lane in range(lanes):
            wl[TOTAL + lane] = 0.0
            wl[INNER + lane] = 0.0
        for i in range(n_out):
            for lane in range(lanes):
                weight = wo[i, Z + lane] if v[i, lane] > wl[FT + lane] else wo[i, Q + lane]
                wl[TOTAL + lane] += weight
                wl[INNER + lane] += weight * v[i, lane]
        for lane in range(lanes):
            t = wl[INNER + lane] / wl[TOTAL + lane]
            changed += 1 if t > wl[FT + lane] + 1e-15 * abs(t) and t < out[lane] else 0
            wl[FT + lane] = max(t, wl[FT + lane])
    for lane in range(lanes):  # rounding must not make it less than the maximum
        bound = wl[FT + lane] + 1e-14 * abs(wl[FT + lane]) if wl[NORM + lane] < 600.0 else wl[PEAK + lane]
        out[lane] = min(out[lane], bound)


@jit
def upper_bound(y, v, wo, wc, wl, out, n_out, m, lanes):
    """out = the smaller of the box relaxation and the variance-aware bound (expects what that one does)."""
    variance_bound(y, v, wo, wc, wl, out, n_out, m, lanes)
    box_weights(wo, wl, n_out, lanes)
    box_bound(v, wo, wl, out, n_out, lanes)


@jit
def second_order_bonus(y, v, wo, wl, out, factor, constant, n_out, m, lanes):
    """out = p.V + F beta sum_i p_i |y_i - ybar| + c F beta^2 max|y_i|^2 (Li et al.: F = H, c = 5/2)."""
    centre_value(v, wo, wl, n_out, lanes)
    largest_norm(y, wl, n_out, m, lanes)
    for lane in range(lanes):
        wl[TOTAL + lane] = 0.0
    for i in range(n_out):
        for lane in range(lanes):
            wl[TOTAL + lane] += wo[i, P + lane] * wo[i, WIDTH + lane]
    for lane in range(lanes):
        second = constant * wl[BETA + lane] * wl[BETA + lane] * wl[INNER + lane]
        out[lane] = wl[FT + lane] + factor * (wl[TOTAL + lane] + second)


@jit
def max_norm_bonus(y, v, wo, wl, out, factor, n_out, m, lanes):
    """out = p.V + F beta max|y_i| (Hwang and Oh: F = 2 H)."""
    centre_value(v, wo, wl, n_out, lanes)
    largest_norm(y, wl, n_out, m, lanes)
    for lane in range(lanes):
        out[lane] = wl[FT + lane] + factor * wl[BETA + lane] * math.sqrt(wl[INNER + lane])
