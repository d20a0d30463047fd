"""The inner maximum max f(x) over |x| <= beta, for W choices at a time (:mod:`livarot.planning.optimistic.choice`)."""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math

from livarot.core.compiling.inner import inner
from livarot.core.lanes import W, absolute, any_of, lane, maximum, number_in, sqrt, where, with_number
from livarot.planning.optimistic.bonuses import logit_rounding
from livarot.planning.optimistic.choice import dot, extremes, solver_room, value_at, value_at_centre
from livarot.planning.optimistic.starts import best_on_chords, farthest_push, one_of

EASE = 0.03  # the shift sigma is at least this times the last one
STUCK = 1e32  # a refused step shorter than 1e-16 beta is rounding, and the next would be shorter still: the lane stops
LEAST = 1e-140  # squares of shorter gradients underflow: a step along them is not lengthened to the radius


@inner
def shifted_power(choice, v, room, f, beta, slack, settings):
    """Steps from room.x, where f and the gradient room.g are known, to a first-order gap of at most ``slack``.

    x+ = s (g + sigma x), s = min(beta/|g + sigma x|, 1/sigma), is a projected gradient step of length 1/sigma with
    sigma = max(0, Barzilai-Borwein curvature), but not less than EASE times the last one (on a plateau the curvature
    vanishes, and the next step would be as long as possible).  A step that lowers f is taken back and sigma grows
    fourfold, to 2|g|/beta at least.  The steps end inside the ball if the maximum is there.

    The first-order (Frank-Wolfe) gap is beta |g| - g.x.  Returns f, the gap and the steps of every lane.
    """
    x, g, x_new, g_new, m = room.x, room.g, room.x_new, room.g_new, len(room.x)
    gg, gx, xx = dot(g, g), dot(g, x), dot(x, x)
    gap = maximum(beta * sqrt(gg) - gx, 0.0)
    moving = gap > slack
    took, sigma, steps, step = moving, lane(0.0), lane(0.0), 0
    floor, least = 2.0 / maximum(beta, 1e-300), 1e-15 * choice.scale
    while step < settings.n_iter and any_of(moving):
        sigma = where(took, sigma, maximum(sigma, floor * sqrt(gg)))
        length = maximum(sqrt(maximum(gg + sigma * (2.0 * gx + sigma * xx), 0.0)), LEAST)
        outside = length > beta * sigma
        scale = where(outside, beta, 1.0) / where(outside, length, sigma)
        shift = scale * sigma
        for k in range(m):
            x_new[k] = scale * g[k] + shift * x[k]
        f_new = value_at(choice, v, x_new, room.weight, g_new)
        curve, moved = lane(0.0), lane(0.0)
        for k in range(m):
            dx = x_new[k] - x[k]
            curve += dx * (g_new[k] - g[k])
            moved += dx * dx
        took = moving & (f_new >= f - least)
        bend = maximum(-curve / maximum(moved, 1e-300), 0.0)
        sigma = where(took, maximum(bend, EASE * sigma), 4.0 * sigma)
        f = where(took, f_new, f)
        gg, gx, xx = lane(0.0), lane(0.0), lane(0.0)
        for k in range(m):
            xk, gk = where(took, x_new[k], x[k]), where(took, g_new[k], g[k])
            x[k] = xk
            g[k] = gk
            gg += gk * gk
            gx += gk * xk
            xx += xk * xk
        gap = where(moving, maximum(beta * sqrt(gg) - gx, 0.0), gap)
        steps += where(moving, 1.0, 0.0)
        reach = beta * sigma
        moving = moving & (gap > slack) & (took | (reach * reach <= STUCK * gg))
        step += 1
    return f, gap, steps


@inner
def frank_wolfe(choice, v, room, f, beta, slack, settings):
    """The paper's steps x+ = x + gamma (beta g/|g| - x), gamma = 2/(k + 2).

    From a start other than the centre k begins at 1, since the step gamma = 1 of k = 0 would forget the start.
    """
    x, g, m = room.x, room.g, len(room.x)
    gg, gx, xx = dot(g, g), dot(g, x), dot(x, x)
    gap = maximum(beta * sqrt(gg) - gx, 0.0)
    moving, steps, step = gap > slack, lane(0.0), 0
    offset = where(xx > 0.0, 3.0, 2.0)
    while step < settings.n_iter and any_of(moving):
        gamma = 2.0 / (step + offset)
        toward = gamma * beta / maximum(sqrt(gg), LEAST)
        for k in range(m):
            x[k] = where(moving, toward * g[k] + (1.0 - gamma) * x[k], x[k])
        f = where(moving, value_at(choice, v, x, room.weight, g), f)
        gg, gx = dot(g, g), dot(g, x)
        gap = where(moving, maximum(beta * sqrt(gg) - gx, 0.0), gap)
        steps += where(moving, 1.0, 0.0)
        moving = moving & (gap > slack)
        step += 1
    return f, gap, steps


