"""Slow twins, third part: the other MNL agents, episode by episode.

Same conventions as core.py and agents.py; nothing of the library is imported.  An agent is a pair of
functions: ``plan(t, memory) -> (policy, value)`` and ``learn(memory, samples)``, where ``memory`` holds theta and gram,
lists over the K parameters, and ``data[k]``, everything seen: (row, choice) in order.
"""

import math

import numpy as np

from tests.twins.agents import inner_max, max_reachable, optimistic_plan, play, record
from tests.twins.core import (
    ball,
    dot,
    dual_norm,
    expected_value,
    gradient,
    hessian,
    mle,
    omd_step,
    project,
    softmax,
)


# ---------------------------------------------------------------- radii, term by term
def newton_radius(n, d, H, U, B, reg, kappa, level):
    small = 1 / kappa
    inside = [
        8 * d / small * math.log(1 + n * U / (d * reg)),
        (32 * B / 3 + 16 / small) * math.log((1 + max(0, math.ceil(2 * math.log2(n * U * B)))) * n * n / (level / H)),
        2 * math.sqrt(2),
        2 * reg * B * B,
    ]
    return math.sqrt(math.fsum(inside))


def mirror_radius(n, d, H, U, B, reg, level):
    alpha = math.log(U) + 2 * (1 + B)
    first = 5 / 4 * (3 * math.log(U * n) + B) * reg
    first += 4 * (3 * math.log(U * n) + B) * math.log(H * math.sqrt(1 + 2 * n) / level) + 2
    second = math.sqrt(6) * (2 * alpha / 3) * d * math.log(1 + 2 * n / (d * reg))
    return math.sqrt(alpha * (first + second) + reg * B * B)


# ---------------------------------------------------------------- one step of an estimator
def informative(row):
    """Does the choice say anything about theta: two outcomes or more, and a feature that is not zero?"""
    return len(row[0]) > 1 and bool(np.any(np.asarray(row[1]) != 0))


def ons_step(row, choice, theta, sigma, information, bound):
    g, sigma = gradient(row, theta, choice), sigma.copy()
    for feature in row[1]:
        sigma = sigma + information * np.outer(feature, feature)
    return project(np.asarray(theta) - np.linalg.solve(sigma, g), sigma, [ball(len(theta), bound)]), sigma


# ---------------------------------------------------------------- bonuses
def mean_feature(row, theta):
    p = softmax(row, theta)
    return np.array([dot(p, [f[j] for f in row[1]]) for j in range(len(theta))])


def norms(row, gram):
    return [dual_norm(f, gram) for f in row[1]]


def max_norm_bonus(row, theta, gram, beta, H):
    return 2 * H * beta * max(norms(row, gram))


def cho_bonus(row, theta, gram, beta, H):
    p, mean = softmax(row, theta), mean_feature(row, theta)
    first = math.fsum(p[i] * dual_norm(row[1][i] - mean, gram) for i in range(len(p)))
    return H * beta * first + 3 * H * beta**2 * max(norms(row, gram)) ** 2


def rrl_bonus(row, gram, xi):
    """The outcome of largest norm, the first of equal ones; the best sample in its direction."""
    size = [x * x for x in norms(row, gram)]
    hat = 0
    for i in range(len(size)):
        if size[i] > size[hat] * (1 + 1e-12):
            hat = i
    return max(dot(row[1][hat], x) for x in xi)


def orrl_bonus(row, theta, gram, xi, beta, H):
    p, mean = softmax(row, theta), mean_feature(row, theta)
    first = math.fsum(p[i] * max(dot(np.asarray(row[1][i]) - mean, x) for x in xi) for i in range(len(p)))
    return first + 3 * H * beta**2 * max(norms(row, gram)) ** 2


def samples(gram, scale, z):
    """scale L^-T z for each z, where L L' = gram: their covariance is scale^2 gram^-1."""
    lower = np.linalg.cholesky(gram)
    return [scale * np.linalg.solve(lower.T, one) for one in z]


