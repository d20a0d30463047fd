"""One task of a sweep: seeds of one or several cells, computed together and stored in a file each.

A worker writes its own results and returns a report to the driver.  While it works it keeps a small file in
``running/`` that says how far it is, looks there for a request to stop, and now and then writes a checkpoint.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import re
import signal
import threading
import time
import traceback
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from livarot.errors import LivarotError
from livarot.model.problem import MNLMDP
from livarot.running.loop import STAGES, Replicas
from livarot.storage import parse_json, read_regular
from livarot.sweeps.experiment.keys import Cell, canonical
from livarot.sweeps.experiment.sources import source_of
from livarot.sweeps.stopping import end_with
from livarot.sweeps.store import checkpoint
from livarot.sweeps.store.store import Entry, Store
from livarot.sweeps.tasks import Part, Task

BEAT = 0.5  # seconds between two notes of progress, each with a look for a request to stop
TOGETHER = 0.1  # seconds that a computed part waits for others, to be written with them
STOP = "stop"
MAX_NOTE, MAX_FAULT = 1 << 12, 1 << 20  # bytes of the note of a task, and of that of a crashing worker
_process: dict[str, bool] = {}  # what is known of this process
_PATHS = re.compile(
    r'File "(?:[^"\n]*[/\\])?(?:site-packages|python3\.\d+|src)[/\\]([^"\n]*)"'  # within a package
    r'|File "[^"\n]*[/\\]([^"/\\\n]*)"'  # elsewhere
)


@dataclass(frozen=True)
class Outcome:
    """What became of a task: ``done``, ``failed`` (an exception of its own), ``stopped``, ``unwritable``, or
    ``foreign`` (this worker has other sources of a plugin than the driver).

    Whatever it is, the runs in ``entries`` (by key) are stored.
    """

    number: int
    verdict: str
    entries: dict[str, Entry] = field(default_factory=dict)
    message: str = ""


class Stopped(Exception):
    """The driver asked to stop."""


def execute(task: Task) -> Outcome:
    """Compute and store the runs of a task."""
    entries: dict[str, Entry] = {}
    _mark(task, 0)
    try:
        _execute(task, entries)
        return Outcome(task.number, "done", entries)
    except Stopped:
        return Outcome(task.number, "stopped", entries)
    except _Unwritable as error:
        return Outcome(task.number, "unwritable", entries, str(error))
    except _OtherSources as error:
        return Outcome(task.number, "foreign", entries, str(error))
    except (Exception, SystemExit):  # an agent that calls sys.exit fails; the worker goes on
        return Outcome(task.number, "failed", entries, readable_traceback())
    finally:
        _unmark(task)
        _keep_imports()


def _execute(task: Task, entries: dict[str, Entry]) -> None:
    """Part after part; what is computed is written soon, whatever happens to a later part."""
    for name in task.imports:  # named on the command line and never by a file
        importlib.import_module(name)
    try:
        folder = _store(task.store).path / "checkpoints"
    except LivarotError as error:
        raise _Unwritable(str(error)) from error
    computed: list[_Computed] = []
    episodes, written = 0, time.perf_counter()
    try:
        for part in (alike for whole in task.parts for alike in _alike(whole)):
            if (task.marker.parent / STOP).exists():
                raise Stopped
            begin = time.perf_counter()
            source = source_of(part.cell) or ""
            if task.sources is not None and task.sources.get(part.cell.key, "") != source:
                raise _OtherSources(f"{part.cell.agent!r} in {part.cell.environment!r}")
            replicas = _replicas(part)
            checkpoint.restore(folder, part.cell, replicas, source)
            _advance(task, part, replicas, folder, source, episodes)
            computed.append(_Computed(part, replicas.found(), time.perf_counter() - begin))
            episodes += part.episodes
            if time.perf_counter() - written > TOGETHER:
                entries |= _write(task, computed)
                computed, written = [], time.perf_counter()
    finally:
        entries |= _write(task, computed)


class _Unwritable(Exception):
    """A result or a checkpoint could not be written; the next one could not either."""


class _OtherSources(Exception):
    """What this process has imported is not what the driver has."""


@lru_cache(maxsize=4)
def _model(environment: str, settings: str) -> MNLMDP:
    return Cell(environment, json.loads(settings), "", {}, 1).model()


@lru_cache(maxsize=1)
def _store(path: str) -> Store:
    return Store(path)


def _alike(part: Part) -> list[Part]:
    """The same runs in parts whose models differ in theta only, so that their seeds can be computed together."""
    if not part.cell.fresh:
        return [part]
    problems = [mdp.problem for mdp in part.cell.models(part.seeds)]
    found: list[list[int]] = []
    for place, seed in enumerate(part.seeds):
        if place > 0 and problems[place].same_as(problems[place - 1]):
            found[-1].append(seed)
        else:
            found.append([seed])
    return [Part(part.cell, tuple(seeds)) for seeds in found]


def _replicas(part: Part) -> Replicas:
    cell = part.cell
    models = cell.models(part.seeds) if cell.fresh else [_model(cell.environment, canonical(cell.environment_settings))]
    return Replicas(models, cell.learner(*models), cell.episodes, part.seeds)


def _advance(task: Task, part: Part, replicas: Replicas, folder: Path, source: str, before: int) -> None:
    """All episodes, with a note of progress every ``BEAT`` seconds (or as often as checkpoints are to be written).

    ``before`` is the number of episodes of the earlier parts.
    """
    last = {"beat": time.monotonic(), "saved": time.monotonic()}
    beat = min(BEAT, task.checkpoint_seconds)
    storable = True

    def save() -> None:
        nonlocal storable
        try:
            storable = storable and checkpoint.save(folder, part.cell, replicas, source)
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
        _mark(task, before + replicas.episode * len(part.seeds))
        if unfinished and storable and now - last["saved"] >= task.checkpoint_seconds:
            save()

    replicas.advance(replicas.n_episodes, progress)


class _Computed(NamedTuple):
    part: Part
    found: dict[str, NDArray[Any]]  # by Replicas.found
    seconds: float


def _write(task: Task, computed: list[_Computed]) -> dict[str, Entry]:
    """Store what is computed, all of it together; its checkpoints are not needed any more."""
    if not computed:
        return {}
    begin = time.perf_counter()
    runs = [run for part, _, _ in computed for run in part.runs]
    try:
        entries = _store(task.store).put_all((part.runs, found, found[STAGES]) for part, found, _ in computed)
    except LivarotError as error:
        raise _Unwritable(str(error)) from error
    for part, _, _ in computed:
        checkpoint.path_of(Path(task.store) / "checkpoints", part.cell, part.seeds).unlink(missing_ok=True)
    writing, now = (time.perf_counter() - begin) / len(runs), time.time()
    seconds = [took / len(part.seeds) + writing for part, _, took in computed for _ in part.seeds]
    return {
        run.key: entry._replace(seconds=spent, finished=now)
        for run, entry, spent in zip(runs, entries, seconds, strict=True)
    }


def _mark(task: Task, episodes: int) -> None:
    """Note how far the task is.  Failing is harmless: the driver may be gone, and an incomplete note is not read."""
    with contextlib.suppress(OSError):
        task.marker.write_text(json.dumps({"episodes": episodes, "pid": os.getpid(), "runs": len(task.runs)}))


def notes_of(folder: Path) -> list[dict[str, Any]]:
    """What the tasks of a driver note of themselves; empty if the driver has just removed its folder and ended."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for path in folder.glob("[0-9]*.json"):
            with contextlib.suppress(OSError, ValueError):
                found.append(_note(path))
    return found


