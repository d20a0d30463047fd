"""Two agents that do not learn: the uniform policy and the optimal one.  Every figure needs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from livarot.agents.base import BaseAgent, NoState
from livarot.core.arguments import checked
from livarot.errors import bad, shown
from livarot.model.episodes import Episodes, Plan, check_policy
from livarot.model.problem import Problem
from livarot.simulation.streams import AgentRandom


class Control(BaseAgent[NoState]):
    """An agent that plays the same policy for ever."""

    learns: ClassVar[bool] = False

    def plan(self, problem: Problem, state: NoState, rng: AgentRandom) -> Plan:
        return Plan(state.policy)

    def update(self, problem: Problem, state: NoState, episodes: Episodes) -> NoState:
        return state


@checked
@dataclass(frozen=True)
class Uniform(Control):
    """Every action that exists with the same probability: a stochastic policy, so its exact regret has no noise."""

    name: ClassVar[str] = "uniform"

    def init(self, problem: Problem, n_replicas: int = 1) -> NoState:
        return NoState(np.ascontiguousarray(problem.exists / problem.exists.sum(axis=2, keepdims=True))[None])


@checked
@dataclass(frozen=True, eq=False)
class Oracle(Control):
    """Plays a given policy, normally ``solve(mdp).policy``: the one agent that may know theta*.

    ``policy`` is (H, S) or (H, S, A) for all replicas, or has a leading axis with one policy per replica.
    """

    name: ClassVar[str] = "oracle"
    plays_given_policy: ClassVar[bool] = True

    policy: NDArray[Any] = field(repr=False)  # what to play

    def __post_init__(self) -> None:
        if np.asarray(self.policy, dtype=object).ndim < 2:
            raise bad("policy", f"{shown(self.policy)} is not a policy", cure="give (H, S) actions or (H, S, A)")

    def _single(self) -> bool:
        table = np.asarray(self.policy)
        return table.ndim == (2 if np.issubdtype(table.dtype, np.integer) else 3)

    def select(self, replicas: slice) -> Oracle:
        return self if self._single() else Oracle(np.asarray(self.policy)[replicas])

    def init(self, problem: Problem, n_replicas: int = 1) -> NoState:
        table = np.asarray(self.policy)
        tables = [table] if self._single() else list(table)
        if len(tables) not in (1, n_replicas):
            raise bad("policy", f"{len(tables)} policies for {n_replicas} seeds", cure="give one, or one per seed")
        return NoState(np.stack([check_policy(problem, one) for one in tables]))