@inner
def flat_at_centre(choice, v, g):
    """Does the gradient g at the centre nearly vanish, beta |g| <= span(V) sum_i p_i b_i^2 / 20?  The centre may then
    be next to a minimum."""
    low, high = extremes(v)
    square = 0.0
    for i in range(len(v)):
        square += choice.p[i] * choice.width[i] * choice.width[i]
    flat = 0.05 * (high - low) * square
    return choice.beta * choice.beta * dot(g, g) <= flat * flat


@inner
def two_best(v):
    """The largest value and the next one."""
    first, second = v[0], lane(-math.inf)
    for i in range(1, len(v)):
        second = maximum(second, where(v[i] > first, first, v[i]))
        first = maximum(first, v[i])
    return first, second


@inner
def chord_starts(choice, v, start, wanted, room):
    """room.x = the best point on chords of the ball, in the lanes where ``wanted`` > 0.  Gives 1 in lanes that have
    such a point, 0 elsewhere."""
    found = lane(0.0)
    for k in range(W):
        if number_in(wanted, k) > 0.0:
            one, beta = one_of(choice, v, room.best, room.one, k), number_in(choice.beta, k)
            if best_on_chords(one, beta, start == 0):
                found = with_number(found, k, 1.0)
            take_start(one, room.x, k)
    return found


@inner
def push_starts(choice, v, start, wanted, room):
    """The same with the push (:func:`farthest_push`) of one of the top-valued outcomes, the next one at each start."""
    for k in range(W if start < len(v) else 0):
        if number_in(wanted, k) > 0.0:
            one = one_of(choice, v, room.best, room.one, k)
            farthest_push(one, number_in(choice.beta, k), start)
            take_start(one, room.x, k)
    return wanted if start < len(v) else lane(0.0)


@inner
def take_start(one, x, k):
    """x = the start of problem k in its lane."""
    for j in range(len(x)):
        x[j] = with_number(x[j], k, one.start[j])


def best_of_starts(solver, starts, is_enough):
    """max of f over |x| <= beta and its first-order gap, as a rule's function: by a local solver and its starts."""

    @inner
    def joint_maximum(choice, v, settings):
        """The best result of a local solver from the centre and, where the ellipsoid is wide (logit half-width above
        settings.wide) or f is flat at the centre, from up to settings.n_starts other points: a local method alone
        misses the global maximum of a wide ellipsoid in several per cent of the cases.

        Returns the value and its first-order gap; the point is in room.best, the number of steps in room.steps.
        """
        room, m, slack = solver_room(choice), len(choice.mean), settings.tol * choice.scale
        _, high = extremes(v)
        f = value_at_centre(choice, v, room.weight, room.g)
        wide = (choice.widest > settings.wide) | flat_at_centre(choice, v, room.g)
        best, gap, steps, last = lane(-math.inf), lane(math.inf), lane(0.0), lane(-math.inf)
        for k in range(m):
            room.x[k] = 0.0
        more = best < 0.0  # the lanes with something left to do: at first all of them
        for start in range(settings.n_starts + 1):
            if start > 0:
                done = is_enough(choice, v, best, gap, last, slack) | (high - best <= slack) | (choice.beta == 0.0)
                more = more & wide & ~done
                if not any_of(more):
                    break
                last = best
                more = more & (starts(choice, v, start - 1, where(more, 1.0, 0.0), room) > 0.0)
                for k in range(m):
                    room.x[k] = where(more, room.x[k], 0.0)
                f = value_at(choice, v, room.x, room.weight, room.g)
            f, own_gap, own_steps = solver(choice, v, room, f, where(more, choice.beta, 0.0), slack, settings)
            better = more & (f > best)
            best, gap = where(better, f, best), where(better, own_gap, gap)
            steps += own_steps
            for k in range(m):
                room.best[k] = where(better, room.x[k], room.best[k])
        room.steps[0] = steps
        return best, gap

    return joint_maximum


@inner
def global_or_idle(choice, v, best, gap, last, slack):
    """Is a point with value t = ``best`` a global maximum, up to ``slack``, or did the last search of chords gain
    nothing?

    Let t be at least the second largest value.  With  h(x) = sum_i (t - V_i) e^(z_i - z_top + (y_i - y_top).x)  over
    the outcomes i below the top one,  f(x) - t = p_top(x) (V_top - t - h(x)),  and h is convex.  The slope of h at the
    point is that of f times -1/p_top, so that h falls by at most gap/p_top over the ball, and f grows by no more.
    By t <= p_top V_top + (1 - p_top) V_second,  p_top >= (t - V_second)/(V_top - V_second).  What rounding may have
    taken from the gap is added to it: on a plateau where one outcome has all the weight it is computed as 0.
    """
    first, second = two_best(v)
    low, _ = extremes(v)
    most = gap + logit_rounding(choice) * maximum(absolute(low), absolute(first))
    return (most * (first - second) <= slack * (best - second)) | (best <= last + slack)


@inner
def never(choice, v, best, gap, last, slack):
    """The paper's solver tries all of its starts: none is ever enough."""
    return best < last


joint_maximum = best_of_starts(shifted_power, chord_starts, global_or_idle)
paper_maximum = best_of_starts(frank_wolfe, push_starts, never)