# ---------------------------------------------------------------- episodes
def play_field(model, uniforms, normals, reg, shared, plan, learn):
    """The episodes of an agent; lists over episodes as in agents.learn."""
    rows, H, d = model["rows"], len(model["rows"]), model["dim"]
    K = 1 if shared else H
    memory = {
        "theta": [np.zeros(d) for _ in range(K)],
        "gram": [reg * np.eye(d) for _ in range(K)],
        "data": [[] for _ in range(K)],
    }
    log = {}
    for t in range(len(uniforms)):
        record(log, theta=np.array(memory["theta"]), gram=np.array(memory["gram"]))
        policy, value, radius = plan(t, memory, None if normals is None else normals[t])
        states, actions, choices = play(model, policy, uniforms[t])
        seen = []
        for h in range(H):
            row = rows[h][states[h]][actions[h]]
            if informative(row):
                seen.append((0 if shared else h, row, choices[h]))
        for k, row, choice in seen:
            memory["data"][k].append((row, choice))
        learn(t, memory, seen)
        record(log, states=states, actions=actions, choices=choices, policies=policy, plans=value, radius=[radius])
    record(log, theta=np.array(memory["theta"]), gram=np.array(memory["gram"]))
    return log


def backward(model, shared, memory, extra, low=None, clip_value=False):
    """Q = r + p.V + extra(h, row, theta, gram), not below ``low``, not above H (V alone when ``clip_value``)."""
    H, reward = len(model["rows"]), model["reward"]

    def q(h, s, a, row, values):
        k = 0 if shared else h
        total = reward[h][s][a] + expected_value(row, memory["theta"][k], values)
        if informative(row):
            total += extra(h, row, memory["theta"][k], memory["gram"][k])
        if low is not None:
            total = max(low, total)
        return total if clip_value else min(float(H), total)

    if not clip_value:
        return optimistic_plan(model, q)
    rows, S = model["rows"], len(model["rows"][0])
    value, policy = np.zeros((H + 1, S)), np.zeros((H, S), dtype=int)
    for h in reversed(range(H)):
        for s in range(S):
            every = [q(h, s, a, row, [value[h + 1][x] for x in row[0]]) for a, row in enumerate(rows[h][s])]
            best = max(every)
            policy[h, s] = next(a for a in range(len(every)) if every[a] >= best - 1e-9 * (1 + abs(best)))
            value[h, s] = min(best, float(H))
    return policy, value


