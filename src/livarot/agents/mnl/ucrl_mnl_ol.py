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
from typing import ClassVar

from livarot.agents.online import MirrorDescent
from livarot.agents.parts import outcomes, updates
from livarot.confidence.radii import second_order_radius, second_order_radius_printed
from livarot.core.arguments import checked
from livarot.model.problem import Problem
from livarot.planning.optimistic.rules import Rule, SecondOrderBonus


@checked
@dataclass(frozen=True)
class UCRLMNLOL(MirrorDescent):
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

    def optimism(self) -> Rule:
        return SecondOrderBonus(self.bonus_constant)

    def formula(self, problem: Problem, episode: int) -> float:
        """beta without ``beta_scale``; t counts episodes in the printed radius and updates in the other one."""
        d, horizon, n_outcomes, delta = problem.dim, problem.horizon, outcomes(problem), self.failure_level
        if self.printed_radius:
            return second_order_radius_printed(episode + 1, d, horizon, n_outcomes, delta)
        t, bound = updates(problem, episode) + 1, problem.param_bound
        reg, eta = self._reg(problem), self._step_size(problem)
        return second_order_radius(t, d, horizon, n_outcomes, bound, reg, eta, delta)

    def theory_step_size(self, problem: Problem) -> float:
        return 0.5 * math.log(1.0 + problem.max_reachable) + problem.param_bound + 1.0

    def theory_reg(self, problem: Problem) -> float:
        return 84.0 * math.sqrt(2.0) * self._step_size(problem) * (problem.param_bound + problem.dim)
