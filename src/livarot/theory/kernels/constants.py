"""Kernels of the constants: passes over the pairs that can be visited."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

from livarot.core.compiling.basics import new_floats
from livarot.core.compiling.jit import jit
from livarot.core.tolerances import TIE
from livarot.core.views import part, view
from livarot.theory.kernels.curvature import rarest_pair


@jit
def largest_leverage(graph, pairs, whiten, place, owner):
    """max |W phi|^2 over the rows of some pairs, for a packed whitener (lower triangular blocks).

    ``place`` is where a coordinate stands in the order of the blocks, ``owner`` the block at each of these places.  The
    columns of a pair with one outcome are coordinates and may belong to several blocks.
    """
    largest = 0.0
    image = new_floats(len(place))
    for k in range(len(image)):
        image[k] = 0.0
    for p in range(len(pairs)):
        pair = pairs[p]
        block, m, cols = graph.pair_block[pair], graph.col_count[pair], graph.col_start[pair]
        for i in range(graph.row_start[pair + 1] - graph.row_start[pair]):
            feat, total = graph.feat_start[pair] + i * m, 0.0
            for summing in range(2):
                for c in range(m):
                    column = graph.cols[cols + c]
                    at = graph.block_start[block] + column if block >= 0 else place[column]
                    first, last = graph.block_start[owner[at]], graph.block_start[owner[at] + 1]
                    for k in range(at, last):
                        if summing:
                            total += image[k] * image[k]
                            image[k] = 0.0
                        else:
                            entry = graph.gram_start[owner[at]] + (k - first) * (last - first) + at - first
                            image[k] += whiten[entry] * graph.feat[feat + c]
            largest = max(largest, total)
    return largest


@jit
def rarest_two(row_start, offset, pairs):
    worst = 0.0
    for p in range(len(pairs)):
        first, last = row_start[pairs[p]], row_start[pairs[p] + 1]
        if last - first > 1:
            worst = max(worst, rarest_pair(part(view(offset), first, last - first)))
    return worst


@jit
def rarest_at(graph, table, here, n_actions, theta):
    worst = 0.0
    n_states = len(here)
    z = new_floats(8)
    for s in range(n_states):
        if not here[s]:
            continue
        for a in range(n_actions):
            pair = (table * n_states + s) * n_actions + a
            row = graph.row_start[pair]
            n = graph.row_start[pair + 1] - row
            if n < 2:
                continue
            if n > len(z):
                z = new_floats(2 * n)
            block = graph.pair_block[pair]
            m = graph.col_count[pair] if block >= 0 else 0
            for i in range(n):
                z[i] = graph.offset[row + i]
                for c in range(m):
                    coordinate = graph.block_coords[graph.block_start[block] + graph.cols[graph.col_start[pair] + c]]
                    z[i] += graph.feat[graph.feat_start[pair] + i * m + c] * theta[coordinate]
            worst = max(worst, rarest_pair(part(view(z), 0, n)))
    return worst


@jit
def nu_of(row_start, kind, stage_table, prob, base, here, follow, value, q):
    horizon, n_states, n_actions = q.shape
    largest = 0.0
    for h in range(horizon):
        for s in range(n_states):
            if not here[h, s]:
                continue
            best = value[h, s]
            tie = best - TIE * (1.0 + abs(best))
            second = -math.inf
            for a in range(n_actions):
                if q[h, s, a] < tie:
                    second = max(second, q[h, s, a])
            if second == -math.inf:
                continue
            least, most = math.inf, -math.inf
            for a in range(n_actions):
                pair = (stage_table[h] * n_states + s) * n_actions + a
                if row_start[pair + 1] == row_start[pair]:  # the action does not exist
                    continue
                pivot = follow[h, kind[row_start[pair]]]
                first, square = 0.0, 0.0
                for row in range(row_start[pair], row_start[pair + 1]):
                    off = follow[h, kind[row]] - pivot
                    first += prob[base[h] + row] * off
                    square += prob[base[h] + row] * off * off
                spread = max(square - first * first, 0.0)
                least, most = min(least, spread), max(most, spread)
            largest = max(largest, 2.0 * (most - least) / (best - second))
    return largest
