"""Slow twins for infinite horizons: gains by long powers and by trying all policies, extended value iteration, UCMNLK.

Nothing here imports the library. A *model* is ``rows[s][a]`` as in core.py, ``theta`` (d,), ``reward`` (S, A).
"""

import itertools
import math

import numpy as np
from scipy.optimize import linprog

from tests.twins.core import dual_norm, first_best, omd_step, softmax


def kernel(rows, theta):
    """P (S, A, S)."""
    S, A = len(rows), len(rows[0])
    P = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            p = softmax(rows[s][a], theta)
            for i in range(len(p)):
                P[s, a, rows[s][a][0][i]] += p[i]
    return P


def gain_by_powers(move, pay):
    """Long-run mean reward of a chain: the lazy kernel is squared again and again, its rows normalised each time."""
    power = 0.5 * (np.eye(len(pay)) + np.asarray(move))
    for _ in range(60):
        power = power @ power
        power /= power.sum(axis=1, keepdims=True)
    return power @ np.asarray(pay)


def best_gain(P, reward):
    """The largest gain of any deterministic policy, state by state: tiny models only."""
    S, A = np.shape(reward)
    best = np.full(S, -math.inf)
    for policy in itertools.product(range(A), repeat=S):
        move = np.array([P[s, policy[s]] for s in range(S)])
        best = np.maximum(best, gain_by_powers(move, [reward[s][policy[s]] for s in range(S)]))
    return best


def discounted(P, reward, gamma, rounds):
    """Value iteration from 0."""
    S, A = np.shape(reward)
    value = np.zeros(S)
    for _ in range(rounds):
        value = np.array([max(reward[s][a] + gamma * float(P[s, a] @ value) for a in range(A)) for s in range(S)])
    return value


def l1_maximum(p, values, radius):
    """max q . values over distributions with |q - p|_1 <= radius, by linear programming in (q, |q - p|)."""
    n = len(p)
    cost = np.concatenate((-np.asarray(values, dtype=float), np.zeros(n)))
    eye = np.eye(n)
    upper = np.vstack(
        (np.hstack((eye, -eye)), np.hstack((-eye, -eye)), np.concatenate((np.zeros(n), np.ones(n)))[None])
    )
    limits = np.concatenate((p, -np.asarray(p), [radius]))
    equal = np.concatenate((np.ones(n), np.zeros(n)))[None]
    found = linprog(cost, A_ub=upper, b_ub=limits, A_eq=equal, b_eq=[1.0], bounds=[(0, None)] * (2 * n))
    return -found.fun


def l1_greedy(p, values, radius):
    """The same by moving mass from the worst outcomes to the best one."""
    order = sorted(range(len(p)), key=lambda i: values[i])
    q = list(p)
    best = order[-1]
    moved = min(radius / 2, 1 - p[best])
    q[best] += moved
    for i in order[:-1]:
        taken = min(moved, q[i])
        q[i] -= taken
        moved -= taken
    return math.fsum(a * b for a, b in zip(q, values, strict=True))


def extended_values(rows, theta, gram, reward, beta, constant, gamma, tol):
    """Rounds from max r/(1 - gamma) until none changes a value by more than tol; the values and a greedy policy."""
    S, A = np.shape(reward)
    value = [float(np.max(reward)) / (1 - gamma)] * S
    p, radius = {}, {}
    for s in range(S):
        for a in range(A):
            row = rows[s][a]
            p[s, a] = softmax(row, theta)
            known = len(row[1]) == 1
            width = 0.0 if known else max(dual_norm(phi, gram) for phi in row[1])
            radius[s, a] = min(constant * beta * width, 2.0)
    while True:
        new, policy = [], []
        for s in range(S):
            q = [
                reward[s][a] + gamma * l1_greedy(p[s, a], [value[i] for i in rows[s][a][0]], radius[s, a])
                for a in range(A)
            ]
            policy.append(first_best(q))
            new.append(max(q))
        change = max(abs(a - b) for a, b in zip(new, value, strict=True))
        value = new
        if change <= tol:
            return np.array(value), policy


