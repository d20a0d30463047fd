"""Learning one step at a time: an agent's plan before an episode, its update after it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from livarot.agents.base import Agent
from livarot.agents.states import require_state
from livarot.core.arrays import BoolArray, FloatArray
from livarot.errors import bad, require_positive_int, shown
from livarot.model.episodes import Plan, PlanCheck, Played, require_agent
from livarot.model.problem import Problem, require_problem
from livarot.simulation.rollout import draw_row
from livarot.simulation.streams import AgentRandom, action_uniforms


class LearnState(NamedTuple):
    """Where learning stands: the agent's state, the number of episodes behind it, and the problem's fingerprint.

    Without a fingerprint only sizes show whether the state belongs to the problem at hand.
    """

    agent: Any
    episode: int = 0
    problem: str | None = None


class Online:
    """An agent step by step: ``act`` gives the action of a stage, ``observe`` reports what followed.

    >>> import livarot
    >>> mdp = livarot.envs.river_swim(4, 3)
    >>> online = Online(livarot.agents.Livarot(), mdp.problem)
    >>> for stage in range(3):  # a swimmer who never gets anywhere
    ...     action = online.act(0, stage)
    ...     online.observe(0, action, 0.0, 0, stage)
    >>> online.episode
    1
    """

    def __init__(self, agent: Agent[Any], problem: Problem, seed: int = 0, *, state: LearnState | None = None) -> None:
        require_agent(agent)
        require_problem(problem)
        self.agent, self.problem = agent, problem
        self.seed = require_positive_int("seed", seed, minimum=0)
        self.state = LearnState(agent.init(problem), 0, problem.fingerprint)
        if state is not None:
            self._go_on_from(state)
        self._rng, self._look = AgentRandom([self.seed]), PlanCheck(problem, 1, agent.name)
        self._states = np.zeros((1, problem.horizon + 1), dtype=np.int32)
        self._actions = np.zeros((1, problem.horizon), dtype=np.int32)
        self._choices = np.zeros((1, problem.horizon), dtype=np.int32)
        self.discard()

    def _go_on_from(self, state: LearnState) -> None:
        if not isinstance(state, LearnState):
            raise bad("state", f"is {type(state).__name__}, not a LearnState", cure="pass LearnState(state, episode)")
        require_positive_int("episode", state.episode, minimum=0)
        known, own = state.problem, self.problem.fingerprint
        if known not in (None, own):
            raise bad("state", "was learned in another problem", cure="go on with the problem it was learned in")
        require_state(self.agent, self.problem, state.agent, same_problem=known is not None)
        self.state = LearnState(state.agent, state.episode, own)

    @property
    def episode(self) -> int:
        """How many episodes have been learned from; the number of the current one, from 0."""
        return self.state.episode

    @property
    def stage(self) -> int:
        """The stage whose transition comes next."""
        return self._stage

    def discard(self) -> None:
        """Forget the unfinished episode and go back to its stage 0; nothing is learned from it."""
        self._stage = 0
        self._plan: Plan | None = None
        self._luck: FloatArray | None = None

    def plan(self) -> Plan:
        """The plan of the current episode (of the next one, between two episodes), made when first asked for."""
        if self._plan is None:
            self._rng.start(self.state.episode)
            self._plan = self._look(self.agent.plan(self.problem, self.state.agent, self._rng), self.state.episode)
            if self._plan.policy.ndim == 4:
                self._luck = action_uniforms(self.seed, self.state.episode, 1, self.problem.horizon)[0]
        return self._plan

    def act(self, state: int, stage: int) -> int:
        """The action of the agent in ``state`` at ``stage``; asking again gives the same answer."""
        s, h = self._check(state, stage)
        policy = self.plan().policy[0]
        if self._luck is None:
            return int(policy[h, s])
        return int(draw_row(policy[h, s], 0, self.problem.n_actions - 1, self._luck[h]))

    def observe(
        self, state: int, action: int, reward: float, next_state: int, stage: int, *, terminated: bool = False
    ) -> None:
        """A transition that happened; at the last stage, or if it ``terminated`` the episode, the agent learns.

        The action need not be the one that ``act`` gave.  The Problem knows the rewards: this one is only checked.
        """
        s, h = self._check(state, stage)
        if not isinstance(terminated, bool | np.bool_ | int | np.integer):
            raise bad("terminated", f"{shown(terminated)} is not a truth value")
        a = number_of("action", action, self.problem.n_actions, self._where, h, s)
        following = number_of("next_state", next_state, self.problem.n_states, self._where, h, s, a)
        real = isinstance(reward, int | float | np.number)
        if not (real and math.isfinite(reward)):
            given = reward if real else shown(reward)
            raise bad("reward", f"{given} after {self._where(h, s, a)}", cure="check the environment")
        outcomes = self.problem.next_states(h, s, a).tolist()
        if not outcomes:
            cure = "take one that problem.available has"
            raise bad("action", f"does not exist at {self._where(h, s, a)}", cure=cure)
        if following not in outcomes:
            reachable = ", ".join(map(str, outcomes[:8]))
            raise bad(
                "next_state",
                f"{following} cannot follow {self._where(h, s, a)}, whose reachable set is {{{reachable}}}",
                cure="add it to the next states that features(h, s, a) lists",
            )
        if terminated and h + 1 < self.problem.horizon and not self._absorbing[h + 1, following]:
            raise bad(
                "terminated",
                f"state {following} ended the episode after {self._where(h, s, a)}, but in the problem it goes on",
                cure="list it in terminal_states, or give end_state, an absorbing state for all ends",
            )
        self._states[0, h], self._actions[0, h], self._choices[0, h] = s, a, outcomes.index(following)
        self._states[0, h + 1 :] = following
        if terminated:  # stays where it is: one outcome, which teaches nothing
            self._actions[0, h + 1 :] = 0
            self._choices[0, h + 1 :] = 0
        self._stage = h + 1
        if terminated or self._stage == self.problem.horizon:
            # copies, since an agent may keep what it is handed
            episodes = Played(self._states.copy(), self._actions.copy(), self._choices.copy())
            learned = self.agent.update(self.problem, self.state.agent, episodes)
            self.state = LearnState(learned, self.state.episode + 1, self.state.problem)
            self.discard()

    @cached_property
    def _absorbing(self) -> BoolArray:
        """Does a state, from a stage on, lead nowhere but to itself?  (H + 1, S)"""
        rows, size = self.problem.rows, (-1, self.problem.n_states, self.problem.n_actions)
        single = rows.outcomes.reshape(size) == 1
        first = np.minimum(rows.row_start[:-1], rows.n_rows - 1)  # pairs without rows do not exist
        itself = rows.next_state[first].reshape(size) == np.arange(size[1])[:, None]
        table = ((single & itself) | (rows.outcomes == 0).reshape(size)).all(axis=2)  # (tables, S)
        stays = np.ones((self.problem.horizon + 1, self.problem.n_states), dtype=np.bool_)
        for h in range(self.problem.horizon - 1, -1, -1):
            stays[h] = stays[h + 1] & table[self.problem.stage_table[h]]
        return stays

    def _check(self, state: int, stage: int) -> tuple[int, int]:
        if not isinstance(stage, int | np.integer) or stage != self._stage:
            cure = "call act and observe stage by stage, and discard() to begin an episode again"
            given = stage if isinstance(stage, int) else shown(stage)
            message = f"{given} in episode {self.episode}, where stage {self._stage} comes next"
            raise bad("stage", message, cure=cure)
        s = number_of("state", state, self.problem.n_states, "at stage {}".format, self._stage)
        if self._stage == 0 and self.problem.start[s] == 0.0:
            raise bad("state", f"{s} cannot be the first state", cure="give the problem a start that includes it")
        if self._stage > 0 and s != self._states[0, self._stage]:
            known = self._states[0, self._stage]
            raise bad("state", f"{s} at stage {self._stage}, where the last transition led to {known}")
        return s, self._stage

    def _where(self, stage: int, state: int, action: int | None = None) -> str:
        place = f"stage {stage}, state {state}" + ("" if action is None else f", action {action}")
        return f"{place} (episode {self.episode})"


def number_of(argument: str, value: Any, size: int, where: Callable[..., str], *place: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < size:
        raise bad(argument, f"{value!r} {where(*place)} is not in 0..{size - 1}", cure="number them from 0")
    return int(value)
