"""The worst case of a mean over distributions near a nominal one, near in the sense of Kullback-Leibler (all certain).

For values V_i and nominal probabilities p0_i > 0, with KL(p|p0) = sum p log(p/p0), two adversaries:

    penalty eta   min_p { E_p V + KL(p|p0) / eta }  =  -(1/eta) log E_p0 exp(-eta V)    (the soft-min)
    radius eps    min { E_p V : KL(p|p0) <= eps }   =  max_eta { -(1/eta) log E_p0 exp(-eta V) - eps / eta }

Both are reached at the tilted distribution p_eta proportional to p0 exp(-eta V): eta is the penalty itself, or the
*dual variable* of the ball, the root of KL(p_eta|p0) = eps.  eta = 0 is the nominal distribution.  For
eps >= log(1/p0(argmin V)) all mass sits on the minimisers and eta is infinite.  With m, v, m3 the mean, variance
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

W problems are solved side by side (:mod:`livarot.core.lanes`); no answer depends on its neighbours.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.lanes import (
    ROUNDER,
    W,
    absolute,
    any_of,
    exponent_of,
    lane,
    lanes,
    maximum,
    minimum,
    polynomial,
    sqrt,
    times_power_of_two,
    where,
)
from livarot.core.tolerances import SUM_SLACK
from livarot.errors import bad, require_finite, require_non_negative

BALL, PENALTY, PENALTY_MEAN = 0, 1, 2  # what holds an adversary; with the last one the value is the mean alone
CENTRED = 30.0  # the pivot is the nominal mean while eta times it is at most this
HUGE, INFINITE = 1e300, float("inf")
SMALLEST_LOG, LARGEST_LOG = -0.29, 0.41
MAX_EVALUATIONS, PATIENCE = 200, 5
RELATIVE, ROUNDING = 1e-13, 4e-16  # when KL counts as equal to the radius

_taylor = polynomial(*[1.0 / math.factorial(k) for k in range(13, 1, -1)])  # (e^r - 1 - r) / r^2
_artanh = polynomial(*[1.0 / k for k in range(21, 1, -2)])  # (artanh s / s - 1) / s^2, in z = s^2


@inner
def exp_and_change(x):
    """(e^x, e^x - 1) for x <= 600 to a few ulp each; 0 below -700."""
    clipped = maximum(x, -700.0)
    t = clipped * 1.4426950408889634 + ROUNDER
    k = t - ROUNDER
    r = clipped - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    p = (_taylor(r) * r) * r + r  # e^r - 1
    power = times_power_of_two(k * 0.0 + 1.0, t)
    p = p * power
    return where(x > -700.0, p + power, 0.0), p + (power - 1.0)


@inner
def log_of(change, total):
    """log(total), total = 1 + change: from ``change`` near 1, from ``total`` elsewhere (total >= 1e-300)."""
    near = (change > SMALLEST_LOG) & (change < LARGEST_LOG)
    k = where(near, 0.0, exponent_of(total))
    f = where(near, change, times_power_of_two(total, ROUNDER - k) - 1.0)
    s = f / (2.0 + f)
    z = s * s
    p = (_artanh(z) * z) * (2.0 * s) + 2.0 * s
    return k * 0.6931471803691238 + (k * 1.9082149292705877e-10 + p)


@inner
def tie_width(low, high):
    """Values no further than this from the minimum count as minimisers."""
    return 8.9e-16 * maximum(absolute(low), absolute(high))


class Choice(NamedTuple):
    """W choices of an adversary."""

    x: Any  # (n,) values above the least of the support
    p: Any  # (n,) nominal probabilities
    low: Any  # the least value, ...
    span: Any  # ... and how far the largest is above it
    tie: Any  # values no further than this from the least one count as minimisers
    mean: Any  # of x
    least: Any  # probability of the minimisers, ...
    others: Any  # ... and minus that of the others


class Tilt(NamedTuple):
    """The distribution proportional to p0 exp(-eta x), and its moments around the pivot."""

    eta: Any
    pivot: Any
    total: Any  # E_p0 exp(-eta (x - pivot)) ...
    log: Any  # ... and its logarithm
    mean: Any
    variance: Any
    third: Any


class Answer(NamedTuple):
    """What the adversary does to W choices."""

    value: Any
    dual: Any  # eta; infinite where all mass is on the minimisers
    variance: Any
    gap: Any
    tilt: Any


@inner
def look(x, p):
    """W choices from values and probabilities; both are overwritten."""
    total, low, high = lane(0.0), lane(INFINITE), lane(-INFINITE)
    for i in range(len(x)):
        total += p[i]
        low = minimum(low, where(p[i] > 0.0, x[i], INFINITE))
        high = maximum(high, where(p[i] > 0.0, x[i], -INFINITE))
    scale, tie = 1.0 / total, tie_width(low, high)
    mean, least, others = lane(0.0), lane(0.0), lane(0.0)
    for i in range(len(x)):
        x[i] = maximum(x[i] - low, 0.0)
        p[i] *= scale
        mean += p[i] * x[i]
        least += where(x[i] <= tie, p[i], 0.0)
        others -= where(x[i] <= tie, 0.0, p[i])
    return Choice(x, p, low, high - low, tie, mean, least, others)


@inner
def tilted(choice, eta):
    """Sums of p0 exp(-eta (x - pivot)) times powers of x - pivot, as moments."""
    pivot = where(eta * choice.mean <= CENTRED, choice.mean, 0.0)
    change, total, first, second, third = lane(0.0), lane(0.0), lane(0.0), lane(0.0), lane(0.0)
    for i in range(len(choice.x)):
        off = choice.x[i] - pivot
        grown, grown_by = exp_and_change(-eta * off)
        weight = choice.p[i] * grown
        change += choice.p[i] * grown_by
        total += weight
        weight *= off
        first += weight
        weight *= off
        second += weight
        third += weight * off
    inverse = 1.0 / total
    mean, square = first * inverse, second * inverse
    skew = third * inverse - 3.0 * mean * square + 2.0 * mean * mean * mean
    return Tilt(eta, pivot, total, log_of(change, total), mean, maximum(square - mean * mean, 0.0), skew)


@inner
def penalty_answer(choice, eta, plain):
    """The soft-min, or with ``plain`` the mean of the same distribution."""
    tilt = tilted(choice, eta)
    free = -tilt.log / eta
    add = where(plain, tilt.mean, where(eta == 0.0, tilt.mean, free))
    return Answer(choice.low + (tilt.pivot + add), eta, tilt.variance, eta * 0.0, tilt)


@inner
def ball_answer(choice, radius, guess):
    """The least mean in the ball, from a guess at the dual variable where that is positive and finite."""
    ceiling = -log_of(choice.others, choice.least)
    wide = (choice.span > choice.tie) & (radius > 0.0)
    sure = wide & (ceiling - radius <= 1e-14 * ceiling)
    tilt, rest = ball_root(choice, radius, ceiling, wide & (ceiling - radius > 1e-14 * ceiling), guess)
    value = choice.low + where(sure, 0.0, tilt.pivot + tilt.mean)
    gap = where(tilt.eta > 0.0, absolute(rest) / tilt.eta, 0.0)
    return Answer(value, where(sure, INFINITE, tilt.eta), where(sure, 0.0, tilt.variance), gap, tilt)


@inner
def answer(choice, level, kind, guess):
    """What an adversary of that kind leaves of W choices."""
    if kind == BALL:
        return ball_answer(choice, level, guess)
    return penalty_answer(choice, level, kind == PENALTY_MEAN)


@inner
def first_dual(choice, radius, ceiling):
    """Halley's step from eta = 0, where t = eta sqrt(v / 2K) (1 - eta m3 / 3v), t = b + b^3/3 + .."""
    v, skew = lane(0.0), lane(0.0)
    for i in range(len(choice.x)):
        off = choice.x[i] - choice.mean
        square = choice.p[i] * off * off
        v += square
        skew += square * off
    b = sqrt(radius / ceiling)
    t = b * (1.0 + b * b / 3.0 / (1.0 - 0.6 * b * b))
    cold = t * sqrt(2.0 * ceiling) / sqrt(v)
    bend = maximum(minimum(skew / (3.0 * v) * cold, 0.75), -2.0)
    return minimum(cold / (1.0 - bend), HUGE)