def _note(path: Path) -> dict[str, Any]:
    """What one task notes of itself; a ``ValueError`` if the file is not such a note."""
    note = parse_json(read_regular(path, MAX_NOTE)[0])
    if not isinstance(note, dict) or any(type(note.get(name)) is not int for name in ("episodes", "pid")):
        raise ValueError("not a note of a task")
    return note


def _unmark(task: Task) -> None:
    with contextlib.suppress(OSError):
        task.marker.unlink(missing_ok=True)


def readable_traceback() -> str:
    """The traceback of the current exception, without paths of this machine."""
    return without_paths(traceback.format_exc(limit=-20))[-8000:]


def without_paths(text: str) -> str:
    """Text in which files are named by their path within a package, or by their names alone.

    >>> without_paths('File "/a/b/site-packages/numpy/linalg/x.py", line 3, in f')
    'File "numpy/linalg/x.py", line 3, in f'
    >>> without_paths('File "/a/b/plug.py", line 3')
    'File "plug.py", line 3'
    """
    return _PATHS.sub(lambda found: f'File "{found[1] or found[2]}"', text)


def fault_notes(marker: Path) -> str:
    """What a crashing worker could still write about where it was."""
    try:
        said, _ = read_regular(marker.parent / f"{_note(marker)['pid']}.fault", MAX_FAULT)
        return without_paths(said.decode(errors="replace"))[-4000:]
    except (OSError, ValueError):
        return ""


def begin_worker(driver: int, faults: str) -> None:
    """Prepare a worker process: it ignores Ctrl-C, notes where it crashes, and ends with the driver."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        faulthandler.enable((Path(faults) / f"{os.getpid()}.fault").open("w"))
    threading.Thread(target=end_with, args=(driver,), daemon=True).start()
    _process["new"] = True


def _keep_imports() -> None:
    """Keep what a worker has loaded by the end of its first task out of garbage collection: joblib collects then, and
    would walk through all of it.
    """
    if _process.pop("new", False):
        gc.freeze()


def limit_threads() -> Any:
    """One thread for linear algebra: the tasks are parallel already, and bits depend on the number of threads."""
    import threadpoolctl  # type: ignore[import-untyped, unused-ignore]

    return threadpoolctl.threadpool_limits(1)