def run_ucmnlk(
    rows, theta, reward, start, uniforms, *, gamma, reg, step_size, beta_scale, bound, constant=2.0, tol=1e-6
):
    """The whole loop for one seed: states, actions, choices, estimates, Gram matrices and epochs."""
    S, d = len(reward), len(theta)
    guess, gram = np.zeros(d), reg * np.eye(d)
    region = [(np.zeros(d), np.eye(d), bound)]
    state, epoch, last = start, -1, None
    log = {"states": [start], "actions": [], "choices": [], "epoch": [], "theta": [], "gram": [], "values": []}
    policy = None
    for t in range(len(uniforms)):
        if last is None or np.linalg.slogdet(gram)[1] > last + math.log(2.0):
            epoch, last = epoch + 1, np.linalg.slogdet(gram)[1]
            beta = beta_scale * math.sqrt(d) * math.log(S * (t + 1) / (1 - gamma)) ** 2
            values, policy = extended_values(rows, guess, gram, reward, beta, constant, gamma, tol)
            log["values"].append(values)
        log["theta"].append(guess)
        log["gram"].append(gram)
        log["epoch"].append(epoch)
        action = policy[state]
        row = rows[state][action]
        p = softmax(row, theta)
        choice, total = 0, p[0]
        while total <= uniforms[t] and choice < len(p) - 1:
            choice += 1
            total += p[choice]
        if len(p) > 1:
            guess, gram = omd_step(row, choice, guess, gram, step_size, region)
        state = int(row[0][choice])
        log["actions"].append(action)
        log["choices"].append(choice)
        log["states"].append(state)
    log["theta"].append(guess)
    log["gram"].append(gram)
    return log


# ------------------------------------------------------------------- costs, missing actions, ends
# a *table* is table[s][a] = [(next state, probability, reward), ..], None for a missing action; ends is {s: reward}


def chain_value(table, policy, ends, gamma):
    """V of a policy by a dense linear system."""
    n = len(table)
    system, right = np.eye(n), np.zeros(n)
    for s in range(n):
        if s in ends:
            right[s] = ends[s]
            continue
        for to, p, pay in table[s][policy[s]]:
            system[s, to] -= gamma * p
            right[s] += p * pay
    return np.linalg.solve(system, right)


def policies(table, ends):
    """All deterministic policies; None where everything ends."""
    choices = [
        [None] if s in ends else [a for a, rows in enumerate(own) if rows is not None] for s, own in enumerate(table)
    ]
    return itertools.product(*choices)


def best_of_all(table, ends, gamma):
    """The largest value of any policy, state by state."""
    return np.max([chain_value(table, policy, ends, gamma) for policy in policies(table, ends)], axis=0)


def robust_values(table, ends, gamma, worst, rounds):
    """Value iteration with ``worst(values, probabilities)`` in place of the mean of r + gamma V."""
    value = [0.0] * len(table)
    for _ in range(rounds):
        new = []
        for s, own in enumerate(table):
            if s in ends:
                new.append(ends[s])
                continue
            q = [
                worst([pay + gamma * value[to] for to, _, pay in rows], [p for _, p, _ in rows])
                for rows in own
                if rows is not None
            ]
            new.append(max(q))
        value = new
    return np.array(value)


def soft_min(values, probabilities, penalty):
    """-(1/eta) log E exp(-eta x)."""
    low = min(values)
    mean = math.fsum(p * math.exp(-penalty * (x - low)) for x, p in zip(values, probabilities, strict=True))
    return low - math.log(mean) / penalty


def ball_min(values, probabilities, radius):
    """max over eta of soft_min - radius/eta, by a golden search in log eta (the function is concave in 1/eta)."""
    spread = max(values) - min(values)
    if spread == 0.0 or radius == 0.0:
        return math.fsum(p * x for x, p in zip(values, probabilities, strict=True))

    def dual(log_eta):
        eta = math.exp(log_eta) / spread
        return soft_min(values, probabilities, eta) - radius / eta

    low, high = -14.0, 14.0
    share = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(80):
        left, right = high - share * (high - low), low + share * (high - low)
        low, high = (left, high) if dual(left) < dual(right) else (low, right)
    return max(dual(0.5 * (low + high)), min(values))
