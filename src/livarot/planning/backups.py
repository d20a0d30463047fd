"""Pieces of optimistic backward induction that both of its loops use (:mod:`optimistic`, :mod:`repeated`)."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

from livarot.core.jit import jit

TIE = 1e-9


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
