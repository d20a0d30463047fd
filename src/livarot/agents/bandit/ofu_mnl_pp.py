"""OFU-MNL++ for bandits of outcomes: optimistic utilities, a radius that B does not multiply (Lee and Oh, ICML 2025).

Their problem is to choose an assortment, a set of items with an outside option; the estimator is the same OMD, and an
item's utility is raised to phi_i . theta_hat + beta |phi_i|_{gram^-1}.  Constants (likely):

    eta = (1 + 3 sqrt2 B)/2,  lam = max{12 sqrt2 B eta, 144 eta d, 2},  beta = sqrt(2/3 d log(t/delta)) + 2 B sqrt lam.

beta is the LIVAROT paper's Lemma 2, which is this result (:func:`livarot.confidence.radii.livarot_radius`); version 5
of their paper repairs the gap in the proof of version 3 (E19).

**Raised utilities are not an upper bound here.**  In the best assortment every item is worth at least the whole, so
that raising a utility raises the revenue.  An arm of a bandit cannot drop its poor outcomes, and raising those lowers
its value.  So the default lets every utility move within its width and takes the exact maximum over that box: outcomes
worth more than the optimum are raised, the others lowered.  The two agree where every outcome but the reference is
worth at least the optimum (two outcomes, equal revenues).  ``printed_utilities=True`` raises them all.

For problems with one informative stage; others are refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.bandit.one_stage import OneStageAgent, raised_utility, utility_box
from livarot.agents.parts import lemma_index
from livarot.confidence.radii import livarot_radius
from livarot.core.arguments import checked
from livarot.model.problem import Problem
from livarot.planning.optimistic.rule import LaneRule


@checked
@dataclass(frozen=True)
class OFUMNLPP(OneStageAgent):
    """OMD with optimistic utilities."""

    name: ClassVar[str] = "ofu-mnl-pp"

    step_size: float | None = 1.0  # eta; None is the theory's (1 + 3 sqrt2 B)/2
    reg: float | None = 1.0  # lambda; None is the theory's max{12 sqrt2 B eta, 144 eta d, 2}
    beta_scale: float = 0.1  # multiplies the radius; 1 is the theory's
    failure_level: float = 0.05  # delta
    printed_utilities: bool = False  # raise every utility, as for assortments: not a bound in a bandit

    @classmethod
    def theory(cls) -> OFUMNLPP:
        """The constants of the paper (likely)."""
        return cls(step_size=None, reg=None, beta_scale=1.0)

    def optimism(self) -> LaneRule:
        rule: LaneRule = raised_utility if self.printed_utilities else utility_box
        return rule

    def formula(self, problem: Problem, episode: int) -> float:
        """beta without ``beta_scale``; one OMD step per episode."""
        t, reg = lemma_index(episode, self.reg), self._reg(problem)
        return livarot_radius(t, problem.dim, 1, problem.param_bound, reg, self.failure_level)

    def theory_step_size(self, problem: Problem) -> float:
        return 0.5 * (1.0 + 3.0 * math.sqrt(2.0) * problem.param_bound)

    def theory_reg(self, problem: Problem) -> float:
        eta = self._step_size(problem)
        return max(12.0 * math.sqrt(2.0) * problem.param_bound * eta, 144.0 * eta * problem.dim, 2.0)
