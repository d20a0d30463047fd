"""How processes end: a sweep by signals (its workers are asked to stop, then ended, then the process itself ends), a
worker with its driver.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

PATIENCE = 2.0  # seconds that workers have to stop by themselves
LIMIT = 4.0  # seconds after which a stopped sweep ends, whatever hangs
BEAT = 0.5  # seconds between two looks at the parent
SYNCHRONIZE, STILL_RUNNING = 0x100000, 0x102  # of Windows: the right to wait for a process, and "not yet"
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows ends a process at once by SIGTERM, and has no other
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
Action = Callable[[], None]
Handler = Callable[[int, FrameType | None], None]


@contextlib.contextmanager
def handling(handler: Handler | signal.Handlers, names: Sequence[str] = SIGNALS) -> Iterator[None]:
    """Signals of these names, as far as the system has them, are handled so; the main thread alone can say that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for name in names if (number := getattr(signal, name, None))}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


class Stopper:
    """``asked`` is set from the first signal on; the sweep sets ``ended`` when it has stopped.

    The first signal calls ``ask(number)``; a second one, or ``PATIENCE`` seconds later, ``end_workers()``; and after
    ``LIMIT`` seconds ``give_up()``, which ends the process: a store needs no cleaning up.
    """

    def __init__(self, ask: Callable[[int], None], end_workers: Action, give_up: Action) -> None:
        self.asked, self.ended = threading.Event(), threading.Event()
        self._ask, self._end_workers, self._give_up = ask, end_workers, give_up

    def listening(self) -> contextlib.AbstractContextManager[None]:
        return handling(self._hear)

    def _hear(self, number: int, _: FrameType | None) -> None:
        first = not self.asked.is_set()
        self._ask(number)
        self.asked.set()
        if first:
            threading.Thread(target=self._insist, daemon=True).start()
        else:
            self._end_workers()

    def _insist(self) -> None:
        if not self.ended.wait(PATIENCE):
            self._end_workers()
        if not self.ended.wait(LIMIT - PATIENCE):
            self._give_up()


def end_with(parent: int) -> None:
    """End this process at once when its parent has ended, for whatever reason; for a thread of its own."""
    lives = watch(parent)
    while lives():
        time.sleep(BEAT)
    os._exit(3)


def watch(parent: int) -> Callable[[], bool]:
    """A function that says whether the parent of this process still runs.

    A process that has lost its parent gets another one.  Not on Windows: it keeps the number, which may come to belong
    to somebody else, so the parent itself is held and asked.
    """
    if sys.platform != "win32":
        return lambda: os.getppid() == parent
    import ctypes

    system = ctypes.windll.kernel32
    held = system.OpenProcess(SYNCHRONIZE, False, parent)
    return lambda: bool(held) and system.WaitForSingleObject(held, 0) == STILL_RUNNING
