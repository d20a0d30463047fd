"""sigma_bar: how much the optimal value of the next state varies, along trajectories and under the optimal policy.

    sigma_bar_T^2 = (1/(T H)) sum_t sum_h Var[V*_{h+1}(s') | s_{t,h}, pi*_h(s_{t,h})] / H^2,

with pi* the optimal policy of Eq. (well state def pi star): among optimal actions the one of largest variance (E24).
``Solution.variance`` holds these variances, the judge of a run adds them up along the episodes, and so does
:func:`episode_variance` here.

What is true of it (certain):

* sigma_bar_T <= 1/2, as printed; V*_{h+1} lies in [0, H - h], so that sigma_bar_T^2 <= (H-1)(2H-1)/(24 H^2) < 1/12
  (E26), and this is attained (:func:`sigma_bar_limit`);
* under pi* itself E[sigma_bar^2] <= 1/(4H), as printed; given the first state the first reward is certain, so that it
  is at most (H-1)^2/(4 H^3), attained by one fair coin at the first stage (:func:`sigma_bar_star_limit`).

With rewards of the next state or a discount it is the variance of what follows, r' + discount V*_{h+1}, which lies in
[0, H - h]: the two sharper limits then hold with H in place of H - 1.  All of it is in normalised units.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.core.compiling.jit import jit
from livarot.errors import bad
from livarot.model.episodes import Episodes
from livarot.model.probabilities import Kernel, transition_kernel
from livarot.model.problem import MNLMDP
from livarot.planning.exact import checked_solution, solve_kernel
from livarot.planning.solution import PlainSolution, Solution
from livarot.system.sizes import require_memory


def episode_variance(variance: FloatArray, states: ArrayLike) -> FloatArray:
    """(1/H) sum_h Var[V*_{h+1} | s_h, pi*]/H^2 of each trajectory, (T,): the increments whose mean is sigma_bar^2.

    ``variance`` (H, S) is ``Solution.variance``; ``states`` is (T, H) or (T, H + 1), whose last state is not used.
    """
    horizon, n_states = variance.shape
    visited = np.asarray(states)
    if visited.ndim == 1:
        visited = visited[None, :]
    if visited.dtype.kind not in "iu" or visited.ndim != 2 or visited.shape[1] not in (horizon, horizon + 1):
        raise bad(
            "episodes",
            f"states have shape {visited.shape} and type {visited.dtype}, expected whole numbers (T, {horizon + 1})",
        )
    wrong = np.argwhere((visited < 0) | (visited >= n_states))
    if len(wrong):
        first = tuple(int(i) for i in wrong[0])
        raise bad(
            "episodes",
            f"state {visited[first]} is out of range",
            index=first,
            count=len(wrong),
            cure=f"states are numbered 0..{n_states - 1}",
        )
    picked = variance[np.arange(horizon)[None, :], visited[:, :horizon]]
    return np.asarray(picked.sum(axis=1) / float(horizon) ** 3)


@checked
def sigma_bar(mdp: MNLMDP, episodes: Episodes | Iterable[Episodes] | ArrayLike) -> float:
    """sigma_bar_T of trajectories: :class:`Episodes`, several of them, or states (T, H + 1).

    >>> import livarot
    >>> mdp = livarot.envs.hard_chain(5, gap=0.1)
    >>> episodes = livarot.simulate(mdp, livarot.solve(mdp).policy, 1000, seed=0)
    >>> round(sigma_bar(mdp, episodes), 3), round(sigma_bar_star(mdp), 3)
    (0.139, 0.139)
    """
    solution = solve_kernel(mdp.problem, transition_kernel(mdp))
    if isinstance(episodes, Episodes):
        increments = [episode_variance(solution.variance, episodes.states)]
    elif isinstance(episodes, list | tuple) and episodes and all(isinstance(e, Episodes) for e in episodes):
        increments = [episode_variance(solution.variance, e.states) for e in episodes]
    else:
        increments = [episode_variance(solution.variance, np.asarray(episodes))]
    found = np.concatenate(increments)
    if len(found) == 0:
        raise bad("episodes", "are empty")
    return math.sqrt(math.fsum(found) / len(found))


@checked
def sigma_bar_star(mdp: MNLMDP, *, solution: Solution | PlainSolution | None = None) -> float:
    """sqrt(E_{pi*}[sigma_bar^2]), exact: the states are those of pi* itself, propagated forward from the start.

    States that pi* does not reach cost nothing.  O(rows of pi* H), after the backward induction.

    >>> import livarot
    >>> mdp = livarot.envs.hard_chain(10, gap=0.05)
    >>> round(sigma_bar_star(mdp), 12) == round(hard_chain_sigma_bar(10, 0.15), 12)
    True
    """
    kernel = transition_kernel(mdp)
    best = solve_kernel(mdp.problem, kernel) if solution is None else checked_solution(mdp.problem, solution)
    return math.sqrt(float(stage_variance(mdp, best, kernel).sum()) / mdp.problem.horizon)


def stage_variance(mdp: MNLMDP, solution: PlainSolution, kernel: Kernel) -> FloatArray:
    """E_{pi*}[Var[V*_{h+1} | s_h, pi*]]/H^2 of each stage, (H,): the profile whose mean is E_{pi*}[sigma_bar^2]."""
    problem = mdp.problem
    out = np.zeros(problem.horizon)
    rows = problem.rows
    _forward(
        rows.row_start,
        rows.next_state,
        problem.stage_table,
        problem.n_actions,
        *kernel,
        problem.start,
        solution.policy,
        solution.variance,
        out,
    )
    return out / float(problem.horizon) ** 2


@checked
def sigma_bar_limit(horizon: int) -> float:
    """The largest sigma_bar_T of any trajectory in any model: sqrt((H-1)(2H-1)/24)/H, below 1/(2 sqrt 3) (E26).

    Var <= (H-h)^2/4 (Popoviciu), summed.  Attained by a learner who waits in a state whose optimal action tosses a fair
    coin between reward 1 for ever and 0 for ever.

    >>> round(sigma_bar_limit(10), 4), round(sigma_bar_limit(10**6), 4)
    (0.2669, 0.2887)
    """
    return math.sqrt((horizon - 1) * (2 * horizon - 1) / 24.0) / horizon


@checked
def sigma_bar_star_limit(horizon: int) -> float:
    """The largest sqrt(E_{pi*}[sigma_bar^2]) of any model: (H-1)/(2 H^{3/2}), below the printed 1/(2 sqrt H).

    The return's random part lies in an interval of length H - 1: given the first state, the first reward is certain.

    >>> round(sigma_bar_star_limit(4), 6)
    0.1875
    """
    return (horizon - 1) / (2.0 * horizon * math.sqrt(horizon))


@checked
def hard_chain_variance(horizon: int, p: float) -> FloatArray:
    """Var[V*_{h+1} | s_h]/H^2 in the states s_h of the hard chain, (H,): (1-p)(1 - (1-p)^{H-h})^2/(H^2 p), h = 1..H.

    p = 1/H + (d-1) gap is the probability with which the best action reaches the good state; Eq. (example kappa star
    expression kappa).  In the two absorbing states it is 0.
    """
    require_memory("horizon", "the stages of the chain", 4 * horizon)
    left = horizon - 1 - np.arange(horizon)
    if p < 1e-300:  # the limit: 1/p is infinite
        return np.asarray(p * (left / horizon) ** 2)
    fallen = -np.expm1(left * math.log1p(-p))  # 1 - (1-p)^left without cancellation
    return np.asarray((1.0 - p) / p * (fallen / horizon) ** 2)


@checked
def hard_chain_sigma_bar(horizon: int, p: float, *, never_falls: bool = False) -> float:
    """sigma_bar of the hard chain in closed form: under pi*, or along the trajectory that never reaches the good state.

    Under pi* the chain is in s_h with probability (1-p)^{h-1}.  The trajectory that never falls has the largest
    sigma_bar of all.  With p = O(1/H) both are of order H^{-1/2}; the paper's bound is sqrt(2/H).

    >>> round(hard_chain_sigma_bar(10, 0.1), 5), round(hard_chain_sigma_bar(10, 0.1, never_falls=True), 5)
    (0.10767, 0.11988)
    """
    spread = hard_chain_variance(horizon, p)
    stay = 1.0 if never_falls else np.exp(np.arange(horizon) * math.log1p(-p))
    return math.sqrt(math.fsum(spread * stay) / horizon)


@jit
def _forward(row_start, next_state, stage_table, n_actions, prob, base, start, policy, variance, out):
    horizon, n_states = policy.shape
    mass, follow = start.copy(), np.zeros(n_states)
    for h in range(horizon):
        total = 0.0
        for s in range(n_states):
            weight = mass[s]
            if weight == 0.0:
                continue
            total += weight * variance[h, s]
            mass[s] = 0.0
            if h < horizon - 1:
                pair = (stage_table[h] * n_states + s) * n_actions + policy[h, s]
                for row in range(row_start[pair], row_start[pair + 1]):
                    follow[next_state[row]] += weight * prob[base[h] + row]
        out[h] = total
        mass, follow = follow, mass
