"""A store of runs: one Parquet file per run, an index that can be rebuilt, nothing half-written.

    runs/KEY.parquet     complete or absent; KEY is the SHA-256 of the run's content
    failed/KEY.json      why a run failed; it never counts as done
    corrupt/             damaged files, set aside
    checkpoints/         runs under way
    specs/KEY.json       the experiments that were run here
    drivers/, running/   the drivers and tasks at work now
    index.sqlite         quick answers (:mod:`livarot.sweeps.store.index`)

Reading verifies: a damaged file is moved to ``corrupt/`` and its run is missing again.

>>> import tempfile
>>> from livarot.experiments import AgentSpec, EnvironmentSpec, Experiment, sweep
>>> folder = tempfile.TemporaryDirectory()
>>> experiment = Experiment(environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": 4, "gap": 0.1})],
...                         agents=[AgentSpec(name="uniform")], episodes=20, seeds=3)
>>> sweep(experiment, folder.name, backend="sequential").done
3
>>> store = Store(folder.name)
>>> [(cell.agent, store.result(cell).regret.shape) for cell in store.cells()]
[('uniform', (3, 20))]
>>> store.close(); folder.cleanup()
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.agents.base import declared
from livarot.errors import LivarotError, bad
from livarot.running.result import COLUMNS, RunResult
from livarot.storage import parse_json, write_together
from livarot.sweeps.experiment.keys import Cell, Run, canonical
from livarot.sweeps.store.folders import INDEX, INDEX_FILES, check_own, check_store, make_store, own_folder
from livarot.sweeps.store.hashing import Looking, in_words
from livarot.sweeps.store.index import CELL_COLUMNS, NUMBERS, Index, IndexDamaged, Sync, is_busy
from livarot.sweeps.store.notes import Notes
from livarot.sweeps.store.reading import read_in_threads
from livarot.sweeps.store.records import (
    MAX_BYTES,
    Damaged,
    Record,
    decode,
    encode_again,
    encode_block,
    is_key,
    read_file,
    summaries_of,
)
from livarot.theory.audits.facts import facts_of

if TYPE_CHECKING:
    import pandas as pd


logger = logging.getLogger(__name__)
SUFFIX = ".parquet"
RUN_FILES = re.compile(rf"(?<![^/])[0-9a-f]{{64}}{re.escape(SUFFIX)}(?![^/])")  # in names joined by "/"


class Entry(NamedTuple):
    """What the index keeps of a run, besides the content."""

    summary: dict[str, Any]
    size: int
    mtime: int
    sha256: str
    seconds: float | None = None
    finished: float | None = None


class Store(Notes):
    """A folder of runs; made if ``create``, otherwise it must be one already."""

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = Path(path)
        self._index: Index | None = None
        if not str(path):
            raise bad("store", "is empty", cure="name a folder")
        if create:
            make_store(self.path)
        check_store(self.path)

    @property
    def index(self) -> Index:
        """The index; a damaged one is rebuilt, and where SQLite cannot write, it is kept in memory."""
        if self._index is None:
            path = self.path / INDEX
            check_own(self.path)  # SQLite would follow a link
            try:
                self._index = Index(path)
            except sqlite3.OperationalError as error:
                logger.warning("no index in %s (%s): one is made in memory", self.path, error)
                self._index = Index(":memory:")
            except sqlite3.DatabaseError as error:
                logger.warning("the index is damaged and is rebuilt: %s", error)
                self._drop_index()
                self._index = Index(path)
        return self._index

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------------------------------------------------------------- writing
    def run_path(self, key: str) -> Path:
        return self.path / "runs" / f"{key}{SUFFIX}"

    def _name(self, key: str) -> str:
        return f"{self.path}/runs/{key}{SUFFIX}"  # needed for every run, and a Path takes five times as long

    def has(self, key: str) -> bool:
        return os.access(self._name(key), os.F_OK)

    def put(self, run: Run, columns: Mapping[str, NDArray[Any]], bits: NDArray[np.int32]) -> Entry:
        """Write one run, all or nothing; writing it again changes nothing."""
        return self.put_all([([run], {name: columns[name][None] for name in COLUMNS}, bits[None])])[0]

    def put_all(
        self, blocks: Iterable[tuple[Sequence[Run], Mapping[str, NDArray[Any]], NDArray[np.int32]]]
    ) -> list[Entry]:
        """Write runs, each all or nothing; all of them are forced to disk together.

        A block has runs of one cell, their columns (R, T) and bits (R, T, words).
        """
        names: list[str] = []
        encoded: list[bytes] = []
        summaries: list[dict[str, Any]] = []
        for runs, columns, bits in blocks:
            totals = summaries_of(columns)
            names += [self._name(run.key) for run in runs]
            encoded += encode_block(runs, columns, bits, totals)
            summaries += totals
        own_folder(self.path / "runs")
        write_together(dict(zip(names, encoded, strict=True)))
        return [
            Entry(summary, len(data), os.stat(name).st_mtime_ns, hashlib.sha256(data).hexdigest())
            for name, data, summary in zip(names, encoded, summaries, strict=True)
        ]

    # ---------------------------------------------------------------- reading
    def stored(self) -> dict[str, str]:
        """The names of the files of runs by key."""
        check_own(self.path)
        with contextlib.suppress(FileNotFoundError):
            names = "/".join(os.listdir(self.path / "runs"))  # matched at once: no name contains a "/"
            return {name[: -len(SUFFIX)]: name for name in RUN_FILES.findall(names)}
        return {}

    def read(self, key: str) -> Record:
        """One run, verified; a damaged file is set aside and refused."""
        try:
            return self._verified(key, self.run_path(key))[0]
        except Damaged as error:
            self.set_aside(key, error)
            raise

    def _verified(self, key: str, path: Path, known: Mapping[str, Any] | None = None) -> tuple[Record, Entry]:
        """A run and what to note of it.  ``known`` is its row in the index: a file with other bytes than noted there
        must at least be complete, as this code writes it.
        """
        try:
            data, stat = read_file(path)
        except FileNotFoundError as error:
            raise bad("key", f"no run {key[:12]} in {str(self.path)!r}") from error
        except OSError as error:
            raise bad("store", f"cannot read {str(path)!r}: {error.strerror or error}") from error
        sha256 = hashlib.sha256(data).hexdigest()
        try:
            record = decode(path, data)
            if record.run.key != key:
                raise Damaged(str(path), "it holds another run than its name says")
            if known is not None and known["sha256"] != sha256 and encode_again(record) != data:
                raise Damaged(str(path), "it is not what was written")
        except Damaged as error:
            error.seen = stat
            raise
        times = (known["seconds"], known["finished"]) if known is not None and known["sha256"] == sha256 else ()
        return record, Entry(record.summary, len(data), stat.st_mtime_ns, sha256, *times)

    def set_aside(self, key: str, damage: Damaged) -> None:
        """Move a damaged file to ``corrupt/``: its run is missing again.

        It stays if another process has replaced it since it was read.
        """
        path, seen = self.run_path(key), damage.seen
        with contextlib.suppress(FileNotFoundError):
            now = path.lstat()
            if seen is not None and (now.st_ino, now.st_mtime_ns) != (seen.st_ino, seen.st_mtime_ns):
                return
            logger.warning("%s", damage)
            os.replace(path, own_folder(self.path / "corrupt") / f"{key}.{time.time_ns()}{SUFFIX}")
        with contextlib.suppress(sqlite3.Error, LivarotError):
            self.index.remove([key])

    def sync(self, *, verify: bool = False, only: Iterable[str] | None = None) -> Sync:
        """Bring the index in line with the files; files it does not know, or that changed, are verified.

        ``verify`` compares the SHA-256 of every file (of the keys in ``only``), whatever its date says.
        """
        chosen = [] if not verify else [*self._known()] if only is None else [*only]
        with Looking(self.path / "runs", [f"{key}{SUFFIX}" for key in chosen], MAX_BYTES) as looking:
            known = self._known()  # before the files: what is finished meanwhile is new, and not gone
            there = self._dates(known)
            gone, both = known.keys() - there.keys(), known.keys() & there.keys()
            asked = both.intersection(chosen)
            same, doubtful = set[str](), list[str]()
            for key, seen in there.items():
                if key not in asked:
                    same.add(key) if key in both and known[key][1:3] == seen else doubtful.append(key)
            for key, words in zip(chosen, looking.found(), strict=True):
                if key in both:
                    if words == in_words(*known[key][1:4]):
                        same.add(key)
                    else:
                        doubtful.append(key)
        found, damaged = list[tuple[Run, Entry]](), 0

        def check(key: str) -> tuple[Run, Entry] | Damaged | None:
            return self._checked(key, self.index.row(key) if key in known else None)

        checks = read_in_threads(check, doubtful)
        for key, checked in zip(doubtful, checks, strict=True):
            if isinstance(checked, Damaged):
                damaged += 1
                self.set_aside(key, checked)
            elif checked is not None:
                found.append(checked)
        if gone:
            self.index.remove(gone)
        self.note(found)
        return Sync(same | {run.key for run, _ in found}, len(found), len(gone), damaged)

    def _dates(self, known: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        """Size and date of the files of runs by key, in one pass over the folder."""
        check_own(self.path)
        found: dict[str, tuple[int, int]] = {}
        with contextlib.suppress(FileNotFoundError), os.scandir(self.path / "runs") as entries:
            for entry in entries:
                key = entry.name[: -len(SUFFIX)]
                if entry.name.endswith(SUFFIX) and (key in known or is_key(key)):
                    try:
                        stat = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # set aside by another process
                        continue
                    found[key] = stat.st_size, stat.st_mtime_ns
        return found

    def _checked(self, key: str, known: Mapping[str, Any] | None) -> tuple[Run, Entry] | Damaged | None:
        try:
            record, entry = self._verified(key, self.run_path(key), known)
        except Damaged as error:
            return error
        except LivarotError as error:
            if self.has(key):  # a later version's file, or one that cannot be read: it is not moved
                raise
            logger.debug("%s", error)
            return None
        return record.run, entry

    def note(self, found: Iterable[tuple[Run, Entry]], owner: str | None = None) -> None:
        """Put runs into the index, and end the owner's claims on them.

        What the index cannot take is found again by :meth:`sync`.
        """
        cells: dict[str, Cell] = {}
        rows = []
        for run, entry in found:
            cells[run.cell.key] = run.cell
            numbers = [entry.summary[name] for name in NUMBERS]
            rest = (entry.size, entry.mtime, entry.sha256, entry.seconds, entry.finished)
            rows.append((run.key, run.cell.key, run.seed, *numbers, *rest))
        if not rows:
            return
        listed = [
            (key, c.environment, canonical(c.environment_settings), c.agent, canonical(c.agent_settings), c.episodes)
            for key, c in cells.items()
        ]
        try:
            self.index.add(listed, rows, owner)
        except (sqlite3.Error, OverflowError) as error:
            logger.warning("the index could not be written (%s); the files are complete", error)

    def _known(self) -> dict[str, tuple[str, int, int, str, str]]:
        """The files in the index, each of a known cell; empty if the index is damaged."""
        try:
            found = self.index.files()
            if {row[-1] for row in found.values()} <= {row["cell"] for row in self.index.cells()}:
                return found
            raise IndexDamaged("a cell is missing")
        except (IndexDamaged, sqlite3.DatabaseError) as error:
            self._doubt(error)
            return {}

    def _doubt(self, error: Exception) -> None:
        """Rebuild an index that cannot be read, unless others are at work with it: then it may be intact."""
        if is_busy(error):
            logger.warning("the index cannot be read (%s): the files are read instead", error)
            return
        logger.warning("the index is damaged and is rebuilt: %s", error)
        self.close()
        self._drop_index()

    def _drop_index(self) -> None:
        for name in INDEX_FILES:
            (self.path / name).unlink(missing_ok=True)

    def rebuild(self) -> Sync:
        """Rebuild the index from the files; seconds and dates of the runs are lost with the old one."""
        self.close()
        self._drop_index()
        return self.sync()

    # ---------------------------------------------------------------- for tables and figures
    def cells(self, *, synced: bool = False) -> list[Cell]:
        """What was run, each once, in the order of environment, agent and episodes (``synced``: after :meth:`sync`)."""
        if not synced:
            self.sync()
        used = self.index.counts()
        rows = [row for row in self.index.cells() if row["cell"] in used]
        rows.sort(key=lambda row: [row[name] for name in CELL_COLUMNS[1:]])
        return [_cell(row) for row in rows]

    def _rows(self, cell: str | None = None) -> list[dict[str, Any]]:
        """Rows of the index, every digest checked; if one is wrong, those of the rebuilt index."""
        try:
            return self.index.runs(cell)
        except (IndexDamaged, sqlite3.DatabaseError) as error:
            self._doubt(error)
            self.sync()
            return self.index.runs(cell)

    def table(self) -> pd.DataFrame:
        """One line per run: cell, environment, agent, their settings (JSON), episodes, seed, totals, seconds.

        Regrets and optimism are in the units of the environment's rewards, ``unit_scale`` times the normalised ones.
        """
        from livarot.sweeps.store.tables import totals

        self.sync()
        return totals(self._rows(), self.index.cells(), self.cells(synced=True))

    def seeds(self, cell: Cell) -> list[int]:
        """The seeds of a cell that are there, in order."""
        return sorted(row["seed"] for row in self._rows(cell.key))

    def result(self, cell: Cell, seeds: Sequence[int] | None = None) -> RunResult:
        """The runs of a cell as `livarot.run` gives them, verified; all seeds that are there, or these."""
        chosen = self.seeds(cell) if seeds is None else list(seeds)
        if not chosen:
            raise bad("cell", "the store has no run of it", cure="run the experiment first")
        records = [self.read(cell.run(seed).key) for seed in chosen]
        columns = {name: np.stack([record.columns[name] for record in records]) for name in COLUMNS}
        words = {record.bits.shape[1] for record in records}
        models = cell.models(chosen)
        agent = cell.learner(*models)
        return RunResult(
            agent=agent.name,
            settings=repr(agent),
            seeds=np.asarray(chosen),
            horizon=models[0].problem.horizon,
            columns={name: np.ma.MaskedArray(column, mask=np.isnan(column)) for name, column in columns.items()},
            facts_source=partial(facts_of, models, declared(agent)),
            stage_bits=np.stack([record.bits for record in records]) if words != {0} else None,
            units=models[0].problem.units,
        )

    def results(self) -> Iterator[tuple[Cell, RunResult]]:
        """Every cell with its runs, one cell in memory at a time."""
        for cell in self.cells():
            yield cell, self.result(cell)


def _cell(row: Mapping[str, Any]) -> Cell:
    settings = parse_json(row["environment_settings"]), parse_json(row["agent_settings"])
    return Cell(row["environment"], settings[0], row["agent"], settings[1], row["episodes"])
