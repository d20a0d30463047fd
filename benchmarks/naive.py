"""LIVAROT's learning phase as a researcher would write it: loops over stages, states and actions, NumPy
for each small formula. It shares no code with the library and serves two ends, an independent check of
the trajectories and the denominator of every speed-up.

Episode t, for h = H..1 and every (s, a):
    Q_h(s, a) = r_h(s, a) + max over |theta - theta_h|_{gram_h} <= beta_t of sum_i p_i(theta) V_{h+1}(s_i)
by Frank-Wolfe from the centre with steps 2/(k+2); V_h = max_a Q_h; the greedy policy is played once; then
for each stage, g and Hs being the gradient and the Hessian of -log p_y:
    M     = gram + eta Hs(theta)
    theta = argmin over |x| <= B of |x - (theta - eta M^-1 g)|_M
    gram  = gram + Hs(theta)                                          (at the new theta)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import Dense

Floats = NDArray[np.float64]
Ints32 = NDArray[np.int32]


@dataclass
class NaiveResult:
    realised: Floats  # (T,) return of the episode
    value: Floats | None  # (T,) exact value of the policy played, under the true kernel
    policies: Ints32  # (T, H, S)
    optimistic: Floats  # (T,) value the plan believes in
    theta: Floats  # (K, d)
    gram: Floats  # (K, d, d)
    projected: int  # number of updates cut by the ball


def softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum())


def naive_inner(
    phi: Floats,
    values: Floats,
    theta: Floats,
    gram: Floats,
    beta: float,
    iterations: int = 30,
    *,
    offset: Floats | float = 0.0,
    gram_inverse: Floats | None = None,
) -> float:
    """max of p(x).V over |x - theta|_gram <= beta, by Frank-Wolfe from the centre.

    Each step solves the linear maximisation over the ellipsoid, theta + beta gram^-1 g / |g|_{gram^-1}, as it is
    written, with a linear system; with ``gram_inverse`` that system is a product.
    """
    x = theta.copy()
    for k in range(iterations):
        p = softmax(offset + phi @ x)
        gradient = phi.T @ (p * (values - p @ values))
        direction = np.linalg.solve(gram, gradient) if gram_inverse is None else gram_inverse @ gradient
        square = float(gradient @ direction)
        if not square > 0.0:
            break
        vertex = theta + beta * direction / np.sqrt(square)
        x = x + 2.0 / (k + 2.0) * (vertex - x)
    return float(softmax(offset + phi @ x) @ values)


def hessian(phi: Floats, p: Floats) -> Floats:
    centred = phi - p @ phi
    return centred.T @ (p[:, None] * centred)


def project_ball(point: Floats, metric: Floats, bound: float) -> tuple[Floats, bool]:
    """argmin of |x - point|_metric over |x| <= bound, by the secular equation in the eigenbasis; and whether
    the point was outside by more than rounding."""
    w, q = np.linalg.eigh(metric)
    c = q.T @ point
    norm = float(np.linalg.norm(c))
    if norm <= bound:
        return point, False
    low, high = 0.0, w.max() * norm / bound
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if np.linalg.norm(w * c / (w + middle)) > bound:
            low = middle
        else:
            high = middle
    return q @ (w * c / (w + high)), norm > bound * (1.0 + 1e-12)


def omd_step(
    phi: Floats, offset: Floats, outcome: int, theta: Floats, gram: Floats, eta: float, bound: float
) -> tuple[Floats, Floats, bool]:
    p = softmax(offset + phi @ theta)
    gradient = phi.T @ p - phi[outcome]
    metric = gram + eta * hessian(phi, p)
    step = theta - eta * np.linalg.solve(metric, gradient)
    new, cut = project_ball(step, metric, bound)
    return new, gram + hessian(phi, softmax(offset + phi @ new)), cut


def first_best(q: Floats) -> int:
    """First action whose value exceeds the best so far by more than 1e-9 (1 + |best|)."""
    chosen = 0
    for a in range(1, len(q)):
        if q[a] > q[chosen] + 1e-9 * (1.0 + abs(q[chosen])):
            chosen = a
    return chosen


def sample(p: Floats, u: float) -> int:
    return min(int(np.searchsorted(np.cumsum(p), u, side="right")), len(p) - 1)


def evaluate(problem: Dense, theta_star: Floats, policy: Ints32) -> Floats:
    """Value (H+1, S) of a policy under the true kernel."""
    value = np.zeros((problem.horizon + 1, problem.n_states))
    for h in reversed(range(problem.horizon)):
        for s in range(problem.n_states):
            a = int(policy[h, s])
            following, offset, phi = problem.pair(h, s, a)
            p = softmax(offset + phi @ theta_star[0 if problem.shared_parameter else h])
            value[h, s] = problem.reward[h, s, a] + p @ value[h + 1, following]
    return value


def run_naive(
    problem_arrays: Dense,
    theta_star: Floats,
    uniforms: Floats,
    *,
    step_size: float,
    reg: float,
    radius_fn: Callable[[int], float],
    param_bound: float,
    n_episodes: int,
    fw_iterations: int = 30,
    evaluate_policies: bool = False,
) -> NaiveResult:
    """One seed. theta_star (K, d); uniforms (T, H+1)."""
    problem = problem_arrays
    n_stages, n_states, n_actions, dim = problem.horizon, problem.n_states, problem.n_actions, problem.dim
    n_parameters = 1 if problem.shared_parameter else n_stages
    index = [0 if problem.shared_parameter else h for h in range(n_stages)]
    theta = np.zeros((n_parameters, dim))
    gram = np.stack([reg * np.eye(dim)] * n_parameters)
    realised = np.zeros(n_episodes)
    exact = np.zeros(n_episodes) if evaluate_policies else None
    optimistic = np.zeros(n_episodes)
    policies = np.zeros((n_episodes, n_stages, n_states), dtype=np.int32)
    projected = 0
    for t in range(n_episodes):
        beta = radius_fn(t + 1)
        # plan
        value = np.zeros((n_stages + 1, n_states))
        for h in reversed(range(n_stages)):
            inverse = np.linalg.inv(gram[index[h]])
            for s in range(n_states):
                q = np.zeros(n_actions)
                for a in range(n_actions):
                    following, offset, phi = problem.pair(h, s, a)
                    q[a] = problem.reward[h, s, a] + naive_inner(
                        phi,
                        value[h + 1, following],
                        theta[index[h]],
                        gram[index[h]],
                        beta,
                        fw_iterations,
                        offset=offset,
                        gram_inverse=inverse,
                    )
                policies[t, h, s] = first_best(q)
                value[h, s] = q.max()
        optimistic[t] = problem.start @ value[0]
        # play
        s = sample(problem.start, uniforms[t, 0])
        seen = []
        for h in range(n_stages):
            a = int(policies[t, h, s])
            following, offset, phi = problem.pair(h, s, a)
            i = sample(softmax(offset + phi @ theta_star[index[h]]), uniforms[t, 1 + h])
            realised[t] += problem.reward[h, s, a]
            seen.append((phi, offset, i))
            s = int(following[i])
        # learn
        for h, (phi, offset, i) in enumerate(seen):
            k = index[h]
            theta[k], gram[k], cut = omd_step(phi, offset, i, theta[k], gram[k], step_size, param_bound)
            projected += cut
        if exact is not None:
            exact[t] = problem.start @ evaluate(problem, theta_star, policies[t])[0]
    return NaiveResult(realised, exact, policies, optimistic, theta, gram, projected)
