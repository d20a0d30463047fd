"""ORRL-MNL: online mirror descent and Gaussian optimistic sampling (Cho, Hwang, Lee, Oh, NeurIPS 2024, Algorithm 2).

    xi^(1..M) ~ N(0, (H beta)^2 gram^-1) per stage, shared by all (s, a),
    Q_h = min(r_h + p(theta_hat) . V_{h+1} + nu, H),
    nu = sum_i p_i max_m (phi_i - mean) . xi^(m) + 3 H beta^2 max_i |phi_i|^2_{gram^-1}.

Estimate and constants as in UCRL-MNL+, M = ceil(1 - log(H U)/log Phi(1)) (all certain).  No kappa is needed.  Regret
O~(d^{3/2} H^2 sqrt T + kappa d^2 H^2).  The paper's tuned values are not given, so there is no ``paper()``.

Deviations: one parameter may be shared by all stages (data pooled, in stage order; samples still one set per stage);
no bonus for a certain outcome.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.mnl.ucrl_mnl_ol import UCRLMNLOLState
from livarot.agents.parts import log_radius, outcomes, transitions
from livarot.confidence.radii import mirror_alpha, mirror_radius, mirror_reg, optimistic_samples
from livarot.core.arguments import checked
from livarot.estimation.omd import ball, initial_estimate, omd_update
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.planning.sampling import OutcomeSampling, sampled_plan
from livarot.simulation.streams import AgentRandom

logger = logging.getLogger(__name__)


@checked
@dataclass(frozen=True)
class ORRLMNL:
    """OMD with sampled bonuses; the default is tuned for practice, :meth:`theory` is the paper's."""

    name: ClassVar[str] = "orrl-mnl"

    step_size: float | None = 3.0  # eta; None is the theory's alpha/2
    reg: float | None = 3.0  # lambda; None is the theory's max(12 sqrt2, 48 d) alpha
    beta_scale: float = 2e-4  # multiplies the radius; 1 is the theory's
    failure_level: float = 0.05  # delta
    n_samples: int | None = None  # M; None is the theory's
    bonus_constant: float = 3.0  # of the second-order term

    @classmethod
    def theory(cls) -> ORRLMNL:
        """The constants of the paper."""
        return cls(step_size=None, reg=None, beta_scale=1.0)

    def init(self, problem: Problem, n_replicas: int = 1) -> UCRLMNLOLState:
        log_radius(logger, self.name, self.formula(problem, 0), self.radius(problem, 0))
        return UCRLMNLOLState(initial_estimate(problem, n_replicas, self._reg(problem)), 0)

    def plan(self, problem: Problem, state: UCRLMNLOLState, rng: AgentRandom) -> Plan:
        normals = rng.normal((problem.horizon, self.samples(problem), problem.dim))
        rule = OutcomeSampling(self.bonus_constant)
        return sampled_plan(problem, state.estimate, self.radius(problem, state.episode), rule, normals)

    def update(self, problem: Problem, state: UCRLMNLOLState, episodes: Episodes) -> UCRLMNLOLState:
        within = ball(problem, problem.param_bound, len(episodes.states))
        estimate = omd_update(problem, state.estimate, episodes, self._step_size(problem), within)
        return UCRLMNLOLState(estimate, state.episode + 1)

    def samples(self, problem: Problem) -> int:
        """M."""
        return optimistic_samples(problem.horizon * outcomes(problem)) if self.n_samples is None else self.n_samples

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
