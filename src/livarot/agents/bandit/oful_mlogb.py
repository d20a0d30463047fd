"""OFUL-MLogB: online mirror descent and a closed-form UCB for the multinomial logit bandit (Zhang and Sugiyama 2023).

Their model has K + 1 outcomes, a matrix W (K x d) with |W|_F <= S, an arm x and rewards rho with |rho|_2 <= R; in the
letters of this package phi(i|x) = e_i (x) x, B = S, and W's K d entries are theta.  The UCB of an arm is

    rho . s(W x) + beta |Hcal^{-1/2} (I (x) x) grad s rho|_2 + 3 R beta^2 |(I (x) x') Hcal^{-1/2}|_2^2

(shape certain, the square likely), that is, with y_i = W phi_i and Hcal = gram,

    UCB = p . v + beta |sum_i p_i (v_i - vbar) phi_i|_{gram^-1} + 3 |v|_2 beta^2 lambda_max(Y Y'),

which makes sense for any features and is what is computed here (:mod:`livarot.agents.bandit.one_stage`).  It bounds
every expectation over the confidence set: the second derivative of p(theta).v along a direction is at most span(v)
times a variance, so that 1/2 in place of 3 would do.

Deviations: Q is at most max v; log K of the radius is log(K + 1), since it would be 0 for two outcomes; K^{3/2} d is
sqrt(K) times the number of parameters.  Step size and reg of the theory are likely.
For problems with one informative stage; others are refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.bandit.one_stage import OneStageAgent, gradient_bound
from livarot.agents.parts import outcomes
from livarot.confidence.radii import second_order_radius
from livarot.core.arguments import checked
from livarot.model.problem import Problem
from livarot.planning.optimistic.rule import LaneRule


@checked
@dataclass(frozen=True)
class OFULMLogB(OneStageAgent):
    """OMD with the gradient bonus of the multinomial logit bandit."""

    name: ClassVar[str] = "oful-mlogb"

    step_size: float | None = 3.0  # eta; None is the theory's log(K+1)/2 + B + 1, K + 1 = U
    reg: float | None = 1.0  # lambda; None is the theory's 84 sqrt2 eta (B + sqrt(K) d)
    beta_scale: float = 0.02  # multiplies the radius; 1 is the theory's
    failure_level: float = 0.05  # delta; used by the explicit radius only
    printed_radius: bool = True  # log(K+1) log(t+1) sqrt(d), as in code; False is the explicit radius of OFU-MNL+
    bonus_constant: float = 3.0  # of the second-order term; 1/2 suffices

    @classmethod
    def theory(cls) -> OFULMLogB:
        """The constants of its paper (likely), with the explicit radius of OFU-MNL+."""
        return cls(step_size=None, reg=None, beta_scale=1.0, printed_radius=False)

    def optimism(self) -> LaneRule:
        rule: LaneRule = gradient_bound.with_settings(constant=self.bonus_constant)
        return rule

    def formula(self, problem: Problem, episode: int) -> float:
        t, d, n_outcomes = episode + 1, problem.dim, outcomes(problem)
        if self.printed_radius:
            return math.log(n_outcomes) * math.log(t + 1.0) * math.sqrt(d)
        reg, eta = self._reg(problem), self._step_size(problem)
        return second_order_radius(t, d, 1, n_outcomes, problem.param_bound, reg, eta, self.failure_level)

    def theory_step_size(self, problem: Problem) -> float:
        return 0.5 * math.log(outcomes(problem)) + problem.param_bound + 1.0

    def theory_reg(self, problem: Problem) -> float:
        root = math.sqrt(outcomes(problem) - 1)
        return 84.0 * math.sqrt(2.0) * self._step_size(problem) * (problem.param_bound + root * problem.dim)
