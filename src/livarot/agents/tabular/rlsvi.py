"""RLSVI: optimal in the empirical kernel after Gaussian noise on the rewards (Osband, Van Roy, Wen, 2016).

    Q_h = r_h + p.V_{h+1} + xi,   xi ~ N(0, sd^2),   sd = c_1/sqrt N + c_2 (H - h)/N

with c_1 = ``noise_scale``, c_2 = ``rest_scale`` and N visits of the pair.  The tabular form of randomised least squares
(certain that a public library uses it; likely that the expression is the sd and not the variance).  Noise is drawn
afresh for every stage and pair, also where stages share their counts.  Rewards are known, so a pair that can have one
outcome only has no noise; an unvisited pair has N = 1 and the uniform law over its possible next states.  Q is clipped
from below at 0 and from above at r + max V over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from livarot.agents.base import BaseAgent
from livarot.core.arguments import checked
from livarot.core.arrays import IntArray
from livarot.estimation.counts import count_episodes, initial_counts
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.model.tabular_view import laws_of
from livarot.planning.empirical import noisy_values
from livarot.simulation.streams import AgentRandom


class RLSVIState(NamedTuple):
    counts: IntArray  # (R, rows)


@checked
@dataclass(frozen=True)
class RLSVI(BaseAgent[RLSVIState]):
    """Exploration by noise in the rewards."""

    name: ClassVar[str] = "rlsvi"

    noise_scale: float = 0.3  # of the 1/sqrt N part of the noise
    rest_scale: float = 0.1  # of the (H - h)/N part; 1 is the public library's
    known_support: bool = True  # use the reachable sets; False: any state may follow, as published

    def init(self, problem: Problem, n_replicas: int = 1) -> RLSVIState:
        return RLSVIState(initial_counts(laws_of(problem, self.known_support), n_replicas))

    def plan(self, problem: Problem, state: RLSVIState, rng: AgentRandom) -> Plan:
        noise = rng.of(len(state.counts)).normal(problem.reward.shape)
        laws = laws_of(problem, self.known_support)
        return noisy_values(problem, laws, state.counts, noise, self.noise_scale, self.rest_scale).plan()

    def update(self, problem: Problem, state: RLSVIState, episodes: Episodes) -> RLSVIState:
        return RLSVIState(count_episodes(laws_of(problem, self.known_support), state.counts, episodes))
