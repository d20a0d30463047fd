"""Kernels of the search for kappa: bounds over caps, and ascents from promising points."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

from livarot.core.compiling.basics import new_floats, new_integers
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.views import part, view

ASCENTS, STEPS = 8, 60  # starts per pair and steps per start of the ascent
LIFT = 1e-12  # a bound is lifted by it, relative, so that rounding does not push it below what it bounds


@inner
def rarest_pair(z):
    """-log(p_i p_j) of the two least likely of at least two outcomes with logits z."""
    top, least, second = -math.inf, math.inf, math.inf
    for k in range(len(z)):
        top = max(top, z[k])
        if z[k] < least:
            least, second = z[k], least
        elif z[k] < second:
            second = z[k]
    total = 0.0
    for k in range(len(z)):
        total += math.exp(z[k] - top)
    return (top - least) + (top - second) + 2.0 * math.log(total)


@inner
def _rise(along, across, chord):
    """max of c . (u - v) over unit vectors u with |u - v| <= chord; c has a part along the unit v and one across."""
    drop = 0.5 * chord * chord  # 1 - cos of the angle, without cancellation
    size = math.sqrt(along * along + across * across)
    if along >= size * (1.0 - drop):
        return across * across / (size + along) if along > 0.0 else size - along
    return across * chord * math.sqrt(1.0 - 0.25 * chord * chord) - along * drop


@jit
def cap_bound(offset, y, diameter, i, j, bound, unit, chord):
    """F at the cap's centre, and a bound of f_ij on the cap."""
    n, dims = y.shape
    z = new_floats(n)
    wide = new_floats(n)
    slope = new_floats(dims)
    chord = min(chord, 2.0)
    middle = 0.5 * (offset[i] + offset[j])
    top, peak = -math.inf, -math.inf
    for k in range(n):
        here, along, across = 0.0, 0.0, 0.0
        for c in range(dims):
            here += y[k, c] * unit[c]
            along += (y[k, c] - 0.5 * (y[i, c] + y[j, c])) * unit[c]
        for c in range(dims):
            across += (y[k, c] - 0.5 * (y[i, c] + y[j, c]) - along * unit[c]) ** 2
        z[k] = offset[k] + bound * here
        wide[k] = offset[k] - middle + bound * (along + _rise(along, math.sqrt(across), chord))
        top, peak = max(top, wide[k]), max(peak, z[k])
    total = 0.0
    for k in range(n):
        total += math.exp(wide[k] - top)
    box = 2.0 * (top + math.log(total))
    total = 0.0
    for k in range(n):
        wide[k] = math.exp(z[k] - peak)
        total += wide[k]
    centre = 2.0 * (peak + math.log(total)) - z[i] - z[j]
    along, across = 0.0, 0.0
    for c in range(dims):
        slope[c] = -y[i, c] - y[j, c]
        for k in range(n):
            slope[c] += 2.0 * wide[k] / total * y[k, c]
        along += slope[c] * unit[c]
    for c in range(dims):
        across += (slope[c] - along * unit[c]) ** 2
    rise = bound * _rise(along, math.sqrt(across), chord)
    curve = centre + rise + 0.25 * (diameter * bound * chord) ** 2
    return rarest_pair(view(z)), min(box, curve)


@jit
def chord_of(offset, y, i, j, bound):
    """The bound of f_ij on the whole ball by chords of the exponentials."""
    n, dims = y.shape
    sizes = new_floats(n)
    middle = 0.5 * (offset[i] + offset[j])
    top = -math.inf
    for k in range(n):
        size = 0.0
        for c in range(dims):
            size += (y[k, c] - 0.5 * (y[i, c] + y[j, c])) ** 2
        sizes[k] = bound * math.sqrt(size)
        top = max(top, offset[k] - middle + sizes[k])
    level, pull = 0.0, new_floats(dims)
    for c in range(dims):
        pull[c] = 0.0
    for k in range(n):
        peak = math.exp(offset[k] - middle + sizes[k] - top)  # w_k e^R; cosh and sinh are peak (1 +- e^-2R)/2
        level += 0.5 * peak * (1.0 + math.exp(-2.0 * sizes[k]))
        slope = -0.5 * peak * math.expm1(-2.0 * sizes[k]) / sizes[k] if sizes[k] > 0.0 else peak
        for c in range(dims):
            pull[c] += slope * (y[k, c] - 0.5 * (y[i, c] + y[j, c]))
    total = 0.0
    for c in range(dims):
        total += pull[c] * pull[c]
    return 2.0 * (top + math.log(level + bound * math.sqrt(total)))


