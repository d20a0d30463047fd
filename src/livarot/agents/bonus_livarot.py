"""LIVAROT with an additive, variance-aware bonus: no burn-in and no inner optimisation at all.

    Q_h = min( r_h + p . V + beta |Cov_p(phi, V)|_{gram^-1} + span(V)/2 beta^2 curvature,  r_h + max_i V_i ),
    curvature = min(max|phi_i|^2, max|phi_i - mean|^2) in the norm of gram^-1,   p at theta_hat,

with LIVAROT's estimate and radius.  It is an upper bound of LIVAROT's maximum over the ellipsoid (certain), so it is
optimistic where that is, and its first term is at most beta sqrt(Var V) sqrt(E|phi - mean|^2): it keeps the variance.
The paper lists such a bonus as open.  A proof of its regret has not been done.

Deviation: see :class:`livarot.planning.optimistic.rules.VarianceBonus` for the curvature.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.mnl.ucrl_mnl_ol import UCRLMNLOLState
from livarot.agents.parts import lemma_index, log_radius, updates
from livarot.confidence.radii import livarot_radius
from livarot.core.arguments import checked
from livarot.estimation.omd import ball, initial_estimate, omd_update
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import VarianceBonus
from livarot.simulation.streams import AgentRandom

logger = logging.getLogger(__name__)


@checked
@dataclass(frozen=True)
class BonusLivarot:
    """OMD with the variance-aware bonus; the default is tuned for practice, :meth:`theory` has LIVAROT's constants."""

    name: ClassVar[str] = "bonus-livarot"

    step_size: float = 3.0  # eta of the OMD step
    reg: float | None = 3.0  # lambda; None is the theory's 144 d
    beta_scale: float = 0.03  # multiplies the radius; 1 is the theory's
    failure_level: float = 0.05  # delta

    @classmethod
    def theory(cls) -> BonusLivarot:
        """The constants of LIVAROT's theorem: eta=1, lambda=144 d, the full radius."""
        return cls(step_size=1.0, reg=None, beta_scale=1.0)

    def init(self, problem: Problem, n_replicas: int = 1) -> UCRLMNLOLState:
        log_radius(logger, self.name, self.formula(problem, 0), self.radius(problem, 0))
        return UCRLMNLOLState(initial_estimate(problem, n_replicas, self._reg(problem)), 0)

    def plan(self, problem: Problem, state: UCRLMNLOLState, rng: AgentRandom) -> Plan:
        return optimistic_plan(problem, state.estimate, self.radius(problem, state.episode), VarianceBonus())

    def update(self, problem: Problem, state: UCRLMNLOLState, episodes: Episodes) -> UCRLMNLOLState:
        within = ball(problem, problem.param_bound, len(episodes.states))
        estimate = omd_update(problem, state.estimate, episodes, self.step_size, within)
        return UCRLMNLOLState(estimate, state.episode + 1)

    def radius(self, problem: Problem, episode: int) -> float:
        """beta of the plan made after ``episode`` episodes."""
        return self.beta_scale * self.formula(problem, episode)

    def formula(self, problem: Problem, episode: int) -> float:
        """beta without ``beta_scale``."""
        t = lemma_index(updates(problem, episode), self.reg)
        bound, reg = problem.param_bound, self._reg(problem)
        return livarot_radius(t, problem.dim, problem.horizon, bound, reg, self.failure_level)

    def _reg(self, problem: Problem) -> float:
        return 144.0 * problem.dim if self.reg is None else self.reg
