"""UCRL2 for finite horizons: optimism over L1 balls around the empirical kernel (Jaksch, Ortner, Auer, 2010).

    Q_h = r_h + max { q.V_{h+1} : |q - p|_1 <= width },   width = sqrt(constant S log(2 A t_k/delta) / max(1, N))

(certain), with t_k the number of steps before the epoch.  The maximum is greedy: half the width goes to the best next
state *by value* and is taken from the worst ones.  An epoch ends with the episode in which the visits of some pair have
doubled (``doubling``), or with every episode, as a public code for finite horizons does, with the constant 4.
Rewards are known and get no width.  With known reachable sets, q lives on them, S becomes their size, and an unvisited
pair is worth its best reachable state.  Counts are pooled over stages that share table and parameter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from livarot.agents.base import BaseAgent
from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from livarot.estimation.counts import count_episodes, initial_counts, pair_visits
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.model.tabular_view import laws_of
from livarot.planning.empirical import Values, empty_values, optimistic_values
from livarot.simulation.streams import AgentRandom


class UCRL2State(NamedTuple):
    """The plan of the epoch is part of the state: it is made by the update that begins the epoch."""

    counts: IntArray  # (R, rows)
    epoch_visits: IntArray  # (R, pairs of all laws) before the epoch
    n_epochs: IntArray  # (R,)
    policy: Int32Array  # (R, H, S)
    value: FloatArray  # (R, H + 1, S)
    start_value: FloatArray  # (R,)
    episode: int


@checked
@dataclass(frozen=True)
class UCRL2(BaseAgent[UCRL2State]):
    """Optimism over transition kernels; the defaults are practical, see :meth:`theory`."""

    name: ClassVar[str] = "ucrl2"

    constant: float = 4.0  # in the width; 14 is the paper's
    width_scale: float = 0.1  # multiplies the width; 1 is the theory's
    failure_level: float = 0.05  # delta
    doubling: bool = False  # plan when the visits of some pair have doubled; False: after every episode
    known_support: bool = True  # use the reachable sets; False: any state may follow, as published

    @classmethod
    def theory(cls) -> UCRL2:
        """The printed constant and epochs."""
        return cls(constant=14.0, width_scale=1.0, doubling=True, known_support=False)

    def init(self, problem: Problem, n_replicas: int = 1) -> UCRL2State:
        counts = initial_counts(laws_of(problem, self.known_support), n_replicas)
        values = empty_values(problem, n_replicas)
        self._plan(problem, counts, 0, np.ones(n_replicas, dtype=np.bool_), values)
        return UCRL2State(
            counts,
            pair_visits(laws_of(problem, self.known_support), counts),
            np.ones(n_replicas, dtype=np.int64),
            *values,
            0,
        )

    def plan(self, problem: Problem, state: UCRL2State, rng: AgentRandom) -> Plan:
        return Plan(state.policy, state.value, state.start_value)

    def update(self, problem: Problem, state: UCRL2State, episodes: Episodes) -> UCRL2State:
        counts, episode = (
            count_episodes(laws_of(problem, self.known_support), state.counts, episodes),
            state.episode + 1,
        )
        due: BoolArray = np.ones(len(counts), dtype=np.bool_)
        before = state.epoch_visits
        if self.doubling:
            visits = pair_visits(laws_of(problem, self.known_support), counts)
            due = np.asarray(((visits > before) & (visits >= 2 * before)).any(axis=1))
            if not due.any():
                return state._replace(counts=counts, episode=episode)
            before = np.where(due[:, None], visits, before)
        values = Values(state.policy.copy(), state.value.copy(), state.start_value.copy())
        self._plan(problem, counts, episode, due, values)
        return UCRL2State(counts, before, state.n_epochs + due, *values, episode)

    def _plan(self, problem: Problem, counts: IntArray, episode: int, due: BoolArray, values: Values) -> None:
        steps = max(episode * problem.horizon, 1)
        width = self.constant * math.log(2.0 * problem.n_actions * steps / self.failure_level)
        widths = np.full(len(counts), self.width_scale * math.sqrt(width))
        optimistic_values(problem, laws_of(problem, self.known_support), counts, widths, due, values)
