"""Slow twins of the theory: constants by loops and grids, the theorem's terms written out.  No library import.

A *model* is the dict of tests/twins/core.py: rows[h][s][a] = (next states, features, offsets), theta, reward, start.
"""

import itertools
import math

import numpy as np

from tests.twins import core as ref

TIE = 1e-9


def reachable(model):
    """The states that the start can reach, per stage."""
    rows = model["rows"]
    found = [{s for s in range(len(model["start"])) if model["start"][s] > 0}]
    for h in range(len(rows)):
        found.append({t for s in found[h] for a in range(len(rows[h][s])) for t in rows[h][s][a][0]})
    return found


def pairs(model, all_states=False):
    """(h, row) of every pair (h, s, a) that counts."""
    reach = reachable(model)
    for h, stage in enumerate(model["rows"]):
        for s, state in enumerate(stage):
            if all_states or s in reach[h]:
                for row in state:
                    yield h, row


def product_of_two(row, theta):
    """min over i != j of p_i p_j, by all pairs; 1 for a single outcome."""
    p = ref.softmax(row, theta)
    return min((p[i] * p[j] for i, j in itertools.combinations(range(len(p)), 2)), default=1.0)


def kappa_at(model, theta, all_states=False):
    """1 / min p p' at a parameter per stage."""
    return max(1.0 / product_of_two(row, theta[h]) for h, row in pairs(model, all_states))


def kappa_grid(model, bound, n=2000):
    """1 / min p p' over a dense grid of the ball, d <= 2: the circle, its interior and the ends of a segment."""
    d = model["dim"]
    if d == 1:
        points = [np.array([x]) for x in np.linspace(-bound, bound, n)]
    else:
        angles = np.linspace(0, 2 * math.pi, n, endpoint=False)
        points = [
            r * bound * np.array([math.cos(x), math.sin(x)]) for r in (1.0, 0.7, 0.3) for x in angles[:: int(1 / r)]
        ]
    return max(kappa_at(model, [x] * len(model["rows"])) for x in points)


def kappa_random(model, bound, rng, n=300):
    """1 / min p p' at random points of the sphere: a lower bound of kappa in any dimension."""
    best = 1.0
    for _ in range(n):
        x = rng.normal(size=model["dim"])
        best = max(best, kappa_at(model, [bound * x / np.linalg.norm(x)] * len(model["rows"])))
    return best


def rho(model, all_states=False):
    """The smallest over stages of the largest feature norm; a certain outcome is never chosen for its features."""
    largest = [0.0] * len(model["rows"])
    for h, row in pairs(model, all_states):
        if len(row[0]) > 1:
            largest[h] = max([largest[h], *(math.sqrt(ref.dot(phi, phi)) for phi in row[1])])
    return min(largest)


def diameter(model, matrix, radius, stage):
    """max over features of 2 radius |phi|_{matrix^-1}."""
    reach = reachable(model)[stage]
    rows = [row for s, state in enumerate(model["rows"][stage]) if s in reach for row in state]
    return max(2 * radius * ref.dual_norm(phi, matrix) for row in rows for phi in row[1])


def gaps(model):
    """(H, S, A) gaps, and the smallest gap over reachable states that is not a tie."""
    best = ref.solve(model["rows"], model["theta"], model["reward"])
    reach = reachable(model)
    H, S, A = np.shape(model["reward"])
    gap, smallest = np.zeros((H, S, A)), None
    for h in range(H):
        for s in range(S):
            for a in range(A):
                gap[h, s, a] = best["value"][h, s] - best["q"][h, s, a]
                open_ = gap[h, s, a] > TIE * (1 + abs(best["value"][h, s]))
                if s in reach[h] and open_ and (smallest is None or gap[h, s, a] < smallest):
                    smallest = gap[h, s, a]
    return gap, smallest


def nu_max(model, all_states=False):
    best = ref.solve(model["rows"], model["theta"], model["reward"])
    reach = reachable(model)
    H, S, A = np.shape(model["reward"])
    largest = 0.0
    for h in range(H):
        for s in range(S):
            if not (all_states or s in reach[h]):
                continue
            top = best["value"][h, s]
            others = [best["q"][h, s, a] for a in range(A) if top - best["q"][h, s, a] > TIE * (1 + abs(top))]
            if others:
                var = []
                for a in range(A):
                    row = model["rows"][h][s][a]
                    var.append(ref.variance(row, model["theta"][h], ref.row_values(row, best["value"][h + 1])))
                largest = max(largest, 2 * (max(var) - min(var)) / (top - max(others)))
    return largest


# ---------------------------------------------------------------- the theorem
def printed_terms(d, H, T, B, kappa, rho_, nu, sigma, delta):
    """The eight terms of the theorem, as printed."""
    L, M, two, e = math.log(1 + T), math.log(T / delta), math.log(2 / delta), math.e
    return {
        "variance": 4 * math.sqrt(2 * e) * B * d * H**2 * sigma * math.sqrt(T) * L * math.sqrt(M),
        "martingale": H**1.5 * math.sqrt(2 * T * two),
        "gap_variance": 8 * math.sqrt(e * nu) * B * d * H**1.25 * T**0.25 * L * M * math.sqrt(two),
        "value_error": 8 * e**2 * B * d * H**2.25 * T**0.25 * math.sqrt(L * M * two),
        "gap_square": 32 * e * B**2 * nu * d**2 * H * L * M,
        "value_error_square": 32 * e**2 * B**2 * d**2 * H**3 * L**2 * M,
        "curvature": 40 * kappa * B**2 * d**2 * H**2 * L * M,
        "exploration": 4**5
        * (1 + 3 * math.sqrt(2)) ** 4
        * (kappa / rho_) ** 8
        * d**6
        * H
        * (B + 3) ** 2
        * math.log(T * H / delta)
        * math.log(T) ** 6,
    }


