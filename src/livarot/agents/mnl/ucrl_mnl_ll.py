"""UCRL-MNL-LL: ridge maximum likelihood and a Bernstein set (Li, Zhang, Zhao, Zhou, third arXiv version; likely).

    theta_hat = argmin_theta { lambda_t/2 |theta|^2 - sum log p },   lambda_t = d log(t H/delta),
    C         = {theta : |theta| <= B, |G(theta) - G(theta_hat)|_{Hcal(theta)^-1} <= beta},
    beta      = (B + 3) sqrt(d log(t H/delta)),
    Q_h       = r_h + max over theta in C of p(theta) . V_{h+1},

with G(theta) the gradient map, ridge included, and Hcal its Jacobian.  **The name is a trap**: the NeurIPS version
calls UCRL-MNL-LL what the third arXiv version calls UCRL-MNL-OL (:mod:`livarot.agents.mnl.ucrl_mnl_ol`).

Deviations.  C is not convex, and no way to maximise over it is given.  It lies in an ellipsoid over which we can plan:
the third derivative of the loss along u is at most span(phi_i . u) <= 2|u| times the second, so with c = 2 |theta -
theta_hat| the mean Jacobian between the two points is at least Hcal/(1 + c) at either end, hence (certain)

    theta in C   =>   |theta - theta_hat|_{Hcal(theta_hat)} <= (1 + c) beta,    c <= 2 (B + |theta_hat|).

The plan is the joint maximum over that larger set, so it is optimistic where the paper's is.  Parameters of all stages
get the largest c of their replica.  One parameter may be shared by all stages, with pooled data.

Cost.  The paper's grows with t; here counts are kept instead of a log and the cost stops growing once every pair has
been met (:mod:`livarot.estimation.history`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from livarot.agents.parts import ConfidenceAgent, LikelihoodState
from livarot.confidence.radii import bernstein_radius
from livarot.core.arguments import checked
from livarot.estimation.history import empty_history, fit_history, record
from livarot.estimation.omd import initial_estimate
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import JointMaximum, Rule
from livarot.simulation.streams import AgentRandom


@checked
@dataclass(frozen=True)
class UCRLMNLLL(ConfidenceAgent[LikelihoodState]):
    """MLE with the joint maximum over (the ellipsoid around) its Bernstein set; the default is tuned for practice."""

    name: ClassVar[str] = "ucrl-mnl-ll"
    adds_hessians: ClassVar[bool] = False

    reg: float | None = 1.0  # lambda; None is the theory's d log(tH/delta)
    beta_scale: float = 0.01  # multiplies the radius; 1 is the theory's
    failure_level: float = 0.05  # delta
    self_concordance: float = 0.0  # 2 makes the ellipsoid contain the set; 0 takes the radius beta as it is
    rule: Rule = field(default_factory=JointMaximum)  # how the plan is optimistic

    @classmethod
    def theory(cls) -> UCRLMNLLL:
        """The constants of its paper (likely) and the ellipsoid that contains its set (certain)."""
        return cls(reg=None, beta_scale=1.0, self_concordance=2.0)

    def init(self, problem: Problem, n_replicas: int = 1) -> LikelihoodState:
        self.log_radius(problem)
        estimate = initial_estimate(problem, n_replicas, self._reg(problem, 0))
        return LikelihoodState(estimate, empty_history(problem, n_replicas), 0)

    def plan(self, problem: Problem, state: LikelihoodState, rng: AgentRandom) -> Plan:
        furthest = np.sqrt((state.estimate.theta**2).sum(axis=2)).max(axis=1)  # (R,)
        wider = 1.0 + self.self_concordance * (problem.param_bound + furthest)
        return optimistic_plan(problem, state.estimate, self.radius(problem, state.episode) * wider, self.rule)

    def update(self, problem: Problem, state: LikelihoodState, episodes: Episodes) -> LikelihoodState:
        history = record(problem, state.history, episodes)
        estimate = fit_history(problem, state.estimate.theta, history, self._reg(problem, state.episode + 1))
        return LikelihoodState(estimate, history, state.episode + 1)

    def formula(self, problem: Problem, episode: int) -> float:
        """beta of the plan made after ``episode`` episodes, without ``beta_scale`` and the factor 1 + c."""
        return bernstein_radius(episode + 1, problem.dim, problem.horizon, problem.param_bound, self.failure_level)

    def _reg(self, problem: Problem, episode: int) -> float:
        if self.reg is not None:
            return self.reg
        return problem.dim * math.log((episode + 1) * problem.horizon / self.failure_level)
