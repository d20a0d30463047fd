"""kappa, the exact value of Eq. (definition kappa) or a certified bracket of it.

For one pair (h, s, a) with logits z_k = o_k + phi_k . theta the two smallest probabilities make

    F(theta) = max over i != j of f_ij(theta),   f_ij = -log(p_i p_j) = 2 log sum_k exp(z_k - (z_i + z_j)/2),

and log kappa is the maximum of F over |theta| <= B and over the pairs.  F is convex, so its maximum lies on the
sphere, and finding it is not a convex problem.  What is known in closed form:

* two outcomes: f depends on the difference of the logits alone, at most g = |o_1 - o_2| + B |phi_1 - phi_2|, and
  f = g + 2 log(1 + e^-g);
* features of one pair on a line (always so for d = 1): the two ends of the line.

Otherwise (all certain):

* **from below** by ascent, theta <- B g/|g| with g a subgradient of F: it never goes down, and what it returns is the
  value at a point of the ball;
* **from above** by B |phi_k - (phi_i + phi_j)/2| in every exponent (``box``), and by Taylor's formula with the
  curvature D^2/2, D the diameter of the features (``curve``), both on caps of the sphere.  Caps are bisected, the
  largest bound first, until bound and value meet or ``max_nodes`` caps have been looked at.

Only the span of the differences of a pair's features counts: its dimension is at most the number of outcomes - 1.  So
three outcomes are a search on a circle whatever d is, four on a sphere.  Beyond ``MOST_DIMS`` dimensions caps are of no
use, and the bracket is that of the whole ball: from above the smaller of the box and of ``chord``, which replaces each
exponential by its chord on [-B|c_k|, B|c_k|], c_k = phi_k - (phi_i + phi_j)/2, a linear function of theta:

    f_ij <= 2 log( sum_k w_k cosh(B|c_k|) + B |sum_k w_k c_k sinh(B|c_k|)/(B|c_k|)| ),   w_k = e^{o_k - (o_i + o_j)/2};

from below the ascent.  Their ratio is at most U^2.

Cost: O(rows d) for the first look at all pairs; then the pairs in the order of their bound, O(U^3 + U^2 d) each, until
no bound exceeds the best value; then O(U d) per cap.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import heapq
import math
from itertools import product
from typing import NamedTuple

import numpy as np

from livarot.core.arrays import FloatArray, IntArray
from livarot.core.jit import jit
from livarot.model.ragged import Graph

MOST_DIMS = 6  # caps are bisected up to this dimension of a pair's features
MOST_ROOTS = 100_000  # (pair, i, j) that may wait for the search
ASCENTS, STEPS = 8, 60  # starts per pair and steps per start of the ascent
ROUNDING = 1e-12  # a bound is lifted by it, relative, so that rounding does not push it below what it bounds


class Cap(NamedTuple):
    """Part of the unit sphere: the directions through a box on a face of the cube."""

    axis: int
    sign: float
    low: tuple[float, ...]
    high: tuple[float, ...]

    def halves(self) -> tuple[Cap, Cap]:
        edge = max(range(len(self.low)), key=lambda k: self.high[k] - self.low[k])
        middle = 0.5 * (self.low[edge] + self.high[edge])
        left = (*self.high[:edge], middle, *self.high[edge + 1 :])
        right = (*self.low[:edge], middle, *self.low[edge + 1 :])
        return self._replace(high=left), self._replace(low=right)

    def cone(self) -> tuple[FloatArray, float]:
        """A unit vector and the largest distance from it of the corners' directions; the rest of the box is nearer."""
        ends = list(zip(self.low, self.high, strict=True))
        corners = np.array([self._point(c) for c in product(*ends)])
        corners /= np.linalg.norm(corners, axis=1)[:, None]
        middle = np.array(self._point(tuple(0.5 * (a + b) for a, b in ends)))
        middle /= np.linalg.norm(middle)
        return middle, float(np.linalg.norm(corners - middle, axis=1).max()) * (1.0 + 1e-15) + 1e-15

    def _point(self, rest: tuple[float, ...]) -> tuple[float, ...]:
        return (*rest[: self.axis], self.sign, *rest[self.axis :])


class Pair(NamedTuple):
    """One pair in the coordinates of its features' span."""

    offset: FloatArray  # (n,)
    features: FloatArray  # (n, r), centred
    diameter: float


def log_kappa(graph: Graph, pairs: IntArray, bound: float, max_nodes: int, tolerance: float) -> tuple[float, float]:
    """A lower and an upper bound of log kappa over the given pairs; (0, 0) if none of them has two outcomes."""
    low, high = np.empty(len(pairs)), np.empty(len(pairs))
    _look(graph, pairs, bound, low, high)
    best = float(low.max(initial=0.0))
    top = float(high[low == high].max(initial=0.0))  # those in closed form
    order = np.argsort(-high, kind="stable")
    order = order[(high[order] > best) & (low[order] < high[order])]
    if len(order) == 0:
        return best, max(best, top)
    roots, limits = np.empty((MOST_ROOTS, 3), dtype=np.int64), np.empty(MOST_ROOTS)
    count, best, rest = _refine(graph, pairs[order], high[order], bound, best, roots, limits)
    waiting = [(-limits[k], k) for k in range(count) if limits[k] > best]
    best, remaining = _search(graph, roots, waiting, bound, best, max_nodes, tolerance)
    upper = max(best, top, rest, remaining)
    return best, upper + ROUNDING * (1.0 + upper)


