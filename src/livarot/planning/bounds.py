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
    LOW,
    NORM,
    PEAK,
    SLIP,
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

EPSILON = 2.0**-52
UNDERFLOW = -690.0  # exponents below are not told apart from -700 (livarot.core.mnl.exp)


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
def rounding(n_out, m, logit, reach):
    """What rounding may do to a logit of size ``logit``, and relatively to a weight or a sum of ``n_out`` of them, with
    features of ``m`` columns and moves of at most ``reach`` = beta max|y_i|."""
    return EPSILON * (n_out + m + 8.0) * (1.0 + logit + reach)


@jit
def variance_bound(y, v, wo, wc, wl, out, n_out, m, lanes):
    """f0 + beta |g0| + span(V) beta^2 min(max|y_i|^2, max|y_i - ybar|^2) / 2, rounded up, at most max V.

    The variance-aware bound (certain): the first term is the gradient at the centre, the
    second bounds half the second derivative, |f''| <= span(V) Var(Yx), and Var(Yx) <= max ((y_i - c).x)^2 for any c.
    Expects p at the centre in wo[P] and :func:`centre_widths` done; leaves max V in wl[PEAK], min V in wl[LOW], f0 in
    wl[FT] and what rounding may do to a logit, its mean size being sum_i p_i |z_i|, in wl[SLIP].
    """
    centre_weights(v, wo, wl, n_out, lanes)
    gradient(y, wo, wc, n_out, m, lanes)
    largest_norm(y, wl, n_out, m, lanes)
    for lane in range(lanes):
        wl[PEAK + lane] = v[0, lane]
        wl[LOW + lane] = v[0, lane]
        wl[SLIP + lane] = wo[0, P + lane] * abs(wo[0, Z0 + lane])
        wl[NORM + lane] = 0.0
    for i in range(1, n_out):
        for lane in range(lanes):
            wl[PEAK + lane] = max(wl[PEAK + lane], v[i, lane])
            wl[LOW + lane] = min(wl[LOW + lane], v[i, lane])
            wl[SLIP + lane] += wo[i, P + lane] * abs(wo[i, Z0 + lane])
    for k in range(m):
        for lane in range(lanes):
            wl[NORM + lane] += wc[k, GT + lane] * wc[k, GT + lane]
    for lane in range(lanes):
        beta = wl[BETA + lane]
        reach = beta * math.sqrt(wl[INNER + lane])
        slip = rounding(n_out, m, wl[SLIP + lane], reach)
        wl[SLIP + lane] = slip
        curve = min(reach * reach, wl[HALF + lane] * wl[HALF + lane])
        rise = beta * math.sqrt(wl[NORM + lane]) + 0.5 * (wl[PEAK + lane] - wl[LOW + lane]) * curve
        out[lane] = rounded_up(wl[FT + lane], rise, slip, wl[LOW + lane], wl[PEAK + lane])


@jit
def rounded_up(f0, rise, slip, low, high):
    """f0 + rise and what rounding may have taken from it, at most ``high`` (also where it is infinite or undefined);
    ``low`` and ``high`` are the range of V."""
    bound = f0 + rise + slip * (rise + max(abs(low), abs(high)))
    return bound if bound < high else high


@jit
def box_weights(wo, wl, n_out, m, lanes):
    """The weights of raised and lowered logits, e^(z + b - top) in wo[Z] and e^(z - b - top) in wo[Q], where the
    half-widths b are larger than wo[WIDTH] by wl[SLIP] and by what rounding may
    do to a logit of that size.  Lowered weights next to underflow count as 0."""
    for lane in range(lanes):
        wl[TOP + lane] = -math.inf
    for i in range(n_out):
        for lane in range(lanes):
            width = wo[i, WIDTH + lane] + (wl[SLIP + lane] + rounding(n_out, m, abs(wo[i, Z0 + lane]), 0.0))
            wo[i, Z + lane] = wo[i, Z0 + lane] + width
            wo[i, Q + lane] = wo[i, Z0 + lane] - width
            wl[TOP + lane] = max(wl[TOP + lane], wo[i, Z + lane])
    for i in range(n_out):
        for lane in range(lanes):
            wo[i, Z + lane] = exp(wo[i, Z + lane] - wl[TOP + lane])
            lowered = wo[i, Q + lane] - wl[TOP + lane]
            wo[i, Q + lane] = exp(lowered) if lowered > UNDERFLOW else 0.0


@jit
def box_bound(v, wo, wl, out, n_out, lanes):
    """out = the smaller of out and the maximum when logit i may move by b_i on its own: a bound, rounded up.

    The maximum is at most t if and only if  g(t) = sum_i w_i (V_i - t) <= 0,  w_i = e^(z_i + b_i) where V_i > t and
    e^(z_i - b_i) elsewhere: g is convex and falls.  Newton's method on g (Dinkelbach's: t + g/sum w is the value of
    the box point for t), from the value at the centre in wl[FT], reaches the root in at most U + 1 steps; a few ulps
    are added to each of them, twice as many every time, and **t is taken only where the computed g(t) <= 0**.  The sum
    is exact for weights that are wrong by its rounding, and :func:`box_weights` has raised and lowered them by more
    than all rounding together, so that g(t) <= 0 of the true weights follows.  A t that has merely come to rest proves
    nothing: where widths exceed 37 it may stop next to a value, its own weight being larger than all others by 1/ulp.
    A lane whose t has passed ``out`` needs no more steps, and at t = max V (wl[PEAK]) there is nothing to prove.
    """
    changed, more = 1, EPSILON
    while changed > 0:
        changed = 0
        for lane in range(lanes):
            wl[TOTAL + lane] = 0.0
            wl[INNER + lane] = 0.0
        for i in range(n_out):
            for lane in range(lanes):
                weight = wo[i, Z + lane] if v[i, lane] > wl[FT + lane] else wo[i, Q + lane]
                wl[TOTAL + lane] += weight
                wl[INNER + lane] += weight * (v[i, lane] - wl[FT + lane])
        for lane in range(lanes):
            t = wl[FT + lane]
            unproved = not wl[INNER + lane] <= 0.0 and t < out[lane]  # weights of infinite widths are not numbers
            size = max(abs(wl[PEAK + lane]), abs(wl[LOW + lane]))
            moved = t + (wl[INNER + lane] / wl[TOTAL + lane] + more * size)
            moved = moved if moved < wl[PEAK + lane] else wl[PEAK + lane]
            wl[FT + lane] = moved if unproved else t
            changed += 1 if unproved else 0
        more *= 2.0
    for lane in range(lanes):
        out[lane] = min(out[lane], wl[FT + lane])


@jit
def upper_bound(y, v, wo, wc, wl, out, n_out, m, lanes):
    """out = the smaller of the box relaxation and the variance-aware bound (expects what that one does)."""
    variance_bound(y, v, wo, wc, wl, out, n_out, m, lanes)
    box_weights(wo, wl, n_out, m, lanes)
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
