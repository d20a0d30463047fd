"""The equations written out loop by loop: slow, obvious twins of the library's kernels.

Nothing here imports the library. Conventions:

* ``rows[h][s][a] = (next_states (U,), phi (U, d), offset (U,))``; logit_i = offset_i + phi_i . theta.
* ``theta`` (H, d), ``reward`` (H, S, A), ``start`` (S,) probabilities. Stages count from 0, V_H = 0.
* a *row* is one such triple; ``values`` (U,) are the numbers attached to its next states, in its order.
* a *region* is a triple ``(center, matrix, radius)``: {x : |x - center|_matrix <= radius}, never squared.
"""

import itertools
import math

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.optimize import brentq, minimize

TIE = 1e-9


# ---------------------------------------------------------------- the multinomial logit of one row
def dot(x, y):
    return math.fsum(float(a) * float(b) for a, b in zip(x, y, strict=True))


def logits(row, theta):
    _, phi, offset = row
    return [float(offset[i]) + dot(phi[i], theta) for i in range(len(phi))]


def softmax(row, theta):
    z = logits(row, theta)
    top = max(z)
    weight = [math.exp(x - top) for x in z]
    total = math.fsum(weight)
    return [w / total for w in weight]


def loss(row, theta, choice):
    """-log p_choice."""
    z = logits(row, theta)
    top = max(z)
    return top - z[choice] + math.log(math.fsum(math.exp(x - top) for x in z))


def gradient(row, theta, choice):
    """sum_i p_i phi_i - phi_choice."""
    p, phi = softmax(row, theta), row[1]
    return np.array(
        [math.fsum([p[i] * phi[i][j] for i in range(len(p))] + [-phi[choice][j]]) for j in range(len(theta))]
    )


def hessian(row, theta):
    """sum_i p_i (phi_i - mean)(phi_i - mean)^T; it does not depend on the choice."""
    p, phi, d = softmax(row, theta), row[1], len(theta)
    mean = [math.fsum(p[i] * phi[i][j] for i in range(len(p))) for j in range(d)]
    out = np.zeros((d, d))
    for j in range(d):
        for k in range(d):
            out[j, k] = math.fsum(p[i] * (phi[i][j] - mean[j]) * (phi[i][k] - mean[k]) for i in range(len(p)))
    return out


def row_values(row, value):
    return [float(value[s]) for s in row[0]]


def expected_value(row, theta, values):
    return dot(softmax(row, theta), values)


def variance(row, theta, values):
    p = softmax(row, theta)
    mean = dot(p, values)
    return math.fsum(p[i] * (float(values[i]) - mean) ** 2 for i in range(len(p)))


def value_gradient(row, theta, values):
    """Gradient of sum_i p_i(theta) v_i: the covariance of phi and v."""
    p, phi = softmax(row, theta), row[1]
    mean = dot(p, values)
    return np.array(
        [math.fsum(p[i] * (float(values[i]) - mean) * phi[i][j] for i in range(len(p))) for j in range(len(theta))]
    )


# ---------------------------------------------------------------- dynamic programming
def first_best(q):
    """First index within 1e-9 (1 + |best|) of the best."""
    best = max(q)
    return next(a for a in range(len(q)) if q[a] >= best - TIE * (1 + abs(best)))


def solve(rows, theta, reward):
    """V*, Q*, pi* and Var[V*_{h+1}] at pi*.

    Tie-break of "eq:well state def pi star": among the actions within 1e-9 (1 + |best|) of the best Q the
    one with the larger variance of V*_{h+1}; variances within 1e-9 (1 + largest) of the largest count as
    equal, and then the first action is taken.
    """
    H, S, A = len(rows), len(rows[0]), len(rows[0][0])
    value, q = np.zeros((H + 1, S)), np.zeros((H, S, A))
    policy, var = np.zeros((H, S), dtype=int), np.zeros((H, S))
    for h in reversed(range(H)):
        for s in range(S):
            spread = []
            for a in range(A):
                v = row_values(rows[h][s][a], value[h + 1])
                q[h, s, a] = reward[h][s][a] + expected_value(rows[h][s][a], theta[h], v)
                spread.append(variance(rows[h][s][a], theta[h], v))
            best = max(q[h, s])
            tied = [a for a in range(A) if q[h, s, a] >= best - TIE * (1 + abs(best))]
            largest = max(spread[a] for a in tied)
            policy[h, s] = next(a for a in tied if spread[a] >= largest - TIE * (1 + largest))
            var[h, s] = spread[policy[h, s]]
            value[h, s] = best
    return {"value": value, "q": q, "policy": policy, "variance": var}


