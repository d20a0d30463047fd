"""Bounds of pairs that tell which of them can be best, without solving them: pairs as lanes.

*Screening.*  The box relaxation moves every logit by up to b_i = beta |y_i - ybar| on its own.  Its maximum is the root
of

    g(t) = sum_i c_i (V_i - t) + s_i |V_i - t|,     c_i = p_i cosh b_i,  s_i = p_i sinh b_i,

since at the maximum outcomes above t have the weight p_i e^b_i and those below p_i e^-b_i.  With m the mean of V under
the weights c_i,  g(t) <= sum_i s_i |V_i - m| - (t - m) sum_i p_i e^-b_i  for t >= m, so that

    max over the ellipsoid  <=  certified bound  <=  box  <=  B(V) = m + sum_i s_i |V_i - m| / sum_i p_i e^-b_i.

*From stage to stage.*  Where the next stage has the same pairs and the same parameter, c and s are kept
(:class:`Kept`), and as  max E[V'] <= a max E[V] + B(V' - aV)  for every a >= 0, the bound of a pair follows from its
last one and the change V' - aV: it stays sharp if a makes that nearly constant (:func:`common_factor`).  For a pair
that was solved, the solution takes the place of the last bound.

*The variance bonus* is p.V + (slope) + C span(V), at most max V, with a slope between 0 and sum_i p_i b_i |V_i - p.V|.
So two numbers per outcome, p_i and p_i b_i, bound it from both sides, and it is known where the lower bound reaches
max V.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from livarot.core.compiling.inner import inner
from livarot.core.lanes import W, absolute, exp, lane, maximum, minimum, number_in, put, take, where
from livarot.planning.optimistic.bonuses import curvature, logit_rounding, rounded_up
from livarot.planning.optimistic.choice import look
from livarot.planning.optimistic.loops.loop_parts import value_range
from livarot.planning.optimistic.loops.pairs import load

WIDE = 100.0  # wider boxes count as the set of all laws: their weights are too far apart to compute with
REWEIGHTED = 6  # rounds of reweighting in a fit
KNOWN, OPEN, CHOSEN = 0, 1, 2  # Q is computed; is only bounded; is about to be computed


class Kept(NamedTuple):
    """What screening needs to know of the pairs, at the centre."""

    even: Any  # (rows, W) c_i = p_i cosh b_i
    odd: Any  # (rows, W) s_i = p_i sinh b_i
    total: Any  # (blocks, W) 1 / sum_i c_i
    least: Any  # (blocks, W) 1 / sum_i p_i e^-b_i


class KeptClosed(NamedTuple):
    """The same for the variance bonus, in the same memory."""

    p: Any  # (rows, W)
    lever: Any  # (rows, W) p_i b_i
    curve: Any  # (blocks, W) C
    slip: Any  # (blocks, W) the largest rounding error


class Screen(NamedTuple):
    """Per pair of a stage: bounds of Q and of its certified bound, and whether Q is known."""

    high: Any
    high_up: Any
    change: Any  # (S,) V' - aV ...
    change_up: Any  # ... and the same for its certified bound
    law: Any  # probabilities of the pairs whose law is known, one after the other
    mark: Any
    phi: Any  # (m,) lanes: a row of features of each pair
    who: Any  # (W,) pairs to be solved together, ...
    row: Any  # (W,) ... where their rows ...
    feat: Any  # (W,) ... and their features begin


@inner
def bound_all(rule, model, h, blocks, own, result, kept, room, screen, fresh):
    """Bounds of all pairs whose Q is not known, from what is kept of them; if ``fresh``, that is computed first."""
    pairs, grown = blocks.stage_list[h], set_change(model, h, result, screen, fresh or not rule.certified)
    for b in range(blocks.start[pairs], blocks.start[pairs + 1]):
        if rule.exact_for_two and blocks.shape[b, 0] == 2:
            continue
        if rule.certified:
            if fresh:
                keep_centre(model.graph, blocks, b, own, kept, room)
            bound_pairs(model, h, blocks, b, kept, room, screen, grown)
        else:
            closed = KeptClosed(kept.even, kept.odd, kept.total, kept.least)
            if fresh:
                keep_closed(model.graph, blocks, b, own, closed, room)
            bound_closed(model, h, blocks, b, closed, room, screen)


@inner
def keep_centre(graph, blocks, b, own, kept, room):
    """The weights c and s of a block of pairs."""
    theta, whiten, beta, _ = own
    n, row = blocks.shape[b, 0], blocks.shape[b, 3]
    choice = look(load(graph, blocks, b, theta, whiten, room), beta, beta, 0.0, True)
    total, least = 0.0, 0.0
    for i in range(n):
        down = exp(-choice.width[i])
        up = 1.0 / down
        kept.even[row + i] = 0.5 * choice.p[i] * (up + down)
        kept.odd[row + i] = 0.5 * choice.p[i] * (up - down)
        total += kept.even[row + i]
        least += choice.p[i] * down
    kept.total[b] = 1.0 / total
    kept.least[b] = where(choice.widest < WIDE, 1.0 / least, math.inf)


@inner
def bound_pairs(model, h, blocks, b, kept, room, screen, grown):
    """Bounds of a block of pairs: those of stage h + 1 times their factors, plus B of the change of V."""
    factor, factor_up, top, top_up = grown
    n, row, pairs, first = blocks.shape[b, 0], blocks.shape[b, 3], blocks.pair[b], first_pair(model, h)
    mean, mean_up, away, away_up = lane(0.0), lane(0.0), lane(0.0), lane(0.0)
    for i in range(n):
        v, u = take(screen.change, blocks.next_state[row + i], 0), take(screen.change_up, blocks.next_state[row + i], 0)
        room.v[i], room.v_up[i] = v, u
        mean, mean_up = mean + kept.even[row + i] * v, mean_up + kept.even[row + i] * u
    mean, mean_up = mean * kept.total[b], mean_up * kept.total[b]
    for i in range(n):
        away += kept.odd[row + i] * absolute(room.v[i] - mean)
        away_up += kept.odd[row + i] * absolute(room.v_up[i] - mean_up)
    high, high_up = mean + away * kept.least[b], mean_up + away_up * kept.least[b]
    high, high_up = where(high < top, high, top), where(high_up < top_up, high_up, top_up)
    if factor > 0.0:
        high += factor * take(screen.high, pairs, -first)
    if factor_up > 0.0:
        high_up += factor_up * take(screen.high_up, pairs, -first)
    put(screen.high, pairs, -first, high)
    put(screen.high_up, pairs, -first, high_up)
    for k in range(W):
        screen.mark[pairs[k] - first] = OPEN


@inner
def keep_closed(graph, blocks, b, own, kept, room):
    """What the variance bonus needs of a block of pairs."""
    theta, whiten, beta, _ = own
    row = blocks.shape[b, 3]
    choice = look(load(graph, blocks, b, theta, whiten, room), beta, beta, 0.0, True)
    for i in range(len(choice.p)):
        kept.p[row + i] = choice.p[i]
        kept.lever[row + i] = choice.p[i] * choice.width[i]
    kept.curve[b], kept.slip[b] = curvature(choice), logit_rounding(choice)


@inner
def bound_closed(model, h, blocks, b, kept, room, screen):
    """Bounds of the variance bonus of a block of pairs, or its value where they meet at max V."""
    n, row, pairs, first = blocks.shape[b, 0], blocks.shape[b, 3], blocks.pair[b], first_pair(model, h)
    mean, away, low, high = lane(0.0), lane(0.0), lane(math.inf), lane(-math.inf)
    for i in range(n):
        v = take(screen.change, blocks.next_state[row + i], 0)
        room.v[i] = v
        mean, low, high = mean + kept.p[row + i] * v, minimum(low, v), maximum(high, v)
    for i in range(n):
        away += kept.lever[row + i] * absolute(room.v[i] - mean)
    least = kept.curve[b] * (high - low)
    bound, known = rounded_up(mean, away + least, kept.slip[b], low, high), where(mean + least >= high, 1.0, 0.0)
    put(screen.high, pairs, -first, bound)
    put(screen.high_up, pairs, -first, bound)
    put(room.q, pairs, -first, high)
    put(room.q_up, pairs, -first, high)
    for k in range(W):
        screen.mark[pairs[k] - first] = KNOWN if number_in(known, k) > 0.0 else OPEN


@inner
def set_change(model, h, result, screen, fresh):
    """The change V' - aV of values: V' are those of stage h + 1, V those of stage h + 2; all of V' if ``fresh``.  Gives
    the factors a and the largest changes, of the values and of their certified bounds."""
    factor, factor_up, top, top_up = 0.0, 0.0, -math.inf, -math.inf
    if not fresh:
        factor = common_factor(model, h, result.value[h + 1], result.value[h + 2])
        factor_up = common_factor(model, h, result.upper[h + 1], result.upper[h + 2])
    for s in range(len(model.start)):
        screen.change[s] = result.value[h + 1, s] - factor * result.value[h + 2, s]
        screen.change_up[s] = result.upper[h + 1, s] - factor_up * result.upper[h + 2, s]
        top, top_up = max(top, screen.change[s]), max(top_up, screen.change_up[s])
    return factor, factor_up, top, top_up


@inner
def common_factor(model, h, new, old):
    """The a >= 0 that makes new - a old nearly constant over the states of stage h + 1: least absolute deviations, by
    reweighted least squares, since a few states (mostly the last ones) are unlike all others."""
    factor, shift, least = 1.0, 0.0, 1e-3 * value_range(model, h, new)
    for turn in range(REWEIGHTED):
        weight, x, y, xx, xy = 0.0, 0.0, 0.0, 0.0, 0.0
        for node in range(model.node_start[h + 1], model.node_start[h + 2]):
            s = model.node_state[node]
            w = 1.0 if turn == 0 else 1.0 / max(abs(new[s] - factor * old[s] - shift), least)
            weight, x, y = weight + w, x + w * old[s], y + w * new[s]
            xx, xy = xx + w * old[s] * old[s], xy + w * old[s] * new[s]
        spread = weight * xx - x * x
        if not (least > 0.0 and spread > 1e-12 * weight * xx):
            return 1.0
        factor = min(max((weight * xy - x * y) / spread, 0.0), 2.0)
        shift = (y - factor * x) / weight
    return factor


@inner
def first_pair(model, h):
    """The number of the stage's first pair."""
    return np.int64(model.stage_table[h]) * model.reward.shape[1] * model.reward.shape[2]
