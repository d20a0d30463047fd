"""One task of a sweep: some seeds of one cell, computed together, stored one by one.

A worker writes its own results; what it returns is news for the driver.  While it works it keeps a small file in
``running/`` that says how far it is, looks there for the wish to stop, and now and then writes a checkpoint.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import hashlib
import importlib
import json
import os
import re
import signal
import threading
import time
import traceback
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from livarot.core.problem import MNLMDP
from livarot.errors import LivarotError
from livarot.experiments import checkpoint
from livarot.experiments.keys import Cell, canonical
from livarot.experiments.loop import STAGES, Replicas
from livarot.experiments.store import Entry, Store

BEAT = 0.5  # seconds between two looks at the clock of the world outside
STOP = "stop"
_PATHS = re.compile(
    r'File "(?:[^"\n]*[/\\])?(?:site-packages|python3\.\d+|src)[/\\]([^"\n]*)"'  # within a package
    r'|File "[^"\n]*[/\\]([^"/\\\n]*)"'  # elsewhere
)


@dataclass(frozen=True)
class Task:
    """Plain data, sent to a worker."""

    number: int
    store: str
    token: str  # of the driver
    cell: Cell
    seeds: tuple[int, ...]
    checkpoint_seconds: float = 30.0
    checkpoint_episodes: int | None = None
    imports: tuple[str, ...] = ()

    @cached_property
    def keys(self) -> list[str]:
        return [self.cell.run(seed).key for seed in self.seeds]

    @property
    def marker(self) -> Path:
        return Path(self.store) / "running" / self.token / f"{self.number}.json"


@dataclass(frozen=True)
class Outcome:
    """What became of a task: ``done``, ``failed`` (an exception of its own), ``stopped`` or ``unwritable``."""

    number: int
    verdict: str
    entries: dict[int, Entry] = field(default_factory=dict)  # by seed
    message: str = ""


class Stopped(Exception):
    """The driver asked to stop."""


def execute(task: Task) -> Outcome:
    """Compute and store the runs of a task."""
    _mark(task, 0)
    try:
        return _execute(task)
    except Stopped:
        return Outcome(task.number, "stopped")
    except _Unwritable as error:
        return Outcome(task.number, "unwritable", message=str(error))
    except (Exception, SystemExit):  # an agent that calls sys.exit fails, and nothing else ends
        return Outcome(task.number, "failed", message=readable_traceback())
    finally:
        _unmark(task)


def _execute(task: Task) -> Outcome:
    begin = time.perf_counter()
    if (task.marker.parent / STOP).exists():
        raise Stopped
    source = _imported(task.imports)
    replicas = _replicas(task)
    folder = Path(task.store) / "checkpoints"
    checkpoint.restore(folder, task.cell, replicas, source)
    _advance(task, replicas, folder, source)
    try:
        entries = _write(task, replicas, begin)
    except LivarotError as error:
        raise _Unwritable(str(error)) from error
    checkpoint.path_of(folder, task.cell, task.seeds).unlink(missing_ok=True)
    return Outcome(task.number, "done", entries)


class _Unwritable(Exception):
    """A result or a checkpoint could not be written; the next one could not either."""


@lru_cache(maxsize=4)
def _model(environment: str, settings: str) -> MNLMDP:
    return Cell(environment, json.loads(settings), "", {}, 1).model()


@lru_cache(maxsize=1)
def _store(path: str) -> Store:
    return Store(path)


def _replicas(task: Task) -> Replicas:
    cell = task.cell
    mdp = _model(cell.environment, canonical(cell.environment_settings))
    return Replicas([mdp], cell.learner(mdp), cell.episodes, task.seeds)


def _imported(names: tuple[str, ...]) -> str:
    """Import modules, named on the command line and never by a file; a hash of their sources."""
    found = hashlib.sha256()
    for name in names:
        path = getattr(importlib.import_module(name), "__file__", None)
        found.update(name.encode() + b"\0" + (b"" if path is None else Path(path).read_bytes()))
    return found.hexdigest()[:16] if names else ""


def _advance(task: Task, replicas: Replicas, folder: Path, source: str) -> None:
    """All episodes, with a beat twice a second (or as often as checkpoints are wished for)."""
    last = {"beat": time.monotonic(), "saved": time.monotonic()}
    beat = min(BEAT, task.checkpoint_seconds)
    storable = True

    def save() -> None:
        nonlocal storable
        try:
            storable = storable and checkpoint.save(folder, task.cell, replicas, source)
        except LivarotError as error:
            raise _Unwritable(str(error)) from error
        last["saved"] = time.monotonic()

    def progress(_: int) -> None:
        now = time.monotonic()
        every = task.checkpoint_episodes
        unfinished = replicas.episode < replicas.n_episodes
        if every and replicas.episode % every == 0 and unfinished:
            save()
        if now - last["beat"] < beat:
            return
        last["beat"] = now
        if unfinished and (task.marker.parent / STOP).exists():
            save()
            raise Stopped
        _mark(task, replicas.episode * len(task.seeds))
        if unfinished and storable and now - last["saved"] >= task.checkpoint_seconds:
            save()

    replicas.advance(replicas.n_episodes, progress)


def _write(task: Task, replicas: Replicas, begin: float) -> dict[int, Entry]:
    found = replicas.found()
    runs = [task.cell.run(seed) for seed in task.seeds]
    entries = _store(task.store).put_block(runs, found, found[STAGES])
    seconds = (time.perf_counter() - begin) / len(runs)
    now = time.time()
    return {run.seed: entry._replace(seconds=seconds, finished=now) for run, entry in zip(runs, entries, strict=True)}


def _mark(task: Task, episodes: int) -> None:
    """Say how far the task is; a worker whose driver is gone may find no place for it, and half a note is none."""
    with contextlib.suppress(OSError):
        task.marker.write_text(json.dumps({"episodes": episodes, "pid": os.getpid(), "seeds": len(task.seeds)}))


def notes_of(folder: Path) -> list[dict[str, Any]]:
    """What the tasks of a driver say of themselves; nothing if the driver has just left, and its folder with it."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for path in folder.glob("[0-9]*.json"):
            with contextlib.suppress(OSError, ValueError):
                found.append(json.loads(path.read_text()))
    return [note for note in found if isinstance(note, dict) and note.keys() >= {"episodes", "pid"}]