def action_weights(policy, h, s, n_actions):
    if np.ndim(policy) == 3:
        return [float(x) for x in policy[h][s]]
    return [1.0 if a == policy[h][s] else 0.0 for a in range(n_actions)]


def evaluate(rows, theta, reward, policy):
    """V^pi (H+1, S); policy (H, S) of actions or (H, S, A) of probabilities."""
    H, S, A = len(rows), len(rows[0]), len(rows[0][0])
    value = np.zeros((H + 1, S))
    for h in reversed(range(H)):
        for s in range(S):
            weight = action_weights(policy, h, s, A)
            terms = []
            for a in range(A):
                row = rows[h][s][a]
                nxt = expected_value(row, theta[h], row_values(row, value[h + 1]))
                terms.append(weight[a] * (reward[h][s][a] + nxt))
            value[h, s] = math.fsum(terms)
    return value


def brute_force_solve(rows, theta, reward):
    """max over all A^(H S) deterministic policies of V^pi_0(s), state by state: tiny problems only."""
    H, S, A = len(rows), len(rows[0]), len(rows[0][0])
    best = np.full(S, -math.inf)
    for flat in itertools.product(range(A), repeat=H * S):
        best = np.maximum(best, evaluate(rows, theta, reward, np.reshape(flat, (H, S)))[0])
    return best


def state_distribution(rows, theta, policy, start):
    """P(s_h = s) (H+1, S) under a policy."""
    H, S, A = len(rows), len(rows[0]), len(rows[0][0])
    mass = np.zeros((H + 1, S))
    mass[0] = start
    for h in range(H):
        for s in range(S):
            weight = action_weights(policy, h, s, A)
            for a in range(A):
                p = softmax(rows[h][s][a], theta[h])
                for i in range(len(p)):
                    mass[h + 1, rows[h][s][a][0][i]] += mass[h, s] * weight[a] * p[i]
    return mass


def episode_variance(optimal, states):
    """(1/H) sum_h Var[V*_{h+1} | s_h, pi*_h(s_h)] / H^2 along one trajectory."""
    H = len(optimal["variance"])
    return math.fsum(optimal["variance"][h, states[h]] for h in range(H)) / H**3


def sigma_bar_trajectory(rows, theta, reward, states):
    """sigma_bar of trajectories ``states`` (T, H or H+1)."""
    optimal = solve(rows, theta, reward)
    return math.sqrt(math.fsum(episode_variance(optimal, s) for s in states) / len(states))


def sigma_bar_optimal(rows, theta, reward, start):
    """sqrt(E sigma_bar^2) when the states come from pi* itself."""
    H, S = len(rows), len(rows[0])
    optimal = solve(rows, theta, reward)
    mass = state_distribution(rows, theta, optimal["policy"], start)
    terms = [mass[h, s] * optimal["variance"][h, s] for h in range(H) for s in range(S)]
    return math.sqrt(math.fsum(terms) / H**3)


# ---------------------------------------------------------------- ellipsoids
def norm_in(x, matrix):
    return math.sqrt(max(0.0, float(np.asarray(x) @ np.asarray(matrix) @ np.asarray(x))))


def dual_norm(x, matrix):
    """|x|_{matrix^-1}."""
    return math.sqrt(max(0.0, float(np.asarray(x) @ np.linalg.solve(matrix, np.asarray(x)))))


def inside(x, region, slack=1e-12):
    center, matrix, radius = region
    return norm_in(np.asarray(x) - center, matrix) <= radius * (1 + slack)


def ball(dim, radius):
    return np.zeros(dim), np.eye(dim), float(radius)


