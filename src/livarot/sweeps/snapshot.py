"""How far a sweep is, and what it did."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from livarot.sweeps.experiment.keys import Cell, Run, unit_scales
from livarot.system.progress import Bar, watched


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A run that this sweep has stored: what was run and what came of it, as trackers want them."""

    environment: str
    environment_settings: dict[str, Any]
    agent: str
    settings: dict[str, Any]  # of the agent, defaults filled in
    episodes: int
    seed: int
    totals: dict[str, float | None] = field(repr=False)  # as the file of the run has them, regret for rewards in [0, 1]

    @classmethod
    def of(cls, run: Run, totals: dict[str, float | None]) -> FinishedRun:
        cell = run.cell
        settings = (cell.environment, cell.environment_settings, cell.agent, cell.agent_settings)
        return cls(*settings, cell.episodes, run.seed, totals)

    @property
    def regret(self) -> float | None:
        """The cumulative regret after the last episode, in the units of the environment's rewards if they are known."""
        return self._in_units("regret")

    @property
    def realised_regret(self) -> float | None:
        """The same with the rewards that were drawn."""
        return self._in_units("realised_regret")

    def _in_units(self, name: str) -> float | None:
        """None if the run has no such number."""
        total = self.totals[name]
        return None if total is None else self._scale * float(total)

    @cached_property
    def _scale(self) -> float:
        cell = Cell(self.environment, self.environment_settings, self.agent, self.settings, self.episodes)
        scale = unit_scales(cell, [self.seed])
        return 1.0 if scale is None else float(scale[0])


class Snapshot(NamedTuple):
    """How far a sweep is."""

    planned: int
    done: int  # stored, those of earlier sweeps included
    failed: int
    episodes: int  # of this sweep, runs under way included
    episodes_planned: int  # of this sweep
    seconds: float
    finished: tuple[FinishedRun, ...] = ()  # since the last snapshot; those of other drivers are not among them


Observer = Callable[[Snapshot], None]


class News:
    """Finished runs, each handed out once, to whichever thread asks first."""

    def __init__(self) -> None:
        self._waiting: list[FinishedRun] = []
        self._lock = threading.Lock()

    def add(self, stored: Iterable[tuple[Run, Any]]) -> None:
        """Runs with what the index keeps of them."""
        with self._lock:
            self._waiting += [FinishedRun.of(run, entry.summary) for run, entry in stored]

    def take(self) -> tuple[FinishedRun, ...]:
        with self._lock:
            found, self._waiting = tuple(self._waiting), []
        return found


@contextmanager
def shown(observer: Observer | None) -> Iterator[Observer | None]:
    """The observer, or a bar if there is none and somebody watches."""
    if observer is not None or not watched():
        yield observer
        return
    bar = Bar(0, "episodes")

    def show(now: Snapshot) -> None:
        bar.total = now.episodes_planned
        bar.reach(now.episodes)

    try:
        yield show
    finally:
        bar.close()


@dataclass
class Report:
    """What a sweep did."""

    planned: int
    before: int = 0  # stored already
    done: int = 0  # computed now, or by another driver meanwhile
    failed: dict[str, str] = field(default_factory=dict)  # traceback by key
    deaths: int = 0  # of workers
    seconds: float = 0.0
    episodes: int = 0
    signal: int | None = None  # what stopped it
    stale: dict[str, int] = field(default_factory=dict)  # stored runs made by other sources of plugins, by cell

    @property
    def complete(self) -> bool:
        return self.before + self.done == self.planned
