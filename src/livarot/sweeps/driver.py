"""Run an experiment into a store: compute the missing runs in parallel, even if workers die.

The driver hands out the runs ``planned - stored`` as tasks (:mod:`livarot.sweeps.tasks`): many runs are computed
together because that is faster, and each is stored in its own file.  How they are grouped, who computes them and in
which order does not change a bit of the results.  To resume, run the same experiment again.

A task that was under way when its worker died is tried again: alone the second time, seed by seed and alone the third;
a run that has then brought down three workers is noted as failed.  An exception is noted at once, after the seeds that
were computed together have been tried one by one.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from livarot.errors import LivarotError, bad, require_positive_int
from livarot.sweeps.engines import Engine, WorkersDied, check_backend, engine
from livarot.sweeps.experiment.keys import Cell, Run
from livarot.sweeps.experiment.sources import sources_of
from livarot.sweeps.experiment.spec import Experiment
from livarot.sweeps.experiment.validate import check_cells
from livarot.sweeps.snapshot import News, Observer, Report, Snapshot, shown
from livarot.sweeps.stale import STALE, made, plugin_of, warn
from livarot.sweeps.stopping import Stopper
from livarot.sweeps.store import housekeeping
from livarot.sweeps.store.folders import own_folder
from livarot.sweeps.store.index import GUARD, DriverLock, guarded
from livarot.sweeps.store.store import SUFFIX, Store
from livarot.sweeps.tasks import GROUP, Part, Task, cut, join, plan
from livarot.sweeps.worker import STOP, Outcome, fault_notes, notes_of

logger = logging.getLogger(__name__)

ATTEMPTS = 3


def sweep(
    experiment: Experiment,
    store: str | Path,
    *,
    workers: int = 1,
    backend: str = "loky",
    address: str | None = None,
    shard: tuple[int, int] = (1, 1),
    group: int = GROUP,
    checkpoint_seconds: float = 30.0,
    checkpoint_episodes: int | None = None,
    imports: Sequence[str] = (),
    stale: str = "keep",
    observer: Observer | None = None,
    last_words: Callable[[Report], None] | None = None,
) -> Report:
    """Compute the runs of an experiment that its store does not have.

    ``shard=(i, n)`` is the i-th of n parts (1 <= i <= n), every n-th seed of each cell; a task has ``group``
    runs at most; a checkpoint is written every so many seconds (and episodes); ``imports`` are modules to import in
    driver and workers, which register agents or environments of your own.

    Stored runs made by other sources of these modules (:mod:`livarot.sweeps.experiment.sources`) are reported by
    warnings and in ``Report.stale``; ``stale="keep"`` takes them as they are, ``"recompute"`` computes them
    again: each file is replaced when its new one is complete.  ``observer`` is called with a :class:`Snapshot` about
    once a second, and when runs are stored; each of these is in one of the snapshots.

    SIGINT, SIGTERM and SIGHUP end a sweep within five seconds, with ``Report.signal`` set.  If something hangs even
    then, ``last_words(report)`` is called and the process ends.
    """
    require_positive_int("workers", workers)
    require_positive_int("group", group)
    if not (math.isfinite(checkpoint_seconds) and checkpoint_seconds >= 0.0):
        raise bad("checkpoint_seconds", f"must be a number of seconds, got {checkpoint_seconds}")
    check_backend(backend, address)
    require_positive_int("shard", shard[1])
    if not 1 <= shard[0] <= shard[1]:
        raise bad("shard", f"{shard[0]}/{shard[1]} is not a part", cure="number the parts 1/n to n/n")
    if stale not in STALE:
        raise bad("stale", f"{stale!r} is not one of {', '.join(map(repr, STALE))}")
    planned = plan(experiment, shard)
    sources = sources_of(part.cell for part in planned)
    unfinished = _unfinished(planned, Path(store) / "runs", also=sources if stale == "recompute" else ())
    check_cells(unfinished)
    if unfinished and address is not None:
        engine(backend, workers, address, Path()).close()  # if nobody answers there, refuse before a store is made
    options: dict[str, Any] = {"checkpoint_seconds": checkpoint_seconds, "checkpoint_episodes": checkpoint_episodes}
    options["imports"] = tuple(imports)
    with Store(store, create=True) as opened, guarded(opened.path / GUARD, alone=False), shown(observer) as seen:
        # from here on the lock of the sweep keeps its files from being removed
        begun = _Sweep(opened, planned, group, stale, sources, options, seen, last_words)
        opened.add_spec(experiment)
        return begun.run(backend, workers, address)


def _unfinished(planned: list[Part], folder: Path, also: Container[str] = ()) -> list[Cell]:
    """The cells that lack the file of some run, and those whose key is in ``also``."""
    there = set(os.listdir(folder)) if folder.is_dir() else set()
    lacking = (part for part in planned if any(f"{key}{SUFFIX}" not in there for key in part.keys))
    return [*(part.cell for part in lacking), *(part.cell for part in planned if part.cell.key in also)]


def _without(part: Part, keys: Container[str]) -> Part:
    """A part without the runs of these keys."""
    return part._replace(seeds=tuple(seed for seed in part.seeds if part.cell.key_of(seed) not in keys))


class _Sweep:
    def __init__(
        self,
        store: Store,
        planned: list[Part],
        group: int,
        stale: str,
        sources: dict[str, str],
        options: dict[str, Any],
        observer: Observer | None,
        last_words: Callable[[Report], None] | None,
    ) -> None:
        self.store, self.planned, self.group, self.options = store, planned, group, options
        self.observer, self.last_words, self.stale, self.sources = observer, last_words, stale, sources
        self.news = News()
        self.outdated: set[str] = set()  # stored, and to be computed again
        self.cells: dict[str, Cell] = {key: part.cell for part in planned for key in part.keys}  # by key of the run
        self.report = Report(len(self.cells))
        self.begin, self.since = time.monotonic(), time.time()
        self.tasks: dict[int, Task] = {}
        self.strikes: dict[int, int] = {}
        self.barren = 0  # rounds in a row in which a worker died and no task had begun or ended
        self.elsewhere: set[str] = set()  # claimed by other drivers
        self.episodes_planned = 0
        self.engine: Engine | None = None
        self.stopper = Stopper(self._ask_to_stop, self._end_workers, self._give_up)
        self.lock = DriverLock(store.path / "drivers")
        self.folder = store.path / "running" / self.lock.token

    # ---------------------------------------------------------------- the whole
    def run(self, backend: str, workers: int, address: str | None) -> Report:
        housekeeping.tidy(self.store, self.lock)
        self._place()
        present = self.store.sync(verify=True, only=self.cells.keys()).done & self.cells.keys()
        self._look_for_stale()
        present -= self.outdated
        self.report.before = len(present)
        parts = [_without(part, present) for part in cut(self.planned, workers, self.group)]
        wanted = [part for part in parts if part.seeds]
        pending = [self._task(*joined) for joined in join(wanted, workers, self.group)]
        self.episodes_planned = sum(part.episodes for part in wanted)
        try:
            if pending:
                with self.stopper.listening(), self._watching():
                    self.engine = engine(backend, workers, address, self.folder)
                    try:
                        self._work(self.engine, pending)
                    finally:
                        self.engine.close()
        finally:
            self.stopper.ended.set()
            self._leave()
        self.report.seconds = time.monotonic() - self.begin
        return self.report

    def _place(self) -> Path:
        """The folder of this sweep in ``running/``, made again if another process has removed it."""
        own_folder(self.folder.parent)
        return own_folder(self.folder)

    def _task(self, *parts: Part) -> int:
        number = len(self.tasks)
        sources = {part.cell.key: self.sources[part.cell.key] for part in parts if part.cell.key in self.sources}
        self.tasks[number] = Task(
            number, str(self.store.path.resolve()), self.lock.token, parts, sources=sources, **self.options
        )
        self.strikes[number] = 0
        return number

    def _look_for_stale(self) -> None:
        """Report which of the planned runs were made by other sources."""
        cells = {part.cell.key: part.cell for part in self.planned}
        found = {key: cell for key, cell in made(self.store, cells.values()).others.items() if key in self.cells}
        self.report.stale = dict(Counter(found.values()))
        warn([cells[cell] for cell in found.values()], self.stale)
        self.outdated = set(found) if self.stale == "recompute" else set()

    def _ready(self, key: str) -> bool:
        """Is the run stored and, if it was outdated, by now made again by the sources here?"""
        if key not in self.outdated:
            return self.store.has(key)
        return plugin_of(self.store, key) == self.sources[self.cells[key].key]

    def _work(self, chosen: Engine, pending: list[int]) -> None:
        while (pending or self.elsewhere) and not self.stopper.asked.is_set():
            crowd = [number for number in pending if self.strikes[number] == 0]
            now, alone = (crowd, False) if crowd else (pending[:1], True)
            chosen_now = set(now)
            pending = [number for number in pending if number not in chosen_now]
            if now:
                pending += self._round(chosen, now, alone)
            else:
                pending += self._others()

    def _round(self, chosen: Engine, numbers: list[int], alone: bool) -> list[int]:
        """Run tasks; returns the numbers of those to be tried again."""
        open_tasks = dict.fromkeys(numbers)
        again: list[int] = []
        struck = sum(self.strikes.values())
        outcomes = chosen.run(self._claimed(numbers, open_tasks), alone=alone)
        try:
            for outcome in outcomes:
                open_tasks.pop(outcome.number, None)
                again += self._take(outcome)
        except WorkersDied as death:
            if self.stopper.asked.is_set():
                return []
            self.report.deaths += 1
            logger.warning("a worker died (%s)", death)
            again += self._after_death(list(open_tasks), str(death), alone)
            moved = len(open_tasks) < len(numbers) or sum(self.strikes.values()) > struck
            self.barren = 0 if moved else self.barren + 1
            if self.barren == ATTEMPTS:
                self._release()
                raise bad("backend", f"workers die before they begin ({death})", cure="see livarot doctor") from death
        except BaseException:
            self.stopper.asked.set()
            self._end_workers()
            raise
        finally:
            with contextlib.suppress(Exception):
                outcomes.close()  # type: ignore[attr-defined]
        return again

    def _claimed(self, numbers: list[int], open_tasks: dict[int, None]) -> Iterator[Task]:
        """The tasks as the engine asks for them, without the runs that other drivers have taken or finished."""
        for number in numbers:
            if self.stopper.asked.is_set():
                return
            task = self.tasks[number]
            mine = self._claim(task.keys)
            ready = {key for key in mine if self._ready(key)}
            if ready:
                self._release(ready)
            gone = (set(task.keys) - mine) | ready
            self.elsewhere |= gone
            left = tuple(part for part in (_without(part, gone) for part in task.parts) if part.seeds)
            if not left:
                open_tasks.pop(number, None)
                continue
            self.tasks[number] = replace(task, parts=left)
            self._place()
            yield self.tasks[number]

    def _take(self, outcome: Outcome) -> list[int]:
        """Note what a task has done; returns the numbers of new tasks in which its other runs are tried again."""
        task = self.tasks[outcome.number]
        stored = [(run, outcome.entries[run.key]) for run in task.runs if run.key in outcome.entries]
        if stored:
            self.store.note(stored, self.lock.token)
            self.store.clear_failures(outcome.entries)
            self.news.add(stored)
            self.report.done += len(stored)
            self.report.episodes += sum(run.cell.episodes for run, _ in stored)
        if outcome.verdict != "done":
            self._release(task.keys)
        if outcome.verdict == "unwritable":
            raise bad("store", outcome.message, cure="free the disk or choose another --store, then run the same again")
        if outcome.verdict == "foreign":
            problem = f"a worker has other sources of {outcome.message} than this process"
            raise bad("backend", problem, cure="restart the workers that are not livarot's, then run the same again")
        again = self._after_exception(task, outcome) if outcome.verdict == "failed" else []
        self._show()
        return again

    def _after_exception(self, task: Task, outcome: Outcome) -> list[int]:
        """Try the part that raised again seed by seed (a single run has failed), and the later parts, not yet begun."""
        raised, *later = [part for part in task.parts if any(run.key not in outcome.entries for run in part.runs)]
        again = [self._task(*later)] if later else []
        if len(raised.seeds) > 1:
            return [self._task(Part(raised.cell, (seed,))) for seed in raised.seeds] + again
        self._fail(raised.runs[0], outcome.message, self.strikes[outcome.number] + 1)
        return again

    def _after_death(self, numbers: list[int], said: str, alone: bool) -> list[int]:
        """Count a strike against each task that had begun or was alone; a run with ``ATTEMPTS`` of them has failed."""
        again = []
        for number in numbers:
            task = self.tasks[number]
            begun = alone or task.marker.exists()
            notes = fault_notes(task.marker)
            task.marker.unlink(missing_ok=True)
            self._release(task.keys)
            if not begun:
                again.append(number)
                continue
            self.strikes[number] += 1
            if self.strikes[number] >= ATTEMPTS:
                self._fail(task.runs[0], f"the worker died {ATTEMPTS} times; {said}\n{notes}".strip(), ATTEMPTS)
            elif self.strikes[number] == ATTEMPTS - 1 and len(task.runs) > 1:
                for run in task.runs:
                    single = self._task(Part(run.cell, (run.seed,)))
                    self.strikes[single] = ATTEMPTS - 1
                    again.append(single)
            else:
                again.append(number)
        return again

    def _fail(self, run: Run, text: str, attempts: int) -> None:
        self.store.fail(run, attempts=attempts, traceback=text)
        self.report.failed[run.key] = text
        logger.warning("failed: %s on %s, seed %d", run.cell.agent, run.cell.environment, run.seed)

    # ---------------------------------------------------------------- other drivers
    def _claim(self, keys: list[str]) -> set[str]:
        try:
            return self.store.index.claim(keys, self.lock.token, self.lock.alive)
        except Exception as error:  # claims save work, nothing else depends on them
            logger.warning("no claims here (%s): another driver may compute the same runs", error)
            return set(keys)

    def _release(self, keys: Any = None) -> None:
        with contextlib.suppress(Exception):
            self.store.index.release(self.lock.token, None if keys is None else list(keys))

    def _others(self) -> list[int]:
        """See what the other drivers have done; the runs that a dead one left are computed here."""
        time.sleep(0.1)
        ready = {key for key in self.elsewhere if self._ready(key)}
        self.report.done += len(ready)
        self.elsewhere -= ready
        for key in self.elsewhere & self._failed_elsewhere():
            self.report.failed[key] = "failed in another driver"
            self.elsewhere.discard(key)
        mine = self._claim(sorted(self.elsewhere))
        self.elsewhere -= mine
        self._show()
        theirs = self.cells.keys() - mine
        left = [_without(part, theirs) for part in self.planned] if mine else []
        return [self._task(part) for part in cut([part for part in left if part.seeds], 1, self.group)]

    def _failed_elsewhere(self) -> set[str]:
        found = set()
        for key in self.elsewhere:
            with contextlib.suppress(OSError):
                if (self.store.path / "failed" / f"{key}.json").stat().st_mtime >= self.since:
                    found.add(key)
        return found

    # ---------------------------------------------------------------- progress, signals, end
    def _show(self) -> None:
        if self.observer is None:
            return
        live = sum(note["episodes"] for note in notes_of(self.folder))
        done, failed = self.report.before + self.report.done, len(self.report.failed)
        shown = min(self.report.episodes + live, self.episodes_planned)
        seconds, planned = time.monotonic() - self.begin, self.report.planned
        self.observer(Snapshot(planned, done, failed, shown, self.episodes_planned, seconds, self.news.take()))

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        """Tell the observer about once a second."""

        def watch() -> None:
            while not self.stopper.ended.wait(1.0):
                self._show()

        self._show()
        threading.Thread(target=watch, daemon=True).start()
        yield
        self.stopper.ended.set()
        self._show()

    def _ask_to_stop(self, number: int) -> None:
        self.report.signal = self.report.signal or number
        with contextlib.suppress(OSError, LivarotError):
            (self._place() / STOP).touch()

    def _end_workers(self) -> None:
        if self.engine is not None:
            self.engine.abandon()

    def _give_up(self) -> NoReturn:
        self._leave()
        if self.last_words is not None:
            self.last_words(self.report)
        os._exit(128 + (self.report.signal or signal.SIGINT))

    def _leave(self) -> None:
        self._release()
        housekeeping.remove_folder(self.folder)
        self.lock.release()


__all__ = ["Observer", "Report", "Snapshot", "sweep"]
