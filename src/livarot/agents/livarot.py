"""LIVAROT: Logistic Inference with Variance-Aware Robust Optimistic Targets (Boudart, Gaillard, Rudi, 2026).

Algorithm `algo:learning routine 2`.  After an optional burn-in (:mod:`livarot.agents.exploration`), every episode

    plans   Q_h = r_h + max over theta in C_h of E_theta[V_{h+1}],  C_h = {theta : |theta - theta_hat_h|_gram <= beta_t}
    plays   pi_h(s) = argmax_a Q_h(s, a)

and updates theta_hat_h by online mirror descent on Theta_h, and gram by the Hessian at the new point.

Deviations from the printed algorithm: V is max_a Q (E16); the step size eta is explicit, eta = 1 is the printed update
(E15); the radius depends on reg and counts updates unless ``printed_radius`` (E18); Theta_h is intersected with the
B-ball (E8, E12); C_h is the plain ellipsoid (E17).  Nothing is clipped: a maximum over kernels stays within the range
of the values (E20).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from livarot.agents.exploration import (
    Exploration,
    LiteralExploration,
    Log,
    explored_set,
    kappa_of,
    rho,
)
from livarot.agents.parts import ConfidenceAgent, lemma_index, updates
from livarot.confidence.radii import exploration_length, livarot_radius, livarot_radius_printed
from livarot.core.arguments import checked
from livarot.errors import require_positive_int
from livarot.estimation.omd import (
    ParameterSet,
    ball,
    initial_estimate,
    omd_update,
    project_estimate,
    whitened,
)
from livarot.model.episodes import Episodes, Estimate, Plan, check_episodes, check_shape
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import JointMaximum, Rule
from livarot.simulation.streams import AgentRandom
from livarot.system.sizes import require_memory

logger = logging.getLogger(__name__)


class LivarotState(NamedTuple):
    """Estimates, the set they stay in, the exploration log and the number of episodes so far."""

    estimate: Estimate
    within: ParameterSet
    log: Log
    episode: int


@checked
@dataclass(frozen=True)
class Livarot(ConfidenceAgent[LivarotState]):
    """LIVAROT, both phases; see :meth:`paper` and :meth:`theory` for the published constants."""

    name: ClassVar[str] = "livarot"

    step_size: float = 3.0  # eta of the OMD step; 1 as printed, 20 in the paper's experiments
    reg: float | None = 3.0  # lambda of the Gram matrix; None is the theory's 144 d
    beta_scale: float = 0.05  # multiplies the radius; 1 is the theory's
    failure_level: float = 0.05  # delta
    printed_radius: bool = False  # sqrt(2/3 d log(t/delta)) + 24 B sqrt d, as printed
    rule: Rule = field(default_factory=JointMaximum)  # how the plan is optimistic
    n_explore: int | None = 0  # tau; None is the lemma's, more than any budget of episodes (E7)
    exploration: Exploration = field(default_factory=LiteralExploration)  # the burn-in's routine
    reg_explore: float | None = 1.0  # lambda_0; None is d log(tau H/delta) (E5)
    kappa: float | None = None  # None is the bound U^2 exp(4B)
    intersect_ball: bool = True  # Theta_h inside the B-ball (False: Theta_h alone)
    start_at_mle: bool = False  # learning starts at the exploration's estimate instead of 0 (E13)
    warm_start: bool = False  # keep the exploration's data in the Gram matrix (E14)
    n_episodes: int | None = None  # T, needed by the lemma's tau only

    def __post_init__(self) -> None:
        if self.n_explore is None:
            require_positive_int("n_episodes", self.n_episodes)

    @classmethod
    def paper(cls) -> Livarot:
        """The experiments of the paper: tau=80, lambda_0=1, lambda=10, eta=20, beta_scale=.01, literal exploration."""
        return cls(n_explore=80, reg_explore=1.0, reg=10.0, step_size=20.0, beta_scale=0.01, printed_radius=True)

    @classmethod
    def single_phase(cls) -> Livarot:
        """No burn-in, which is also the default: the plain B-ball, and learning from the first episode on."""
        return cls(n_explore=0)

    @classmethod
    def theory(cls, n_episodes: int, n_explore: int | None = 0) -> Livarot:
        """The constants of the theorem: eta=1, lambda=144 d, the full radius; ``n_explore=None`` is the lemma's tau."""
        return cls(
            step_size=1.0,
            reg=None,
            beta_scale=1.0,
            n_explore=n_explore,
            reg_explore=None,
            start_at_mle=True,
            n_episodes=n_episodes,
        )

    @property
    def burn_in(self) -> int | None:
        return self.n_explore

    def beside_the_sets(self) -> tuple[str, ...]:
        unused = () if self.n_explore != 0 else ("reg_explore", "kappa", "start_at_mle", "warm_start")
        return (*super().beside_the_sets(), "n_explore", "exploration", "n_episodes", *unused)

    def init(self, problem: Problem, n_replicas: int = 1) -> LivarotState:
        tau = self._tau(problem)
        require_memory("n_explore", "the record of the exploration", 2 * n_replicas * tau * problem.horizon)
        log = Log(
            np.zeros((n_replicas, tau, problem.horizon), dtype=np.int64),
            np.zeros((n_replicas, tau, problem.horizon), dtype=np.int32),
        )
        estimate = initial_estimate(problem, n_replicas, self._reg(problem))
        return LivarotState(estimate, ball(problem, problem.param_bound, n_replicas), log, 0)

    def plan(self, problem: Problem, state: LivarotState, rng: AgentRandom) -> Plan:
        tau = state.log.pairs.shape[1]
        if state.episode < tau:
            kappa = kappa_of(problem, self.kappa)
            return Plan(self.exploration.policy(problem, state.episode, tau, kappa, state.log))
        return optimistic_plan(problem, state.estimate, self._radius(problem, state.episode, tau), self.rule)

    def update(self, problem: Problem, state: LivarotState, episodes: Episodes) -> LivarotState:
        tau = state.log.pairs.shape[1]
        if state.episode >= tau:
            estimate = omd_update(problem, state.estimate, episodes, self.step_size, state.within)
            return LivarotState(estimate, state.within, state.log, state.episode + 1)
        episodes = check_episodes(problem, episodes)
        check_shape("log.pairs", state.log.pairs, (len(episodes.states), tau, problem.horizon))
        pairs, choices = state.log.pairs.copy(), state.log.choices.copy()
        first = problem.stage_table.astype(np.int64) * problem.n_states
        pairs[:, state.episode] = (first + episodes.states[:, :-1]) * problem.n_actions + episodes.actions
        choices[:, state.episode] = episodes.choices
        state = state._replace(log=Log(pairs, choices), episode=state.episode + 1)
        return self._end_exploration(problem, state) if state.episode == tau else state

    def radius(self, problem: Problem, episode: int, n_explore: int = 0) -> float:
        """beta of the plan made after ``episode`` episodes."""
        return self._radius(problem, episode, n_explore)

    def _radius(self, problem: Problem, episode: int, n_explore: int) -> float:
        """The same, without a check of the arguments."""
        if self.printed_radius:
            beta = livarot_radius_printed(episode + 1, problem.dim, problem.param_bound, self.failure_level)
        else:
            t, reg = lemma_index(updates(problem, episode - n_explore), self.reg), self._reg(problem)
            beta = livarot_radius(t, problem.dim, problem.horizon, problem.param_bound, reg, self.failure_level)
        return self.beta_scale * beta

    def formula(self, problem: Problem, episode: int) -> float:
        """beta without ``beta_scale``."""
        return replace(self, beta_scale=1.0).radius(problem, episode)

    def _end_exploration(self, problem: Problem, state: LivarotState) -> LivarotState:
        tau = state.log.pairs.shape[1]
        reg_explore = self.reg_explore
        if reg_explore is None:
            reg_explore = problem.dim * np.log(tau * problem.horizon / self.failure_level)
        within, hessian = explored_set(
            problem,
            self.exploration,
            state.log,
            reg_explore=float(reg_explore),
            kappa=kappa_of(problem, self.kappa),
            failure_level=self.failure_level,
        )
        if not self.intersect_ball:
            within = within._replace(bound=np.inf)
        estimate = state.estimate
        if self.warm_start:
            estimate = whitened(problem, estimate.theta, estimate.gram + hessian)
        if self.start_at_mle:
            estimate = estimate._replace(theta=within.center.copy())
        return state._replace(within=within, estimate=project_estimate(problem, estimate, within))

    def _reg(self, problem: Problem) -> float:
        return 144.0 * problem.dim if self.reg is None else self.reg

    def _tau(self, problem: Problem) -> int:
        if self.n_explore is not None:
            return self.n_explore
        assert self.n_episodes is not None  # noqa: S101 (checked in __post_init__)
        kappa = kappa_of(problem, self.kappa)
        tau = exploration_length(
            self.n_episodes, problem.dim, problem.horizon, problem.param_bound, kappa, rho(problem), self.failure_level
        )
        if tau > self.n_episodes:
            logger.warning(
                "the lemma's exploration length is %.3g, more than the %d episodes: the whole run is exploration",
                tau,
                self.n_episodes,
            )
        return int(min(tau, self.n_episodes))
