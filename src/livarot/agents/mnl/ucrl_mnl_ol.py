"""UCRL-MNL-OL: online mirror descent with a closed-form second-order bonus (Li, Zhang, Zhao, Zhou, NeurIPS 2024).

    Q_h = clip_[0,H]( r_h + p(theta_hat) . V_{h+1} + e1 + e2 ),
    e1  = H beta sum_i p_i |phi_i - mean|_{gram^-1},   e2 = (5/2) H beta^2 max_i |phi_i|^2_{gram^-1}.

**The name is a trap**: this is UCRL-MNL-OL of the third arXiv version, the one LIVAROT's paper compares with; the
NeurIPS version calls the same mechanism UCRL-MNL-LL and gives the name OL to an algorithm with Newton steps whose
regret is multiplied by kappa.  e1 is certain, the constant 5/2 and the theory's step size and reg are likely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from livarot.agents.parts import outcomes, updates
from livarot.confidence.radii import second_order_radius, second_order_radius_printed
from livarot.core.arguments import checked
from livarot.estimation.omd import ball, initial_estimate, omd_update
from livarot.model.episodes import Episodes, Estimate, Plan
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import SecondOrderBonus
from livarot.simulation.streams import AgentRandom


class UCRLMNLOLState(NamedTuple):
    estimate: Estimate
    episode: int


@checked
@dataclass(frozen=True)
class UCRLMNLOL:
    """OMD with the second-order bonus; the defaults are the paper's tuned run."""

    name: ClassVar[str] = "ucrl-mnl-ol"

    step_size: float | None = 10.0  # eta; None is the theory's log(1+U)/2 + B + 1
    reg: float | None = 10.0  # lambda; None is the theory's 84 sqrt2 eta (B + d)
    beta_scale: float = 0.02  # multiplies the radius
    failure_level: float = 0.05  # delta
    printed_radius: bool = True  # sqrt(d) log U log(tH/delta); False is the explicit radius of OFU-MNL+
    bonus_constant: float = 2.5  # of the second-order term

    @classmethod
    def paper(cls) -> UCRLMNLOL:
        """The experiments of the LIVAROT paper: lambda=10, eta=10, beta_scale=.02."""
        return cls(step_size=10.0, reg=10.0, beta_scale=0.02)

    @classmethod
    def theory(cls) -> UCRLMNLOL:
        """The constants of its own paper (likely), with the explicit radius of OFU-MNL+."""
        return cls(step_size=None, reg=None, beta_scale=1.0, printed_radius=False)

    def init(self, problem: Problem, n_replicas: int = 1) -> UCRLMNLOLState:
        return UCRLMNLOLState(initial_estimate(problem, n_replicas, self._reg(problem)), 0)

    def plan(self, problem: Problem, state: UCRLMNLOLState, rng: AgentRandom) -> Plan:
        rule = SecondOrderBonus(self.bonus_constant)
        return optimistic_plan(problem, state.estimate, self.radius(problem, state.episode), rule)

    def update(self, problem: Problem, state: UCRLMNLOLState, episodes: Episodes) -> UCRLMNLOLState:
        within = ball(problem, problem.param_bound, len(episodes.states))
        estimate = omd_update(problem, state.estimate, episodes, self._step_size(problem), within)
        return UCRLMNLOLState(estimate, state.episode + 1)

    def radius(self, problem: Problem, episode: int) -> float:
        """beta of the plan made after ``episode`` episodes: t is their number as printed, and that of updates else."""
        if self.printed_radius:
            t = episode + 1
            beta = second_order_radius_printed(t, problem.dim, problem.horizon, outcomes(problem), self.failure_level)
        else:
            beta = second_order_radius(
                updates(problem, episode) + 1,
                problem.dim,
                problem.horizon,
                outcomes(problem),
                problem.param_bound,
                self._reg(problem),
                self._step_size(problem),
                self.failure_level,
            )
        return self.beta_scale * beta

    def _step_size(self, problem: Problem) -> float:
        if self.step_size is not None:
            return self.step_size
        return 0.5 * math.log(1.0 + problem.max_reachable) + problem.param_bound + 1.0

    def _reg(self, problem: Problem) -> float:
        if self.reg is not None:
            return self.reg
        return 84.0 * math.sqrt(2.0) * self._step_size(problem) * (problem.param_bound + problem.dim)