def _search(
    graph: Graph,
    roots: IntArray,
    waiting: list[tuple[float, int]],
    bound: float,
    best: float,
    max_nodes: int,
    tolerance: float,
) -> tuple[float, float]:
    """Bisect caps, the largest bound first; the best value and the largest bound that is left."""
    heap: list[tuple[float, int, int, Cap | None]] = []
    pairs: dict[int, Pair] = {}
    for limit, k in waiting:
        pair_number, i, j = (int(x) for x in roots[k])
        if pair_number not in pairs:
            pairs[pair_number] = _reduced(graph, pair_number)
        pair = pairs[pair_number]
        tight = min(-limit, float(_chord(pair.offset, pair.features, i, j, bound)))
        if tight > best:
            heap.append((-tight, k, k, None))
    heapq.heapify(heap)
    done, number, stuck = 0, len(roots), 0.0
    while heap and done < max_nodes and -heap[0][0] > best + tolerance:
        limit, _, root, cap = heapq.heappop(heap)
        pair_number, i, j = (int(x) for x in roots[root])
        pair = pairs[pair_number]
        dims = pair.features.shape[1]
        if dims > MOST_DIMS:
            stuck = max(stuck, -limit)
            continue
        if dims <= 1:  # the two ends of a line, or one point
            for end in (-bound, bound):
                best = max(best, float(two_rarest(pair.offset + end * pair.features.sum(axis=1))))
            continue
        for part in _faces(dims) if cap is None else cap.halves():
            value, high = _cap_bound(*pair, i, j, bound, *part.cone())
            best = max(best, value)
            done += 1
            number += 1
            if min(high, -limit) > best:
                heapq.heappush(heap, (-min(high, -limit), number, root, part))
    left = -heap[0][0] if heap else 0.0
    return best, max(left, stuck)


def _faces(dims: int) -> list[Cap]:
    ones = (1.0,) * (dims - 1)
    low = (-1.0,) * (dims - 1)
    return [Cap(axis, sign, low, ones) for axis in range(dims) for sign in (-1.0, 1.0)]


def _reduced(graph: Graph, pair: int) -> Pair:
    row, n = int(graph.row_start[pair]), int(graph.row_start[pair + 1] - graph.row_start[pair])
    m, at = int(graph.col_count[pair]), int(graph.feat_start[pair])
    features = graph.feat[at : at + n * m].reshape(n, m)
    centred = features - features.mean(axis=0)
    from scipy.spatial.distance import pdist  # a fifth of a second to import, and all agents import this module

    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    rank = int((size > 1e-14 * max(float(size[0]), 1e-300)).sum())
    reduced = np.ascontiguousarray(left[:, :rank] * size[:rank])
    diameter = 0.0 if rank == 0 else float(pdist(reduced).max())
    return Pair(np.ascontiguousarray(graph.offset[row : row + n]), reduced, diameter)


@jit
def two_rarest(z):
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


@jit
def _rise(along, across, chord):
    """max of c . (u - v) over unit vectors u with |u - v| <= chord; c has a part along the unit v and one across."""
    drop = 0.5 * chord * chord  # 1 - cos of the angle, without cancellation
    size = math.sqrt(along * along + across * across)
    if along >= size * (1.0 - drop):
        return across * across / (size + along) if along > 0.0 else size - along
    return across * chord * math.sqrt(1.0 - 0.25 * chord * chord) - along * drop


@jit
def _cap_bound(offset, y, diameter, i, j, bound, unit, chord):
    """F at the cap's centre, and a bound of f_ij on the cap."""
    n, dims = y.shape
    z = np.empty(n)
    wide = np.empty(n)
    slope = np.empty(dims)
    chord = min(chord, 2.0)
    middle = 0.5 * (offset[i] + offset[j])
    top = -math.inf
    for k in range(n):
        here, along, across = 0.0, 0.0, 0.0
        for c in range(dims):
            here += y[k, c] * unit[c]
            along += (y[k, c] - 0.5 * (y[i, c] + y[j, c])) * unit[c]
        for c in range(dims):
            across += (y[k, c] - 0.5 * (y[i, c] + y[j, c]) - along * unit[c]) ** 2
        z[k] = offset[k] + bound * here
        wide[k] = offset[k] - middle + bound * (along + _rise(along, math.sqrt(across), chord))
        top = max(top, wide[k])
    total = 0.0
    for k in range(n):
        total += math.exp(wide[k] - top)
    box = 2.0 * (top + math.log(total))
    peak = z.max()
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
    return two_rarest(z), min(box, curve)


