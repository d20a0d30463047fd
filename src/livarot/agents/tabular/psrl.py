"""PSRL: plan optimally in one kernel drawn from the posterior (Osband, Russo, Van Roy, 2013; Osband & Van Roy, 2017).

    P_h(.|s, a) ~ Dirichlet(alpha0 + n_h(s, a, .))

over the possible next states, and pi_t is optimal for that draw (certain).  Rewards are known.  Counts, and with them
the draw, are shared by the stages that share table and parameter, and per stage otherwise.  Known reachable sets make
the prior far narrower than the usual one over all states, which is what helps this agent most.  A Dirichlet draw is a
vector of gamma draws divided by its sum; if all draws of a pair underflow (only for alpha0 below 0.01), the uniform law
is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from livarot.agents.base import BaseAgent
from livarot.core.arguments import checked
from livarot.core.arrays import IntArray
from livarot.estimation.counts import count_episodes, initial_counts
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.model.tabular_view import laws_of
from livarot.planning.empirical import sampled_values
from livarot.simulation.streams import AgentRandom


class PSRLState(NamedTuple):
    counts: IntArray  # (R, rows)


@checked
@dataclass(frozen=True)
class PSRL(BaseAgent[PSRLState]):
    """One posterior sample per episode."""

    name: ClassVar[str] = "psrl"

    alpha0: float | None = 1.0  # prior weight of each possible next state; None is 1/S
    known_support: bool = True  # use the reachable sets; False: any state may follow, as published

    def init(self, problem: Problem, n_replicas: int = 1) -> PSRLState:
        return PSRLState(initial_counts(laws_of(problem, self.known_support), n_replicas))

    def plan(self, problem: Problem, state: PSRLState, rng: AgentRandom) -> Plan:
        shape = state.counts + (1.0 / problem.n_states if self.alpha0 is None else self.alpha0)
        # each replica draws from its own stream, so that its numbers do not depend on the others
        draws = np.stack([g.standard_gamma(own) for g, own in zip(rng.of(len(shape)).generators, shape, strict=True)])
        return sampled_values(problem, laws_of(problem, self.known_support), draws).plan()

    def update(self, problem: Problem, state: PSRLState, episodes: Episodes) -> PSRLState:
        return PSRLState(count_episodes(laws_of(problem, self.known_support), state.counts, episodes))
