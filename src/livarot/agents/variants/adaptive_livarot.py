"""LIVAROT with a ridge that is learned: maximum likelihood under a Gaussian prior fitted to all stages.

    theta_hat_h = argmin  L_h(theta) + 1/2 |theta - mean|_P^2          (:mod:`livarot.estimation.prior_fit`)
    C_h         = {|theta - theta_hat_h|_gram <= sqrt(2 scale d_b)},   gram = the Hessian there
    Q_h         = r_h + max over C_h of E_theta[V_{h+1}]               (or another rule of optimism)

d_b is the size of a block of linked coordinates (d in a dense model).  The ridge is learned from the estimates of all
stages (empirical Bayes): one variance for what actions do, and one for what they have in common.  With ``pooling`` the
latter is shrunk towards a mean that the stages share, in place of 0.  Pooling is an option: on the chain it comes
within a fifth of the sign oracle, but where stages differ it has more regret (docs/agents.md).

**One budget for all stages.**  ``scale`` is .05 (.1 with pooling) for up to ten parameters, and 10/K of that beyond.
The bonuses of K stages add up in the value of the first state, and theta may lose the log-likelihood K scale d in all
of them together: beyond ten stages that is kept constant.  With one scale for all, long chains are explored too much.

**Actions that look bad.**  What is shrunk is believed: where known offsets, or bad luck, say that an action nobody has
tried is worse, the tuned sets never reach far enough to try it.  With ``prior_fade`` = f > 0 the prior on what actions
do counts (1 + t)^-f times in ``gram`` after t episodes (and as before in theta_hat).  The standard deviation of a
direction without data then grows as (1 + t)^(f/2), and sooner or later it is tried; one with data hardly notices.

Nothing is proved about these sets, and they do not cover theta*: ``beta_scale`` was tuned.  See
:class:`livarot.agents.SoundLivarot` for sets with a proof.  Cost: Newton steps from the last estimate on counts
(:mod:`livarot.estimation.history`); the prior is fitted anew after 1 + t//40 episodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from livarot.agents.base import BaseAgent
from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.estimation.history import History, empty_history, record
from livarot.estimation.omd import initial_estimate
from livarot.estimation.prior_fit import (
    Pool,
    PoolGuess,
    Prior,
    first_pool,
    fit_pool,
    fit_prior,
    learned_prior,
    nuisance,
    pooled_prior,
    with_mean_unknown,
    with_prior_faded,
)
from livarot.model.derived import derived
from livarot.model.episodes import Episodes, Estimate, Plan, check_estimate, check_shape
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import Rule, VarianceBonus
from livarot.simulation.streams import AgentRandom

WEIGHT = 4.0  # parameters that the first guess of the variance counts for
GUESS = PoolGuess(tau=0.1, weight=1.0, mean_reg=0.01)
OFTEN = 40
POOLED_SCALE, PLAIN_SCALE = 0.1, 0.05
LEAST_WEIGHT = 1e-6  # of the prior in the sets, which rounding in a Hessian of many visits does not swallow
FEW = 10  # parameters; more of them share the scale of this many


class AdaptiveState(NamedTuple):
    """The estimate, all data, the prior, what the stages share, and when the prior is fitted next."""

    estimate: Estimate
    history: History
    prior: Prior
    pool: Pool
    episode: int
    next_fit: int


@checked
@dataclass(frozen=True)
class AdaptiveLivarot(BaseAgent[AdaptiveState]):
    """Maximum likelihood with a learned prior and the variance-aware bonus; the sets are tuned, not proved."""

    name: ClassVar[str] = "adaptive-livarot"
    adds_hessians: ClassVar[bool] = False
    later_fields: ClassVar[tuple[str, ...]] = ("prior_fade",)

    beta_scale: float | None = None  # of the radius sqrt(2 scale d_b); None is .05 (pooled .1) times min(1, 10/K)
    reg: float = 1.0  # the first ridge, 1/v_0; if it is learned it begins at (d + 2)/B^2 where that is more
    learn_reg: bool = True  # learn the ridge (where nothing is pooled); False keeps the first
    pooling: bool = False  # shrink what no action touches towards a mean common to the stages: only where they agree
    prior_fade: float = 0.0  # f: the prior counts (1 + t)^-f times in the sets; above 0 whatever looks bad is tried
    rule: Rule = field(default_factory=VarianceBonus)  # how the plan is optimistic

    def init(self, problem: Problem, n_replicas: int = 1) -> AdaptiveState:
        estimate = initial_estimate(problem, n_replicas, self.first_ridge(problem))
        identity = np.tile(problem.rows.pack_identity(self.first_ridge(problem)), (n_replicas, 1))
        prior = Prior(identity, np.zeros((n_replicas, problem.dim)))
        pool = Pool(np.zeros((n_replicas, 0)), np.zeros((n_replicas, 0, 0)), np.ones(n_replicas))
        if self._pools(problem):
            pool = first_pool(problem, n_replicas, GUESS)
            prior = pooled_prior(problem, pool, self.reg)
        return AdaptiveState(estimate, empty_history(problem, n_replicas), prior, pool, 0, 1)

    def plan(self, problem: Problem, state: AdaptiveState, rng: AgentRandom) -> Plan:
        pools, estimate = self._pools(problem), state.estimate
        check_estimate(problem, estimate)
        if self.prior_fade > 0.0 and state.episode > 0:
            check_shape("prior.precision", state.prior.precision, (len(estimate.theta), problem.rows.gram_size))
            weight = max((1.0 + state.episode) ** -self.prior_fade, LEAST_WEIGHT)
            estimate = with_prior_faded(problem, estimate, state.prior, weight)
        if pools:
            check_shape("pool.mean", state.pool.mean, (len(estimate.theta), nuisance(problem).shape[1]))
            estimate = with_mean_unknown(problem, estimate, state.pool)
        scale = self.beta_scale
        if scale is None:
            scale = (POOLED_SCALE if pools else PLAIN_SCALE) * min(1.0, FEW / problem.n_parameters)
        square = 2.0 * max(scale, 1e-30) * block_sizes(problem)
        unit = Estimate(estimate.theta, estimate.gram / square, estimate.whiten * np.sqrt(square))
        return optimistic_plan(problem, unit, 1.0, self.rule)

    def update(self, problem: Problem, state: AdaptiveState, episodes: Episodes) -> AdaptiveState:
        history, t, pools = record(problem, state.history, episodes), state.episode + 1, self._pools(problem)
        prior, pool, next_fit = state.prior, state.pool, state.next_fit
        if pools:  # before the fit, so that the prior of a state is always the one in its gram
            prior = pooled_prior(problem, pool, self.reg)
        elif self.learn_reg and state.episode >= next_fit:
            prior = learned_prior(problem, state.estimate, WEIGHT, 1.0 / self.first_ridge(problem))
            next_fit = t + state.episode // OFTEN
        estimate = fit_prior(problem, state.estimate.theta, history, prior)
        if pools and t >= next_fit:
            pool, next_fit = fit_pool(problem, estimate, pool, GUESS), t + 1 + t // OFTEN
        return AdaptiveState(estimate, history, prior, pool, t, next_fit)

    def first_ridge(self, problem: Problem) -> float:
        """``reg``, or (d + 2)/B^2 if that is larger: B^2/(d+2) is the variance of an entry over the B-ball."""
        if self._pools(problem) or not self.learn_reg:
            return self.reg
        return max(self.reg, (problem.dim + 2.0) / max(problem.param_bound, 1e-6) ** 2)

    def _pools(self, problem: Problem) -> bool:
        """Is there something to pool: several parameters, and directions that no contrast between actions touches?"""
        return self.pooling and problem.n_parameters > 1 and nuisance(problem).shape[1] > 0


@derived
def block_sizes(problem: Problem) -> FloatArray:
    """The size of the block that each entry of a packed matrix belongs to, (G,)."""
    sizes = np.diff(problem.rows.block_start)
    return np.repeat(sizes.astype(np.float64), sizes * sizes)
