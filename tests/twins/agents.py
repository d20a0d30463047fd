"""Slow twins, second part: the inner maximum and its bounds, the exploration routine, whole episode loops.

Same conventions as core.py. A *model* is the dict returned by its instances: rows, theta, reward, start, dim,
param_bound. Uniforms are (T, H+1): column 0 draws the start state, column 1+h the transition of stage h.
"""

import math

import numpy as np
from scipy.linalg import cholesky, solve_triangular, svd
from scipy.optimize import minimize_scalar

from tests.twins.core import (
    ball,
    dot,
    dual_norm,
    evaluate,
    expected_value,
    first_best,
    linear_max,
    logits,
    minimise_on,
    mle,
    omd_step,
    project,
    row_values,
    softmax,
    value_gradient,
)


# ---------------------------------------------------------------- the inner maximum and its bounds
def inner_max_two(row, values, region):
    """Two outcomes: push the logit gap of the better one as far as the ellipsoid allows."""
    up, down = (0, 1) if values[0] >= values[1] else (1, 0)
    point = linear_max(np.asarray(row[1][up]) - np.asarray(row[1][down]), region)
    return expected_value(row, point, values), point


def inner_max_brute(row, values, region, n_starts=40, seed=0):
    """Global maximum of sum_i p_i(x) v_i over an ellipsoid, by search.

    Only the logit differences matter, so the search lives in the unit ball of R^r, r = rank of
    (phi_i - phi_0) <= min(d, U-1): a dense grid when r <= 2, many random points when r is larger, and a local
    solver from the best of them. Trustworthy for r <= 5.
    """
    center, matrix, radius = np.asarray(region[0], float), np.asarray(region[1], float), float(region[2])
    phi, v = np.asarray(row[1], float), np.asarray(values, float)
    span = float(np.ptp(v))
    base = np.array(logits(row, center))
    lower = cholesky(matrix, lower=True)
    white = solve_triangular(lower, (phi - phi[0]).T, lower=True)  # (d, U)
    left, sing, _ = svd(white, full_matrices=False)
    left = left[:, sing > 1e-13 * max(sing)]
    move = radius * (white.T @ left)  # (U, r): logit moves per unit

    def lift(y):
        return np.asarray(center + radius * solve_triangular(lower, left @ y, lower=True, trans="T"))

    if left.shape[1] == 0 or span == 0:
        return expected_value(row, center, values), center

    def many(points):  # (n, r) -> (n,)
        z = base + points @ move.T
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return np.asarray((p @ v) / p.sum(axis=1))

    def cost(y):
        return -float(many(np.asarray(y)[None])[0] - v.min()) / span

    def slope(y):
        z = base + move @ y
        p = np.exp(z - z.max())
        p /= p.sum()
        return np.asarray(-move.T @ (p * (v - p @ v)) / span)

    r, rng = left.shape[1], np.random.default_rng(seed)
    if r == 1:
        grid = np.linspace(-1, 1, 4001)[:, None]
    elif r == 2:
        angle, length = np.meshgrid(np.linspace(0, 2 * np.pi, 720, endpoint=False), np.linspace(0, 1, 41))
        grid = np.column_stack([(length * np.cos(angle)).ravel(), (length * np.sin(angle)).ravel()])
    else:
        grid = rng.normal(size=(20000, r))
        grid *= np.minimum(1, 1.5 * rng.random((20000, 1)) ** (1 / r)) / np.linalg.norm(grid, axis=1)[:, None]
        push = move - move.mean(axis=0)
        push = push[np.linalg.norm(push, axis=1) > 0]
        grid = np.vstack([grid, push / np.linalg.norm(push, axis=1)[:, None], np.zeros((1, r))])
    order = np.argsort(-many(grid), kind="stable")
    starts = []
    for k in order[:4000]:  # the best points that are not neighbours of one another
        if all(np.linalg.norm(grid[k] - other) > (0.05 if r <= 2 else 0.3) for other in starts):
            starts.append(grid[k])
        if len(starts) >= (6 if r <= 2 else n_starts):
            break
    best = grid[order[0]]
    for tolerance, points in ((1e-10, starts), (1e-17, None)):
        for y in points or [best]:
            if r == 1:
                limits, options = (max(-1.0, y[0] - 1e-3), min(1.0, y[0] + 1e-3)), {"xatol": 1e-14}
                near = minimize_scalar(lambda x: cost([x]), bounds=limits, method="bounded", options=options)
                out = np.array([near.x])
            else:
                out = minimise_on(cost, slope, y, [ball(r, 1.0)], np.eye(r), ftol=tolerance)
            out = out / max(1.0, float(np.linalg.norm(out)))
            edge = -slope(out) / max(1e-300, float(np.linalg.norm(slope(out))))  # a boundary maximum stays put
            best = min((best, out, edge), key=cost)
    return expected_value(row, lift(best), values), lift(best)