@inner
def ball_root(choice, radius, ceiling, moves, guess):
    """The tilt with KL(eta) = radius where ``moves`` says so, eta = 0 elsewhere; and KL - radius."""
    guessed = (guess > 0.0) & (guess < HUGE)
    first = guess
    if any_of(moves & ~guessed):
        first = where(guessed, guess, first_dual(choice, radius, ceiling))
    eta = where(moves, first, 0.0)
    below, above, before = lane(0.0), lane(2.0 * HUGE), lane(HUGE)  # no upper end yet
    for count in range(1, MAX_EVALUATIONS + 1):
        tilt = tilted(choice, eta)
        slope = -eta * tilt.mean
        kl = maximum(slope - tilt.log, 0.0)
        rest = kl - radius
        below, above = where(rest < 0.0, eta, below), where(rest >= 0.0, eta, above)
        noise = sqrt(2.0 * radius) + absolute(slope) + absolute(tilt.log)
        open_ = (absolute(rest) > RELATIVE * radius + ROUNDING * noise) & (above - below > 4e-16 * above)
        moves = moves & open_
        if not any_of(moves):
            break
        new = halley(tilt, kl, radius, ceiling)
        # outside the bracket, NaN, or no progress after a while: halve the bracket
        enough = where(count < PATIENCE, HUGE, 0.5 * before)
        inside = (below < new) & (new < above) & (absolute(rest) <= enough)
        middle = where(8.0 * below < above, sqrt(below) * sqrt(above), 0.5 * (below + above))
        middle = where(below == 0.0, 0.125 * above, middle)
        middle = where(above > HUGE, 8.0 * below, middle)
        before = absolute(rest)
        eta = where(moves, where(inside, new, middle), eta)
    return tilt, rest