def run_field(name, model, uniforms, normals=None, *, shared=False, reg=1.0, step_size=3.0, beta_scale=0.1, level=0.05,
              kappa=10.0, printed=True, project_sample=True, concordance=2.0):  # fmt: skip
    """One of the agents of the field by its registered name; ``normals[t]`` are the plan's own numbers."""
    H, d, B, U = len(model["rows"]), model["dim"], model["param_bound"], max(2, max_reachable(model["rows"]))
    S, K = len(model["rows"][0]), 1 if shared else H
    regions = [ball(d, B)]

    def count(t):  # transitions per parameter, the coming episode included
        return (t + 1) * (H if shared else 1)

    def radius(t, memory):
        if name in ("bonus-livarot", "thompson-livarot"):
            updates = max(1, t * (H if shared else 1))
            beta = math.sqrt(2 / 3 * d * math.log(updates * H / level)) + 2 * B * math.sqrt(reg)
        elif name in ("ucrl-mnl-plus", "orrl-mnl"):
            beta = mirror_radius(count(t), d, H, U, B, reg, level)
        elif name == "rrl-mnl" or (name == "ons-ucrl-mnl" and not printed):
            beta = newton_radius(count(t), d, H, U, B, reg, kappa, level)
        elif name == "ons-ucrl-mnl":
            beta = math.sqrt(kappa) * math.sqrt(d) * math.log((t + 1) * H / level)
        elif name == "ucrl-mnl" and printed:
            beta = math.sqrt(d * math.log(1 + (t + 1) * H * S / (d * reg)))
        elif name == "ucrl-mnl":
            inside = d * math.log(1 + count(t) * U / (d * reg)) + 2 * math.log(H / level)
            beta = kappa * math.sqrt(inside) + math.sqrt(reg) * B
        else:
            beta = (B + 3) * math.sqrt(d * math.log((t + 1) * H / level))
            beta *= 1 + concordance * (B + max(math.sqrt(dot(x, x)) for x in memory["theta"]))
        return beta_scale * beta

    def plan(t, memory, z):
        beta = radius(t, memory)
        if name in ("ucrl-mnl", "ons-ucrl-mnl"):
            bonus = lambda h, row, theta, gram: max_norm_bonus(row, theta, gram, beta, H)  # noqa: E731
            return *backward(model, shared, memory, bonus, low=0.0), beta
        if name == "ucrl-mnl-plus":
            bonus = lambda h, row, theta, gram: cho_bonus(row, theta, gram, beta, H)  # noqa: E731
            return *backward(model, shared, memory, bonus, clip_value=True), beta
        if name in ("rrl-mnl", "orrl-mnl"):
            xi = [samples(memory["gram"][0 if shared else h], H * beta, z[h]) for h in range(H)]
            if name == "rrl-mnl":
                bonus = lambda h, row, theta, gram: rrl_bonus(row, gram, xi[h])  # noqa: E731
            else:
                bonus = lambda h, row, theta, gram: orrl_bonus(row, theta, gram, xi[h], beta, H)  # noqa: E731
            return *backward(model, shared, memory, bonus), beta
        if name == "thompson-livarot":
            drawn = []
            for k in range(K):
                x = memory["theta"][k] + samples(memory["gram"][k], beta, [z[k]])[0]
                drawn.append(project(x, memory["gram"][k], regions) if project_sample else x)
            own = {"theta": drawn, "gram": memory["gram"]}
            return *backward(model, shared, own, lambda *_: 0.0), beta
        best = {"bonus-livarot": variance_bound_centred, "ucrl-mnl-ll": lambda *x: inner_max(*x)[0]}[name]
        reward = model["reward"]

        def q(h, s, a, row, values):
            k = 0 if shared else h
            return reward[h][s][a] + best(row, values, (memory["theta"][k], memory["gram"][k], beta))

        return *optimistic_plan(model, q), beta

    def learn(t, memory, seen):
        theta, gram = memory["theta"], memory["gram"]
        if name in ("rrl-mnl", "ons-ucrl-mnl"):
            for k, row, choice in seen:
                theta[k], gram[k] = ons_step(row, choice, theta[k], gram[k], 1 / kappa / 2, B)
        elif name in ("ucrl-mnl", "ucrl-mnl-ll"):
            ridge = d * math.log((t + 2) * H / level) if reg is None else reg
            for k in range(K):
                theta[k] = mle([(row, choice, 1.0) for row, choice in memory["data"][k]], ridge, d)
                gram[k] = ridge * np.eye(d)
                for row, _ in memory["data"][k]:
                    if name == "ucrl-mnl-ll":
                        gram[k] = gram[k] + hessian(row, theta[k])
                    else:
                        for feature in row[1]:
                            gram[k] = gram[k] + np.outer(feature, feature)
        else:
            for k, row, choice in seen:
                theta[k], gram[k] = omd_step(row, choice, theta[k], gram[k], step_size, regions)

    first = d * math.log(H / level) if reg is None else reg
    return play_field(model, uniforms, normals, first, shared, plan, learn)


def variance_bound_centred(row, values, region):
    """variance_bound with max|phi_i - mean|^2/2 in place of max|phi_i - phi_j|^2/8, as the library has it."""
    theta, gram, beta = region
    if not informative(row):
        return expected_value(row, theta, values)
    p, phi, v = softmax(row, theta), row[1], values
    mean, middle = mean_feature(row, theta), dot(p, v)
    slope = np.array([math.fsum(p[i] * (v[i] - middle) * phi[i][j] for i in range(len(p))) for j in range(len(theta))])
    curve = min(max(x * x for x in norms(row, gram)), max(dual_norm(f - mean, gram) ** 2 for f in phi))
    bound = middle + beta * dual_norm(slope, gram) + 0.5 * (max(v) - min(v)) * beta**2 * curve
    return min(bound, max(v))
