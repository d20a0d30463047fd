"""
Write an agent
==============

An agent is a frozen dataclass: its fields are its settings, and it has three methods, ``init``, ``plan`` and
``update``. This one plays the plan of the estimate, without optimism, and any action with a share that vanishes.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import matplotlib.pyplot as plt
import numpy as np

import livarot
from livarot.agents import ball, initial_estimate, omd_update


class GreedyState(NamedTuple):
    estimate: livarot.Estimate
    episode: int


@dataclass(frozen=True)
class EpsilonGreedy:
    """The OMD estimate, and a share of random actions that vanishes."""

    name: ClassVar[str] = "epsilon-greedy"
    epsilon: float = 1.0  # the share of random actions is epsilon / sqrt(episode)

    def init(self, problem, n_replicas=1):
        return GreedyState(initial_estimate(problem, n_replicas, 3.0), 0)

    def plan(self, problem, state, rng):
        greedy = livarot.optimistic_plan(problem, state.estimate, 0.0, livarot.PlugIn())
        share = min(1.0, self.epsilon / math.sqrt(state.episode + 1)) / problem.n_actions
        mixed = np.full((*greedy.policy.shape, problem.n_actions), share)
        np.put_along_axis(mixed, greedy.policy[..., None], 1.0 - share * (problem.n_actions - 1), axis=-1)
        return livarot.Plan(mixed)

    def update(self, problem, state, episodes):
        within = ball(problem, problem.param_bound, len(episodes.states))
        return GreedyState(omd_update(problem, state.estimate, episodes, 3.0, within), state.episode + 1)


# %%
# The contract is checked: pure functions, independent replicas, states that can be saved.

livarot.check_agent(EpsilonGreedy())

# %%
# And here is how it does.

mdp = livarot.envs.hard_chain(8, gap=0.06)
figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for agent in (EpsilonGreedy(), livarot.agents.Livarot(), livarot.agents.CertaintyEquivalent()):
    livarot.run(mdp, agent, 400, seed=range(12)).plot(axes)
_ = axes.set_ylim(0, None)
