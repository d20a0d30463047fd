"""Slow twins of the robust planner: one (h, s, a) after the other, in 50 digits where it matters; no library import.

``rows[h][s][a]`` is (next states, probabilities), ``reward`` (H, S, A), ``level`` a number or an array (H, S, A).
"""

import math

import mpmath as mp
import numpy as np

DIGITS = 50


def tilt(values, nominal, eta):
    """p0 exp(-eta V) / sum, as mpf."""
    support = [i for i, p in enumerate(nominal) if p > 0]
    low = min(mp.mpf(float(values[i])) for i in support)
    total = mp.fsum(mp.mpf(float(p)) for p in nominal)
    weights = [
        mp.mpf(float(p)) / total * mp.exp(-eta * (mp.mpf(float(v)) - low)) if p > 0 else mp.mpf(0)
        for v, p in zip(values, nominal, strict=True)
    ]
    norm = mp.fsum(weights)
    return [w / norm for w in weights], low - mp.log(norm) / eta if eta > 0 else None


def divergence(p, nominal):
    """sum p log(p / p0) with 0 log 0 = 0, the nominal distribution being divided by its sum."""
    total = mp.fsum(mp.mpf(float(q)) for q in nominal)
    return mp.fsum(pi * mp.log(pi * total / mp.mpf(float(q))) for pi, q in zip(p, nominal, strict=True) if pi > 0)


def mean(p, values):
    return mp.fsum(pi * mp.mpf(float(v)) for pi, v in zip(p, values, strict=True))


def soft_min(values, nominal, eta):
    """(-(1/eta) log E exp(-eta V), its tilted distribution)."""
    with mp.workdps(DIGITS):
        eta = mp.mpf(float(eta))
        p, value = tilt(values, nominal, eta)
        return (mean(p, values) if eta == 0 else value), p


def ball_min(values, nominal, radius):
    """(min of E_p V over KL(p|p0) <= radius, p, eta) by bisection on log eta; eta = inf on the minimisers."""
    with mp.workdps(DIGITS):
        radius = mp.mpf(float(radius))
        support = [float(v) for v, p in zip(values, nominal, strict=True) if p > 0]
        low = min(support)
        if radius == 0 or low == max(support):
            p, _ = tilt(values, nominal, mp.mpf(0))
            return mean(p, values), p, mp.mpf(0)
        least = [mp.mpf(float(p)) if p > 0 and v == low else mp.mpf(0) for v, p in zip(values, nominal, strict=True)]
        total = mp.fsum(mp.mpf(float(p)) for p in nominal)
        if radius >= mp.log(total / mp.fsum(least)):
            return mp.mpf(low), [q / mp.fsum(least) for q in least], mp.inf
        below, above = mp.mpf(-300), mp.mpf(300)  # of log10 eta
        for _ in range(180):
            middle = (below + above) / 2
            p, _ = tilt(values, nominal, mp.mpf(10) ** middle)
            if divergence(p, nominal) < radius:
                below = middle
            else:
                above = middle
        eta = mp.mpf(10) ** below
        p, _ = tilt(values, nominal, eta)
        return mean(p, values), p, eta


def brute_ball_min(values, nominal, radius, points=200_001):
    """The same for two outcomes, without duality, by trying all p on a grid."""
    (v0, v1), (q0, q1) = values, nominal
    best = math.inf
    for p in np.linspace(0.0, 1.0, points):
        kl = sum(a * math.log(a / b) for a, b in ((p, q0), (1 - p, q1)) if a > 0)
        if kl <= radius:
            best = min(best, p * v0 + (1 - p) * v1)
    return best


def at(level, h, s, a):
    return float(level) if np.ndim(level) == 0 else float(level[h][s][a])


def choice(values, p0, radius, penalty, count_penalty):
    """(future, p, eta) of one pair in floats, by plain bisection on eta."""
    v, q = np.asarray(values, float), np.asarray(p0, float)

    def tilted(eta):
        weights = q * np.exp(-eta * (v - v.min()))
        return weights / weights.sum()

    def kl(p):
        return float(sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0))

    if penalty is not None:
        p = tilted(penalty)
        return float(p @ v) + (kl(p) / penalty if count_penalty and penalty > 0 else 0.0), p, penalty
    if radius == 0 or np.ptp(v) < 1e-15:
        return float(q @ v), q, 0.0
    least = np.where(v == v.min(), q, 0.0)
    if radius >= -math.log(least.sum()):
        return float(v.min()), least / least.sum(), math.inf
    below, above = 0.0, 1.0
    while kl(tilted(above)) < radius:
        above *= 2
    for _ in range(200):
        middle = (below + above) / 2
        below, above = (middle, above) if kl(tilted(middle)) < radius else (below, middle)
    return float(tilted(below) @ v), tilted(below), below


def solve(rows, reward, *, radius=None, penalty=None, count_penalty=True, policy=None):
    """Backward induction: values (H+1, S), q (H, S, A), kernel[h][s][a], dual (H, S, A)."""
    H, S, A = np.shape(reward)
    value, q, dual = np.zeros((H + 1, S)), np.zeros((H, S, A)), np.zeros((H, S, A))
    kernel = [[[None] * A for _ in range(S)] for _ in range(H)]
    for h in reversed(range(H)):
        for s in range(S):
            for a in range(A):
                nexts, p0 = rows[h][s][a]
                future, p, eta = choice(
                    [value[h + 1, j] for j in nexts],
                    p0,
                    None if radius is None else at(radius, h, s, a),
                    None if penalty is None else at(penalty, h, s, a),
                    count_penalty,
                )
                q[h, s, a] = reward[h][s][a] + future
                kernel[h][s][a], dual[h, s, a] = p, eta
            if policy is None:
                value[h, s] = q[h, s].max()
            elif np.ndim(policy) == 2:
                value[h, s] = q[h, s, policy[h][s]]
            else:
                value[h, s] = q[h, s] @ policy[h][s]
    return {"value": value, "q": q, "kernel": kernel, "dual": dual}
