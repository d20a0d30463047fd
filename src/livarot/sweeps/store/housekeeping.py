"""What is done to stores as a whole: tidying up after crashes, merging, status, removing."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from livarot.errors import LivarotError, bad
from livarot.running.result import COLUMNS
from livarot.storage import write_atomic
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.names import cell_names, printable
from livarot.sweeps.stale import made
from livarot.sweeps.store.folders import names_in, own_folder
from livarot.sweeps.store.index import GUARD, DriverLock, guarded, lock_is_held
from livarot.sweeps.store.records import Record, read_file
from livarot.sweeps.store.store import Store
from livarot.sweeps.worker import notes_of

logger = logging.getLogger(__name__)
NEWCOMERS = 60 * 10**9  # nanoseconds


class CellStatus(NamedTuple):
    """One line of ``livarot status``."""

    cell: Cell
    planned: int
    done: int
    failed: int
    stale: int = 0  # of those done: made by other plugin sources than those here


class Status(NamedTuple):
    """The state of a store: its cells in the order of its experiments, damaged files, living drivers, episodes of runs
    under way.

    ``names`` has the name of each cell by its key; ``unregistered`` names the experiments that
    ask for things that are not registered here, so that they cannot be counted.
    """

    cells: list[CellStatus]
    damaged: int
    drivers: int
    episodes_under_way: int
    names: dict[str, str]
    unregistered: list[str]
    unknown_sources: int = 0  # runs by an earlier livarot, which did not note the sources of plugins

    @property
    def planned(self) -> int:
        return sum(line.planned for line in self.cells)

    @property
    def done(self) -> int:
        return sum(line.done for line in self.cells)

    @property
    def failed(self) -> int:
        return sum(line.failed for line in self.cells)

    @property
    def stale(self) -> int:
        return sum(line.stale for line in self.cells)


def living_drivers(store: Store) -> list[str]:
    """Tokens of the drivers that are at work."""
    return [path.stem for path in _own_files(store, "drivers", ".lock") if lock_is_held(path)]


def _own_files(store: Store, folder: str, ending: str = "") -> list[Path]:
    """The paths in a folder of the store, refused if that is a link, or (no folder given) in the store itself."""
    names = names_in(store.path / folder) if folder else os.listdir(store.path)  # the store may be named by a link
    return [store.path / folder / name for name in names if name.endswith(ending)]


def tidy(store: Store, lock: DriverLock) -> None:
    """Remove what dead drivers left: locks, markers and, if nobody else is at work, temporary files.

    ``lock`` is the caller's.  Another driver may begin at this moment: what it writes is younger than the lock, and
    stays.
    """
    living = set(living_drivers(store))
    for path in _own_files(store, "drivers", ".lock"):
        if path.stem not in living and not lock_is_held(path):
            path.unlink(missing_ok=True)
    for folder in _own_files(store, "running"):
        if folder.name not in living and not (store.path / "drivers" / f"{folder.name}.lock").exists():
            remove_folder(folder)
    if living <= {lock.token}:
        for path in temporary_files(store):
            # a driver that creates the store has no lock yet, and writes into the store's own folder
            since = lock.since - (NEWCOMERS if path.parent == store.path else 0)
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime_ns < since:
                    path.unlink()


def temporary_files(store: Store) -> list[Path]:
    """Files that were being written when their writer died, or are being written."""
    return [
        path
        for folder, beginning, ending in (
            *((name, ".livarot-", ".tmp") for name in ("runs", "failed", "checkpoints", "specs", "")),
            ("drivers", ".", ".new"),
        )
        for path in _own_files(store, folder, ending)
        if path.name.startswith(beginning)
    ]


def remove_folder(folder: Path) -> None:
    """Remove a folder with all it holds; of a link, or of anything that is not a folder, remove only itself."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.unlink()


