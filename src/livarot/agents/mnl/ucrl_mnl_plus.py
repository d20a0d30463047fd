"""UCRL-MNL+: online mirror descent and an additive bonus (Cho, Hwang, Lee, Oh, NeurIPS 2024, Algorithm 3; certain).

    Q_h = r_h + p(theta_hat) . V_{h+1} + H beta sum_i p_i |phi_i - mean|_{gram^-1}
              + 3 H beta^2 max_i |phi_i|^2_{gram^-1},      V_h = min(max_a Q_h, H),

theta_hat by OMD with eta = alpha/2, alpha = log U + 2(1 + B), gram += Hessian.

It is UCRL-MNL-OL (:mod:`livarot.agents.mnl.ucrl_mnl_ol`) with 3 for 5/2, other constants, and V clipped instead of Q.
Regret O~(d H^2 sqrt T + kappa d^2 H^2).  The paper's tuned values are not given, so there is no ``paper()``.

Deviations: one parameter may be shared by all stages (data pooled, in stage order); no bonus for a certain outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.online import MirrorDescent
from livarot.agents.parts import outcomes, transitions
from livarot.confidence.radii import mirror_alpha, mirror_radius, mirror_reg
from livarot.core.arguments import checked
from livarot.model.problem import Problem
from livarot.planning.optimistic.rules import Rule, SecondOrderBonus


@checked
class ChoSets(MirrorDescent):
    """OMD with the step size, lambda and radius of Cho et al., which UCRL-MNL+ and ORRL-MNL share."""

    def formula(self, problem: Problem, episode: int) -> float:
        reg, count = self._reg(problem), transitions(problem, episode)
        bound, level = problem.param_bound, self.failure_level
        return mirror_radius(count, problem.dim, problem.horizon, outcomes(problem), bound, reg, level)

    def theory_step_size(self, problem: Problem) -> float:
        return 0.5 * mirror_alpha(outcomes(problem), problem.param_bound)

    def theory_reg(self, problem: Problem) -> float:
        return mirror_reg(problem.dim, outcomes(problem), problem.param_bound)


@checked
@dataclass(frozen=True)
class UCRLMNLPlus(ChoSets):
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

    def optimism(self) -> Rule:
        return SecondOrderBonus(self.bonus_constant, clip_value=True)
