"""The worst case of a mean over distributions near a nominal one, near in the sense of Kullback-Leibler (all certain).

For values V_i and nominal probabilities p0_i > 0, with KL(p|p0) = sum p log(p/p0), two adversaries:

    penalty eta   min_p  E_p V + KL(p|p0) / eta          =  -(1/eta) log E_p0 exp(-eta V),   the soft-min
    radius eps    min_p  E_p V  over KL(p|p0) <= eps     =  max_eta  -(1/eta) log E_p0 exp(-eta V) - eps / eta

Both are reached at the tilted distribution p_eta proportional to p0 exp(-eta V): eta is the penalty itself, or the
*dual variable* of the ball, the root of KL(p_eta|p0) = eps.  eta = 0 is the nominal distribution.  From
eps >= log(1/p0(argmin V)) on all mass sits on the minimisers and eta is infinite.  With m, v, m3 the mean, variance
and third central moment of V under p_eta:

    KL(eta) = -eta m - log E_p0 exp(-eta V),   KL' = eta v,   KL'' = v - eta m3.

Weak duality proves the answer: p_eta is in the ball up to rounding, no p in it does better than the dual value, and
mean minus dual value is the *gap* (eps - KL(eta)) / eta.

Numerics.  V is taken relative to its minimum; sums are centred at a pivot, the nominal mean while eta times it is at
most 30, else the minimum, and run over exp(x) - 1 beside exp(x).  So log E is accurate to rounding times E|x|
(about sqrt(2 KL) for a small tilt), every value to rounding times the range, for eta from 0 to infinity: no series is
needed.  The root is found by Halley's method in t = atanh sqrt(KL/K), K = log(1/p0(argmin V)), which is nearly linear
in eta both where KL is about eta^2 v/2 and where it saturates; each step stays inside a bracket, or halves it.
Values within 4 ulp of the minimum count as minimisers; if all do, p = p0 and eta = 0.

Up to 32 problems are solved side by side, one per lane, and every lane is computed alike whatever its neighbours are.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.jit import jit
from livarot.core.mnl import ROUNDER
from livarot.core.ragged import FloatArray
from livarot.errors import bad, require_finite, require_non_negative

WIDTH = 32  # lanes
ROW = 2 * WIDTH  # one outcome of all lanes: its values, then its probabilities
X, P = 0, WIDTH
# numbers per lane, each at a constant place of one workspace
LOW, HIGH, TOTAL, LEVEL, ETA, PIVOT, MEAN, SCALE, SKEW, CEILING = (WIDTH * i for i in range(10))
CHANGE, SUM, FIRST, SECOND, THIRD, LOG = (WIDTH * i for i in range(10, 16))
BELOW, ABOVE, MOVES, REST, REST_SUM, SURE, SHIFT, SPREAD, TIE, BEFORE = (WIDTH * i for i in range(16, 26))
LANE_NUMBERS = 26 * WIDTH

CENTRED = 30.0  # the pivot is the nominal mean while eta times it is at most this
HUGE = 1e300
SMALLEST_LOG, LARGEST_LOG = -0.29, 0.41
ROOT_HALF_BITS = int(np.float64(math.sqrt(0.5)).view(np.int64))
ONE_BITS = int(np.float64(1.0).view(np.int64))
MAX_EVALUATIONS, PATIENCE = 200, 5
RELATIVE, ROUNDING = 1e-13, 4e-16  # when KL counts as equal to the radius


@jit
def exp_and_change(x):
    """(e^x, e^x - 1) for x <= 600 to a few ulp each, in operations that a compiler can vectorise; 0 below -700."""
    clipped = max(x, -700.0)
    t = clipped * 1.4426950408889634 + ROUNDER
    k = t - ROUNDER
    r = clipped - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = (p * r) * r + r  # e^r - 1
    power = np.int64((np.float64(t).view(np.int64) << np.int64(52)) + np.int64(ONE_BITS)).view(np.float64)
    p *= power
    return (p + power if x > -700.0 else 0.0), p + (power - 1.0)


@jit
def log_of(change, total):
    """log(total), total = 1 + change: from ``change`` near 1, from ``total`` elsewhere (total >= 1e-300)."""
    near = SMALLEST_LOG < change < LARGEST_LOG
    bits = np.float64(total).view(np.int64)
    exponent = (bits - np.int64(ROOT_HALF_BITS)) >> np.int64(52)
    mantissa = np.int64(bits - (exponent << np.int64(52))).view(np.float64)
    f = change if near else mantissa - 1.0
    k = 0.0 if near else np.float64(exponent)
    s = f / (2.0 + f)
    z = s * s
    p = 1.0 / 21.0
    p = p * z + 1.0 / 19.0
    p = p * z + 1.0 / 17.0
    p = p * z + 1.0 / 15.0
    p = p * z + 1.0 / 13.0
    p = p * z + 1.0 / 11.0
    p = p * z + 1.0 / 9.0
    p = p * z + 1.0 / 7.0
    p = p * z + 0.2
    p = p * z + 1.0 / 3.0
    p = (p * z) * (2.0 * s) + 2.0 * s
    return k * 0.6931471803691238 + (k * 1.9082149292705877e-10 + p)


@jit
def tie_width(low, high):
    """Values so close to the minimum are minimisers."""
    return 8.9e-16 * max(abs(low), abs(high))


@jit
def prepare(wo, wl, n_out, ball):
    """Values minus the least on the support, probabilities over their sum; for a ball: which case, and a first eta."""
    for lane in range(WIDTH):
        wl[LOW + lane] = math.inf
        wl[HIGH + lane] = -math.inf
        wl[TOTAL + lane] = 0.0
        wl[MEAN + lane] = 0.0
        wl[SCALE + lane] = 0.0
        wl[SKEW + lane] = 0.0
        wl[REST + lane] = 0.0
        wl[REST_SUM + lane] = 0.0
        wl[SURE + lane] = 0.0
    for i in range(n_out):
        for lane in range(WIDTH):
            v, p = wo[i * ROW + X + lane], wo[i * ROW + P + lane]
            wl[TOTAL + lane] += p
            wl[LOW + lane] = min(wl[LOW + lane], v if p > 0.0 else math.inf)
            wl[HIGH + lane] = max(wl[HIGH + lane], v if p > 0.0 else -math.inf)
    for lane in range(WIDTH):
        wl[TOTAL + lane] = 1.0 / wl[TOTAL + lane]
        wl[TIE + lane] = tie_width(wl[LOW + lane], wl[HIGH + lane])
    for i in range(n_out):
        for lane in range(WIDTH):
            off = max(wo[i * ROW + X + lane] - wl[LOW + lane], 0.0)
            p = wo[i * ROW + P + lane] * wl[TOTAL + lane]
            wo[i * ROW + X + lane] = off
            wo[i * ROW + P + lane] = p
            wl[MEAN + lane] += p * off
            least = off <= wl[TIE + lane]
            wl[REST + lane] -= 0.0 if least else p
            wl[REST_SUM + lane] += p if least else 0.0
    if not ball:
        for lane in range(WIDTH):
            wl[ETA + lane] = wl[LEVEL + lane]
            wl[PIVOT + lane] = wl[MEAN + lane] if wl[ETA + lane] * wl[MEAN + lane] <= CENTRED else 0.0
        return
    for i in range(n_out):
        for lane in range(WIDTH):
            off = wo[i * ROW + X + lane] - wl[MEAN + lane]
            part = wo[i * ROW + P + lane] * off * off
            wl[SCALE + lane] += part
            wl[SKEW + lane] += part * off
    for lane in range(WIDTH):
        radius, v = wl[LEVEL + lane], wl[SCALE + lane]
        ceiling = -log_of(wl[REST + lane], wl[REST_SUM + lane])
        flat = wl[HIGH + lane] - wl[LOW + lane] <= wl[TIE + lane]
        sure = not flat and radius > 0.0 and ceiling - radius <= 1e-14 * ceiling
        moves = not flat and radius > 0.0 and not sure
        deviation = np.sqrt(v)
        b = np.sqrt(radius / ceiling)
        # Halley's step from eta = 0, where t = eta sqrt(v / 2K) (1 - eta m3 / 3v), t = b + b^3/3 + ..
        t = b * (1.0 + b * b / 3.0 / (1.0 - 0.6 * b * b))
        cold = t * np.sqrt(2.0 * ceiling) / deviation
        bend = max(min(wl[SKEW + lane] / (3.0 * v) * cold, 0.75), -2.0)
        cold = cold / (1.0 - bend)
        eta = min(cold, HUGE) if moves else 0.0
        wl[CEILING + lane] = ceiling
        wl[SURE + lane] = 1.0 if sure else 0.0
        wl[MOVES + lane] = 1.0 if moves else 0.0
        wl[ETA + lane] = eta
        wl[BEFORE + lane] = HUGE
        wl[BELOW + lane] = 0.0
        wl[ABOVE + lane] = 2.0 * HUGE  # none yet
        wl[PIVOT + lane] = wl[MEAN + lane] if eta * wl[MEAN + lane] <= CENTRED else 0.0


@jit
def tilted_sums(wo, wl, n_out):
    """Sums of p0 exp(-eta (x - pivot)) times powers of x - pivot, and their logarithm."""
    for lane in range(WIDTH):
        wl[CHANGE + lane] = 0.0
        wl[SUM + lane] = 0.0
        wl[FIRST + lane] = 0.0
        wl[SECOND + lane] = 0.0
        wl[THIRD + lane] = 0.0
    for i in range(n_out):
        for lane in range(WIDTH):
            off = wo[i * ROW + X + lane] - wl[PIVOT + lane]
            p = wo[i * ROW + P + lane]
            grown, change = exp_and_change(-wl[ETA + lane] * off)
            weight = p * grown
            wl[CHANGE + lane] += p * change
            wl[SUM + lane] += weight
            weight *= off
            wl[FIRST + lane] += weight
            weight *= off
            wl[SECOND + lane] += weight
            wl[THIRD + lane] += weight * off
    for lane in range(WIDTH):
        wl[LOG + lane] = log_of(wl[CHANGE + lane], wl[SUM + lane])
        inverse = 1.0 / wl[SUM + lane]
        mean = wl[FIRST + lane] * inverse
        second = wl[SECOND + lane] * inverse
        wl[SHIFT + lane] = mean
        wl[SPREAD + lane] = max(second - mean * mean, 0.0)
        wl[THIRD + lane] = wl[THIRD + lane] * inverse - 3.0 * mean * second + 2.0 * mean * mean * mean


@jit
def solve_ball(wo, wl, n_out):
    """The root of KL(eta) = radius in every lane that moves; REST is KL - radius there.  Returns evaluations."""
    for count in range(1, MAX_EVALUATIONS + 1):
        tilted_sums(wo, wl, n_out)
        active = 0.0
        for lane in range(WIDTH):
            eta, radius, ceiling = wl[ETA + lane], wl[LEVEL + lane], wl[CEILING + lane]
            v, slope = wl[SPREAD + lane], -eta * wl[SHIFT + lane]
            kl = max(slope - wl[LOG + lane], 0.0)
            rest = kl - radius
            wl[REST + lane] = rest
            low = eta if rest < 0.0 else wl[BELOW + lane]
            high = eta if rest >= 0.0 else wl[ABOVE + lane]
            noise = np.sqrt(2.0 * radius) + abs(slope) + abs(wl[LOG + lane])
            close = abs(rest) <= RELATIVE * radius + ROUNDING * noise or high - low <= 4e-16 * high
            moves = 0.0 if close else wl[MOVES + lane]
            # t = atanh(a) - atanh(b), a = sqrt(KL/K), b = sqrt(radius/K); far away its cubic serves as well
            a, b = np.sqrt(kl / ceiling), np.sqrt(radius / ceiling)
            d = rest / (ceiling * (a + b) * (1.0 - a * b))
            t = d + d * d * d / 3.0
            room = max(1.0 - a * a, 1e-16)
            first = eta * v / (2.0 * a * ceiling)
            second = (v - eta * wl[THIRD + lane]) / (2.0 * a * ceiling) - first * first / a
            second = second / room + 2.0 * a * (first / room) * (first / room)
            first /= room
            curved = 2.0 * first * first - t * second
            step = 2.0 * t * first / curved if curved > first * first else t / first
            new = eta - step
            # outside the bracket, NaN, or no progress after a while: halve the bracket
            inside = low < new < high and (count < PATIENCE or abs(rest) <= 0.5 * wl[BEFORE + lane])
            far = np.sqrt(low) * np.sqrt(high) if 8.0 * low < high else 0.5 * (low + high)
            far = 0.125 * high if low == 0.0 else far
            far = 8.0 * low if high > HUGE else far  # no upper end yet
            new = new if inside else far
            new = new if moves > 0.0 else eta
            wl[BEFORE + lane] = abs(rest)
            wl[BELOW + lane] = low
            wl[ABOVE + lane] = high
            wl[MOVES + lane] = moves
            wl[FIRST + lane] = new
            active += moves
        if active == 0.0:
            return count
        if count == MAX_EVALUATIONS:  # pragma: no cover - the bracket closes long before
            return count
        for lane in range(WIDTH):
            wl[ETA + lane] = wl[FIRST + lane]
            wl[PIVOT + lane] = wl[MEAN + lane] if wl[ETA + lane] * wl[MEAN + lane] <= CENTRED else 0.0
    return MAX_EVALUATIONS


class WorstCase(NamedTuple):
    """The adversary's answer to one vector of values."""

    value: float  # E_p V, plus KL / penalty for a penalty
    probabilities: FloatArray
    dual: float  # eta, the exponent of the tilt; infinite when all mass is on the minimisers
    divergence: float  # KL(p | p0)
    gap: float  # how far the value can be from the optimum, by duality


