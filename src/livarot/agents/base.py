"""What an agent is: three pure functions over a state, for R replicas (seeds) at once.

Every algorithm here fixes its policy before the episode and learns from it afterwards, so an agent is
``plan -> policy table`` and ``update(episodes) -> new state``: one call of each per episode, never one per step.
The replica axis leads every array of the state; a single run is R = 1.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from livarot.core.arguments import checked
from livarot.errors import bad
from livarot.layout import Entry, Layout
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.simulation.streams import AgentRandom
from livarot.storage import load_tensors, reading, save_tensors

logger = logging.getLogger(__name__)
HEADER = {"agent": Entry(str), "settings": Entry(str), "problem": Entry(str, optional=True)}
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


@checked
def save_state(path: str | Path, agent: Agent[Any], state: tuple[Any, ...], problem: Problem | None = None) -> None:
    """Write an agent's state to one file (safetensors + JSON, no code inside), complete or not at all.

    With the ``problem`` it was learned in, its fingerprint is written too, and the state of another problem is refused
    when it is loaded; without it only sizes are compared.
    """
    from livarot.agents.states import flat

    header = {"agent": agent.name, "settings": repr(agent)}
    if problem is not None:
        header["problem"] = problem.fingerprint
    save_tensors(path, flat(state), kind="agent-state", header=header)


@checked
def load_state(path: str | Path, agent: Agent[State], problem: Problem) -> State:
    """Read a state written by :func:`save_state` with the same agent settings and problem.

    What else is refused: :mod:`livarot.agents.states`.
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
            raise bad("problem", "the file holds a state of another problem", cure="load it with the one it is of")
        if known is None:
            logger.info("%s does not say which problem it is of: only sizes are compared", path)
        return layout_of(agent, problem, same_problem=known is not None)._replace(header=HEADER)

    tensors, _ = load_tensors(path, kind="agent-state", layout=layout)
    with reading(path):
        state: State = rebuilt(agent.init(problem), tensors)
        check_state(problem, state)
    return state
