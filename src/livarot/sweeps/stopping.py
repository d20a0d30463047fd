"""How a signal ends a sweep: the workers are asked to stop, then ended, then the process itself ends."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

PATIENCE = 2.0  # seconds that workers have to stop by themselves
LIMIT = 4.0  # seconds after which a stopped sweep ends, whatever hangs
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
Action = Callable[[], None]


class Stopper:
    """``asked`` is set from the first signal on; the sweep sets ``ended`` when it has stopped.

    The first signal calls ``ask(number)``; a second one, or ``PATIENCE`` seconds later, ``end_workers()``; and after
    ``LIMIT`` seconds ``give_up()``, which ends the process: a store needs no cleaning up.
    """

    def __init__(self, ask: Callable[[int], None], end_workers: Action, give_up: Action) -> None:
        self.asked, self.ended = threading.Event(), threading.Event()
        self._ask, self._end_workers, self._give_up = ask, end_workers, give_up

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Signals are heard by the main thread only; elsewhere this does nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [number for name in SIGNALS if (number := getattr(signal, name, None)) is not None]
        before = {number: signal.signal(number, self._hear) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

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