@checked
def worst_case(
    values: ArrayLike, nominal: ArrayLike, *, radius: float | None = None, penalty: float | None = None
) -> WorstCase:
    """min over p of E_p V, over the ball KL(p|nominal) <= radius or plus KL(p|nominal)/penalty.

    >>> found = worst_case([0.0, 1.0], [0.5, 0.5], penalty=2.0)
    >>> round(found.value, 6), round(float(found.probabilities[1]), 6)
    (0.28311, 0.119203)
    >>> round(worst_case([0.0, 1.0], [0.5, 0.5], radius=found.divergence).dual, 6)
    2.0
    """
    v, p0 = require_finite("values", values), require_finite("nominal", nominal)
    if v.ndim != 1 or v.shape != p0.shape or len(v) == 0:
        raise bad("nominal", f"has shape {p0.shape}, the values {v.shape}", cure="give two vectors of one length")
    wrong = np.flatnonzero(p0 < 0.0)
    if len(wrong):
        raise bad("nominal", "has a negative entry", index=int(wrong[0]), count=len(wrong), cure="give a distribution")
    if abs(p0.sum() - 1.0) > 1e-9:
        raise bad("nominal", f"sums to {p0.sum():.9g}, not 1", cure="divide it by its sum")
    given, ball = one_of(radius, penalty)
    level = require_non_negative("radius" if ball else "penalty", given)
    wo, wl = np.zeros(len(v) * ROW), np.zeros(LANE_NUMBERS)
    p, out = np.empty(len(v)), np.empty(4)
    _one(v, p0, level, ball, wo, wl, p, out)
    return WorstCase(float(out[0]), p, float(out[1]), float(out[2]), float(out[3]))


