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

from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.online import NewtonSteps
from livarot.agents.parts import finite_kappa
from livarot.confidence.radii import newton_radius_printed
from livarot.core.arguments import checked
from livarot.model.problem import Problem
from livarot.planning.optimistic.rules import MaxNormBonus, Rule


@checked
@dataclass(frozen=True)
class ONSUCRLMNL(NewtonSteps):
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

    def optimism(self) -> Rule:
        return MaxNormBonus(self.bonus_constant)

    def formula(self, problem: Problem, episode: int) -> float:
        if not self.printed_radius:
            return super().formula(problem, episode)
        kappa = finite_kappa(problem, self.kappa)
        return newton_radius_printed(episode + 1, problem.dim, problem.horizon, kappa, self.failure_level)
