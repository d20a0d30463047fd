"""UCRL-MNL: ridge maximum likelihood and the max-norm bonus (Hwang and Oh, AAAI 2023).

    theta_hat = argmin_theta { lambda/2 |theta|^2 - sum_t log p_t(theta) },
    A         = lambda I + sum_t sum_i phi_{t,i} phi_{t,i}'
    Q_h       = clip_[0,H]( r_h + p(theta_hat) . V_{h+1} + 2 H beta max_i |phi_i|_{A^-1} )    (certain)

with sums over the transitions t seen, p_t the probability of what was seen, and over the outcomes i.  Regret O~(kappa d
H^2 sqrt T).  The radius is likely up to constants; the public experiments use c sqrt(d log(1 + tHS/(d lambda))), lambda
= 1 (certain), and c from a grid.

Cost.  The paper's cost per episode and memory grow with t.  Here counts of (pair, outcome) are kept instead of a log,
the estimate is the same, and both stop growing once every pair has been met (:mod:`livarot.estimation.history`).

Deviations: the paper has one parameter for all stages; one per stage works too, with that stage's data.  No bonus for
a certain outcome, and such pairs add nothing to A.  V_h is max_a of the new Q_h (the public script takes an older Q).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.parts import ConfidenceAgent, LikelihoodState, finite_kappa, outcomes, transitions
from livarot.confidence.radii import max_norm_radius, max_norm_radius_printed
from livarot.core.arguments import checked
from livarot.estimation.history import empty_history, fit_history, record
from livarot.estimation.omd import initial_estimate
from livarot.estimation.ons import add_design
from livarot.model.episodes import Episodes, Estimate, Plan
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import MaxNormBonus
from livarot.simulation.streams import AgentRandom


@checked
@dataclass(frozen=True)
class UCRLMNL(ConfidenceAgent[LikelihoodState]):
    """MLE with the max-norm bonus; the default is tuned for practice."""

    name: ClassVar[str] = "ucrl-mnl"
    adds_hessians: ClassVar[bool] = False

    reg: float = 1.0  # lambda, of the estimate and of A
    beta_scale: float = 0.002  # multiplies the radius; 1 is the theory's; c of the public experiments
    printed_radius: bool = True  # sqrt(d log(1 + tHS/(d lambda))); False is the theory's, with kappa
    kappa: float | None = None  # None is the bound U^2 exp(4B); used by the theory's radius only
    failure_level: float = 0.05  # delta; used by the theory's radius only
    bonus_constant: float = 2.0  # of H beta max|phi|

    @classmethod
    def paper(cls) -> UCRLMNL:
        """The public experiments on RiverSwim with S=6, H=20: lambda=1, c=.01 (the largest of their grid)."""
        return cls(reg=1.0, beta_scale=0.01, printed_radius=True)

    @classmethod
    def theory(cls) -> UCRLMNL:
        """The paper's radius (likely), kappa bounded by U^2 exp(4B)."""
        return cls(reg=1.0, beta_scale=1.0, printed_radius=False)

    def init(self, problem: Problem, n_replicas: int = 1) -> LikelihoodState:
        self.log_radius(problem)
        return LikelihoodState(initial_estimate(problem, n_replicas, self.reg), empty_history(problem, n_replicas), 0)

    def plan(self, problem: Problem, state: LikelihoodState, rng: AgentRandom) -> Plan:
        radius = self.radius(problem, state.episode)
        return optimistic_plan(problem, state.estimate, radius, MaxNormBonus(self.bonus_constant))

    def update(self, problem: Problem, state: LikelihoodState, episodes: Episodes) -> LikelihoodState:
        history = record(problem, state.history, episodes)
        theta = fit_history(problem, state.estimate.theta, history, self.reg).theta
        gram, whiten = state.estimate.gram.copy(), state.estimate.whiten.copy()
        add_design(problem, gram, whiten, episodes)
        return LikelihoodState(Estimate(theta, gram, whiten), history, state.episode + 1)

    def formula(self, problem: Problem, episode: int) -> float:
        d, horizon, reg = problem.dim, problem.horizon, self.reg
        if self.printed_radius:
            return max_norm_radius_printed(episode + 1, d, horizon, problem.n_states, reg)
        count, kappa = transitions(problem, episode), finite_kappa(problem, self.kappa)
        bound, level = problem.param_bound, self.failure_level
        return max_norm_radius(count, d, horizon, outcomes(problem), bound, reg, kappa, level)