def linear_max(direction, region):
    """argmax of direction . x over an ellipsoid (its center when the direction is zero)."""
    center, matrix, radius = region
    size = dual_norm(direction, matrix)
    return center + (0.0 if size == 0 else radius / size) * np.linalg.solve(matrix, direction)


def _root(excess, guess):
    """Root of a decreasing function of a multiplier; 0 when rounding already makes excess(0) <= 0."""
    if excess(0.0) <= 0:
        return 0.0
    high = guess
    for _ in range(200):
        if excess(high) <= 0:
            return float(brentq(excess, 0.0, high, xtol=1e-300, rtol=8.9e-16, maxiter=500))
        high *= 4
    raise ValueError("the sets do not intersect")


def project_ball(x, metric, radius):
    """Projection on {|.| <= radius} in the norm of ``metric``: eigh and the secular equation, bisected."""
    if math.sqrt(dot(x, x)) <= radius:
        return np.array(x, dtype=float)
    w, q = np.linalg.eigh(metric)
    c = q.T @ x

    def size(mu):
        return math.sqrt(math.fsum((w[i] * c[i] / (w[i] + mu)) ** 2 for i in range(len(w))))

    low, high = 0.0, float(max(w))
    while size(high) > radius:
        high *= 2
    for _ in range(300):
        mid = (low + high) / 2
        low, high = (mid, high) if size(mid) > radius else (low, mid)
    return np.asarray(q @ (w * c / (w + high)))


def project_ellipsoid(x, metric, region):
    """The same on any ellipsoid: a basis with V^T M V = I and V^T A V diagonal, then brentq on the multiplier."""
    center, matrix, radius = region
    x = np.array(x, dtype=float)
    if norm_in(x - center, matrix) <= radius:
        return x
    a, basis = eigh(matrix, metric)
    z = basis.T @ metric @ (x - center)

    def excess(mu):
        return math.sqrt(math.fsum(a[i] * (z[i] / (1 + mu * a[i])) ** 2 for i in range(len(a)))) - radius

    mu = _root(excess, 1.0 / float(max(a)))
    return np.asarray(center + basis @ (z / (1 + mu * a)))


def project(x, metric, regions):
    """Projection on the intersection of any number of ellipsoids.

    When the projection on one of them lies in all the others it is the answer. Otherwise the multipliers
    are nested roots: those of the first k sets fixed, that of set k+1 makes its own constraint tight or is
    zero; the outer excess still decreases, because the partially maximised dual is concave.
    """
    x, metric = np.array(x, dtype=float), np.asarray(metric)
    if all(norm_in(x - c, m) <= r for c, m, r in regions):
        return x
    for region in regions:
        candidate = project_ellipsoid(x, metric, region)
        if all(inside(candidate, other, 0.0) for other in regions if other is not region):
            return candidate
    scale = float(np.trace(metric))

    def point(mult):
        left, right = metric.copy(), metric @ x
        for (center, matrix, _), mu in zip(regions, mult, strict=True):
            left, right = left + mu * np.asarray(matrix), right + mu * np.asarray(matrix) @ center
        return np.linalg.solve(left, right)

    def complete(mult):
        if len(mult) == len(regions):
            return point(mult)
        center, matrix, radius = regions[len(mult)]

        def excess(mu):
            return norm_in(complete([*mult, mu]) - center, matrix) - radius

        return complete([*mult, _root(excess, scale / float(np.trace(matrix)))])

    return complete([])


def minimise_on(objective, slope, start, regions, scale, ftol=1e-17):
    """SLSQP on an intersection of ellipsoids; ``scale`` (d, d) maps the solver's variable y to x - start."""
    start, scale, limits = np.asarray(start, dtype=float), np.asarray(scale), []
    for center, matrix, radius in regions:

        def room(y, c=center, m=matrix, r=radius):
            return 1 - norm_in(start + scale @ y - c, m) ** 2 / r**2

        def room_slope(y, c=center, m=matrix, r=radius):
            return -2 * scale.T @ m @ (start + scale @ y - c) / r**2

        limits.append({"type": "ineq", "fun": room, "jac": room_slope})
    f, df = (lambda y: objective(start + scale @ y)), (lambda y: scale.T @ slope(start + scale @ y))
    options = {"maxiter": 1000, "ftol": ftol}
    out = minimize(f, np.zeros(len(start)), method="SLSQP", jac=df, constraints=limits, options=options)
    return np.asarray(start + scale @ out.x)