def status(store: Store, *, verify: bool = False) -> Status:
    """What is planned (by the experiments run here), stored, failed and under way; ``verify`` reads every file."""
    store.sync(verify=verify)
    cells = {cell.key: cell for cell in store.cells(synced=True)}
    done = store.index.counts()
    planned: dict[str, set[int]] = {}
    experiments = store.specs()
    unregistered: list[str] = []
    for experiment in experiments:
        try:
            wished, seeds = experiment.cells(), experiment.seed_list()
        except LivarotError as error:
            unregistered.append(f"experiment {experiment.name[:60]!r} ({printable(str(error)[:200])})")
            continue
        for cell in wished:
            cells.setdefault(cell.key, cell)
            planned.setdefault(cell.key, set()).update(seeds)
    failed: dict[str, int] = {}
    for note in store.failures().values():
        key = Cell.from_content(note["content"]).key
        failed[key] = failed.get(key, 0) + 1
    living = living_drivers(store)
    under_way = sum(int(note["episodes"]) for token in living for note in notes_of(store.path / "running" / token))
    sources = made(store, cells.values())
    stale = Counter(sources.others.values())
    lines = []
    for key, cell in cells.items():
        stored = done.get(key, 0)
        wanted = max(len(planned.get(key, ())), stored)
        lines.append(CellStatus(cell, wanted, stored, failed.get(key, 0), stale[key]))
    place = {key: number for number, key in enumerate(planned)}
    lines.sort(key=lambda line: place.get(line.cell.key, len(place)))
    damaged = len(names_in(store.path / "corrupt"))
    names = cell_names(cells, experiments)
    return Status(lines, damaged, len(living), under_way, names, unregistered, len(sources.unknown))


def merge(target: Store, sources: Sequence[Store]) -> int:
    """Copy the runs of other stores that are not here, verified one by one; returns how many.

    A run that both have must have the same numbers: a difference (another version, another machine) is refused.
    """
    with guarded(target.path / GUARD, alone=False), contextlib.closing(DriverLock(target.path / "drivers")):
        return sum(_copied(target, source) for source in sources)


def _copied(target: Store, source: Store) -> int:
    if source.path.resolve() == target.path.resolve():
        raise bad("store", f"{str(source.path)!r} cannot be merged into itself")
    copied = 0
    here = target.sync().done
    for key in sorted(source.sync().done):
        if key in here:
            if not _same(target.read(key), source.read(key)):
                text = f"run {key[:12]} has other numbers in {str(source.path)!r}"
                raise bad("store", text, cure="they come from different versions or machines: keep one")
            continue
        source.read(key)
        own_folder(target.path / "runs")
        write_atomic(target.run_path(key), read_file(source.run_path(key))[0])
        target.clear_failures([key])
        copied += 1
    for experiment in source.specs():
        target.add_spec(experiment)
    target.sync()
    return copied


def _same(one: Record, other: Record) -> bool:
    return all(np.array_equal(one.columns[name], other.columns[name], equal_nan=True) for name in COLUMNS)


class Collected(NamedTuple):
    """What ``livarot gc`` removed."""

    files: int
    bytes: int


def collect(store: Store, *, unplanned: bool = False, dry_run: bool = False) -> Collected:
    """Remove damaged files, checkpoints of finished runs and temporary files; ``unplanned``: runs of no experiment.

    Refused while a sweep or merge is at work in the store; none can begin meanwhile.
    """
    with guarded(store.path / GUARD, alone=True), contextlib.closing(DriverLock(store.path / "drivers")) as lock:
        if set(living_drivers(store)) - {lock.token}:
            raise bad("store", f"a sweep is running in {str(store.path)!r}", cure="wait for it or stop it")
        done = store.sync().done
        paths = [*_own_files(store, "corrupt"), *temporary_files(store), *_idle_checkpoints(store, done)]
        if unplanned:
            wanted = {run.key for experiment in store.require_specs() for run in experiment.runs()}
            paths += [store.run_path(key) for key in sorted(done - wanted)]
        sizes = []
        for path in paths:
            with contextlib.suppress(OSError):
                size = path.lstat().st_size
                if not dry_run:
                    path.unlink()
                sizes.append(size)
        if not dry_run:
            tidy(store, lock)
            store.sync()
    return Collected(len(sizes), sum(sizes))


def _idle_checkpoints(store: Store, done: set[str]) -> list[Path]:
    """Checkpoints of cells with nothing left to do; none if what is left to do is not known."""
    paths = _own_files(store, "checkpoints", ".safetensors")
    try:
        runs = [run for experiment in store.require_specs() for run in experiment.runs()] if paths else []
    except LivarotError as error:  # a damaged file, or things that are not registered here
        logger.warning("checkpoints are kept: %s", error)
        return []
    unfinished = {run.cell.key[:32] for run in runs if run.key not in done}
    return [path for path in paths if path.name[:32] not in unfinished]


__all__ = [
    "CellStatus",
    "Collected",
    "Status",
    "collect",
    "living_drivers",
    "merge",
    "status",
    "tidy",
]
