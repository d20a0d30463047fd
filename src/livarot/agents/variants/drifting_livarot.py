"""LIVAROT when the parameters drift: the same plans from an estimate that forgets.

The paper names drifting parameters as future work; there is no theorem behind this agent (all of it is a guess, in the
tradition of discounted and restarted linear bandits).  Before each OMD step the Gram matrix fades,

    gram  <-  discount gram + (1 - discount) reg I      (so that reg I stays, and old Hessians lose their weight)

then comes the usual step.  A discount between 0.99 and 0.999 suits a change every few hundred episodes; 1 is stationary
LIVAROT, bit for bit.  With ``restart_every`` = w the estimate starts afresh every w episodes instead (or as well).

The radius counts the updates that still have weight, n = (1 - discount^t)/(1 - discount), and says nothing about the
bias that the drift itself brings.  Cost: the whitener of every block is recomputed each episode, not only that of the
blocks that were visited.  With a shared theta the matrix fades once per episode, not once per stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from livarot.agents.online import MirrorDescent, OnlineState
from livarot.agents.parts import updates
from livarot.confidence.radii import livarot_radius
from livarot.core.arguments import checked
from livarot.errors import bad, require_positive
from livarot.estimation.omd import initial_estimate, whitened
from livarot.model.episodes import Episodes, Estimate, check_estimate
from livarot.model.problem import Problem
from livarot.planning.optimistic.rules import JointMaximum, Rule


@checked(discount=require_positive)
@dataclass(frozen=True)
class DriftingLivarot(MirrorDescent):
    """LIVAROT with a memory of about 1/(1 - discount) episodes, or of ``restart_every`` at most."""

    name: ClassVar[str] = "drifting-livarot"

    discount: float = 0.99  # of the Gram matrix, per episode; 1 forgets nothing
    restart_every: int | None = None  # start afresh every so many episodes; None: never
    step_size: float = 3.0  # eta of the OMD step
    reg: float = 3.0  # lambda of the Gram matrix
    beta_scale: float = 0.2  # multiplies the radius; wider than Livarot's, so that what was forgotten is tried again
    failure_level: float = 0.05  # delta
    rule: Rule = field(default_factory=JointMaximum)  # how the plan is optimistic

    def __post_init__(self) -> None:
        if self.discount > 1.0:
            raise bad(
                "discount", f"{self.discount} is above 1", cure="1 forgets nothing, 0.99 remembers about 100 episodes"
            )

    def optimism(self) -> Rule:
        return self.rule

    def update(self, problem: Problem, state: OnlineState, episodes: Episodes) -> OnlineState:
        episode = state.episode + 1
        if self.restart_every is not None and episode % self.restart_every == 0:
            return OnlineState(initial_estimate(problem, len(episodes.states), self.reg), episode)
        return OnlineState(self._step(problem, self._fade(problem, state.estimate), episodes), episode)

    def formula(self, problem: Problem, episode: int) -> float:
        if self.restart_every is not None:
            episode %= self.restart_every
        weight = float(episode)
        if self.discount < 1.0:
            weight = (1.0 - self.discount**episode) / (1.0 - self.discount)
        count = int(weight * updates(problem, 1))
        return livarot_radius(count, problem.dim, problem.horizon, problem.param_bound, self.reg, self.failure_level)

    def _fade(self, problem: Problem, estimate: Estimate) -> Estimate:
        if self.discount == 1.0:
            return estimate
        check_estimate(problem, estimate)
        floor = problem.rows.pack_identity((1.0 - self.discount) * self.reg)
        return whitened(problem, estimate.theta, self.discount * estimate.gram + floor)
