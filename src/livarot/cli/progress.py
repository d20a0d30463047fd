"""How a long command shows where it is: a bar on a terminal, a few lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


@contextmanager
def progress_shown(
    console: Console, name: str, unit: str = "episodes", doing: str = "running"
) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, a line for every tenth elsewhere."""
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
    last = -1

    def show(done: int, total: int) -> None:
        nonlocal last
        tenth = 10 * done // total
        if tenth > last:
            last = tenth
            what = "compiling what is not compiled yet" if done == 0 else f"{10 * tenth} % of {total} {unit}"
            console.print(f"{name}: {what}", highlight=False, soft_wrap=True)

    return show
