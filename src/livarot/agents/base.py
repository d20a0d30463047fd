"""What an agent is: three pure functions over a state, for R replicas (seeds) at once.

Every algorithm here fixes its policy before the episode and learns from it afterwards, so an agent is
``plan -> policy table`` and ``update(episodes) -> new state``: one call of each per episode, never one per step.
The replica axis leads every array of the state; a single run is R = 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from livarot.core.plan import Episodes, Plan
from livarot.core.problem import Problem
from livarot.errors import bad
from livarot.simulation.streams import AgentRandom
from livarot.storage import load_tensors, save_tensors

State = TypeVar("State", bound=tuple[Any, ...])


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


class NoState(NamedTuple):
    """The state of an agent that does not learn."""

    policy: np.ndarray[Any, Any]


def save_state(path: str | Path, agent: Agent[Any], state: tuple[Any, ...]) -> None:
    """Write an agent's state to one file (safetensors + JSON, no code inside), complete or not at all."""
    flat: dict[str, Any] = {}
    for name, part in zip(state._fields, state, strict=True):  # type: ignore[attr-defined]
        if isinstance(part, tuple):
            flat |= {f"{name}.{inner}": np.asarray(x) for inner, x in zip(part._fields, part, strict=True)}  # type: ignore[attr-defined]
        else:
            flat[name] = np.asarray(part)
    save_tensors(path, flat, kind="agent-state", header={"agent": agent.name, "settings": repr(agent)})


def load_state(path: str | Path, agent: Agent[State], problem: Problem) -> State:
    """Read a state written by :func:`save_state` with the same agent settings."""
    tensors, header = load_tensors(path, kind="agent-state")
    if header["agent"] != agent.name or header["settings"] != repr(agent):
        raise bad(
            "agent",
            f"the file holds the state of {header['settings']}",
            cure="load it with an agent that has the same settings",
        )
    pattern = agent.init(problem)
    parts = []
    for name, part in zip(pattern._fields, pattern, strict=True):  # type: ignore[attr-defined]
        if isinstance(part, tuple):
            inner = [tensors[f"{name}.{key}"] for key in part._fields]  # type: ignore[attr-defined]
            parts.append(type(part)(*_like(part, inner)))
        else:
            parts.extend(_like((part,), [tensors[name]]))
    return type(pattern)(*parts)


def _like(pattern: tuple[Any, ...], arrays: list[Any]) -> list[Any]:
    """Scalars come back as scalars, arrays as arrays."""
    return [x.item() if np.ndim(p) == 0 else x for p, x in zip(pattern, arrays, strict=True)]
