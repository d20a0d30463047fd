"""Threads that end when they are asked to: for loops over seeds, cells and files.

Only the main thread receives Ctrl-C, and a thread cannot be interrupted from outside.  So each thread gets a function
``look`` to call between two of its steps, which raises :class:`Stopped` as soon as another thread has failed or the
caller was interrupted.  The caller waits at most ``PATIENCE`` for threads in the middle of a long step (a kernel, a
compilation): they are daemons, end at their next call of ``look``, and do not keep the interpreter from exiting.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

PATIENCE = 1.0  # seconds that an interrupted caller waits for its threads to end
Item = TypeVar("Item")
Result = TypeVar("Result")
Look = Callable[[], None]
Progress = Callable[[int, int], None]  # how much is done, and how much there is in all


def processors() -> int:
    """How many processors this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


class Stopped(Exception):
    """Raised in a thread that is to end because another one failed, or because of Ctrl-C."""


class Tally:
    """How much of ``total`` the threads have done, reported to ``progress`` by one of them at a time."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.done, self.total = 0, total
        self._progress, self._lock = progress, threading.Lock()

    def add(self, count: int) -> None:
        with self._lock:
            self.done += count
            if self._progress is not None:
                self._progress(self.done, self.total)


def in_threads(work: Callable[[Item, Look], Result], items: Sequence[Item], workers: int) -> list[Result]:
    """``work(item, look)`` for every item, in order of the items, by at most ``workers`` threads at a time.

    The first exception of a thread stops the others and is raised here.  One worker is the calling thread itself.

    >>> in_threads(lambda item, look: item * item, [1, 2, 3], 2)
    [1, 4, 9]
    """
    stop = threading.Event()

    def look() -> None:
        if stop.is_set():
            raise Stopped

    if workers == 1 or len(items) <= 1:
        return [work(item, look) for item in items]
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    finished: queue.SimpleQueue[tuple[int, Any, BaseException | None]] = queue.SimpleQueue()
    for place in range(len(items)):
        waiting.put(place)

    def serve() -> None:
        while not stop.is_set():
            try:
                place = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                finished.put((place, work(items[place], look), None))
            except BaseException as error:  # raised again by the caller
                finished.put((place, None, error))  # before the others are stopped, so that this error comes first
                stop.set()

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(min(workers, len(items)))]
    results: dict[int, Result] = {}
    try:
        for thread in threads:
            thread.start()
        while len(results) < len(items):
            place, result, error = finished.get()
            if error is not None:
                raise error
            results[place] = result
    finally:
        stop.set()
        last = time.monotonic() + PATIENCE
        for thread in threads:
            if thread.is_alive():
                thread.join(max(last - time.monotonic(), 0.0))
    return [results[place] for place in range(len(items))]
