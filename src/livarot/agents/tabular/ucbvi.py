"""UCBVI: value iteration on empirical kernels with a bonus (Azar, Osband, Munos, ICML 2017).

    Q_h = min(Q'_h, H, r_h + p.V_{h+1} + b),   L = log(5 S A T H/delta)

with Q'_h that of the last plan, and Q_h = H for unvisited pairs.  The bonus is one of

    Hoeffding   b = 7 H L / sqrt N    (CH, certain)
    Bernstein   b = sqrt(8 L Var_p(V_{h+1})/N) + 14 H L/(3 N)
                    + sqrt((8/N) sum_y p(y) min(100^2 H^3 S^2 A L^2/N'_{h+1}(y), H^2))    (BF, certain)
    Simple      b = c/sqrt N + (H - h)/N    (certain: a public library's practical choice)

Rewards are known.  N is pooled over stages that share table and parameter (the homogeneous algorithm) and per stage
otherwise.  Known reachable sets help twice: pairs with one outcome get no bonus, and Q is at most r + max V over them.

Deviations: everything is multiplied by ``bonus_scale``; Q is at most r + max V over the possible next states, in place
of H; the minimum with the last plan's Q is taken only if ``monotone``, since it costs one more plan per update; Var is
that of V under p (a public code takes another one).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from livarot.agents.base import BaseAgent
from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, IntArray
from livarot.estimation.counts import count_episodes, count_states, initial_counts
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.model.tabular_view import laws_of
from livarot.planning.empirical import BonusCode, Values, bonus_values
from livarot.simulation.streams import AgentRandom


@checked
@dataclass(frozen=True)
class Hoeffding:
    """b = constant H L / sqrt N."""

    constant: float = 7.0  # as printed

    def code(self, problem: Problem, log: float) -> BonusCode:
        return BonusCode(1.0, over_root=self.constant * problem.horizon * log)


@checked
@dataclass(frozen=True)
class Bernstein:
    """b = sqrt(8 L Var/N) + 14 H L/(3N) + the correction of the module's docstring."""

    correction: float = 1e4  # 100^2 as printed: the term is then H sqrt(8/N) for every N in practice; 0 leaves it out

    def code(self, problem: Problem, log: float) -> BonusCode:
        horizon, states = float(problem.horizon), float(problem.n_states)
        far = self.correction * horizon**3 * states**2 * problem.n_actions * log**2
        return BonusCode(1.0, variance=math.sqrt(8.0 * log), over_n=14.0 / 3.0 * horizon * log, correction=far)


@checked
@dataclass(frozen=True)
class Simple:
    """b = constant/sqrt N + (H - h)/N: no logarithm, no guarantee."""

    constant: float = 1.0  # of the first term

    def code(self, problem: Problem, log: float) -> BonusCode:
        return BonusCode(1.0, over_root=self.constant, over_n_left=1.0)


class UCBVIState(NamedTuple):
    """Visits of every outcome; visits of states at stages (Bernstein only); the lowest Q so far (monotone only)."""

    counts: IntArray  # (R, rows)
    state_visits: IntArray  # (R, H, S) or (R, 0, 0)
    q: FloatArray  # (R, H, S, A) or (R, 0, 0, 0)
    episode: int


@checked
@dataclass(frozen=True)
class UCBVI(BaseAgent[UCBVIState]):
    """Optimistic tabular value iteration; the defaults are practical, see :meth:`theory`."""

    name: ClassVar[str] = "ucbvi"

    bonus: Hoeffding | Bernstein | Simple = field(default_factory=Simple)  # the kind of bonus
    bonus_scale: float = 1.0  # multiplies the bonus
    failure_level: float = 0.05  # delta
    known_support: bool = True  # use the reachable sets; False: any state may follow, as published
    monotone: bool = False  # Q never above the last plan's, as printed
    n_episodes: int | None = None  # T of the logarithm; None is the number of episodes so far

    @classmethod
    def theory(cls, n_episodes: int, bonus: Hoeffding | Bernstein | None = None) -> UCBVI:
        """The printed algorithm, CH unless ``bonus=Bernstein()``."""
        chosen = Hoeffding() if bonus is None else bonus
        return cls(chosen, 1.0, known_support=False, monotone=True, n_episodes=n_episodes)

    def init(self, problem: Problem, n_replicas: int = 1) -> UCBVIState:
        far = isinstance(self.bonus, Bernstein) and self.bonus.correction > 0.0
        visits = np.zeros((n_replicas, *((problem.horizon, problem.n_states) if far else (0, 0))), dtype=np.int64)
        q = np.full((n_replicas, *(problem.reward.shape if self.monotone else (0, 0, 0))), float(problem.horizon))
        return UCBVIState(initial_counts(laws_of(problem, self.known_support), n_replicas), visits, q, 0)

    def plan(self, problem: Problem, state: UCBVIState, rng: AgentRandom) -> Plan:
        return self._values(problem, state, state.q.copy()).plan()

    def update(self, problem: Problem, state: UCBVIState, episodes: Episodes) -> UCBVIState:
        visits, q = state.state_visits, state.q
        if self.monotone:
            q = q.copy()
            self._values(problem, state, q)
        if visits.size:
            visits = count_states(visits, episodes)
        return UCBVIState(
            count_episodes(laws_of(problem, self.known_support), state.counts, episodes), visits, q, state.episode + 1
        )

    def _values(self, problem: Problem, state: UCBVIState, q: FloatArray) -> Values:
        """The plan of a state; ``q`` becomes the lowest Q so far."""
        steps = (self.n_episodes or state.episode + 1) * problem.horizon
        log = math.log(5.0 * problem.n_states * problem.n_actions * steps / self.failure_level)
        code = self.bonus.code(problem, log)._replace(scale=self.bonus_scale)
        return bonus_values(problem, laws_of(problem, self.known_support), state.counts, code, state.state_visits, q)
