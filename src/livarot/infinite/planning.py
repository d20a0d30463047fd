"""Exact planning without an end: gain and bias, discounted values, the diameter.  Every answer carries its proof.

*Average reward.*  The gain g of a policy is its long-run reward per step, the bias h what a start is worth beyond that:
g + h = r + P h (one recurrent class, h = 0 at its first state).  For any vector v, with L v = max_a (r + P v),

    min_s (L v - v)(s)  <=  g*(s)  <=  max_s (L v - v)(s),

so an interval is certified whatever v is.  Relative value iteration (on the aperiodic kernel (I + P)/2) finds a v; one
linear solve for its greedy policy then gives the gain to rounding, and the interval of its bias is what is returned.

*Discounted reward.*  V = r + gamma P V by the linear solve of the greedy policy of value iteration; for any v

    v + min(L v - v)/(1 - gamma)  <=  V*  <=  v + max(L v - v)/(1 - gamma).

*Ties*: the first action within 1e-9 (1 + |Q|) of the best.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array
from livarot.core.jit import jit
from livarot.errors import bad
from livarot.infinite.problem import InfiniteMDP, check_stationary

TIE = 1e-9
MIXING = 0.5  # of the kernel with the identity, against periods


class Gain(NamedTuple):
    """Gain and bias of a policy, per state (the gain of a policy with several recurrent classes is no constant)."""

    gain: FloatArray  # (S,)
    bias: FloatArray  # (S,)


class AverageSolution(NamedTuple):
    """The optimal gain, with ``lower`` <= g* <= ``upper``, and a policy that has the gain ``gain``."""

    gain: float
    bias: FloatArray  # (S,)
    policy: Int32Array  # (S,)
    lower: float
    upper: float
    n_iter: int


@checked
def policy_gain(mdp: InfiniteMDP, policy: ArrayLike) -> Gain:
    """Gain and bias of a stationary policy, actions (S,) or probabilities (S, A), by linear solves.

    Each recurrent class has a gain of its own; a transient state has the mean of those it ends in.  The bias is 0 at
    the first state of each class.

    >>> from livarot.envs import park_two_state
    >>> mdp = InfiniteMDP.from_mdp(park_two_state())
    >>> policy_gain(mdp, [7, 0]).gain.round(12).tolist()     # p/(p + delta) = .28/.53
    [0.528301886792, 0.528301886792]
    """
    move, pay = _chain(mdp, policy)
    n = len(pay)
    _, label = connected_components(csr_array((move > 0.0).astype(np.int64)), directed=True, connection="strong")
    gain, bias = np.zeros(n), np.zeros(n)
    recurrent = np.zeros(n, dtype=np.bool_)
    for part in range(int(label.max()) + 1):
        inside = np.flatnonzero(label == part)
        if move[np.ix_(inside, np.flatnonzero(label != part))].any():
            continue  # it can be left
        recurrent[inside] = True
        # unknowns (h of all but the first state, g): g + h - P h = r
        system = np.eye(len(inside)) - move[np.ix_(inside, inside)]
        system[:, 0] = 1.0
        found = np.linalg.solve(system, pay[inside])
        gain[inside] = found[0]
        bias[inside[1:]] = found[1:]
    passing = np.flatnonzero(~recurrent)
    if len(passing):
        stay = np.eye(len(passing)) - move[np.ix_(passing, passing)]
        leave = move[np.ix_(passing, np.flatnonzero(recurrent))]
        gain[passing] = np.linalg.solve(stay, leave @ gain[recurrent])
        bias[passing] = np.linalg.solve(stay, pay[passing] - gain[passing] + leave @ bias[recurrent])
    return Gain(gain, bias)


@checked
def solve_average(mdp: InfiniteMDP, *, tol: float = 1e-10, max_iter: int = 1_000_000) -> AverageSolution:
    """The optimal gain of a weakly communicating model, to ``upper`` - ``lower`` <= ``tol``.

    >>> from livarot.envs import park_two_state
    >>> found = solve_average(InfiniteMDP.from_mdp(park_two_state()))
    >>> round(found.gain, 9), found.policy[0], found.upper - found.lower <= 1e-10
    (0.528301887, np.int32(7), True)
    """
    rows, reward = mdp.problem.rows, mdp.problem.reward
    v, q = np.zeros(mdp.problem.n_states), np.empty(reward.shape)
    policy = np.zeros(mdp.problem.n_states, dtype=np.int32)
    done, aim, lower, upper = 0, max(tol, 1e-6), -math.inf, math.inf
    while done < max_iter:
        done += _relative(rows.row_start, rows.next_state, mdp.prob, reward, v, q, policy, aim, max_iter - done)
        own = policy_gain(mdp, policy)
        if np.ptp(own.gain) <= tol:
            rise = _rise(mdp, own.bias)
            lower, upper = float(rise.min()), float(rise.max())
            if upper - lower <= tol:
                return AverageSolution(float(own.gain.mean()), own.bias, policy, lower, upper, done)
        aim *= 0.1
        if aim < 1e-14:
            break
    rise = _rise(mdp, v)
    raise bad(
        "mdp",
        f"the gain is known to lie in [{rise.min():.9g}, {rise.max():.9g}] only, after {done} iterations",
        cure="raise max_iter or tol; a model that is not weakly communicating has no single optimal gain",
    )


@checked
def diameter(mdp: InfiniteMDP, *, tol: float = 1e-9, max_iter: int = 1_000_000) -> float:
    """D: the largest, over pairs of states, of the least expected time from one to the other; infinite if none is.

    For each target the times of value iteration from 0 bound from below, those of its greedy policy, by a linear solve,
    from above; the latter are returned once the two agree to a relative ``tol``.

    >>> from livarot.envs import park_two_state
    >>> round(diameter(InfiniteMDP.from_mdp(park_two_state())), 9)     # 1/delta from state 1 to state 0
    4.0
    """
    problem, rows = mdp.problem, mdp.problem.rows
    n = problem.n_states
    edges = csr_array((mdp.table.max(axis=1) > 0.0).astype(np.int64))
    if connected_components(edges, directed=True, connection="strong")[0] > 1:
        return math.inf
    worst = 0.0
    for target in range(n):
        cost = -np.ones(problem.reward.shape)
        cost[target] = 0.0
        v, q, policy = np.zeros(n), np.empty(cost.shape), np.zeros(n, dtype=np.int32)
        others = np.delete(np.arange(n), target)
        done, batch = 0, 64
        while True:
            done += _reach(rows.row_start, rows.next_state, mdp.prob, cost, target, v, q, policy, batch)
            system = np.eye(n - 1) - mdp.table[others, policy[others]][:, others]
            times = np.linalg.solve(system, np.ones(n - 1)) if n > 1 and np.linalg.cond(system) < 1e14 else None
            if n == 1 or (times is not None and times.min() > 0 and (times + v[others]).max() <= tol * times.max()):
                break
            batch *= 2
            if done > max_iter:
                raise bad("max_iter", f"{max_iter} iterations were not enough", cure="raise max_iter or tol")
        worst = max(worst, 0.0 if times is None else float(times.max()))
    return worst


def _chain(mdp: InfiniteMDP, policy: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The kernel (S, S) and reward (S,) of a policy."""
    table = check_stationary(mdp.problem, policy)
    reward, states = mdp.problem.reward, np.arange(mdp.problem.n_states)
    if table.ndim == 1:
        return mdp.table[states, table], reward[states, table]
    return np.einsum("sa,sat->st", table, mdp.table), (table * reward).sum(axis=1)