def quadratic_bound(d, H, T, B, kappa, nu, sigma, delta):
    """b and c of x^2 <= b x + c, x^2 = Reg_T(MDP), from the last display of step 5 and steps 6 and 7."""
    e, L, two = math.e, math.log(1 + T), math.log(2 / delta)
    beta = math.sqrt(2 / 3 * d * math.log(T * H / delta)) + 2 * B * math.sqrt(144 * d)
    potential = math.sqrt(2 * e * d * H * L)
    value = 2 * math.sqrt(2) * e**2 * beta * math.sqrt(d) * H**1.5 * math.sqrt(L)
    b = 2 * beta * potential * math.sqrt(nu) + value
    c = 2 * beta * potential * (math.sqrt(H**3 * T) * sigma + math.sqrt(nu * H**1.5 * math.sqrt(2 * T * two)))
    c += value * math.sqrt(math.sqrt(2) * H**1.5 * math.sqrt(T * two))
    c += 20 * kappa * beta**2 * d * H**2 * math.log(1 + T / (d * 144 * d))
    return b, c + H**1.5 * math.sqrt(2 * T * two)


def exploration_diameter(tau, d, H, B, kappa, rho_, delta):
    """The bound on the diameter in the lemma's proof, with |theta* - estimate| <= 2B in the relaxation."""
    c = 1 + 6 * math.sqrt(2) * B
    first = (B + 3) * math.sqrt(d * math.log((tau + 1) * H / delta))
    second = (tau + 2) ** 0.25 * (kappa / rho_) ** 1.5 * d * math.log(1 + (tau + 1) / d)
    return 4 * c * (first + second) / math.sqrt(tau) * math.sqrt(kappa / rho_) * math.sqrt(d * math.log(1 + tau / d))


def chain_lower_bound(H, d, T, gap):
    """(n/2) c sum_h q^{h-1} DeltaV_{h+1} sum_t (1 - TV_{t,h}), every sum a loop (exact in t, not its closed form)."""
    n, delta = d - 1, 1 / H
    p = delta + n * gap
    tilt = math.log((1 - delta) * p / (delta * (1 - p))) / n
    good = {y: 1 / (1 + (H - 1) * math.exp(-tilt * y)) for y in range(-n, n + 1, 2)}

    def kl(a, b):
        return a * math.log(a / b) + (1 - a) * math.log((1 - a) / (1 - b))

    near = [(x, y) for x in good for y in good if abs(x - y) == 2]
    info = max(kl(good[x], good[y]) for x, y in near)
    loss = min((p - good[n - 2 * m]) / m for m in range(1, n + 1))
    total = 0.0
    for h in range(1, H + 1):
        gain = (1 - (1 - p) ** (H - h)) / p
        seen = (1 - good[-n]) ** (h - 1) * info
        open_ = sum(max(1 - math.sqrt(t * seen / 2), math.exp(-t * seen) / 2) for t in range(T))
        total += n / 2 * loss * (1 - p) ** (h - 1) * gain * open_
    return total


def greedy_bayes_regret(H, T, gap, n, rng):
    """Mean regret, and its standard error, of a learner that knows everything about the chain (d = 2) but the signs.

    It plays at every stage the sign that is more likely given what it has seen, on n chains with random signs.
    """
    p = 1 / H + gap
    tilt = math.log((1 - 1 / H) * p / (1 / H * (1 - p)))
    worst = 1 / (1 + (H - 1) * math.exp(tilt))
    gain = (1 - (1 - p) ** (H - 1 - np.arange(H))) / p
    sign, odds, regret = rng.choice([-1, 1], size=(n, H)), np.zeros((n, H)), np.zeros(n)
    for _ in range(T):
        action = np.where(odds == 0, rng.choice([-1, 1], size=(n, H)), np.sign(odds))
        fall = np.where(action == sign, p, worst)
        reach = np.cumprod(np.column_stack((np.ones(n), 1 - fall[:, :-1])), axis=1)
        regret += (reach * (p - fall) * gain).sum(axis=1)
        fell = rng.random((n, H)) < fall
        alive = np.column_stack((np.ones(n, dtype=bool), np.cumsum(fell, axis=1)[:, :-1] == 0))
        odds += alive * action * np.where(fell, math.log(p / worst), math.log((1 - p) / (1 - worst)))
    return float(regret.mean()), float(regret.std() / math.sqrt(n))


def hard_chain_sigma_bar(H, p):
    """sqrt of q/(p H^3) ((1 - q^H)(1 + q^{H-1})/p - 2 H q^{H-1}): the geometric sums in closed form."""
    q = 1 - p
    return math.sqrt(q / (p * H**3) * ((1 - q**H) * (1 + q ** (H - 1)) / p - 2 * H * q ** (H - 1)))