def one_of(radius: ArrayLike | None, penalty: ArrayLike | None) -> tuple[ArrayLike, bool]:
    """The one that is given, and whether it is the radius."""
    if radius is not None and penalty is None:
        return radius, True
    if penalty is not None and radius is None:
        return penalty, False
    raise bad(
        "radius",
        "and penalty are both given" if radius is not None else "and penalty are both missing",
        cure="give exactly one: radius= for a KL ball, penalty= for a KL penalty",
    )


@jit
def _one(v, p0, level, ball, wo, wl, p, out):
    n = len(v)
    for lane in range(WIDTH):  # the other lanes hold one sure outcome
        wl[LEVEL + lane] = 0.0
        wo[P + lane] = 1.0
    wl[LEVEL] = level
    for i in range(n):
        wo[i * ROW + X] = v[i]
        wo[i * ROW + P] = p0[i]
    prepare(wo, wl, n, ball)
    gap = 0.0
    if ball:
        solve_ball(wo, wl, n)
        sure = wl[SURE] > 0.0
        gap = abs(wl[REST]) / wl[ETA] if wl[ETA] > 0.0 else 0.0
    else:
        tilted_sums(wo, wl, n)
        sure = False
    eta = math.inf if sure else wl[ETA]
    for i in range(n):
        if sure:
            p[i] = wo[i * ROW + P] / wl[REST_SUM] if wo[i * ROW + X] <= wl[TIE] else 0.0
        else:
            p[i] = wo[i * ROW + P] * (exp_and_change(-eta * (wo[i * ROW + X] - wl[PIVOT]))[0] / wl[SUM])
    out[0] = wl[LOW] + (wl[PIVOT] + wl[SHIFT])
    if sure:
        out[0] = wl[LOW]
    elif not ball and eta > 0.0:
        out[0] = wl[LOW] + (wl[PIVOT] - wl[LOG] / eta)
    out[1] = eta
    out[2] = wl[CEILING] if sure else max(-eta * wl[SHIFT] - wl[LOG], 0.0)
    out[3] = gap
