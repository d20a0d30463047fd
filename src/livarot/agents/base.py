"""What an agent is: three pure functions over a state, for R replicas (seeds) at once.

Every algorithm here fixes its policy before the episode and learns from it afterwards, so an agent is
``plan -> policy table`` and ``update(episodes) -> new state``: one call of each per episode, never one per step.
The replica axis leads every array of the state; a single run is R = 1.

:class:`Agent` has the three methods that every agent must have.  :class:`Declaration` has the questions that callers
ask besides, with the usual answers.  A :class:`BaseAgent` is both; for any other agent, :func:`declared` fills in the
usual answers.
"""

from __future__ import annotations

import dataclasses
import inspect
import logging
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from livarot.core.arguments import checked
from livarot.errors import bad
from livarot.file_layout import Entry, Layout
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.simulation.streams import AgentRandom
from livarot.storage import load_tensors, reading, save_tensors

logger = logging.getLogger(__name__)
HEADER = {"agent": Entry(str), "settings": Entry(str), "problem": Entry(str, optional=True)}
PRESETS = ("paper", "theory", "single-phase")  # names of published settings
State = TypeVar("State", bound=tuple[Any, ...])
Part = TypeVar("Part")


class Agent(Protocol[State]):
    """A frozen dataclass whose fields are the hyper-parameters; it never sees theta*."""

    name: ClassVar[str]

    def init(self, problem: Problem, n_replicas: int = 1) -> State:
        """The state before the first episode."""
        ...

    def plan(self, problem: Problem, state: State, rng: AgentRandom) -> Plan:
        """The policy of the next episode."""
        ...

    def update(self, problem: Problem, state: State, episodes: Episodes) -> State:
        """The state after that episode; the old one is left as it was."""
        ...


class Declaration(Protocol[State]):
    """What callers ask of an agent besides its three methods, and the usual answers."""

    learns: ClassVar[bool] = True  # False: a control
    plays_given_policy: ClassVar[bool] = False  # it is built with a ``policy``, which may be the optimal one
    adds_hessians: ClassVar[bool] = True  # its Gram matrix is lambda I plus Hessians, and it keeps no other data
    later_fields: ClassVar[tuple[str, ...]] = ()  # newer than stored runs: their keys name them where they are set
    sound: ClassVar[bool] = False  # the promised coverage has a proof that is written down and tested here

    @property
    def made_for(self) -> str | None:
        """A registered environment of the only kind that it can play; None: it plays any problem."""
        return None

    @property
    def cost_grows(self) -> bool:
        """Does each episode cost more than the one before, by design?"""
        return False

    @property
    def burn_in(self) -> int | None:
        """Episodes before it begins to learn; None: as many as its theory asks for."""
        return 0

    def select(self, replicas: slice) -> Agent[State]:
        """The agent of some of the replicas, when a run is split between workers."""
        ...

    def promised_coverage(self) -> float | None:
        """1 - delta if the theory promises that theta* stays in its confidence sets, otherwise None."""
        return None

    def facts(self) -> dict[str, Any]:
        """The promised coverage, and all settings that are finite numbers, text, truth values or None."""
        ...


class BaseAgent(Declaration[State], Agent[State]):
    """An agent with the usual answers; a subclass overrides those that do not fit it."""

    def select(self, replicas: slice) -> Agent[State]:
        return self

    def facts(self) -> dict[str, Any]:
        promised = self.promised_coverage()
        proved = {"sound": True} if self.sound and promised is not None else {}
        return {"promised_coverage": promised} | proved | plain_settings(self)


@dataclasses.dataclass(frozen=True)
class Wrapper(BaseAgent[Any]):
    """An agent that wraps another one and gives that agent's answers."""

    agent: Agent[Any]  # the wrapped agent, which plans and learns

    @property
    def made_for(self) -> str | None:
        return declared(self.agent).made_for

    @property
    def cost_grows(self) -> bool:
        return declared(self.agent).cost_grows

    @property
    def burn_in(self) -> int | None:
        return declared(self.agent).burn_in

    def select(self, replicas: slice) -> Agent[Any]:
        chosen = declared(self.agent).select(replicas)
        return self if chosen is self.agent else dataclasses.replace(self, agent=chosen)


class _Completed(Declaration[State]):
    """The answers of a user's agent that is not a BaseAgent: its attribute of that name, or else the usual answer."""

    def __init__(self, agent: Agent[State]) -> None:
        self.agent: Any = agent

    @property
    def made_for(self) -> str | None:
        return getattr(self.agent, "made_for", None)

    @property
    def cost_grows(self) -> bool:
        return bool(getattr(self.agent, "cost_grows", False))

    def select(self, replicas: slice) -> Agent[State]:
        chosen: Agent[State] = self.agent.select(replicas) if hasattr(self.agent, "select") else self.agent
        return chosen

    def facts(self) -> dict[str, Any]:
        return {"promised_coverage": None} | plain_settings(self.agent)