@jit
def _chord(offset, y, i, j, bound):
    """The bound of f_ij on the whole ball by chords of the exponentials."""
    n, dims = y.shape
    sizes = np.empty(n)
    middle = 0.5 * (offset[i] + offset[j])
    top = -math.inf
    for k in range(n):
        size = 0.0
        for c in range(dims):
            size += (y[k, c] - 0.5 * (y[i, c] + y[j, c])) ** 2
        sizes[k] = bound * math.sqrt(size)
        top = max(top, offset[k] - middle + sizes[k])
    level, pull = 0.0, np.zeros(dims)
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
def _look(graph, pairs, bound, low, high):
    """F(0) and a bound of F from the features' spread; both exact for two outcomes, one column or no features."""
    row_start, offset, feat = graph.row_start, graph.offset, graph.feat
    widest = 1
    for p in range(len(pairs)):
        widest = max(widest, row_start[pairs[p] + 1] - row_start[pairs[p]])
    z = np.empty(widest)
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
                low[p] = max(low[p], two_rarest(z[:n]))
            high[p] = low[p]
        else:
            low[p] = two_rarest(offset[row : row + n])
            spread = 0.0
            for k in range(n):
                spread = max(spread, _distance_to_centre(feat, at, n, m, k))
            if bound * spread > 0.0:  # every gradient is at most twice the diameter, that at most twice the spread
                high[p] = low[p] + 4.0 * bound * spread + 1e-12 * (1.0 + low[p])
            else:
                high[p] = low[p]


@jit
def _distance_to_centre(feat, at, n, m, k):
    """|phi_k - c|; any c bounds the diameter, the mean of the first and the last row costs nothing."""
    away = 0.0
    for c in range(m):
        centre = 0.5 * (feat[at + c] + feat[at + (n - 1) * m + c])
        away += (feat[at + k * m + c] - centre) ** 2
    return math.sqrt(away)


@jit
def _refine(graph, pairs, high, bound, best, roots, limits):
    """Box bounds of all f_ij that may exceed the best value, and ascents from the largest of them."""
    row_start, feat = graph.row_start, graph.feat
    widest, most = 1, 1
    for p in range(len(pairs)):
        widest = max(widest, row_start[pairs[p] + 1] - row_start[pairs[p]])
        most = max(most, graph.col_count[pairs[p]])
    gram, single, power, theta = np.empty((widest, widest)), np.empty(widest), np.empty(widest), np.empty(most)
    starts, heights = np.empty((ASCENTS, 3), dtype=np.int64), np.empty(ASCENTS)
    count, rest = 0, 0.0
    for p in range(len(pairs)):
        if high[p] <= best:
            break
        pair = pairs[p]
        row, at, m = row_start[pair], graph.feat_start[pair], graph.col_count[pair]
        n = row_start[pair + 1] - row
        shift = graph.offset[row : row + n]
        _products(feat, at, n, m, gram)
        _half_bounds(shift, gram, bound, power, single)
        heights[:] = -1.0
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
                lowest = heights.argmin()
                if limit > heights[lowest]:
                    heights[lowest] = limit
                    starts[lowest, 0], starts[lowest, 1], starts[lowest, 2] = i, j, choice
        for s in range(ASCENTS):
            if heights[s] > best:
                best = max(best, _ascend(shift, feat, at, n, m, bound, starts[s], theta, power))
        kept = first  # what this pair's own ascents have settled
        for k in range(first, count):
            if limits[k] > best:
                roots[kept] = roots[k]
                limits[kept] = limits[k]
                kept += 1
        count = kept
    return count, best, rest


@jit
def _products(feat, at, n, m, gram):
    """gram_kl = (phi_k - phi_0) . (phi_l - phi_0)."""
    for k in range(n):
        for other in range(k + 1):
            total = 0.0
            for c in range(m):
                total += (feat[at + k * m + c] - feat[at + c]) * (feat[at + other * m + c] - feat[at + c])
            gram[k, other] = total
            gram[other, k] = total


@jit
def _half_bounds(shift, gram, bound, power, single):
    """log sum_k exp of the largest z_k - z_i: half of a weaker bound, which sorts out most."""
    n = len(shift)
    for i in range(n):
        for k in range(n):
            size = gram[k, k] + gram[i, i] - 2.0 * gram[k, i]
            power[k] = shift[k] - shift[i] + bound * math.sqrt(max(size, 0.0) + 1e-15 * (gram[k, k] + gram[i, i]))
        single[i] = _log_sum(power, n)


@jit
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


@jit
def _log_sum(power, n):
    top = -math.inf
    for k in range(n):
        top = max(top, power[k])
    total = 0.0
    for k in range(n):
        total += math.exp(power[k] - top)
    return top + math.log(total)


@jit
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
