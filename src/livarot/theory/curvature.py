"""kappa, the exact value of Eq. (definition kappa) or a proved bracket of it.

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
from livarot.model.ragged import Graph
from livarot.theory.kernels.curvature import LIFT, cap_bound, chord_of, look_at_pairs, refine

MOST_DIMS = 6  # caps are bisected up to this dimension of a pair's features
MOST_ROOTS = 100_000  # (pair, i, j) that may wait for the search


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
    look_at_pairs(graph, pairs, bound, low, high)
    best = float(low.max(initial=0.0))
    top = float(high[low == high].max(initial=0.0))  # those in closed form
    order = np.argsort(-high, kind="stable")
    order = order[(high[order] > best) & (low[order] < high[order])]
    if len(order) == 0:
        return best, max(best, top)
    roots, limits = np.empty((MOST_ROOTS, 3), dtype=np.int64), np.empty(MOST_ROOTS)
    count, best, rest = refine(graph, pairs[order], high[order], bound, best, roots, limits)
    waiting = [(-limits[k], k) for k in range(count) if limits[k] > best]
    best, remaining = _search(graph, roots, waiting, bound, best, max_nodes, tolerance)
    upper = max(best, top, rest, remaining)
    return best, upper + LIFT * (1.0 + upper)


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
        tight = min(-limit, float(chord_of(pair.offset, pair.features, i, j, bound)))
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
                best = max(best, _two_rarest(pair.offset + end * pair.features.sum(axis=1)))
            continue
        for part in _faces(dims) if cap is None else cap.halves():
            value, high = cap_bound(*pair, i, j, bound, *part.cone())
            best = max(best, value)
            done += 1
            number += 1
            if min(high, -limit) > best:
                heapq.heappush(heap, (-min(high, -limit), number, root, part))
    left = -heap[0][0] if heap else 0.0
    return best, max(left, stuck)


def _two_rarest(z: FloatArray) -> float:
    """-log(p_i p_j) of the two least likely outcomes with logits z."""
    top, (least, second) = float(z.max()), np.partition(z, 1)[:2].tolist()
    return float((top - least) + (top - second) + 2.0 * math.log(np.exp(z - top).sum()))


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