def _rise(mdp: InfiniteMDP, v: FloatArray) -> FloatArray:
    """L v - v, (S,)."""
    rows = mdp.problem.rows
    q = np.empty(mdp.problem.reward.shape)
    _backup(rows.row_start, rows.next_state, mdp.prob, mdp.problem.reward, 1.0, v, q, np.zeros(len(v), dtype=np.int32))
    return np.asarray(q.max(axis=1) - v)


@jit
def _backup(row_start, next_state, prob, reward, gamma, v, q, policy):
    """q = r + gamma P v and its first greedy policy."""
    n_states, n_actions = reward.shape
    for s in range(n_states):
        best = -math.inf
        for a in range(n_actions):
            pair = s * n_actions + a
            total = 0.0
            for row in range(row_start[pair], row_start[pair + 1]):
                total += prob[row] * v[next_state[row]]
            q[s, a] = reward[s, a] + gamma * total
            best = max(best, q[s, a])
        tie = best - TIE * (1.0 + abs(best))
        for a in range(n_actions):
            if q[s, a] >= tie:
                policy[s] = a
                break


@jit
def _relative(row_start, next_state, prob, reward, v, q, policy, aim, max_iter):
    """Relative value iteration on the lazy kernel until the span of L v - v is below ``aim``; the rounds it took."""
    for done in range(max_iter):
        _backup(row_start, next_state, prob, reward, 1.0, v, q, policy)
        low, high = math.inf, -math.inf
        for s in range(len(v)):
            rise = q[s].max() - v[s]
            low, high = min(low, rise), max(high, rise)
        if high - low <= aim:
            return done + 1
        first = v[0] + MIXING * (q[0].max() - v[0])
        for s in range(len(v)):
            v[s] += MIXING * (q[s].max() - v[s]) - first
    return max_iter


@jit
def _reach(row_start, next_state, prob, cost, target, v, q, policy, rounds):
    """Minus the time to the target, from below in time: value iteration with a target that costs nothing."""
    for _ in range(rounds):
        _backup(row_start, next_state, prob, cost, 1.0, v, q, policy)
        for s in range(len(v)):
            v[s] = q[s].max() if s != target else 0.0
    return rounds