def declared(agent: Agent[State]) -> Declaration[State]:
    """An agent's own answers, completed by the usual ones."""
    return agent if isinstance(agent, BaseAgent) else _Completed(agent)


class Promise(NamedTuple):
    """What is promised about an agent's sets: theta* in all of them at all times with this probability, and why."""

    level: float
    sound: bool  # the proof is written down and tested here; otherwise a published theory says so

    def __str__(self) -> str:
        return f"{100.0 * self.level:g} %, {'sound' if self.sound else 'by its theory'}"


def promise_of(agent: Agent[Any]) -> Promise | None:
    """The promise of an agent with these settings; None: nothing is promised.

    >>> from livarot.agents import Livarot, SoundLivarot
    >>> str(promise_of(SoundLivarot())), str(promise_of(Livarot.theory(50))), promise_of(Livarot())
    ('95 %, sound', '95 %, by its theory', None)
    """
    about = declared(agent)
    level = about.promised_coverage()
    return None if level is None else Promise(level, bool(about.sound))


def declared_by(factory: object) -> type[BaseAgent[Any]]:
    """The class whose class attributes describe the agents that a registered factory makes."""
    return factory if isinstance(factory, type) and issubclass(factory, BaseAgent) else BaseAgent


def plain_settings(agent: object) -> dict[str, Any]:
    """The fields of a dataclass that are finite numbers, text, truth values or None."""
    fields = dataclasses.fields(agent) if dataclasses.is_dataclass(agent) else ()
    values = {field.name: getattr(agent, field.name) for field in fields}
    return {
        name: value
        for name, value in values.items()
        if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
    }


def presets_of(factory: Any) -> dict[str, Callable[[int], Any]]:
    """Published settings that an agent's class has, by name, as functions of the number of episodes.

    They are the class methods with the names in ``PRESETS``; one with a parameter ``n_episodes`` is given that number.

    >>> from livarot.agents import Livarot
    >>> list(presets_of(Livarot)), presets_of(Livarot)["paper"](100).n_explore
    (['paper', 'theory', 'single-phase'], 80)
    """
    found = {name: getattr(factory, name.replace("-", "_"), None) for name in PRESETS}
    return {name: partial(_made, method) for name, method in found.items() if callable(method)}


def _made(preset: Callable[..., Any], n_episodes: int) -> Any:
    asks = "n_episodes" in inspect.signature(preset).parameters
    return preset(n_episodes=n_episodes) if asks else preset()


def part_of(state: tuple[Any, ...], kind: type[Part]) -> Part | None:
    """The first part of a state that is of this kind, such as its Estimate; None if it has none."""
    return next((part for part in state if isinstance(part, kind)), None)


class NoState(NamedTuple):
    """The state of an agent that does not learn."""

    policy: np.ndarray[Any, Any]


@checked
def save_state(path: str | Path, agent: Agent[Any], state: tuple[Any, ...], problem: Problem | None = None) -> None:
    """Write an agent's state to one file (safetensors + JSON, no code inside), complete or not at all.

    With ``problem``, the one that the state was learned in, its fingerprint is written too, and the state cannot be
    loaded for another problem; without it only sizes are compared.
    """
    from livarot.agents.states import flat

    header = {"agent": agent.name, "settings": repr(agent)}
    if problem is not None:
        header["problem"] = problem.fingerprint
    save_tensors(path, flat(state), kind="agent-state", header=header)


@checked
def load_state(path: str | Path, agent: Agent[State], problem: Problem) -> State:
    """Read a state written by :func:`save_state` with the same agent settings and problem.

    :mod:`livarot.agents.states` has the checks that a state must pass.
    """
    from livarot.agents.states import check_state, layout_of, rebuilt

    def layout(header: dict[str, Any]) -> Layout:
        with reading(path):
            Layout(HEADER, {}).check_head(header, {})
        if header["agent"] != agent.name or header["settings"] != repr(agent):
            raise bad(
                "agent",
                f"the file holds the state of {header['settings']}",
                cure="load it with an agent that has the same settings",
            )
        known = header.get("problem")
        if known not in (None, problem.fingerprint):
            raise bad("problem", "the file holds a state of another problem", cure="load it with its own problem")
        if known is None:
            logger.info("%s does not say which problem its state was learned in: only sizes are compared", path)
        return layout_of(agent, problem, same_problem=known is not None)._replace(header=HEADER)

    tensors, _ = load_tensors(path, kind="agent-state", layout=layout)
    with reading(path):
        state: State = rebuilt(agent.init(problem), tensors)
        check_state(problem, state)
    return state
