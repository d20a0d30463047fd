"""Agents that learn by one online step per episode: OMD or ONS, one state and one update for all of them.

An agent of this family derives from :class:`MirrorDescent` or :class:`NewtonSteps` and adds what its paper specifies:
settings and presets, the radius (``formula``), how the plan is optimistic (``optimism``), and the theory's step size
and lambda where the settings may leave them open (None).
"""

from __future__ import annotations

from typing import NamedTuple

from livarot.agents.parts import ConfidenceAgent, finite_kappa, lemma_index, outcomes, transitions, updates
from livarot.confidence.radii import livarot_radius, newton_radius
from livarot.core.arguments import checked
from livarot.estimation.omd import ball, initial_estimate, omd_update
from livarot.estimation.ons import ons_update
from livarot.model.episodes import Episodes, Estimate, Plan
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import Rule
from livarot.simulation.streams import AgentRandom


class OnlineState(NamedTuple):
    """theta_hat with its Gram matrix, and the number of episodes they were learned from."""

    estimate: Estimate
    episode: int


@checked
class OnlineAgent(ConfidenceAgent[OnlineState]):
    """theta_hat begins at 0, its Gram matrix at lambda I, and both take one step per episode."""

    reg: float | None  # lambda; None is the theory's

    def init(self, problem: Problem, n_replicas: int = 1) -> OnlineState:
        self.log_radius(problem)
        return OnlineState(initial_estimate(problem, n_replicas, self._reg(problem)), 0)

    def plan(self, problem: Problem, state: OnlineState, rng: AgentRandom) -> Plan:
        return optimistic_plan(problem, state.estimate, self.radius(problem, state.episode), self.optimism())

    def update(self, problem: Problem, state: OnlineState, episodes: Episodes) -> OnlineState:
        return OnlineState(self._step(problem, state.estimate, episodes), state.episode + 1)

    def optimism(self) -> Rule:
        """How the plan is optimistic; an agent that plans in its own way overrides ``plan`` instead."""
        raise NotImplementedError

    def _step(self, problem: Problem, estimate: Estimate, episodes: Episodes) -> Estimate:
        """The estimate after the episodes."""
        raise NotImplementedError

    def theory_reg(self, problem: Problem) -> float:
        """lambda of the theory."""
        raise NotImplementedError

    def _reg(self, problem: Problem) -> float:
        return self.theory_reg(problem) if self.reg is None else self.reg


@checked
class MirrorDescent(OnlineAgent):
    """Online mirror descent on the B-ball (:mod:`livarot.estimation.omd`)."""

    step_size: float | None  # eta; None is the theory's

    def _step(self, problem: Problem, estimate: Estimate, episodes: Episodes) -> Estimate:
        within = ball(problem, problem.param_bound, len(episodes.states))
        return omd_update(problem, estimate, episodes, self._step_size(problem), within)

    def theory_step_size(self, problem: Problem) -> float:
        """eta of the theory."""
        raise NotImplementedError

    def _step_size(self, problem: Problem) -> float:
        return self.theory_step_size(problem) if self.step_size is None else self.step_size


@checked
class LivarotSets(MirrorDescent):
    """OMD with the lambda and the radius of LIVAROT's lemma."""

    def theory_reg(self, problem: Problem) -> float:
        return 144.0 * problem.dim

    def formula(self, problem: Problem, episode: int) -> float:
        t, reg = lemma_index(updates(problem, episode), self.reg), self._reg(problem)
        return livarot_radius(t, problem.dim, problem.horizon, problem.param_bound, reg, self.failure_level)


@checked
class NewtonSteps(OnlineAgent):
    """Online Newton steps (:mod:`livarot.estimation.ons`), with the explicit radius of Cho et al."""

    adds_hessians = False
    kappa: float | None  # 1/kappa_small; None is the bound U^2 exp(4B)

    def _step(self, problem: Problem, estimate: Estimate, episodes: Episodes) -> Estimate:
        information = 0.5 / finite_kappa(problem, self.kappa)
        return ons_update(problem, estimate, episodes, information, problem.param_bound)

    def formula(self, problem: Problem, episode: int) -> float:
        return newton_radius(
            transitions(problem, episode),
            problem.dim,
            problem.horizon,
            outcomes(problem),
            problem.param_bound,
            self._reg(problem),
            finite_kappa(problem, self.kappa),
            self.failure_level,
        )