def inner_max(row, values, region):
    if len(values) == 1:
        return float(values[0]), np.asarray(region[0], float)
    return (inner_max_two if len(values) == 2 else inner_max_brute)(row, values, region)


def best_step(row, values, x, move):
    """Maximiser of the expected value on the segment x + w move, 0 <= w <= 1: a grid, then a local search."""

    def gain(w):
        return expected_value(row, x + w * move, values)

    at = float(max(np.linspace(0, 1, 65), key=gain))
    limits = (max(0.0, at - 1 / 64), min(1.0, at + 1 / 64))
    fine = minimize_scalar(lambda w: -gain(w), method="bounded", bounds=limits, options={"xatol": 1e-12}).x
    return max(float(fine), at, key=gain)


def frank_wolfe(row, values, region, n_iter=30, line_search=False, start=None):
    """(value, point, last Frank-Wolfe gap); steps 2/(k+2), or the best step on the segment."""
    x = np.array(region[0] if start is None else start, dtype=float)
    for k in range(n_iter):
        move = linear_max(value_gradient(row, x, values), region) - x
        step = best_step(row, values, x, move) if line_search else 2 / (k + 2)
        x = x + step * move
    slope = value_gradient(row, x, values)
    return expected_value(row, x, values), x, float(slope @ (linear_max(slope, region) - x))


def box_bound(row, values, region, reference=None):
    """Upper bound of the inner maximum: each logit may move by radius |phi_i - reference|_{matrix^-1} alone.

    The best box point raises the logits of the values above some threshold and lowers the others: every
    threshold is tried. ``reference`` is the mean feature at the center unless given (any vector is valid).
    """
    center, matrix, radius = region
    phi, p = np.asarray(row[1], float), softmax(row, center)
    if reference is None:
        reference = [dot(p, phi[:, j]) for j in range(phi.shape[1])]
    z = logits(row, center)
    width = [radius * dual_norm(phi[i] - reference, matrix) for i in range(len(z))]
    best = -math.inf
    for threshold in [*values, math.inf]:
        moved = [z[i] + (width[i] if values[i] >= threshold else -width[i]) for i in range(len(z))]
        top = max(moved)
        weight = [math.exp(m - top) for m in moved]
        best = max(best, dot(weight, values) / math.fsum(weight))
    return best


def variance_bound(row, values, region):
    """min(p.v + b, max v): b = radius |Cov(phi, v)|_{M^-1} + span radius^2 min(max_i/2, max_ij/8)."""
    center, matrix, radius = region
    phi, n = np.asarray(row[1], float), len(values)
    single = max(dual_norm(phi[i], matrix) ** 2 for i in range(n))
    pair = max(dual_norm(phi[i] - phi[j], matrix) ** 2 for i in range(n) for j in range(n))
    bonus = radius * dual_norm(value_gradient(row, center, values), matrix)
    bonus += (max(values) - min(values)) * radius**2 * min(single / 2, pair / 8)
    return float(min(expected_value(row, center, values) + bonus, max(values)))


