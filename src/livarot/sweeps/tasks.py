"""What a sweep hands out: seeds of a cell are computed together, and short parts of several cells make one task.

How runs are divided does not change a bit of them, only what they cost.  An episode of forty seeds takes little longer
than an episode of one, and handing out, noting and forcing to disk a task of some milliseconds takes as long again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from livarot.sweeps.experiment.keys import Cell, Run

if TYPE_CHECKING:  # with it comes pydantic, which workers do not need
    from livarot.sweeps.experiment.spec import Experiment

GROUP = 128  # runs of a task, at most
COLUMN_BYTES = 1 << 28  # memory for the columns of a task, at most
ROW_BYTES = 64  # per seed and episode
SHORT = 300_000  # parts are joined up to this cost: a tenth of a second on the smallest problems


class Part(NamedTuple):
    """Seeds of one cell, computed together."""

    cell: Cell
    seeds: tuple[int, ...]

    @property
    def runs(self) -> list[Run]:
        return [self.cell.run(seed) for seed in self.seeds]

    @property
    def keys(self) -> list[str]:
        return [self.cell.key_of(seed) for seed in self.seeds]

    @property
    def episodes(self) -> int:
        return self.cell.episodes * len(self.seeds)

    @property
    def cost(self) -> float:
        """Steps of the slowest seed, and a little for every further one: an estimate that ignores the model."""
        horizon = self.cell.environment_settings.get("horizon", 1)
        return self.cell.episodes * (horizon if isinstance(horizon, int) else 1) * (10.0 + len(self.seeds))


@dataclass(frozen=True)
class Task:
    """Plain data, sent to a worker."""

    number: int
    store: str
    token: str  # of the driver
    parts: tuple[Part, ...]
    checkpoint_seconds: float = 30.0
    checkpoint_episodes: int | None = None
    imports: tuple[str, ...] = ()
    sources: Mapping[str, str] | None = None  # of plugins, as the driver has them, by the key of the cell

    @property
    def runs(self) -> list[Run]:
        return [run for part in self.parts for run in part.runs]

    @property
    def keys(self) -> list[str]:
        return [key for part in self.parts for key in part.keys]

    @property
    def episodes(self) -> int:
        return sum(part.episodes for part in self.parts)

    @cached_property
    def marker(self) -> Path:
        return Path(self.store) / "running" / self.token / f"{self.number}.json"


def plan(experiment: Experiment, shard: tuple[int, int] = (1, 1)) -> list[Part]:
    """The cells of a shard of the experiment and their seeds; shards do not depend on what is stored."""
    seeds = experiment.seed_list()
    part, parts = shard
    found = [
        Part(cell, tuple(seed for place, seed in enumerate(seeds) if (number + place) % parts == part - 1))
        for number, cell in enumerate(experiment.cells())
    ]
    return [share for share in found if share.seeds]


def cut(planned: Sequence[Part], workers: int, group: int) -> list[Part]:
    """Cells cut into groups of seeds: enough of them for all workers, the long ones first."""
    total = sum(len(part.seeds) for part in planned)
    fair = min(group, -(-total // (2 * workers)))
    found = []
    for cell, seeds in planned:
        size = max(1, min(fair, COLUMN_BYTES // (ROW_BYTES * cell.episodes)))
        found += [Part(cell, seeds[at : at + size]) for at in range(0, len(seeds), size)]
    return sorted(found, key=lambda part: -part.cost)


def join(parts: Iterable[Part], workers: int, group: int) -> list[tuple[Part, ...]]:
    """Parts, the long ones first, made into tasks: of several parts while these are short and many are left.

    A task has at most ``group`` runs and a fair share of what is left, so the last tasks are small and no worker waits
    long for the others.
    """
    waiting = list(parts)
    left = sum(part.cost for part in waiting)
    tasks: list[list[Part]] = []
    runs, cost = 0, 0.0
    for part in waiting:
        runs, cost = runs + len(part.seeds), cost + part.cost
        if not tasks or runs > group or cost > min(SHORT, left / (2 * workers)):
            left -= sum(one.cost for one in tasks[-1]) if tasks else 0.0
            tasks.append([])
            runs, cost = len(part.seeds), part.cost
        tasks[-1].append(part)
    return [tuple(task) for task in tasks]
