"""Up to 64 inner problems side by side: the arithmetic of optimism, written so that it vectorises.

One inner problem is a pair (s, a) of one replica: logits z0 at the centre theta_hat, values V of its U outcomes and
whitened features y_i = W phi_i, where W'W = H^-1.  A parameter of the ellipsoid |theta - theta_hat|_H <= beta is
theta_hat + W'x with |x| <= beta, its logits are z0 + Yx, and

    f(x) = sum_i p_i V_i,  p = softmax(z0 + Yx),    grad f = g = Y'q,   q_i = p_i (V_i - f).

(With K = YY' = Phi H^-1 Phi' this is the problem in R^U: the move of the logits is Yx, the oracle beta K q/|q|_K.
K itself is never formed: two products with Y cost 2 U d an iteration, so the cost is linear in U.)

Workspace: flat arrays with one problem per lane.  ``wo[i, name + lane]`` belongs to outcome i,
``wc[k, name + lane]`` to column k, ``wl[name + lane]`` to the problem, ``y[(i * m + k) * LANES + lane]`` is Y and
``v[i, lane]`` the values.  The names are constants, so a compiler sees that they do not overlap; with one
array per name it would have to check at run time, and gives up.  Each lane is computed by the same operations whatever
its neighbours are: results do not depend on how problems were grouped.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from livarot.core.jit import jit
from livarot.core.lanes64 import LANES
from livarot.core.mnl import exp
from livarot.core.ragged import FloatArray

SHIFTED_POWER, FRANK_WOLFE = 0, 1

# per outcome: centre logits, logits, centre probabilities, scratch, logit half-widths
Z0, Z, P, Q, WIDTH, OUT = (LANES * name for name in range(6))
# per column: point, gradient, their trials, mean feature, best point
X, G, XT, GT, MEAN, BEST_X, COL = (LANES * name for name in range(7))
# per problem: radius, value range, then as the functions below say
(
    BETA, SCALE, F, FT, GAP, BEST_F, BEST_GAP, TOP, TOTAL, INNER, NORM, SIGMA, HALF, REACH, LAST, STEPS, PEAK, ORIGIN,
    FINAL, FLAT, LENGTH, LOW, SLIP, PROBLEM,
) = (LANES * name for name in range(24))  # fmt: skip


def lane_workspaces(n_out: int, m: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """wo, wc, wl for up to ``n_out`` outcomes and ``m`` columns."""
    return np.zeros((n_out, OUT)), np.zeros((m, COL)), np.zeros(PROBLEM)


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
                        w0 * phi[src, lane]
                        + w1 * phi[src + 1, lane]
                        + w2 * phi[src + 2, lane]
                        + w3 * phi[src + 3, lane]
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
    """y_i = W phi_i with a W (m * m, LANES) of its own for every lane."""
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
def centre_probabilities(wo, wl, n_out, lanes):
    """wo[P] = softmax(wo[Z0])."""
    for lane in range(lanes):
        wl[TOP + lane] = wo[0, Z0 + lane]
        wl[TOTAL + lane] = 0.0
    for i in range(1, n_out):
        for lane in range(lanes):
            wl[TOP + lane] = max(wl[TOP + lane], wo[i, Z0 + lane])
    for i in range(n_out):
        for lane in range(lanes):
            e = exp(wo[i, Z0 + lane] - wl[TOP + lane])
            wo[i, P + lane] = e
            wl[TOTAL + lane] += e
    for lane in range(lanes):
        wl[TOTAL + lane] = 1.0 / wl[TOTAL + lane]
    for i in range(n_out):
        for lane in range(lanes):
            wo[i, P + lane] *= wl[TOTAL + lane]


@jit
def centre_value(v, wo, wl, n_out, lanes):
    """wl[FT] = sum_i p_i V_i at the centre."""
    for lane in range(lanes):
        wl[FT + lane] = 0.0
    for i in range(n_out):
        for lane in range(lanes):
            wl[FT + lane] += wo[i, P + lane] * v[i, lane]


@jit
def centre_widths(y, wo, wc, wl, n_out, m, lanes):
    """ybar = sum_i p_i y_i in wc[MEAN], b_i = beta |y_i - ybar| in wo[WIDTH] and their maximum in wl[HALF]."""
    for k in range(m):
        for lane in range(lanes):
            wc[k, MEAN + lane] = 0.0
        for i in range(n_out):
            row = i * m + k
            for lane in range(lanes):
                wc[k, MEAN + lane] += wo[i, P + lane] * y[row, lane]
    for lane in range(lanes):
        wl[HALF + lane] = 0.0
    for i in range(n_out):
        for lane in range(lanes):
            wo[i, WIDTH + lane] = 0.0
        for k in range(m):
            row = i * m + k
            for lane in range(lanes):
                off = y[row, lane] - wc[k, MEAN + lane]
                wo[i, WIDTH + lane] += off * off
        for lane in range(lanes):
            width = wl[BETA + lane] * math.sqrt(wo[i, WIDTH + lane])
            wo[i, WIDTH + lane] = width
            wl[HALF + lane] = max(wl[HALF + lane], width)


@jit
def two_differences(y, wo, wl, m, lanes):
    """wl[TOP] = z0_1 - z0_2 and wl[NORM] = |y_1 - y_2|^2."""
    for lane in range(lanes):
        wl[TOP + lane] = wo[0, Z0 + lane] - wo[1, Z0 + lane]
        wl[NORM + lane] = 0.0
    for k in range(m):
        row, other = k, m + k
        for lane in range(lanes):
            off = y[row, lane] - y[other, lane]
            wl[NORM + lane] += off * off


@jit
def two_outcomes(v, wl, out, lanes):
    """The exact maximum for two outcomes: the better one's logit gains beta |y_1 - y_2| (wl as two_differences)."""
    for lane in range(lanes):
        gain = wl[BETA + lane] * math.sqrt(wl[NORM + lane])
        one, two = v[0, lane], v[1, lane]
        sign = 1.0 if one >= two else -1.0
        gap = sign * wl[TOP + lane] + gain  # logit of the better minus the worse outcome
        e = exp(-abs(gap))
        better = (1.0 if gap >= 0.0 else e) / (1.0 + e)
        out[lane] = min(one, two) + better * abs(one - two)


