"""OFUL-MLogB: online mirror descent and a closed-form UCB for the multinomial logit bandit (Zhang and Sugiyama 2023).

Their model has K + 1 outcomes, a matrix W (K x d) with |W|_F <= S, an arm x and rewards rho with |rho|_2 <= R; in the
letters of this package phi(i|x) = e_i (x) x, B = S, and W's K d entries are theta.  The UCB of an arm is

    rho . s(W x) + beta |Hcal^{-1/2} (I (x) x) grad s rho|_2 + 3 R beta^2 |(I (x) x') Hcal^{-1/2}|_2^2

(shape certain, the square likely), that is, with y_i = W phi_i and Hcal = gram,

    p.v + beta |sum_i p_i (v_i - vbar) phi_i|_{gram^-1} + 3 |v|_2 beta^2 lambda_max(Y Y'),

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
from typing import ClassVar, NamedTuple

from livarot.agents.bandit.one_stage import gradient_bound, informative_stage, one_stage_plan
from livarot.confidence.radii import second_order_radius
from livarot.core.arguments import checked
from livarot.estimation.omd import ball, initial_estimate, omd_update
from livarot.model.episodes import Episodes, Estimate, Plan
from livarot.model.problem import Problem
from livarot.simulation.streams import AgentRandom


class OFULMLogBState(NamedTuple):
    estimate: Estimate
    episode: int


@checked
@dataclass(frozen=True)
class OFULMLogB:
    """OMD with the gradient bonus of the multinomial logit bandit."""

    name: ClassVar[str] = "oful-mlogb"
    made_for: ClassVar[str] = "mnl-bandit"

    step_size: float | None = 3.0  # eta; None is the theory's log(K+1)/2 + B + 1, K + 1 = U
    reg: float | None = 1.0  # lambda; None is the theory's 84 sqrt2 eta (B + sqrt(K) d)
    beta_scale: float = 0.02  # multiplies the radius; 1 is the theory's
    failure_level: float = 0.05  # delta, of the explicit radius alone
    printed_radius: bool = True  # log(K+1) log(t+1) sqrt(d), as in code; False is the explicit radius of OFU-MNL+
    bonus_constant: float = 3.0  # of the second-order term; 1/2 suffices

    @classmethod
    def theory(cls) -> OFULMLogB:
        """The constants of its paper (likely), with the explicit radius of OFU-MNL+."""
        return cls(step_size=None, reg=None, beta_scale=1.0, printed_radius=False)

    def init(self, problem: Problem, n_replicas: int = 1) -> OFULMLogBState:
        informative_stage(problem, self.name)
        return OFULMLogBState(initial_estimate(problem, n_replicas, self._reg(problem)), 0)

    def plan(self, problem: Problem, state: OFULMLogBState, rng: AgentRandom) -> Plan:
        radius = self.radius(problem, state.episode)
        return one_stage_plan(
            problem, state.estimate, radius, gradient_bound.with_settings(constant=self.bonus_constant), self.name
        )

    def update(self, problem: Problem, state: OFULMLogBState, episodes: Episodes) -> OFULMLogBState:
        within = ball(problem, problem.param_bound, len(episodes.states))
        estimate = omd_update(problem, state.estimate, episodes, self._step_size(problem), within)
        return OFULMLogBState(estimate, state.episode + 1)

    def radius(self, problem: Problem, episode: int) -> float:
        """beta of the plan made after ``episode`` episodes."""
        t, outcomes = episode + 1, max(problem.max_reachable, 2)
        if self.printed_radius:
            beta = math.log(outcomes) * math.log(t + 1.0) * math.sqrt(problem.dim)
        else:
            reg, eta = self._reg(problem), self._step_size(problem)
            beta = second_order_radius(t, problem.dim, 1, outcomes, problem.param_bound, reg, eta, self.failure_level)
        return self.beta_scale * beta

    def _step_size(self, problem: Problem) -> float:
        if self.step_size is not None:
            return self.step_size
        return 0.5 * math.log(max(problem.max_reachable, 2)) + problem.param_bound + 1.0

    def _reg(self, problem: Problem) -> float:
        if self.reg is not None:
            return self.reg
        root = math.sqrt(max(problem.max_reachable - 1, 1))
        return 84.0 * math.sqrt(2.0) * self._step_size(problem) * (problem.param_bound + root * problem.dim)
