"""RRL-MNL: online Newton steps and Gaussian optimistic sampling (Cho, Hwang, Lee, Oh, NeurIPS 2024, Algorithm 1).

    Q_h    = min(r_h + p(theta) . V_{h+1} + max_m phihat . xi^(m), H),
    xi^(m) ~ N(0, (H alpha)^2 Sigma^-1),   m = 1, ..., M    (certain)

with samples per stage, shared by all (s, a), and phihat(s, a) the reachable phi of largest |phi|_{Sigma^-1};
theta and Sigma by :mod:`livarot.estimation.ons`, lambda = 1, M = ceil(1 - log H/log Phi(1)), alpha as in
:func:`livarot.confidence.radii.newton_radius`.  The bonus may be negative.  It needs kappa; regret
O~(kappa d^{3/2} H^2 sqrt T).  The paper's tuned values are not given, so there is no ``paper()``.

Deviations: one parameter may be shared by all stages (data pooled, in stage order; samples still one set per stage);
no bonus for a certain outcome; kappa is the bound U^2 exp(4B) unless given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.online import NewtonSteps, OnlineState
from livarot.confidence.radii import optimistic_samples
from livarot.core.arguments import checked
from livarot.model.episodes import Plan
from livarot.model.problem import Problem
from livarot.planning.sampling import LargestNormSampling, sampled_plan
from livarot.simulation.streams import AgentRandom


@checked
@dataclass(frozen=True)
class RRLMNL(NewtonSteps):
    """ONS with sampled bonuses; the default is tuned for practice, :meth:`theory` is the paper's."""

    name: ClassVar[str] = "rrl-mnl"

    kappa: float | None = 2.0  # 1/kappa_small; None is the bound U^2 exp(4B)
    reg: float = 1.0  # lambda
    beta_scale: float = 1e-4  # multiplies the radius; 1 is the theory's
    failure_level: float = 0.05  # delta
    n_samples: int | None = None  # M; None is the theory's

    @classmethod
    def theory(cls) -> RRLMNL:
        """The constants of the paper, kappa bounded by U^2 exp(4B)."""
        return cls(kappa=None, reg=1.0, beta_scale=1.0)

    def plan(self, problem: Problem, state: OnlineState, rng: AgentRandom) -> Plan:
        normals = rng.normal((problem.horizon, self.samples(problem), problem.dim))
        radius = self.radius(problem, state.episode)
        return sampled_plan(problem, state.estimate, radius, LargestNormSampling(), normals)

    def samples(self, problem: Problem) -> int:
        """M, the number of samples."""
        return optimistic_samples(problem.horizon) if self.n_samples is None else self.n_samples
