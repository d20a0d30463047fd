"""Which pairs of a stage are worth a closer look, and that look: the joint maximum and its upper bound in lanes.

Used by :mod:`livarot.planning.repeated`, which bounds all pairs first.  Candidates of almost one shape share lanes: the
shorter ones are filled up with outcomes of no weight.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from livarot.core.jit import jit
from livarot.core.lanes64 import LANES
from livarot.core.ragged import FloatArray, IntArray
from livarot.planning.backups import TIE
from livarot.planning.bounds import upper_bound
from livarot.planning.climb import joint_maximum
from livarot.planning.lanes import (
    BEST_F,
    BEST_GAP,
    BETA,
    COL,
    OUT,
    PROBLEM,
    SCALE,
    Z0,
    centre_probabilities,
    centre_widths,
)
from livarot.planning.tiles import STEP

ABSENT = 460.0  # the logit of an outcome that only fills a lane is so far below the first one's: weight 1e-200


class Lanes(NamedTuple):
    """Workspaces (:mod:`livarot.planning.lanes`) for the candidates, made once per plan."""

    y: FloatArray
    v: FloatArray
    v_up: FloatArray
    wo: FloatArray
    wc: FloatArray
    wl: FloatArray
    y2: FloatArray
    v2: FloatArray
    wo2: FloatArray
    wc2: FloatArray
    wl2: FloatArray
    out: FloatArray
    members: IntArray  # which pair, as its place in the tiles' order
    size: IntArray  # its outcomes
    place: IntArray  # where it is in its tile


@jit
def make_lanes(most_out, most_rank):
    return Lanes(
        np.zeros((most_out * most_rank, LANES)), np.zeros((most_out, LANES)), np.zeros((most_out, LANES)),
        np.zeros((most_out, OUT)), np.zeros((most_rank, COL)), np.zeros(PROBLEM),
        np.zeros((most_out * most_rank, LANES)), np.zeros((most_out, LANES)),
        np.zeros((most_out, OUT)), np.zeros((most_rank, COL)), np.zeros(PROBLEM), np.zeros(LANES),
        np.zeros(LANES, dtype=np.int64), np.zeros(LANES, dtype=np.int64), np.zeros(LANES, dtype=np.int64),
    )  # fmt: skip


@jit
def candidates(reach, climbs, n_actions, known, known_up, low, high, todo, now, only_top):
    """Which of the pairs to do may be the best one of a reachable state, in one of the two recursions: all of them, or
    only those of the largest bound.  The hopeless ones are done: any Q that is not the best will do."""
    for s in range(len(reach)):
        first, last = s * n_actions, (s + 1) * n_actions
        best, best_up, top, top_up = -math.inf, -math.inf, -1, -1
        for pair in range(first, last):
            now[pair] = False
            if not todo[pair]:
                best, best_up = max(best, known[0, pair]), max(best_up, known_up[0, pair])
                continue
            best, best_up = max(best, low[0, pair]), max(best_up, low[1, pair])
            top = pair if top < 0 or high[0, pair] > high[0, top] else top
            top_up = pair if top_up < 0 or high[1, pair] > high[1, top_up] else top_up
        best -= 2.0 * TIE * (1.0 + abs(best))
        best_up -= 2.0 * TIE * (1.0 + abs(best_up))
        for pair in range(first, last):
            if not todo[pair]:
                continue
            hopeless = climbs and high[0, pair] < best and high[1, pair] < best_up
            if hopeless or not reach[s]:
                todo[pair] = False
                known[0, pair], known_up[0, pair] = low[0, pair], low[1, pair]
            elif not only_top or pair in (top, top_up):
                todo[pair] = False
                now[pair] = True


@jit
def take(tiles, centre, tile, item, filled, todo, follow, follow_up, w):
    """Append pairs to do of a tile, from ``item`` on, to the lanes; returns (next item, lanes filled)."""
    begin, end, n_out, m, at, feat = tiles.table[tile]
    width = -(-(end - begin) // STEP) * STEP
    first = filled
    while item < end and filled < LANES:
        if todo[tiles.order[item]]:
            w.members[filled] = item
            w.place[filled] = item - begin
            w.size[filled] = n_out
            filled += 1
        item += 1
    for i in range(n_out if filled > first else 0):
        row = at + i * width
        for lane in range(first, filled):
            w.wo[i, Z0 + lane] = centre.z0[row + w.place[lane]]
            state = np.uint32(tiles.next_state[row + w.place[lane]])
            w.v[i, lane] = follow[state]
            w.v_up[i, lane] = follow_up[state]
        for k in range(m):
            row = feat + (i * m + k) * width
            for lane in range(first, filled):
                w.y[i * m + k, lane] = centre.y[row + w.place[lane]]
    return item, filled


@jit
def pad(w, n_out, m, lanes):
    """Fill lanes with fewer outcomes up to ``n_out``: no weight, the features of the first, the lowest value."""
    for lane in range(lanes):
        if w.size[lane] < n_out:
            low, low_up = w.v[0, lane], w.v_up[0, lane]
            for i in range(1, w.size[lane]):
                low, low_up = min(low, w.v[i, lane]), min(low_up, w.v_up[i, lane])
            for i in range(w.size[lane], n_out):
                w.wo[i, Z0 + lane] = w.wo[0, Z0 + lane] - ABSENT
                w.v[i, lane], w.v_up[i, lane] = low, low_up
                for k in range(m):
                    w.y[i * m + k, lane] = w.y[k, lane]


@jit
def solve_candidates(tiles, centre, gains, follow, follow_up, radius, scale, code, todo, q, q_up, w):
    """Q by the joint maximum and by its upper bound where there is something to do.  Returns the largest gap relative
    to ``scale``."""
    n_tiles = len(tiles.table)
    w.wl[BETA : BETA + LANES] = radius
    w.wl[SCALE : SCALE + LANES] = scale
    filled, gap = 0, 0.0
    for tile in range(n_tiles):
        item, end, n_out, m = tiles.table[tile, 0], tiles.table[tile, 1], tiles.table[tile, 2], tiles.table[tile, 3]
        while item < end:
            item, filled = take(tiles, centre, tile, item, filled, todo, follow, follow_up, w)
            more = item < end or (tile + 1 < n_tiles and tiles.table[tile + 1, 3] == m)
            if filled == 0 or (filled < LANES and more):
                continue
            pad(w, n_out, m, filled)
            centre_probabilities(w.wo, w.wl, n_out, filled)
            centre_widths(w.y, w.wo, w.wc, w.wl, n_out, m, filled)
            upper_bound(w.y, w.v_up, w.wo, w.wc, w.wl, w.out, n_out, m, filled)
            joint_maximum(
                code.solver, code.n_iter, code.tol, code.n_starts, code.wide,
                w.y, w.v, w.wo, w.wc, w.wl, w.y2, w.v2, w.wo2, w.wc2, w.wl2, n_out, m, filled,
            )  # fmt: skip
            for lane in range(filled):
                pair = tiles.order[w.members[lane]]
                q[0, pair] = gains[pair] + w.wl[BEST_F + lane]
                q_up[0, pair] = gains[pair] + w.out[lane]
                gap = max(gap, w.wl[BEST_GAP + lane])
            filled = 0
    return gap / scale if scale > 0.0 else 0.0
