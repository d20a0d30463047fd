"""ORRL-MNL: online mirror descent and Gaussian optimistic sampling (Cho, Hwang, Lee, Oh, NeurIPS 2024, Algorithm 2).

    Q_h    = min(r_h + p(theta_hat) . V_{h+1} + nu, H),
    nu     = sum_i p_i max_m (phi_i - mean) . xi^(m) + 3 H beta^2 max_i |phi_i|^2_{gram^-1},
    xi^(m) ~ N(0, (H beta)^2 gram^-1),   m = 1, ..., M,

with samples per stage, shared by all (s, a).  Estimate and constants as in UCRL-MNL+, M = ceil(1 - log(H U)/log Phi(1))
(all certain).  No kappa is needed.  Regret O~(d^{3/2} H^2 sqrt T + kappa d^2 H^2).  The paper's tuned values are not
given, so there is no ``paper()``.

Deviations: one parameter may be shared by all stages (data pooled, in stage order; samples still one set per stage);
no bonus for a certain outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.mnl.ucrl_mnl_plus import ChoSets
from livarot.agents.online import OnlineState
from livarot.agents.parts import outcomes
from livarot.confidence.radii import optimistic_samples
from livarot.core.arguments import checked
from livarot.model.episodes import Plan
from livarot.model.problem import Problem
from livarot.planning.sampling import OutcomeSampling, sampled_plan
from livarot.simulation.streams import AgentRandom


@checked
@dataclass(frozen=True)
class ORRLMNL(ChoSets):
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

    def plan(self, problem: Problem, state: OnlineState, rng: AgentRandom) -> Plan:
        normals = rng.normal((problem.horizon, self.samples(problem), problem.dim))
        rule = OutcomeSampling(self.bonus_constant)
        return sampled_plan(problem, state.estimate, self.radius(problem, state.episode), rule, normals)

    def samples(self, problem: Problem) -> int:
        """M, the number of samples."""
        return optimistic_samples(problem.horizon * outcomes(problem)) if self.n_samples is None else self.n_samples
