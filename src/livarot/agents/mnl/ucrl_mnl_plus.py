"""UCRL-MNL+: online mirror descent and an additive bonus (Cho, Hwang, Lee, Oh, NeurIPS 2024, Algorithm 3; certain).

    Q_h = r_h + p(theta_hat) . V_{h+1} + H beta sum_i p_i |phi_i - mean|_{gram^-1}
              + 3 H beta^2 max_i |phi_i|^2_{gram^-1},      V_h = min(max_a Q_h, H),

theta_hat by OMD with eta = alpha/2, alpha = log U + 2(1 + B), gram += Hessian.

It is UCRL-MNL-OL (:mod:`livarot.agents.mnl.ucrl_mnl_ol`) with 3 for 5/2, other constants, and V clipped instead of Q.
Regret O~(d H^2 sqrt T + kappa d^2 H^2).  The paper's tuned values are not given, so there is no ``paper()``.

Deviations: one parameter may be shared by all stages (data pooled, in stage order); no bonus for a certain outcome.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.mnl.ucrl_mnl_ol import UCRLMNLOLState
from livarot.agents.parts import log_radius, outcomes, transitions
from livarot.confidence.radii import mirror_alpha, mirror_radius, mirror_reg
from livarot.core.arguments import checked
from livarot.estimation.omd import ball, initial_estimate, omd_update
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import SecondOrderBonus
from livarot.simulation.streams import AgentRandom

logger = logging.getLogger(__name__)


@checked
@dataclass(frozen=True)
class UCRLMNLPlus:
    """OMD with Cho's bonus; the default is tuned for practice, :meth:`theory` is the paper's."""

    name: ClassVar[str] = "ucrl-mnl-plus"

    step_size: float | None = 10.0  # eta; None is the theory's alpha/2
    reg: float | None = 10.0  # lambda; None is the theory's max(12 sqrt2, 48 d) alpha
    beta_scale: float = 0.001  # multiplies the radius; 1 is the theory's
    failure_level: float = 0.05  # delta
    bonus_constant: float = 3.0  # of the second-order term

    @classmethod
    def theory(cls) -> UCRLMNLPlus:
        """The constants of the paper."""
        return cls(step_size=None, reg=None, beta_scale=1.0)

    def init(self, problem: Problem, n_replicas: int = 1) -> UCRLMNLOLState:
        log_radius(logger, self.name, self.formula(problem, 0), self.radius(problem, 0))
        return UCRLMNLOLState(initial_estimate(problem, n_replicas, self._reg(problem)), 0)

    def plan(self, problem: Problem, state: UCRLMNLOLState, rng: AgentRandom) -> Plan:
        rule = SecondOrderBonus(self.bonus_constant, clip_value=True)
        return optimistic_plan(problem, state.estimate, self.radius(problem, state.episode), rule)

    def update(self, problem: Problem, state: UCRLMNLOLState, episodes: Episodes) -> UCRLMNLOLState:
        within = ball(problem, problem.param_bound, len(episodes.states))
        estimate = omd_update(problem, state.estimate, episodes, self._step_size(problem), within)
        return UCRLMNLOLState(estimate, state.episode + 1)

    def radius(self, problem: Problem, episode: int) -> float:
        """beta of the plan made after ``episode`` episodes."""
        return self.beta_scale * self.formula(problem, episode)

    def formula(self, problem: Problem, episode: int) -> float:
        """beta without ``beta_scale``."""
        reg, count = self._reg(problem), transitions(problem, episode)
        bound, level = problem.param_bound, self.failure_level
        return mirror_radius(count, problem.dim, problem.horizon, outcomes(problem), bound, reg, level)

    def _step_size(self, problem: Problem) -> float:
        if self.step_size is not None:
            return self.step_size
        return 0.5 * mirror_alpha(outcomes(problem), problem.param_bound)

    def _reg(self, problem: Problem) -> float:
        return mirror_reg(problem.dim, outcomes(problem), problem.param_bound) if self.reg is None else self.reg