# ---------------------------------------------------------------- estimation
def omd_step(row, choice, theta, gram, step_size, regions, numeric=False):
    """argmin over the regions of <g, x - theta> + |x - theta|^2_M / (2 eta), M = gram + eta Hess(theta).

    Returns (theta', gram + Hess(theta')), theta' being the minimiser. ``numeric`` finds it with SLSQP; otherwise the
    free minimiser is projected in the norm of M.
    """
    theta, g = np.asarray(theta, dtype=float), gradient(row, theta, choice)
    metric = np.asarray(gram) + step_size * hessian(row, theta)
    if numeric:
        back = solve_triangular(cholesky(metric, lower=True), np.eye(len(theta)), lower=True).T
        unit = max(1e-150, step_size * dual_norm(g, metric))  # length of the free step

        def objective(x):
            return (step_size * (g @ (x - theta)) + norm_in(x - theta, metric) ** 2 / 2) / unit**2

        def slope(x):
            return (step_size * g + metric @ (x - theta)) / unit**2

        new = minimise_on(objective, slope, theta, regions, back * unit)
    else:
        new = project(theta - step_size * np.linalg.solve(metric, g), metric, regions)
    return new, np.asarray(gram) + hessian(row, new)


def mle(samples, ridge, dim, radius=None):
    """argmin of sum w (-log p_choice) + (ridge/2) |theta|^2 over samples (row, choice, w).

    Over the ball of that radius when one is given, otherwise over R^d.
    """

    def objective(x):
        return math.fsum([w * loss(row, x, y) for row, y, w in samples] + [0.5 * ridge * dot(x, x)])

    def slope(x):
        return np.asarray(ridge * np.asarray(x) + sum(w * gradient(row, x, y) for row, y, w in samples))

    def curvature(x):
        return np.asarray(ridge * np.eye(dim) + sum(w * hessian(row, x) for row, _, w in samples))

    options = {"gtol": 1e-9, "maxiter": 2000}
    x = minimize(objective, np.zeros(dim), jac=slope, hess=curvature, method="trust-exact", options=options).x
    for _ in range(3):  # past the point where differences of the objective are rounding noise
        x = x - np.linalg.solve(curvature(x), slope(x))
    if radius is not None and math.sqrt(dot(x, x)) > radius:
        x = on_the_sphere(slope, curvature, x, radius)
    return np.asarray(x)


def on_the_sphere(slope, curvature, x, radius):
    """argmin over the ball, where the minimum x over R^d is outside: slope(y) + lam y = 0 with |y| = radius.

    For each lam > 0 Newton's method from the last point; |y| falls as lam grows, so lam is bracketed and bisected.
    """
    eye, y = np.eye(len(x)), np.asarray(x)

    def point(lam):
        z = y
        for _ in range(100):
            step = np.linalg.solve(curvature(z) + lam * eye, slope(z) + lam * z)
            z = z - step
            if np.linalg.norm(step) < 1e-16 * (1 + np.linalg.norm(z)):
                break
        return z

    low, high = 0.0, 1.0
    while np.linalg.norm(point(high)) > radius:
        low, high = high, 4.0 * high
        y = point(low)
    for _ in range(200):
        middle = 0.5 * (low + high)
        y = point(middle)
        low, high = (middle, high) if np.linalg.norm(y) > radius else (low, middle)
    return y * radius / np.linalg.norm(y)


# ---------------------------------------------------------------- instances
def make_model(rows, theta, reward, start):
    """What the episode loops take; ``param_bound`` is the tight max_h |theta_h|."""
    bound = max(math.sqrt(dot(t, t)) for t in theta)
    model = {"rows": rows, "theta": theta, "reward": reward, "start": start}
    return model | {"dim": len(theta[0]), "param_bound": bound}