@jit
def logits_and_weights(y, v, wo, wc, wl, n_out, m, lanes):
    """At the trial points: wl[FT] = f, and wo[Q] = p (V - f)."""
    for i in range(n_out):
        row = i * m
        for lane in range(lanes):
            wo[i, Z + lane] = wo[i, Z0 + lane] + y[row, lane] * wc[0, XT + lane]
        for j in range(1, m):
            row = i * m + j
            for lane in range(lanes):
                wo[i, Z + lane] += y[row, lane] * wc[j, XT + lane]
    for lane in range(lanes):
        wl[TOP + lane] = wo[0, Z + lane]
        wl[TOTAL + lane] = 0.0
        wl[FT + lane] = 0.0
    for i in range(1, n_out):
        for lane in range(lanes):
            wl[TOP + lane] = max(wl[TOP + lane], wo[i, Z + lane])
    for i in range(n_out):
        for lane in range(lanes):
            e = exp(wo[i, Z + lane] - wl[TOP + lane])
            wo[i, Q + lane] = e
            wl[TOTAL + lane] += e
            wl[FT + lane] += e * v[i, lane]
    for lane in range(lanes):
        inverse = 1.0 / wl[TOTAL + lane]
        wl[TOTAL + lane] = inverse
        wl[FT + lane] *= inverse
    for i in range(n_out):
        for lane in range(lanes):
            wo[i, Q + lane] *= wl[TOTAL + lane] * (v[i, lane] - wl[FT + lane])


@jit
def centre_weights(v, wo, wl, n_out, lanes):
    """At the centre: wl[FT] = f and wo[Q] = p (V - f)."""
    centre_value(v, wo, wl, n_out, lanes)
    for i in range(n_out):
        for lane in range(lanes):
            wo[i, Q + lane] = wo[i, P + lane] * (v[i, lane] - wl[FT + lane])


@jit
def gradient(y, wo, wc, n_out, m, lanes):
    """wc[GT] = Y'q."""
    for k in range(m):
        row = k
        for lane in range(lanes):
            wc[k, GT + lane] = wo[0, Q + lane] * y[row, lane]
        for i in range(1, n_out):
            row = i * m + k
            for lane in range(lanes):
                wc[k, GT + lane] += wo[i, Q + lane] * y[row, lane]
