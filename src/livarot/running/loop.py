"""Replicas of a run, from one episode to another: the loop behind ``livarot.run`` and behind resumable sweeps.

Random numbers are read by episode (:mod:`livarot.simulation.streams`), and an agent's state holds all it has learned.
So the loop can stop after any episode and go on from there, in another process too, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.agents.base import Agent
from livarot.envs.drifting import Drifting
from livarot.model.episodes import PlanCheck
from livarot.model.problem import MNLMDP
from livarot.running.judge import FINE, REFUSED, Judge, Record
from livarot.running.result import COLUMNS, WORD
from livarot.simulation.streams import AgentRandom, Draws

STAGES = "stage bits"
BLOCK_DRAWS = 1 << 16  # uniforms drawn together, for as many episodes as that makes: they stay in the cache

Progress = Callable[[int], None]
Truth = MNLMDP | Drifting


class Replicas:
    """R seeds of one agent, the episodes they have played (``episode``) and what the judge found so far.

    ``columns`` are (T, R), so that an episode writes a contiguous row; NaN marks numbers that are missing (so far).
    ``state`` is the agent's after ``episode`` episodes.

    >>> import livarot
    >>> mdp, agent = livarot.envs.hard_chain(4, gap=0.1), livarot.agents.Livarot()
    >>> half = Replicas([mdp], agent, 10, [0, 1])
    >>> half.advance(5)
    >>> half.advance(10)
    >>> bool(np.array_equal(half.found()["regret"], livarot.run(mdp, agent, 10, seed=[0, 1]).regret))
    True
    """

    def __init__(self, truths: Sequence[Truth], agent: Agent[Any], n_episodes: int, seeds: Sequence[int]) -> None:
        self.truths, self.agent, self.n_episodes, self.seeds = truths, agent, n_episodes, list(seeds)
        self.problem = truths[0].problem
        self.episode = 0
        replicas, words = len(self.seeds), -(-self.problem.n_parameters // WORD)
        self.columns = {name: np.full((n_episodes, replicas), np.nan) for name in COLUMNS}
        self.bits = np.zeros((n_episodes, replicas, words), dtype=np.int32)
        self.state: tuple[Any, ...] = agent.init(self.problem, replicas)

    def advance(self, until: int, progress: Progress | None = None) -> None:
        """Continue up to ``until`` episodes in all.

        ``progress(R)`` is called after each episode; what it raises ends the loop, between two episodes.
        """
        problem, agent, seeds, horizon = self.problem, self.agent, self.seeds, self.problem.horizon
        record = Record._make((*self.columns.values(), self.bits))
        changes = iter([self.episode, *(t for t in changes_of(self.truths, self.n_episodes) if t > self.episode)])
        change = next(changes)
        rng, check = AgentRandom(seeds), PlanCheck(problem, len(seeds), agent.name)
        block = max(1, BLOCK_DRAWS // (len(seeds) * (horizon + 1)))
        draws, luck = Draws.of_environment(seeds, horizon), Draws.of_actions(seeds, horizon)
        begun = first = end = self.episode  # of the run, and of the uniforms

        def lucky() -> NDArray[np.float64]:
            return luck.block(first, end)

        for t in range(self.episode, until):
            if t in (end, change):
                if t == end:
                    first, end = t, min(t + block, until)
                    env = draws.block(first, end)
                    if luck.numbers is not None:  # some policy draws its actions
                        luck.block(first, end)
                if t == change:
                    judge, change = Judge(models_at(self.truths, t)), next(changes, self.n_episodes)
                    judge.seat(record, env, lucky, begun)
            rng.start(t)
            plan = agent.plan(problem, self.state, rng)
            episodes, verdict = judge.episode(plan, t)
            if verdict != FINE:
                plan = check(plan, t)
                if verdict == REFUSED:  # perhaps only its types did not fit: check has converted them
                    episodes, verdict = judge.episode(plan, t)
                if verdict == REFUSED:
                    raise AssertionError(f"the judge refuses a plan that passed the check, episode {t}")
            self.state = agent.update(problem, self.state, episodes)
            self.episode = t + 1
            if progress is not None:
                progress(len(seeds))

    def found(self, n_episodes: int | None = None) -> dict[str, NDArray[Any]]:
        """The columns of the first episodes, or of all, (R, T) each, and under ``STAGES`` their bits (R, T, words)."""
        found: dict[str, NDArray[Any]] = {
            name: np.ascontiguousarray(c[:n_episodes].T) for name, c in self.columns.items()
        }
        return found | {STAGES: np.ascontiguousarray(self.bits[:n_episodes].transpose(1, 0, 2))}


def models_at(truths: Sequence[Truth], episode: int) -> list[MNLMDP]:
    """The model of each replica in an episode."""
    return [truth.at(episode) if isinstance(truth, Drifting) else truth for truth in truths]


def changes_of(truths: Sequence[Truth], n_episodes: int) -> list[int]:
    """The episodes, after the first, at which some model changes."""
    found = [truth.boundaries for truth in truths if isinstance(truth, Drifting)]
    return sorted({int(t) for first in found for t in first if 0 < t < n_episodes})