def hard_chain_rows(H, T, d, gap=None, signs=None):
    """The chain of Park et al.: s_0..s_H, reward state H+1; from s_i (i < H) to s_{i+1} or to H+1.

    Actions are itertools.product((-1, 1), repeat=d-1) in that order; ``signs`` (H, d-1) defaults to ones,
    ``gap`` (Delta) to 1/(4 sqrt(2HT)). Features are divided by their largest norm, theta multiplied by it.
    """
    signs = np.ones((H, d - 1)) if signs is None else np.asarray(signs, float).reshape(H, d - 1)
    gap = 1 / (4 * math.sqrt(2 * H * T)) if gap is None else gap
    base, best = 1 / H, 1 / H + (d - 1) * gap
    bar = math.log((1 - base) * best / (base * (1 - best))) / (d - 1)
    alpha, beta = math.sqrt(bar / (1 + (d - 1) * bar)), math.sqrt(1 / (1 + (d - 1) * bar))
    actions = list(itertools.product((-1, 1), repeat=d - 1))
    forward = [np.array([*(-alpha * x for x in a), beta * math.log(1 / base - 1)]) for a in actions]
    scale = max(math.sqrt(dot(f, f)) for f in forward)
    theta = np.array([[*(bar * x / alpha for x in signs[h]), 1 / beta] for h in range(H)]) * scale
    stage = []
    for s in range(H + 2):
        if s < H:
            stage.append([([s + 1, H + 1], np.array([f / scale, np.zeros(d)]), np.zeros(2)) for f in forward])
        else:
            stage.append([([s], np.zeros((1, d)), np.zeros(1)) for _ in actions])
    reward = np.zeros((H, H + 2, len(actions)))
    reward[:, H + 1, :] = 1
    extra = {"actions": actions, "bar": bar, "p_best": best, "feature_scale": scale}
    return make_model([stage] * H, theta, reward, np.eye(H + 2)[0]) | extra


def riverswim_rows(S, H):
    """Osband's RiverSwim: action 0 left, 1 right; next states ascending; the same theta at every stage.

    One coordinate per outcome that is not the most likely one of its row: d = 2S - 2.
    """
    table = [[{max(0, s - 1): 1.0}, {s - 1: 0.05, s: 0.6, s + 1: 0.35}] for s in range(S)]
    table[0][1] = {0: 0.4, 1: 0.6}
    table[S - 1][1] = {S - 2: 0.4, S - 1: 0.6}
    d, coordinate, theta, stage = 2 * S - 2, 0, [], []
    for s in range(S):
        stage.append([])
        for outcomes in table[s]:
            support = max(outcomes, key=lambda x: outcomes[x])
            phi = np.zeros((len(outcomes), d))
            for i, nxt in enumerate(sorted(outcomes)):
                if nxt != support:
                    phi[i, coordinate] = 1
                    theta.append(math.log(outcomes[nxt] / outcomes[support]))
                    coordinate += 1
            stage[s].append((sorted(outcomes), phi, np.zeros(len(outcomes))))
    reward = np.zeros((H, S, 2))
    reward[:, 0, 0], reward[:, S - 1, 1] = 5 / 1000, 1
    return make_model([stage] * H, np.array([theta] * H), reward, np.eye(S)[0])


def random_rows(rng, H, S, A, d, U, scale=1.0, offsets=False):
    """A random model: 1 to U next states per row, |phi| <= 1, |theta_h| = scale, rewards in [0, 1]."""
    rows = []
    for _ in range(H):
        rows.append([[None] * A for _ in range(S)])
        for s in range(S):
            for a in range(A):
                n = int(rng.integers(1, min(U, S) + 1))
                phi = rng.normal(size=(n, d))
                phi /= np.maximum(1, np.linalg.norm(phi, axis=1))[:, None]
                nxt = sorted(int(x) for x in rng.choice(S, n, replace=False))
                rows[-1][s][a] = (nxt, phi, rng.normal(size=n) if offsets else np.zeros(n))
    theta = rng.normal(size=(H, d))
    theta *= scale / np.linalg.norm(theta, axis=1)[:, None]
    return make_model(rows, theta, rng.random((H, S, A)), np.full(S, 1 / S))
