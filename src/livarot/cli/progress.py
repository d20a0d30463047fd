"""How a long command shows where it is: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from livarot.sweeps.snapshot import Snapshot

SECONDS = 30.0  # between two lines


@contextmanager
def progress_shown(
    console: Console, name: str, unit: str = "episodes", doing: str = "running"
) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; elsewhere a line every ``SECONDS``, and at the end if there was one before."""
    if not console.is_terminal:
        yield _lines(console, name, unit)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("compiling (once)", total=None)

        def show(done: int, total: int) -> None:
            if done:
                bar.update(task, description=doing, completed=done, total=total)

        yield show


def _lines(console: Console, name: str, unit: str) -> Callable[[int, int], None]:
    begin = last = time.monotonic()
    ended = False

    def show(done: int, total: int) -> None:
        nonlocal last, ended
        now = time.monotonic()
        if ended or (now - last < SECONDS and (done < total or last == begin)):
            return
        last, ended = now, done >= total
        what = "compiling what is not compiled yet" if done == 0 else f"{100 * done // total} % of {total} {unit}"
        console.print(f"{name}: {what}", highlight=False, soft_wrap=True)

    return show


@contextmanager
def sweep_shown() -> Iterator[Callable[[Snapshot], None]]:
    """A bar on a terminal, lines elsewhere: at the beginning, every ``SECONDS`` and at the end."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield progress_lines(lambda text: typer.echo(text, err=True))
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task, pace = bar.add_task("starting", total=None), Pace()

        def show(now: Snapshot) -> None:
            text = progress_text(now, pace.of(now))
            bar.update(task, description=text, completed=now.episodes, total=now.episodes_planned or None)

        yield show


def progress_lines(say: Callable[[str], None]) -> Callable[[Snapshot], None]:
    """An observer that prints a line now and then, and the last one once."""
    last: list[float] = []
    pace = Pace()
    ended = False

    def show(now: Snapshot) -> None:
        nonlocal ended
        speed = pace.of(now)
        if ended:
            return
        ended = now.done + now.failed >= now.planned
        if not last or now.seconds - last[0] >= SECONDS or ended:
            last[:] = [now.seconds]
            say(progress_text(now, speed))

    return show


class Pace:
    """Episodes per second over the last minute.

    Episodes that a checkpoint brings back appear at once; such a leap was not computed and does not count.
    """

    WINDOW, STEP = 60.0, 0.9  # seconds
    LEAP = 20.0  # times the usual pace

    def __init__(self) -> None:
        self._steps: deque[tuple[float, float, int]] = deque()  # end, seconds, episodes
        self._last: tuple[float, int] | None = None
        self._lock = threading.Lock()  # a sweep observes from two threads

    def of(self, now: Snapshot) -> float | None:
        """The pace at a snapshot, which comes after all earlier ones; None while it is not known yet."""
        with self._lock:
            if self._last is None:
                self._last = (now.seconds, now.episodes)
            elif now.seconds - self._last[0] >= self.STEP:
                self._steps.append((now.seconds, now.seconds - self._last[0], max(0, now.episodes - self._last[1])))
                self._last = (now.seconds, now.episodes)
            while self._steps and now.seconds - self._steps[0][0] >= self.WINDOW:
                self._steps.popleft()
            steps = [(seconds, count) for _, seconds, count in self._steps]
        rates = sorted(count / seconds for seconds, count in steps if count)
        usual = rates[len(rates) // 2] if len(rates) > 2 else math.inf
        steps = [(seconds, count) for seconds, count in steps if count <= self.LEAP * usual * seconds]
        total = sum(count for _, count in steps)
        return total / sum(seconds for seconds, _ in steps) if total else None


def progress_text(now: Snapshot, speed: float | None = None) -> str:
    """Runs, failures, speed and, until the end, what is left.

    >>> from livarot.experiments import Snapshot
    >>> progress_text(Snapshot(100, 50, 1, 5000, 10000, 2.0), 2500.0)
    '50 of 100 runs, 1 failed, 2500 episodes/s, 0:00:02 left'
    """
    parts = [f"{now.done} of {now.planned} run{'' if now.planned == 1 else 's'}"]
    if now.failed:
        parts.append(f"{now.failed} failed")
    if speed:
        parts.append(f"{speed:.0f} episodes/s" if speed >= 10 else f"{speed:.2g} episodes/s")
        if now.done + now.failed < now.planned:
            clock = timedelta(seconds=math.ceil(max(0, now.episodes_planned - now.episodes) / speed))
            parts.append(f"{clock} left")
    return ", ".join(parts)
