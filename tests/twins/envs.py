"""Naive twins of the environments: dense tables, loop by loop; nothing of the library is imported.

A *table* is P[s][a][s'] with R[s][a], for one stage; stages that are equal share it.
"""

import itertools
import math

import numpy as np


def solve_table(P, R, H):
    """Optimal values (H + 1, S) and Q (H, S, A); P (S, A, S) or (H, S, A, S), R (S, A) or (H, S, A)."""
    P, R = np.asarray(P, float), np.asarray(R, float)
    P = P if P.ndim == 4 else np.stack([P] * H)
    R = R if R.ndim == 3 else np.stack([R] * H)
    S, A = R.shape[1:]
    value, q = np.zeros((H + 1, S)), np.zeros((H, S, A))
    for h in reversed(range(H)):
        for s in range(S):
            for a in range(A):
                q[h, s, a] = R[h, s, a] + sum(P[h, s, a, n] * value[h + 1, n] for n in range(S))
            value[h, s] = max(q[h, s])
    return value, q


def best_of_all_policies(P, R, start):
    """max over all deterministic policies of start . V^pi_0, by trying every one on the states that can be reached."""
    H, S, A = R.shape
    here = [set(np.flatnonzero(start))]
    for h in range(H - 1):
        here.append({n for s in here[h] for a in range(A) for n in range(S) if P[h, s, a, n] > 0})
    nodes = [(h, s) for h in range(H) for s in sorted(here[h])]
    best = -math.inf
    for actions in itertools.product(range(A), repeat=len(nodes)):
        choice = dict(zip(nodes, actions, strict=True))
        value = np.zeros(S)
        for h in reversed(range(H)):
            ahead = np.zeros(S)
            for s in here[h]:
                a = choice[h, s]
                ahead[s] = R[h, s, a] + P[h, s, a] @ value
            value = ahead
        best = max(best, float(start @ value))
    return best


def number_of_policies(P, R, start):
    H, A = R.shape[0], R.shape[2]
    reach, count = start > 0, 0
    for h in range(H):
        count += int(reach.sum())
        reach = (P[h][reach].sum(axis=(0, 1))) > 0
    return float(A) ** count


def sigma_bar(P, R, start):
    """sqrt(1/H sum_h E[Var V*_{h+1}(s')] / H^2) along the optimal policy; ties: the larger variance."""
    H, S, A = R.shape
    value, q = solve_table(P, R, H)
    visits, total = np.asarray(start, float), 0.0
    for h in range(H):
        following = np.zeros(S)
        for s in range(S):
            spreads = {}
            for a in range(A):
                if q[h, s, a] >= value[h, s] - 1e-9 * (1 + abs(value[h, s])):
                    mean = sum(P[h, s, a, n] * value[h + 1, n] for n in range(S))
                    spreads[a] = sum(P[h, s, a, n] * (value[h + 1, n] - mean) ** 2 for n in range(S))
            action = max(spreads, key=lambda a: spreads[a])
            total += visits[s] * spreads[action]
            following += visits[s] * P[h, s, action]
        visits = following
    return math.sqrt(total / H**3)


def river(variant, S):
    """P, R and start of a published RiverSwim; action 0 is left."""
    down, stay, up = {"osband": (0.05, 0.6, 0.35), "park": (0.05, 0.6, 0.35)}.get(variant, (0.1, 0.6, 0.3))
    bottom_stay = {"osband": 0.4, "park": 0.4, "vtr": 0.3, "strehl": 0.7}[variant]
    top_stay = {"osband": 0.6, "park": 0.6, "vtr": 0.9, "strehl": 0.3}[variant]
    P, R, start = np.zeros((S, 2, S)), np.zeros((S, 2)), np.zeros(S)
    for s in range(S):
        P[s, 0, max(s - 1, 0)] = 1
        if s == 0:
            P[s, 1, 0], P[s, 1, 1] = bottom_stay, 1 - bottom_stay
        elif s == S - 1:
            P[s, 1, s], P[s, 1, s - 1] = top_stay, 1 - top_stay
        else:
            P[s, 1, s - 1], P[s, 1, s], P[s, 1, s + 1] = down, stay, up
    R[0, 0] = {"osband": 0.005, "park": 0.05, "vtr": 0.005, "strehl": 5 / 10000}[variant]
    R[S - 1, 1] = 0.3 * 10000 / 10000 if variant == "strehl" else 1  # paid on staying, with probability .3
    if variant == "strehl":
        start[1] = start[2] = 0.5
    else:
        start[0] = 1
    return P, R, start


def arms(matching):
    """SixArms; hub 0, room i + 1 behind arm i."""
    opens, pays = [1, 0.15, 0.1, 0.05, 0.03, 0.01], [50, 133, 300, 800, 1660, 6000]
    P, R = np.zeros((7, 6, 7)), np.zeros((7, 6))
    for i in range(6):
        P[0, i, i + 1] += opens[i]
        P[0, i, 0] += 1 - opens[i]
        for a in range(6):
            stays = a == i or (i == 0 and not matching and a != 4)
            P[i + 1, a, i + 1 if stays else 0] = 1
            R[i + 1, a] = pays[i] / 6000 if stays else 0
    return P, R


def sea_values(N, slip):
    """DeepSea by recursion on (row, column): optimal values in the units of the published rewards."""
    cost, value = 0.01 / N, {}
    for row in reversed(range(N)):
        for column in range(row + 1):
            if row == N - 1:
                left, right = 0.0, (1.0 if column == N - 1 else 0.0) - cost
            else:
                left = value[row + 1, max(column - 1, 0)]
                right = -cost + (1 - slip) * value[row + 1, column + 1] + slip * value[row + 1, column]
            value[row, column] = max(left, right)
    return value


def softmax_table(offset, features, theta):
    """Probabilities of one pair."""
    z = [o + sum(x * t for x, t in zip(row, theta, strict=True)) for o, row in zip(offset, features, strict=True)]
    top = max(z)
    weights = [math.exp(x - top) for x in z]
    return [w / sum(weights) for w in weights]
