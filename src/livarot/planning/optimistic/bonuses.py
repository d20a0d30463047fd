"""Closed-form upper bounds of the inner maximum, and bonuses (:mod:`livarot.planning.optimistic.choice`)."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from livarot.core.compiling.inner import inner
from livarot.core.lanes import absolute, any_of, exp, maximum, minimum, sqrt, where
from livarot.core.law import expectation
from livarot.planning.optimistic.choice import dot, extremes, solver_room, value_at_centre

EPSILON = 2.0**-52
UNDERFLOW = -690.0  # exponents below may be clamped at -700 (livarot.core.lanes.exp)


@inner
def plug_in(choice, v, settings):
    """p . V: no optimism."""
    return expectation(choice.p, v)


@inner
def rounding(n_out, m, logit, reach):
    """The largest rounding error of a logit of size ``logit``, which is also the relative error of a weight or of a sum
    of ``n_out`` weights; features have ``m`` columns, moves are at most ``reach`` = beta max|y_i|."""
    return EPSILON * (n_out + m + 8.0) * (1.0 + logit + reach)


@inner
def rounded_up(f0, rise, slip, low, high):
    """f0 + rise plus what rounding may have taken from it, or ``high`` where that is smaller, or the sum infinite or
    undefined; ``low`` and ``high`` are the range of V."""
    bound = f0 + rise + slip * (rise + maximum(absolute(low), absolute(high)))
    return where(bound < high, bound, high)


@inner
def logit_rounding(choice):
    """The :func:`rounding` of the logits of a choice, whose mean size is sum_i p_i |z_i|."""
    n, m = choice.y.shape
    size = choice.p[0] * absolute(choice.z0[0])
    for i in range(1, n):
        size += choice.p[i] * absolute(choice.z0[i])
    return rounding(n, m, size, choice.beta * sqrt(choice.longest))


@inner
def curvature(choice):
    """C = beta^2 min(max|y_i|^2, max|y_i - ybar|^2) / 2."""
    reach = choice.beta * sqrt(choice.longest)
    return 0.5 * minimum(reach * reach, choice.widest * choice.widest)


@inner
def variance_bound(choice, v, settings):
    """f0 + beta |g0| + C span(V), rounded up, at most max V; C is the :func:`curvature`.

    The variance-aware bound (certain): the first term is the gradient at the centre, the second bounds half the second
    derivative, |f''| <= span(V) Var(Yx), and Var(Yx) <= max ((y_i - c).x)^2 for any c.
    """
    room = solver_room(choice)
    f = value_at_centre(choice, v, room.weight, room.g)
    low, high = extremes(v)
    rise = choice.beta * sqrt(dot(room.g, room.g)) + curvature(choice) * (high - low)
    return rounded_up(f, rise, logit_rounding(choice), low, high)


@inner
def box_weights(z, width, slip, columns, raised, lowered):
    """The weights of raised and lowered logits, e^(z + b - top) and e^(z - b - top), where the half-widths b are larger
    than ``width`` by ``slip`` and by the rounding error of a logit of that size.  Lowered weights close to underflow
    become 0."""
    n = len(z)
    top = z[0] + (width[0] + (slip + rounding(n, columns, absolute(z[0]), 0.0)))
    for i in range(n):
        half = width[i] + (slip + rounding(n, columns, absolute(z[i]), 0.0))
        raised[i] = z[i] + half
        lowered[i] = z[i] - half
        top = maximum(top, raised[i])
    for i in range(n):
        raised[i] = exp(raised[i] - top)
        down = lowered[i] - top
        lowered[i] = where(down > UNDERFLOW, exp(down), 0.0)


@inner
def box_bound(v, raised, lowered, t, enough):
    """The smaller of ``enough`` and the maximum when logit i may move by b_i on its own: a bound, rounded up.

    The maximum is at most t if and only if  g(t) = sum_i w_i (V_i - t) <= 0,  w_i = e^(z_i + b_i) where V_i > t and
    e^(z_i - b_i) elsewhere: g is convex and falls.  Newton's method on g (Dinkelbach's: t + g/sum w is the value of
    the box point for t), from the value ``t`` at the centre, reaches the root in at most U + 1 steps; a few ulps are
    added to each of them, twice as many every time, and **t is taken only where the computed g(t) <= 0**.  The sum is
    exact for weights that are wrong by its rounding, and :func:`box_weights` has raised and lowered them by more than
    all rounding together, so that g(t) <= 0 of the true weights follows.  A t that has merely come to rest proves
    nothing: where widths exceed 37 it may stop next to some V_i, whose weight is larger than all others by 1/ulp.
    A lane whose t has passed ``enough`` needs no more steps, and at t = max V there is nothing to prove.
    """
    low, high = extremes(v)
    size = maximum(absolute(low), absolute(high))
    more, going = EPSILON, True
    while going:
        total, excess = 0.0, 0.0
        for i in range(len(v)):
            weight = where(v[i] > t, raised[i], lowered[i])
            total += weight
            excess += weight * (v[i] - t)
        unproved = ((excess > 0.0) | (excess != excess)) & (t < enough)  # infinite widths give weights that are NaN
        moved = t + (excess / total + more * size)
        t = where(unproved, where(moved < high, moved, high), t)
        going = any_of(unproved)
        more *= 2.0
    return minimum(enough, t)


@inner
def upper_bound(choice, v, settings):
    """The smaller of the box relaxation and the variance-aware bound."""
    bound = variance_bound(choice, v, settings)
    room = solver_room(choice)
    columns = len(choice.mean)
    box_weights(choice.z0, choice.width, logit_rounding(choice), columns, room.weight, room.other)
    return box_bound(v, room.weight, room.other, expectation(choice.p, v), bound)


@inner
def second_order_bonus(choice, v, settings):
    """p.V + H beta sum_i p_i |y_i - ybar| + c H beta^2 max|y_i|^2 (Li et al.: c = 5/2)."""
    first = expectation(choice.p, choice.width)
    second = settings.constant * choice.beta * choice.beta * choice.longest
    return expectation(choice.p, v) + choice.horizon * (first + second)


@inner
def max_norm_bonus(choice, v, settings):
    """p.V + c H beta max|y_i| (Hwang and Oh: c = 2)."""
    reach = choice.beta * sqrt(choice.longest)
    return expectation(choice.p, v) + choice.horizon * settings.constant * reach