@inner
def halley(tilt, kl, radius, ceiling):
    """A step for t = atanh(a) - atanh(b), a = sqrt(KL/K), b = sqrt(radius/K); far away its cubic is good enough."""
    a, b = sqrt(kl / ceiling), sqrt(radius / ceiling)
    d = (kl - radius) / (ceiling * (a + b) * (1.0 - a * b))
    t = d + d * d * d / 3.0
    room = maximum(1.0 - a * a, 1e-16)
    first = tilt.eta * tilt.variance / (2.0 * a * ceiling)
    second = (tilt.variance - tilt.eta * tilt.third) / (2.0 * a * ceiling) - first * first / a
    second = second / room + 2.0 * a * (first / room) * (first / room)
    first = first / room
    curved = 2.0 * first * first - t * second
    return tilt.eta - where(curved > first * first, 2.0 * t * first / curved, t / first)


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
    if abs(p0.sum() - 1.0) > SUM_SLACK:
        raise bad("nominal", f"sums to {p0.sum():.9g}, not 1", cure="divide it by its sum")
    given, ball = one_of(radius, penalty)
    level = require_non_negative("radius" if ball else "penalty", given)
    x, p, out = np.repeat(v[:, None], W, 1), np.repeat(p0[:, None], W, 1), np.empty((4, W))
    _answer_one(x, p, float(level), BALL if ball else PENALTY, out)
    value, dual, divergence, gap = out[:, 0].tolist()
    return WorstCase(value, np.ascontiguousarray(p[:, 0]), dual, divergence, gap)


def one_of(radius: ArrayLike | None, penalty: ArrayLike | None) -> tuple[ArrayLike, bool]:
    """Of radius and penalty the one that is given, and whether it is the radius."""
    if radius is not None and penalty is None:
        return radius, True
    if penalty is not None and radius is None:
        return penalty, False
    raise bad(
        "radius",
        "radius and penalty are both given" if radius is not None else "radius and penalty are both missing",
        cure="give exactly one: radius= for a KL ball, penalty= for a KL penalty",
    )


@jit
def _answer_one(values, nominal, level, kind, out):
    """The answer to W equal choices; ``nominal`` becomes the distribution chosen."""
    x, p, numbers = lanes(values), lanes(nominal), lanes(out)
    choice = look(x, p)
    found = answer(choice, lane(level), kind, lane(0.0))
    tilt, sure = found.tilt, found.dual == INFINITE
    for i in range(len(x)):
        grown, _ = exp_and_change(-tilt.eta * (x[i] - tilt.pivot))
        alone = where(x[i] <= choice.tie, p[i] / choice.least, 0.0)
        p[i] = where(sure, alone, p[i] * (grown / tilt.total))
    kl = maximum(-tilt.eta * tilt.mean - tilt.log, 0.0)
    numbers[0], numbers[1], numbers[3] = found.value, found.dual, found.gap
    numbers[2] = where(sure, -log_of(choice.others, choice.least), kl)