@jit
def look_at_pairs(graph, pairs, bound, low, high):
    """F(0) and a bound of F from the features' spread; both exact for two outcomes, one column or no features."""
    row_start, offset, feat = graph.row_start, graph.offset, graph.feat
    widest = 1
    for p in range(len(pairs)):
        widest = max(widest, row_start[pairs[p] + 1] - row_start[pairs[p]])
    z = new_floats(widest)
    for p in range(len(pairs)):
        pair = pairs[p]
        row = row_start[pair]
        n = row_start[pair + 1] - row
        m = graph.col_count[pair] if graph.pair_block[pair] >= 0 else 0
        at = graph.feat_start[pair]
        if n == 1:
            low[p], high[p] = 0.0, 0.0
        elif n == 2:
            away = 0.0
            for c in range(m):
                away += (feat[at + c] - feat[at + m + c]) ** 2
            gap = abs(offset[row] - offset[row + 1]) + bound * math.sqrt(away)
            low[p] = gap + 2.0 * math.log1p(math.exp(-gap))
            high[p] = low[p]
        elif m <= 1:
            low[p] = 0.0
            for sign in (-1.0, 1.0):
                for k in range(n):
                    z[k] = offset[row + k]
                    if m == 1:
                        z[k] += sign * bound * feat[at + k]
                low[p] = max(low[p], rarest_pair(part(view(z), 0, n)))
            high[p] = low[p]
        else:
            low[p] = rarest_pair(part(view(offset), row, n))
            spread = 0.0
            for k in range(n):
                spread = max(spread, _distance_to_centre(feat, at, n, m, k))
            if bound * spread > 0.0:  # every gradient is at most twice the diameter, that at most twice the spread
                high[p] = low[p] + 4.0 * bound * spread + 1e-12 * (1.0 + low[p])
            else:
                high[p] = low[p]


@inner
def _distance_to_centre(feat, at, n, m, k):
    """|phi_k - c|; any c bounds the diameter, the mean of the first and the last row costs nothing."""
    away = 0.0
    for c in range(m):
        centre = 0.5 * (feat[at + c] + feat[at + (n - 1) * m + c])
        away += (feat[at + k * m + c] - centre) ** 2
    return math.sqrt(away)


@jit
def refine(graph, pairs, high, bound, best, roots, limits):
    """Box bounds of all f_ij that may exceed the best value, and ascents from the largest of them."""
    row_start, feat = graph.row_start, graph.feat
    widest, most = 1, 1
    for p in range(len(pairs)):
        widest = max(widest, row_start[pairs[p] + 1] - row_start[pairs[p]])
        most = max(most, graph.col_count[pairs[p]])
    gram, single, power, theta = new_floats(widest, widest), new_floats(widest), new_floats(widest), new_floats(most)
    starts, heights = new_integers(ASCENTS, 3), new_floats(ASCENTS)
    count, rest = 0, 0.0
    for p in range(len(pairs)):
        if high[p] <= best:
            break
        pair = pairs[p]
        row, at, m = row_start[pair], graph.feat_start[pair], graph.col_count[pair]
        n = row_start[pair + 1] - row
        shift = part(view(graph.offset), row, n)
        _products(feat, at, n, m, gram)
        _half_bounds(shift, gram, bound, power, single)
        for k in range(ASCENTS):
            heights[k] = -1.0
        first = count
        for i in range(n):
            for j in range(i):
                if single[i] + single[j] <= best:
                    continue
                limit, choice = _box(shift, gram, i, j, bound, power)
                if limit <= best:
                    continue
                if count < len(limits):
                    roots[count, 0], roots[count, 1], roots[count, 2] = pair, i, j
                    limits[count] = limit
                    count += 1
                else:
                    rest = max(rest, limit)
                lowest = 0
                for k in range(1, ASCENTS):
                    lowest = k if heights[k] < heights[lowest] else lowest
                if limit > heights[lowest]:
                    heights[lowest] = limit
                    starts[lowest, 0], starts[lowest, 1], starts[lowest, 2] = i, j, choice
        for s in range(ASCENTS):
            if heights[s] > best:
                best = max(best, _ascend(shift, feat, at, n, m, bound, view(starts)[s], theta, power))
        count = _still_open(roots, limits, first, count, best)
    return count, best, rest


