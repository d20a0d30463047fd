"""LIVAROT over likelihood-ratio sets: confidence sets that are proved to hold theta*, and small enough to learn with.

    theta_hat_h = argmin over |theta| <= B of L_h(theta) + reg/2 |theta|^2          (L: the negative log-likelihood)
    C_h         = {theta : |theta - theta_hat_h|_gram <= radius_h}
    Q_h         = r_h + max over theta in C_h of E_theta[V_{h+1}]                   (or another rule of optimism)

gram is reg I plus a weighted Hessian of L_h at theta_hat_h.  The radius is that of the ellipsoid around the
likelihood-ratio set of the stage (:mod:`livarot.estimation.level_set` has the formulas and the proof).  With
probability 1 - delta, theta* lies in the sets of all stages in all episodes, however the data were collected; nothing
but |theta*| <= B is assumed, and ``reg`` may be any number > 0.

``optimism="level set"`` takes the maximum over the likelihood-ratio set itself in place of the ellipsoid around it
(:mod:`livarot.estimation.level_support`), for models whose pairs have at most two outcomes: there it is a convex
program, solved with a certificate, and the plan uses the certified bounds.  So Q_h is at least the maximum over the
set, and optimistic whenever theta* is in it, with the same probability as above.  It has about half the regret of the
ellipsoid on the chain, and takes several times as long (docs/agents.md).

Cost.  Counts per pair are sufficient statistics (:mod:`livarot.estimation.history`).  An episode takes two or three
Newton steps from the last estimate, O(n U d^2 + d^3) each with n the distinct pairs met, and as much again for the
level and the radius.

Deviation from Algorithm `algo:learning routine 2`: maximum likelihood in place of OMD, and another set; no regret bound
has been proved for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from livarot.agents.base import BaseAgent
from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.estimation.history import History, empty_history, fit_history, record
from livarot.estimation.level_set import LevelSettings, level_sets
from livarot.estimation.level_support import contrasts, reach_of
from livarot.estimation.omd import initial_estimate
from livarot.estimation.predictions import predicted_losses
from livarot.model.episodes import Episodes, Estimate, Plan, check_estimate
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.between import plan_between
from livarot.planning.optimistic.rules import JointMaximum, Rule
from livarot.simulation.streams import AgentRandom

DECREMENT = 1e-8  # of the last Newton step; what is left of the first-order gap enlarges the set


class SoundState(NamedTuple):
    """The estimate, all data, the losses of the predictions so far, the radii, and the number of episodes."""

    estimate: Estimate
    history: History
    predicted: FloatArray  # (R, K) sum of -log p_hat, p_hat the estimate before each episode
    radius: FloatArray  # (R, K)
    episode: int


@checked
@dataclass(frozen=True)
class SoundLivarot(BaseAgent[SoundState]):
    """Maximum likelihood in the B-ball with a valid set; every setting of ``reg`` and ``rule`` keeps the promise."""

    name: ClassVar[str] = "sound-livarot"
    adds_hessians: ClassVar[bool] = False
    sound: ClassVar[bool] = True

    failure_level: float = 0.05  # delta
    reg: float | None = None  # the ridge; None is 1/B^2
    beta_scale: float = 1.0  # multiplies the radius; below 1 nothing is promised
    rule: Rule = field(default_factory=JointMaximum)  # how the plan is optimistic
    level: Literal["prequential", "mixture", "published"] = "prequential"  # three valid ones; the first is smallest
    optimism: Literal["ellipsoid", "level set"] = "ellipsoid"  # "level set": for two outcomes, without ``rule``

    def init(self, problem: Problem, n_replicas: int = 1) -> SoundState:
        estimate = initial_estimate(problem, n_replicas, self._reg(problem))
        if self.optimism == "level set":
            contrasts(problem)  # refuses problems with more outcomes
        predicted = np.zeros(estimate.theta.shape[:2])
        return self._state(problem, estimate.theta, empty_history(problem, n_replicas), predicted, 0)

    def plan(self, problem: Problem, state: SoundState, rng: AgentRandom) -> Plan:
        check_estimate(problem, state.estimate)
        radius = self.beta_scale * state.radius[:, :, None]
        theta, gram, whiten = state.estimate
        unit = Estimate(theta, gram / radius**2, whiten * radius)  # one radius for all stages: 1
        if self.optimism == "ellipsoid":
            return optimistic_plan(problem, unit, 1.0, self.rule)
        # the level belongs to a ridge: that of this agent, whatever the state was made with
        own = self._state(problem, theta, state.history, state.predicted, state.episode)
        level, pairs = 0.5 * (self.beta_scale * own.radius) ** 2, contrasts(problem).of_pair
        reach = reach_of(problem, theta, state.history, self._reg(problem), level, float(problem.param_bound))
        lower, upper = np.zeros((2, *level.shape, len(pairs)))
        moves = pairs >= 0
        lower[:, :, moves], upper[:, :, moves] = (bound[:, :, pairs[moves]] for bound in (reach.lower, reach.upper))
        plan = plan_between(problem, lower, upper)
        return plan._replace(center=theta, gram=unit.gram, radius=np.ones(len(theta)))

    def update(self, problem: Problem, state: SoundState, episodes: Episodes) -> SoundState:
        history = record(problem, state.history, episodes)
        # whatever the level is: the state may go on with another one
        predicted = predicted_losses(problem, state.estimate.theta, episodes, state.predicted)
        bound = float(problem.param_bound)
        fitted = fit_history(problem, state.estimate.theta, history, self._reg(problem), DECREMENT, bound=bound)
        return self._state(problem, fitted.theta, history, predicted, state.episode + 1)

    def promised_coverage(self) -> float | None:
        """1 - delta, whatever the ridge and the rule are, unless ``beta_scale`` shrinks the sets."""
        return 1.0 - self.failure_level if self.beta_scale >= 1.0 else None

    def _state(
        self, problem: Problem, theta: FloatArray, history: History, predicted: FloatArray, episode: int
    ) -> SoundState:
        surprise = math.log(problem.n_parameters / self.failure_level)
        settings = LevelSettings(problem.param_bound, self._reg(problem), surprise, self.level == "published")
        found = level_sets(problem, theta, history, settings, predicted if self.level == "prequential" else None)
        return SoundState(Estimate(theta, found.gram, found.whiten), history, predicted, found.radius, episode)

    def _reg(self, problem: Problem) -> float:
        return 1.0 / max(problem.param_bound, 1e-6) ** 2 if self.reg is None else self.reg