def li_bonus(row, region, horizon):
    """H beta sum_i p_i |phi_i - mean|_{M^-1} + (5/2) H beta^2 max_i |phi_i|^2_{M^-1}, p at the center."""
    center, matrix, radius = region
    p, phi = softmax(row, center), np.asarray(row[1], float)
    mean = np.array([dot(p, phi[:, j]) for j in range(phi.shape[1])])
    first = math.fsum(p[i] * dual_norm(phi[i] - mean, matrix) for i in range(len(p)))
    second = max(dual_norm(phi[i], matrix) ** 2 for i in range(len(p)))
    return horizon * radius * first + 2.5 * horizon * radius**2 * second


# ---------------------------------------------------------------- radii
def livarot_radius(count, horizon, dim, bound, reg, level, paper):
    """Before scaling; ``count`` is the episode number if ``paper``, else the number of updates (at least 1)."""
    if paper:
        return math.sqrt(2 / 3 * dim * math.log(count / level)) + 24 * bound * math.sqrt(dim)
    return math.sqrt(2 / 3 * dim * math.log(max(1, count) * horizon / level)) + 2 * bound * math.sqrt(reg)


def ucrl_radius(episode, horizon, dim, max_reachable, level):
    return math.sqrt(dim) * math.log(max_reachable) * math.log(episode * horizon / level)


def explore_radius(tau, horizon, dim, bound, kappa, rho, level):
    """beta^0_{tau+1} of "eq:def beta_t"; read as a radius, not as its square."""
    return (1 + 3 * math.sqrt(2)) * (
        (bound + 3) * math.sqrt(dim * math.log((tau + 1) * horizon / level))
        + (tau + 2) ** 0.25 * (kappa / rho) ** 1.5 * dim * math.log(1 + (tau + 1) / dim)
    )


def max_reachable(rows):
    return max(len(row[0]) for stage in rows for state in stage for row in state)


def smallest_scale(rows):
    """rho: over the stages, the smallest of the largest feature norms, certain outcomes left out."""
    several = [[row for state in stage for row in state if len(row[0]) > 1] for stage in rows]
    return min(max((math.sqrt(dot(f, f)) for row in stage for f in row[1]), default=0.0) for stage in several)


# ---------------------------------------------------------------- episodes
def draw(probabilities, u):
    """First i with p_0 + .. + p_i > u, the last one if rounding leaves none."""
    total = 0.0
    for i in range(len(probabilities)):
        total += probabilities[i]
        if total > u:
            return i
    return len(probabilities) - 1


def play(model, policy, uniforms):
    """states (H+1,), actions (H,), choices (H,) of one episode under a deterministic policy (H, S)."""
    states, actions, choices = [draw(model["start"], uniforms[0])], [], []
    for h in range(len(model["rows"])):
        actions.append(int(policy[h][states[-1]]))
        row = model["rows"][h][states[-1]][actions[-1]]
        choices.append(draw(softmax(row, model["theta"][h]), uniforms[1 + h]))
        states.append(int(row[0][choices[-1]]))
    return states, actions, choices


def record(log, **items):
    for key, item in items.items():
        log.setdefault(key, []).append(item)


