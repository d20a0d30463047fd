"""Certainty equivalence: plan as if the estimate were the truth.  A control: learning without exploration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.mnl.ucrl_mnl_ol import UCRLMNLOLState
from livarot.core.arguments import checked
from livarot.estimation.omd import ball, initial_estimate, omd_update
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import PlugIn
from livarot.simulation.streams import AgentRandom


@checked
@dataclass(frozen=True)
class CertaintyEquivalent:
    """The OMD estimate and no optimism."""

    name: ClassVar[str] = "certainty-equivalent"

    step_size: float = 20.0  # eta
    reg: float = 10.0  # lambda

    def init(self, problem: Problem, n_replicas: int = 1) -> UCRLMNLOLState:
        return UCRLMNLOLState(initial_estimate(problem, n_replicas, self.reg), 0)

    def plan(self, problem: Problem, state: UCRLMNLOLState, rng: AgentRandom) -> Plan:
        return optimistic_plan(problem, state.estimate, 0.0, PlugIn())

    def update(self, problem: Problem, state: UCRLMNLOLState, episodes: Episodes) -> UCRLMNLOLState:
        within = ball(problem, problem.param_bound, len(episodes.states))
        estimate = omd_update(problem, state.estimate, episodes, self.step_size, within)
        return UCRLMNLOLState(estimate, state.episode + 1)
