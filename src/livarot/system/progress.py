"""A progress bar for long work in a terminal or a notebook, from ``DELAY`` seconds on.

``progress`` is None (a bar if this process has a terminal or is a notebook), True, False, or a function of one's own,
which is called instead.  Without being asked, nothing is shown in tests, in scripts whose output goes to a file, and
in threads other than the main one.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from livarot.errors import bad

DELAY = 2.0  # seconds of work before a bar appears: short work shows none
BEAT = 0.2  # seconds between two drawings
Count = Callable[[int], None]  # called with the number of units just done
Asked = bool | Count | None


def watched() -> bool:
    """Is this the main thread of a process with a terminal, or of a notebook?"""
    if threading.current_thread() is not threading.main_thread():
        return False
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def in_notebook() -> bool:
    """Is this the kernel of a notebook?"""
    module: Any = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def counted(progress: Asked, total: int | None, what: str) -> Iterator[Count | None]:
    """What to call with the number of units just done, or None if nothing is shown; ``total`` None: not known."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise bad("progress", f"must be True, False, None or a function, got {progress!r}")
    if progress is None:
        progress = watched()
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield None
    else:
        bar = Bar(total, what)
        try:
            yield bar.add
        finally:
            bar.close()


class Bar:
    """How much of ``total`` is done.  Several threads may add to it; one of them draws it now and then."""

    def __init__(self, total: int | None, what: str) -> None:
        self.total, self.what, self.done = total, what, 0
        self._begin = self._last = time.monotonic()
        self._drawn: Any = None
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        self.reach(self.done + count)

    def reach(self, done: int) -> None:
        """Set how much is done."""
        self.done = done
        now = time.monotonic()
        if now - self._begin < DELAY or now - self._last < BEAT or not self._lock.acquire(blocking=False):
            return
        try:
            self._last = now
            if self._drawn is None:
                self._drawn = NotebookDrawing() if in_notebook() else TerminalDrawing(self.what, self.total)
            self._drawn.show(self)
        finally:
            self._lock.release()

    def text(self) -> str:
        """How much is done, of what, and the time left.

        >>> Bar(100, "episodes").text()
        '0 of 100 episodes'
        """
        if self.total is None:
            return f"{self.done} {self.what}"
        seconds = time.monotonic() - self._begin
        left = f", {seconds * (self.total - self.done) / self.done:.0f} s left" if self.done else ""
        return f"{self.done} of {self.total} {self.what}{left}"

    def close(self) -> None:
        if self._drawn is not None:
            self._drawn.close()


class TerminalDrawing:
    """A bar of rich, on standard error, which disappears in the end."""

    def __init__(self, what: str, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(what, total=total)
        self._bar.start()

    def show(self, bar: Bar) -> None:
        label = bar.what if bar.total is not None else bar.text()
        self._bar.update(self._task, completed=bar.done, description=label)

    def close(self) -> None:
        self._bar.stop()


class NotebookDrawing:
    """The browser's own bar; it needs no other package."""

    def __init__(self) -> None:
        self._tools: Any = import_module("IPython.display")  # a notebook has it
        self._handle: Any = None

    def show(self, bar: Bar) -> None:
        share = "" if bar.total is None else f' value="{bar.done}" max="{bar.total}"'  # without one the bar moves only
        drawing = self._tools.HTML(f"<progress{share}></progress> {bar.text()}")
        if self._handle is None:
            self._handle = self._tools.display(drawing, display_id=True)
        else:
            self._handle.update(drawing)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update(self._tools.HTML(""))