def explore(model, uniforms, reg_explore=1.0, failure_level=0.05, kappa=None):
    """The exploration routine as printed ("algo:exploration routine"), one episode per row of ``uniforms``.

    Stage h plays the action of the triple (s~, a, s~') of largest |phi|_{design^-1} whatever the actual
    state; ties (1e-12 relative) go to the first triple in the order s, a, s'. The pseudo-sample of weight
    |phi~|_{design_{t+1}^-1} has the gradient and Hessian of the loss it stands for. kappa = U^2 e^{4B}.
    """
    rows, H, S, d = model["rows"], len(model["rows"]), len(model["rows"][0]), model["dim"]
    A, tau, bound = len(rows[0][0]), len(uniforms), model["param_bound"]
    kappa = max_reachable(rows) ** 2 * math.exp(4 * bound) if kappa is None else kappa
    rho = smallest_scale(rows)
    design = [np.eye(d) for _ in range(H)]
    matrix = [np.eye(d) for _ in range(H)]
    samples = [[] for _ in range(H)]
    log = {}
    for t in range(tau):
        triples = []
        for h in range(H):
            norms = {
                (s, a, i): dual_norm(rows[h][s][a][1][i], design[h]) ** 2
                for s in range(S)
                for a in range(A)
                for i in range(len(rows[h][s][a][0]))
            }
            largest = max(norms.values())
            triples.append(next(k for k in norms if norms[k] >= largest * (1 - 1e-12)))
        policy = [[triples[h][1]] * S for h in range(H)]
        states, actions, choices = play(model, policy, uniforms[t])
        for h in range(H):
            s, a, i = triples[h]
            fake, real = rows[h][s][a], rows[h][states[h]][actions[h]]
            pseudo = np.outer(fake[1][i], fake[1][i])
            design[h] = design[h] + rho / kappa * pseudo
            samples[h].append((real, choices[h], 1.0))
            samples[h].append((fake, i, dual_norm(fake[1][i], design[h])))
            matrix[h] = matrix[h] + rho / kappa * pseudo
            for feature in real[1]:
                matrix[h] = matrix[h] + np.outer(feature, feature) / kappa
        record(log, states=states, actions=actions, choices=choices, policies=policy, triples=triples)
    radius = explore_radius(tau, H, d, bound, kappa, rho, failure_level)
    log["center"] = np.array([mle(samples[h], reg_explore + 1, d) for h in range(H)])
    log["matrix"], log["design"], log["radius"] = np.array(matrix), np.array(design), radius
    log["kappa"], log["rho"] = kappa, rho
    return log


def optimistic_plan(model, q_value):
    """Backward induction with Q = q_value(h, s, a, row, values of the next states); (policy, value)."""
    rows, H, S = model["rows"], len(model["rows"]), len(model["rows"][0])
    value, policy = np.zeros((H + 1, S)), np.zeros((H, S), dtype=int)
    for h in reversed(range(H)):
        for s in range(S):
            q = [q_value(h, s, a, row, row_values(row, value[h + 1])) for a, row in enumerate(rows[h][s])]
            policy[h, s] = first_best(q)
            value[h, s] = max(q)
    return policy, value


def learn(model, uniforms, explored, regions, reg, step_size, shared, radius_of, make_q):
    """The episodes of an optimistic agent that estimates by OMD, after those of ``explored`` (or None).

    Returns lists over episodes: states, actions, choices, policies, value_pi = V^{pi_t}(s_{t,0}) exactly,
    planned = the plan's value at s_{t,0} (None while exploring), plans (H+1, S), radius (a list over stages);
    theta and gram have T+1 entries (K, ..), entry t being what episode t was planned with.
    """
    rows, H, d = model["rows"], len(model["rows"]), model["dim"]
    K, n_first = 1 if shared else H, 0 if explored is None else len(explored["states"])
    theta = [project(np.zeros(d), np.eye(d), regions[k]) for k in range(K)]
    gram, count = [reg * np.eye(d) for _ in range(K)], [0] * K
    log = {}
    for t in range(len(uniforms)):
        record(log, theta=np.array(theta), gram=np.array(gram))
        if t < n_first:
            policy, plan, radius = np.array(explored["policies"][t]), None, None
        else:
            radius = [radius_of(t + 1, count[0 if shared else h]) for h in range(H)]
            sets = [(theta[0 if shared else h], gram[0 if shared else h], radius[h]) for h in range(H)]
            policy, plan = optimistic_plan(model, make_q(sets))
        states, actions, choices = play(model, policy, uniforms[t])
        if t >= n_first:
            for h in range(H):
                k = 0 if shared else h
                row = rows[h][states[h]][actions[h]]
                theta[k], gram[k] = omd_step(row, choices[h], theta[k], gram[k], step_size, regions[k])
                count[k] += 1
        exact = evaluate(rows, model["theta"], model["reward"], policy)
        value_pi = float(exact[0, states[0]])
        planned = None if plan is None else float(plan[0, states[0]])
        record(log, states=states, actions=actions, choices=choices, policies=policy, radius=radius)
        record(log, plans=plan, planned=planned, value_pi=value_pi)
    record(log, theta=np.array(theta), gram=np.array(gram))
    return log


