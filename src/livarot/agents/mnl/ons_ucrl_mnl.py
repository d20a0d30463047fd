"""ONS-UCRL-MNL: online Newton steps and the max-norm bonus (Li, Zhang, Zhao, Zhou, NeurIPS 2024).

    Q_h = clip_[0,H]( r_h + p(theta) . V_{h+1} + 2 H beta max_i |phi_i|_{Sigma^-1} ),

theta and Sigma by :mod:`livarot.estimation.ons`.  **The name is a trap**: the NeurIPS version calls this UCRL-MNL-OL,
a name that the third arXiv version gives to another algorithm (:mod:`livarot.agents.mnl.ucrl_mnl_ol`), so it is named
after its estimator here.  Regret O~(kappa d H^2 sqrt T), constant cost per episode.

The estimator is certain (it is that of Cho et al.), bonus and clip are likely.  Its own paper's radius is known by its
order only, sqrt(kappa d) log(tH/delta) (likely); the explicit one of Cho et al. for the same estimate is ``theory()``.

Deviations: one parameter may be shared by all stages (data pooled, in stage order); no bonus for a certain outcome;
kappa is the bound U^2 exp(4B) unless given.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.mnl.ucrl_mnl_ol import UCRLMNLOLState
from livarot.agents.parts import finite_kappa, log_radius, outcomes, transitions
from livarot.confidence.radii import newton_radius, newton_radius_printed
from livarot.core.arguments import checked
from livarot.estimation.omd import initial_estimate
from livarot.estimation.ons import ons_update
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import MaxNormBonus
from livarot.simulation.streams import AgentRandom

logger = logging.getLogger(__name__)


@checked
@dataclass(frozen=True)
class ONSUCRLMNL:
    """ONS with the max-norm bonus; the default is tuned for practice."""

    name: ClassVar[str] = "ons-ucrl-mnl"

    kappa: float | None = 2.0  # 1/kappa_small; None is the bound U^2 exp(4B)
    reg: float = 1.0  # lambda
    beta_scale: float = 3e-4  # multiplies the radius; 1 is the theory's
    failure_level: float = 0.05  # delta
    printed_radius: bool = True  # sqrt(kappa d) log(tH/delta); False is the explicit alpha of Cho et al.
    bonus_constant: float = 2.0  # of H beta max|phi|

    @classmethod
    def theory(cls) -> ONSUCRLMNL:
        """kappa bounded by U^2 exp(4B), lambda = 1 and the explicit radius of Cho et al."""
        return cls(kappa=None, reg=1.0, beta_scale=1.0, printed_radius=False)

    def init(self, problem: Problem, n_replicas: int = 1) -> UCRLMNLOLState:
        log_radius(logger, self.name, self.formula(problem, 0), self.radius(problem, 0))
        return UCRLMNLOLState(initial_estimate(problem, n_replicas, self.reg), 0)

    def plan(self, problem: Problem, state: UCRLMNLOLState, rng: AgentRandom) -> Plan:
        radius = self.radius(problem, state.episode)
        return optimistic_plan(problem, state.estimate, radius, MaxNormBonus(self.bonus_constant))

    def update(self, problem: Problem, state: UCRLMNLOLState, episodes: Episodes) -> UCRLMNLOLState:
        information = 0.5 / finite_kappa(problem, self.kappa)
        estimate = ons_update(problem, state.estimate, episodes, information, problem.param_bound)
        return UCRLMNLOLState(estimate, state.episode + 1)

    def radius(self, problem: Problem, episode: int) -> float:
        """beta of the plan made after ``episode`` episodes."""
        return self.beta_scale * self.formula(problem, episode)

    def formula(self, problem: Problem, episode: int) -> float:
        """beta without ``beta_scale``."""
        kappa, d, horizon = finite_kappa(problem, self.kappa), problem.dim, problem.horizon
        if self.printed_radius:
            return newton_radius_printed(episode + 1, d, horizon, kappa, self.failure_level)
        count, bound = transitions(problem, episode), problem.param_bound
        return newton_radius(count, d, horizon, outcomes(problem), bound, self.reg, kappa, self.failure_level)
