"""Pieces of optimistic backward induction that both of its loops use (:mod:`optimistic`, :mod:`repeated`)."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

from livarot.core.jit import jit
from livarot.planning.lanes import NORM, TOP

TIE = 1e-9


@jit
def value_range(first, last, node_state, value, h, spread):
    """max - min of V_h over the reachable states, per replica."""
    for r in range(len(spread)):
        high, low = -math.inf, math.inf
        for node in range(first, last):
            high = max(high, value[r, h, node_state[node]])
            low = min(low, value[r, h, node_state[node]])
        spread[r] = high - low


@jit
def greedy(first, last, node_state, q, n_actions, h, value, policy):
    """V = max_a Q and the first action within the tie tolerance of it."""
    for r in range(len(q)):
        for node in range(first, last):
            s = node_state[node]
            high = q[r, s * n_actions]
            for a in range(1, n_actions):
                high = max(high, q[r, s * n_actions + a])
            value[r, h, s] = high
            tie = high - TIE * (1.0 + abs(high))
            a = 0
            while q[r, s * n_actions + a] < tie:
                a += 1
            policy[r, h, s] = a


@jit
def plain_backup(row_start, next_state, offset, pair, first_pair, h, value, reward, q):
    """Q of a pair whose outcome law is known: one outcome, or probabilities from the offsets alone."""
    row, end = row_start[pair], row_start[pair + 1]
    local = pair - first_pair
    n_actions = reward.shape[2]
    gain = reward[h, local // n_actions, local % n_actions]
    top = offset[row]
    for i in range(row + 1, end):
        top = max(top, offset[i])
    for r in range(len(q)):
        if end - row == 1:
            q[r, local] = gain + value[r, h + 1, next_state[row]]
            continue
        total, mean = 0.0, 0.0
        for i in range(row, end):
            weight = math.exp(offset[i] - top)
            total += weight
            mean += weight * value[r, h + 1, next_state[i]]
        q[r, local] = gain + mean / total


@jit
def own_whitener(cols, col, m, whiten, r, parameter, at, size, w, sub, lane):
    """The whitener of a pair's own columns into a lane: (m, m) lower triangular with W'W = (gram^-1)[cols, cols]."""
    if m == size:
        for i in range(m):
            for j in range(i + 1):
                w[i * m + j, lane] = whiten[r, parameter, at + i * m + j]
        return
    for i in range(m):  # the pair's part of gram^-1 = W'W
        for j in range(i + 1):
            ci, cj = cols[col + i], cols[col + j]
            total = 0.0
            for k in range(max(ci, cj), size):
                total += whiten[r, parameter, at + k * size + ci] * whiten[r, parameter, at + k * size + cj]
            sub[i, j] = total
    reverse_factor(sub, m, w, lane)


@jit
def reverse_factor(sub, m, w, lane):
    """w (lower triangular, into a lane) with w'w = sub (lower part, destroyed), from the last row up."""
    for k in range(m - 1, -1, -1):
        pivot = math.sqrt(max(sub[k, k], 1e-300))
        w[k * m + k, lane] = pivot
        for j in range(k):
            w[k * m + j, lane] = sub[k, j] / pivot
        for i in range(k):
            for j in range(i + 1):
                sub[i, j] -= w[k * m + i, lane] * w[k * m + j, lane]


@jit
def two_apart(theta, whiten, k_param, coords, base, at, step, apart, m, shift, wl, first, last):
    """What two outcomes need, of lanes first..last-1 (one pair, replicas side by side): wl[TOP] = z0_1 - z0_2 and
    wl[NORM] = |W (phi_1 - phi_2)|^2, from ``step`` = phi_1 - phi_2 and ``apart``, the difference of the offsets."""
    if m == 2:  # the same, unrolled: a chain with an action and a constant
        one, two = step[0], step[1]
        for into in range(first, last):
            r = into + shift
            wl[TOP + into] = apart + one * theta[r, k_param, coords[base]] + two * theta[r, k_param, coords[base + 1]]
            upper_row = whiten[r, k_param, at] * one
            lower_row = whiten[r, k_param, at + 2] * one + whiten[r, k_param, at + 3] * two
            wl[NORM + into] = upper_row * upper_row + lower_row * lower_row
        return
    for into in range(first, last):
        r = into + shift
        logit = apart
        for j in range(m):
            logit += step[j] * theta[r, k_param, coords[base + j]]
        square = 0.0
        for i in range(m):
            part = 0.0
            for j in range(i + 1):
                part += whiten[r, k_param, at + i * m + j] * step[j]
            square += part * part
        wl[TOP + into] = logit
        wl[NORM + into] = square


@jit
def two_apart_part(theta, coords, base, cols, col, step, apart, m, w, wl, lane):
    """The same for one lane whose pair uses a part of its block; ``w`` is its own whitener."""
    logit, square = apart, 0.0
    for i in range(m):
        logit += step[i] * theta[coords[base + cols[col + i]]]
        part = 0.0
        for j in range(i + 1):
            part += w[i * m + j, lane] * step[j]
        square += part * part
    wl[TOP + lane] = logit
    wl[NORM + lane] = square