def run_livarot(
    model,
    uniforms,
    *,
    n_explore=0,
    reg_explore=1.0,
    reg=10.0,
    step_size=20.0,
    beta_scale=0.01,
    failure_level=0.05,
    paper_radius=True,
    intersect_ball=True,
    shared=False,
    optimism="max",
):
    """LIVAROT ("algo:learning routine 2"); n_explore=80 and the other defaults are the printed experiment.

    optimism: "max" (closed form or brute force), "frank_wolfe" (30 steps from the center), "variance" (the
    bonus). Exploration data only shape the projection sets; learning starts at 0 projected on them with
    gram = reg I.
    """
    H, d, bound, reward = len(model["rows"]), model["dim"], model["param_bound"], model["reward"]
    assert not (shared and n_explore), "the printed exploration has one parameter per stage"
    explored = None
    regions = [[ball(d, bound)] for _ in range(H)]
    if n_explore:
        explored = explore(model, uniforms[:n_explore], reg_explore, failure_level)
        regions = [
            [(explored["center"][h], explored["matrix"][h], explored["radius"])]
            + ([ball(d, bound)] if intersect_ball else [])
            for h in range(H)
        ]
    best = {
        "max": lambda *x: inner_max(*x)[0],
        "frank_wolfe": lambda *x: frank_wolfe(*x)[0],
        "variance": variance_bound,
    }[optimism]

    def radius_of(episode, count):
        number = episode if paper_radius else count
        return beta_scale * livarot_radius(number, H, d, bound, reg, failure_level, paper_radius)

    def make_q(sets):
        return lambda h, s, a, row, values: reward[h][s][a] + best(row, values, sets[h])

    log = learn(model, uniforms, explored, regions, reg, step_size, shared, radius_of, make_q)
    return {**log, "explored": explored, "regions": regions}


def run_ucrl_mnl_ol(
    model,
    uniforms,
    *,
    reg=10.0,
    step_size=10.0,
    beta_scale=0.02,
    failure_level=0.05,
    shared=False,
):
    """UCRL-MNL-OL of Li et al.: OMD on the B-ball, Q = r + p.V + both bonuses, clipped to [0, H]."""
    H, d, reward = len(model["rows"]), model["dim"], model["reward"]
    U = max_reachable(model["rows"])

    def make_q(sets):
        def q(h, s, a, row, values):
            raw = reward[h][s][a] + expected_value(row, sets[h][0], values) + li_bonus(row, sets[h], H)
            return min(float(H), max(0.0, float(raw)))

        return q

    def radius_of(episode, count):
        return beta_scale * ucrl_radius(episode, H, d, U, failure_level)

    regions = [[ball(d, model["param_bound"])] for _ in range(H)]
    return learn(model, uniforms, None, regions, reg, step_size, shared, radius_of, make_q)


# ---------------------------------------------------------------- random problems
def random_row(rng, d, n, offset=0.5):
    phi = rng.normal(size=(n, d))
    phi /= np.maximum(1, np.linalg.norm(phi, axis=1))[:, None]
    return list(range(n)), phi, offset * rng.normal(size=n)


def random_matrix(rng, d, spread=1.0):
    q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    return q @ np.diag(10 ** rng.uniform(-spread, spread, size=d)) @ q.T


def random_inner(rng, d, n):
    """A row, values and an ellipsoid on which logits move by 0.01 to 10."""
    row, matrix = random_row(rng, d, n), random_matrix(rng, d, 0.7)
    reach = max(dual_norm(f, matrix) for f in row[1])
    return row, 5 * rng.random(n), (rng.normal(size=d), matrix, 10 ** rng.uniform(-2, 1) / reach)
