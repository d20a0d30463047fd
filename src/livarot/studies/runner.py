"""How studies run: cells on threads, one count of what is done, one way to stop (:mod:`livarot.system.threads`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from livarot.agents.base import Agent, declared
from livarot.errors import require_positive_int
from livarot.model.problem import MNLMDP
from livarot.running.run import run
from livarot.system.threads import Look, Progress, Tally, in_threads

REPORTS = 1000  # about as many calls of ``progress`` in a study
Cell = TypeVar("Cell")
Result = TypeVar("Result")
Count = Callable[[int], None]


class Contender(NamedTuple):
    """An agent with its name in figures and files; ``everywhere`` False: it runs on some problems of a study only."""

    key: str
    label: str
    agent: Agent[Any]
    everywhere: bool = True


class Runner:
    """Works on the cells of a study by ``workers`` threads, which do not change the result.

    ``progress(done, total)`` is called with 0 at once, then now and then from one thread at a time; what it raises, and
    Ctrl-C, ends the study.

    >>> seen = []
    >>> runner = Runner(3, 1, lambda done, total: seen.append((done, total)))
    >>> runner.all(lambda cell, count: (cell * cell, count(1))[0], [2, 3, 5])
    [4, 9, 25]
    >>> seen
    [(0, 3), (1, 3), (2, 3), (3, 3)]
    """

    def __init__(self, total: int, workers: int, progress: Progress | None) -> None:
        self.workers = require_positive_int("workers", workers)
        self._tally = Tally(total, progress)
        self._tally.add(0)

    def compile(self, model: MNLMDP, agents: Iterable[Agent[Any]]) -> None:
        """Every kernel of a run once, in this thread, so that Ctrl-C works while they compile."""
        for agent in agents:
            run(model, agent, (declared(agent).burn_in or 0) + 1)

    def all(self, work: Callable[[Cell, Count], Result], cells: Sequence[Cell]) -> list[Result]:
        """``work(cell, count)`` for every cell, in their order.

        The work calls ``count(n)`` after every n units of the total, and between its steps with 0: it ends there if the
        study is to end.
        """
        often = self._tally.total // REPORTS

        def one(cell: Cell, look: Look) -> Result:
            waiting = 0

            def count(new: int) -> None:
                nonlocal waiting
                look()
                waiting += new
                if waiting > often:
                    self._tally.add(waiting)
                    waiting = 0

            result = work(cell, count)
            if waiting:
                self._tally.add(waiting)
            return result

        return in_threads(one, cells, self.workers)
