"""Slow twins of the tabular learners: every equation written out, loop by loop; the library is not imported.

``follow[h][s][a]`` lists the possible next states; ``law[h]`` is the number of a stage's law; ``counts`` is a dict
(law, s, a, next state) -> visits; ``reward[h][s][a]``.  A plan is (value [H+1][S], q [H][S][A], policy [H][S]).
"""

import math

from scipy.optimize import linprog


def count(follow, law, episodes):
    """Visits of (states, actions) pairs of lists."""
    counts = {}
    for states, actions in episodes:
        for h in range(len(actions)):
            key = (law[h], states[h], actions[h], states[h + 1])
            assert states[h + 1] in follow[h][states[h]][actions[h]]
            counts[key] = counts.get(key, 0) + 1
    return counts


def visits(follow, law, counts, h, s, a):
    return sum(counts.get((law[h], s, a, y), 0) for y in follow[h][s][a])


def backward(follow, reward, expectation):
    """V and the first action within 1e-9 (1 + |V|) of the best, for Q = expectation(h, s, a, V_{h+1}, r)."""
    horizon, n_states, n_actions = len(follow), len(follow[0]), len(follow[0][0])
    value = [[0.0] * n_states for _ in range(horizon + 1)]
    q = [[[0.0] * n_actions for _ in range(n_states)] for _ in range(horizon)]
    policy = [[0] * n_states for _ in range(horizon)]
    for h in reversed(range(horizon)):
        for s in range(n_states):
            for a in range(n_actions):
                q[h][s][a] = expectation(h, s, a, value[h + 1], reward[h][s][a])
            value[h][s] = max(q[h][s])
            near = [a for a in range(n_actions) if q[h][s][a] >= value[h][s] - 1e-9 * (1 + abs(value[h][s]))]
            policy[h][s] = near[0]
    return value, q, policy


def bonus_plan(follow, law, reward, counts, bonus, last_q=None):
    """Q = r + min(p.V + bonus(N, variance, h, p), max V), r + max V if unvisited, and at most ``last_q``."""

    def expectation(h, s, a, following, r):
        support = follow[h][s][a]
        best = max(following[y] for y in support)
        if len(support) == 1:
            return r + best
        n = visits(follow, law, counts, h, s, a)
        if n == 0:
            found = r + best
        else:
            p = {y: counts.get((law[h], s, a, y), 0) / n for y in support}
            mean = sum(p[y] * following[y] for y in support)
            variance = sum(p[y] * (following[y] - mean) ** 2 for y in support)
            found = r + min(mean + bonus(n, variance, h, p), best)
        return found if last_q is None else min(found, last_q[h][s][a])

    return backward(follow, reward, expectation)


def hoeffding(H, L, scale):
    return lambda n, variance, h, p: scale * 7 * H * L / math.sqrt(n)


def simple(H, scale):
    return lambda n, variance, h, p: scale * (1 / math.sqrt(n) + (H - h) / n)


def bernstein(H, S, A, L, scale, state_visits):
    """``state_visits[h][y]``; 100^2 as printed."""

    def bonus(n, variance, h, p):
        far = 0.0
        for y, weight in p.items():
            seen = state_visits[h + 1][y] if h + 1 < H else 0
            each = H**2 if seen == 0 else min(100**2 * H**3 * S**2 * A * L**2 / seen, H**2)
            far += weight * each
        return scale * (math.sqrt(8 * L * variance / n) + 14 * H * L / (3 * n) + math.sqrt(8 / n * far))

    return bonus


def l1_maximum(p, gains, width):
    """max q.g over the simplex with |q - p|_1 <= width, as a linear program in (q, t), |q - p| <= t."""
    n = len(p)
    upper = [[0.0] * (2 * n) for _ in range(2 * n + 1)]
    bounds = [0.0] * (2 * n + 1)
    for i in range(n):
        upper[i][i], upper[i][n + i], bounds[i] = 1.0, -1.0, p[i]
        upper[n + i][i], upper[n + i][n + i], bounds[n + i] = -1.0, -1.0, -p[i]
        upper[2 * n][n + i] = 1.0
    bounds[2 * n] = width
    found = linprog(
        [-g for g in gains] + [0.0] * n,
        A_ub=upper,
        b_ub=bounds,
        A_eq=[[1.0] * n + [0.0] * n],
        b_eq=[1.0],
        bounds=[(0.0, None)] * (2 * n),
        method="highs",
    )
    assert found.status == 0
    return -found.fun


def optimistic_plan(follow, law, reward, counts, width):
    """UCRL2: width(n, number of possible next states) is the L1 radius."""

    def expectation(h, s, a, following, r):
        support = follow[h][s][a]
        n = visits(follow, law, counts, h, s, a)
        if len(support) == 1 or n == 0:
            return r + max(following[y] for y in support)
        p = [counts.get((law[h], s, a, y), 0) / n for y in support]
        return r + l1_maximum(p, [following[y] for y in support], width(n, len(support)))

    return backward(follow, reward, expectation)


def noisy_plan(follow, law, reward, counts, noise, scale, rest):
    H = len(follow)

    def expectation(h, s, a, following, r):
        support = follow[h][s][a]
        best = max(following[y] for y in support)
        if len(support) == 1:
            return r + best
        n = visits(follow, law, counts, h, s, a)
        if n == 0:
            mean = sum(following[y] for y in support) / len(support)
        else:
            mean = sum(counts.get((law[h], s, a, y), 0) * following[y] for y in support) / n
        sd = scale / math.sqrt(max(n, 1)) + rest * (H - h) / max(n, 1)
        return max(r + min(mean + sd * noise[h][s][a], best), 0.0)

    return backward(follow, reward, expectation)


def sampled_plan(follow, law, reward, weights):
    """weights: dict (law, s, a, y) -> w."""

    def expectation(h, s, a, following, r):
        w = [weights[law[h], s, a, y] for y in follow[h][s][a]]
        if sum(w) == 0:
            w = [1.0] * len(w)
        return r + sum(x * following[y] for x, y in zip(w, follow[h][s][a], strict=True)) / sum(w)

    return backward(follow, reward, expectation)