@inner
def _products(feat, at, n, m, gram):
    """gram_kl = (phi_k - phi_0) . (phi_l - phi_0)."""
    for k in range(n):
        for other in range(k + 1):
            total = 0.0
            for c in range(m):
                total += (feat[at + k * m + c] - feat[at + c]) * (feat[at + other * m + c] - feat[at + c])
            gram[k, other] = total
            gram[other, k] = total


@inner
def _half_bounds(shift, gram, bound, power, single):
    """log sum_k exp of the largest z_k - z_i: half of a weaker bound, which rules out most pairs (i, j)."""
    n = len(shift)
    for i in range(n):
        for k in range(n):
            size = gram[k, k] + gram[i, i] - 2.0 * gram[k, i]
            power[k] = shift[k] - shift[i] + bound * math.sqrt(max(size, 0.0) + 1e-15 * (gram[k, k] + gram[i, i]))
        single[i] = _log_sum(power, n)


@inner
def _box(shift, gram, i, j, bound, power):
    """The box bound of f_ij on the whole ball, and the outcome k with the largest exponent."""
    centre = 0.25 * (gram[i, i] + gram[j, j] + 2.0 * gram[i, j])
    mean = 0.5 * (shift[i] + shift[j])
    largest, choice = -math.inf, 0
    for k in range(len(shift)):
        size = gram[k, k] + centre - gram[k, i] - gram[k, j]
        slack = 1e-15 * (gram[k, k] + gram[i, i] + gram[j, j])
        power[k] = shift[k] - mean + bound * math.sqrt(max(size, 0.0) + slack)
        if power[k] > largest:
            largest, choice = power[k], k
    return 2.0 * _log_sum(power, len(shift)), choice


@inner
def _still_open(roots, limits, first, count, best):
    """Drop the roots that the pair's own ascents have settled; returns the number of roots that remain."""
    kept = first
    for k in range(first, count):
        if limits[k] > best:
            for c in range(3):
                roots[kept, c] = roots[k, c]
            limits[kept] = limits[k]
            kept += 1
    return kept


@inner
def _log_sum(power, n):
    top = -math.inf
    for k in range(n):
        top = max(top, power[k])
    total = 0.0
    for k in range(n):
        total += math.exp(power[k] - top)
    return top + math.log(total)


@inner
def _ascend(shift, feat, at, n, m, bound, start, theta, z):
    """theta <- B g/|g|, g a subgradient of F, from the direction phi_k - (phi_i + phi_j)/2: F never goes down."""
    i, j, k = start[0], start[1], start[2]
    for c in range(m):
        theta[c] = feat[at + k * m + c] - 0.5 * (feat[at + i * m + c] + feat[at + j * m + c])
    best = 0.0
    for _ in range(STEPS):
        size = 0.0
        for c in range(m):
            size += theta[c] * theta[c]
        if not size > 0.0:
            break
        size = bound / math.sqrt(size)
        top, total, least, second = -math.inf, 0.0, -1, -1
        for row in range(n):
            z[row] = shift[row]
            for c in range(m):
                z[row] += size * theta[c] * feat[at + row * m + c]
            top = max(top, z[row])
            if least < 0 or z[row] < z[least]:
                least, second = row, least
            elif second < 0 or z[row] < z[second]:
                second = row
        rise = (top - z[least]) + (top - z[second])
        for row in range(n):
            z[row] = math.exp(z[row] - top)
            total += z[row]
        value = rise + 2.0 * math.log(total)
        if value <= best * (1.0 + 1e-15):
            break
        best = value
        for c in range(m):
            slope = -feat[at + least * m + c] - feat[at + second * m + c]
            for row in range(n):
                slope += 2.0 * z[row] / total * feat[at + row * m + c]
            theta[c] = slope
    return best
