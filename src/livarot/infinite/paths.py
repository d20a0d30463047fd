"""One entry for each question about a stationary model: solve it, evaluate a policy, play one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array
from livarot.infinite.learning.run import play, world_of
from livarot.infinite.planning.average import AverageSolution, Gain, policy_gain, solve_average
from livarot.infinite.planning.discounted import DiscountedSolution, policy_value, solve_discounted
from livarot.infinite.problem import InfiniteMDP, check_stationary
from livarot.infinite.terms import stored_discount
from livarot.model.shown import compact
from livarot.simulation.rollout import draw_start
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory


@checked(discount=stored_discount)
def solve(
    mdp: InfiniteMDP, discount: float | None = None, *, tol: float | None = None
) -> DiscountedSolution | AverageSolution:
    """The optimal values and policy, with bounds that prove them.

        V(s) = max_a { r(s, a) + gamma sum_{s'} P(s'|s, a) V(s') }

    Discounted, at ``discount`` or at the model's own; for the average reward if neither is given, or if it is 1.
    ``tol`` is how wide the bounds may be, in the user's units (None: 1e-10 of the scale of the rewards).

    >>> from livarot.envs import park_two_state
    >>> from livarot.infinite import InfiniteMDP
    >>> mdp = InfiniteMDP.from_mdp(park_two_state())
    >>> round(solve(mdp).gain, 6), solve(mdp, 0.9).value.round(6)
    (0.528302, array([4.367418, 6.10052 ]))
    """
    gamma = mdp.discount if discount is None else discount
    if gamma is None or gamma == 1.0:
        return solve_average(mdp, tol=tol)
    return solve_discounted(mdp, gamma, tol=tol)


@checked(discount=stored_discount)
def evaluate(mdp: InfiniteMDP, policy: ArrayLike, discount: float | None = None) -> FloatArray | Gain:
    """V^pi (S,) of a policy, actions (S,) or probabilities (S, A); its gain and bias for the average reward.

    Which of the two is decided as in :func:`solve`.
    """
    gamma = mdp.discount if discount is None else discount
    if gamma is None or gamma == 1.0:
        return policy_gain(mdp, policy)
    return policy_value(mdp, policy, gamma)


@compact
class Paths(NamedTuple):
    """Trajectories, in the user's units; after the end of one its actions are -1 and its rewards 0."""

    states: Int32Array  # (n, T + 1)
    actions: Int32Array  # (n, T)
    rewards: FloatArray  # (n, T); that of a terminal state is paid once, in the first step there

    def returns(self, discount: float) -> FloatArray:
        """The discounted sum of the rewards of each, (n,)."""
        return np.asarray(self.rewards @ discount ** np.arange(self.rewards.shape[1]))


@checked
def simulate(mdp: InfiniteMDP, policy: ArrayLike, n_steps: int, n_paths: int = 1, *, seed: int = 0) -> Paths:
    """Play a policy, actions (S,) or probabilities (S, A), from the start; a longer path begins with the shorter one.

    >>> from livarot.envs import park_two_state
    >>> from livarot.infinite import InfiniteMDP
    >>> paths = simulate(InfiniteMDP.from_mdp(park_two_state()), [7, 0], 4000, 5)
    >>> paths.states.shape, bool(abs(paths.rewards.mean() - 0.5283) < 0.02)
    ((5, 4001), True)
    """
    require_memory("n_steps", "the paths", 4 * n_paths * n_steps)
    problem, table = mdp.problem, check_stationary(mdp.problem, policy)
    start, luck, choice = (stream(seed, f"infinite {part}") for part in ("start", "paths", "actions"))
    states = np.empty((n_steps + 1, n_paths), dtype=np.int32)
    states[0] = [draw_start(problem.start, u) for u in start.random(n_paths)]
    actions, rewards = np.empty((n_steps, n_paths), dtype=np.int32), np.empty((n_steps, n_paths))
    world, choices, ends = world_of(mdp), np.empty(n_paths, dtype=np.int32), problem.terms.terminal
    sums = np.cumsum(table, axis=1) if table.ndim == 2 else None
    last = None if sums is None else problem.n_actions - 1 - (table[:, ::-1] > 0.0).argmax(axis=1)
    for t in range(n_steps):
        now = states[t]
        if sums is None or last is None:
            actions[t] = table[now]
        else:
            drawn = (sums[now] <= choice.random(n_paths)[:, None]).sum(axis=1)
            actions[t] = np.minimum(drawn, last[now])
        play(world, actions[t], luck.random(n_paths), now, choices, states[t + 1], rewards[t])
        if ends.any():
            entered = ends[now] if t == 0 else ends[now] & ~ends[states[t - 1]]
            rewards[t] = np.where(entered, problem.terms.terminal_reward[now], rewards[t])
    actions[ends[states[:-1]]] = -1
    table_of = np.ascontiguousarray
    return Paths(table_of(states.T), table_of(actions.T), table_of(rewards.T))