def _unmark(task: Task) -> None:
    with contextlib.suppress(OSError):
        task.marker.unlink(missing_ok=True)


def readable_traceback() -> str:
    """The traceback at hand, without paths of this machine."""
    return without_paths(traceback.format_exc(limit=-20))[-8000:]


def without_paths(text: str) -> str:
    """Files named within their package, or by their names alone.

    >>> without_paths('File "/a/b/site-packages/numpy/linalg/x.py", line 3, in f')
    'File "numpy/linalg/x.py", line 3, in f'
    >>> without_paths('File "/a/b/plug.py", line 3')
    'File "plug.py", line 3'
    """
    return _PATHS.sub(lambda found: f'File "{found[1] or found[2]}"', text)


def fault_notes(marker: Path) -> str:
    """What a crashing worker could still say of where it was."""
    try:
        pid = json.loads(marker.read_text())["pid"]
        return without_paths((marker.parent / f"{pid}.fault").read_text())[-4000:]
    except (OSError, ValueError, KeyError):
        return ""


def begin_worker(driver: int, faults: str) -> None:
    """In each worker process: no Ctrl-C of its own, a note of crashes, and the end with the driver."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        faulthandler.enable((Path(faults) / f"{os.getpid()}.fault").open("w"))
    threading.Thread(target=_end_with, args=(driver,), daemon=True).start()
    gc.freeze()  # what is imported stays: joblib looks for garbage after the first task, and would walk through it all


def limit_threads() -> Any:
    """One thread for linear algebra: the tasks are parallel already, and bits depend on the number of threads."""
    import threadpoolctl  # type: ignore[import-untyped, unused-ignore]

    return threadpoolctl.threadpool_limits(1)


def _end_with(driver: int) -> None:
    """A worker does not outlive its driver, whatever ended that."""
    while os.getppid() == driver:
        time.sleep(BEAT)
    os._exit(3)
