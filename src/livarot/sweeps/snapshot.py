"""How far a sweep is, and what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from livarot.system.progress import Bar, watched


class Snapshot(NamedTuple):
    """How far a sweep is."""

    planned: int
    done: int  # stored, those of earlier sweeps included
    failed: int
    episodes: int  # of this sweep, runs under way included
    episodes_planned: int  # of this sweep
    seconds: float


Observer = Callable[[Snapshot], None]


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
