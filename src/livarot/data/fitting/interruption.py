"""What is left of a fit that Ctrl-C ends: the parameters that it had reached.

They are no estimate until the likelihood has its maximum there, and they have no standard errors; the estimator itself
stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from livarot.core.arrays import FloatArray
from livarot.errors import Interrupted
from livarot.model.shown import compact
from livarot.system.progress import Asked, Count, counted

if TYPE_CHECKING:
    from livarot.data.fitting.newton import Maximum


@compact
class UnfinishedFit(NamedTuple):
    """Where an interrupted fit was.

    The first ``n_finished`` rows of theta are maxima of the likelihood; the row after them, if there is one, is the
    last Newton step of a search that has not converged.
    """

    theta: FloatArray  # (parameters reached, d): one row, or one for each stage that was begun
    columns: tuple[str, ...]  # names of the d coefficients
    n_finished: int
    n_steps: int  # Newton steps on all of the data


class Steps:
    """The Newton steps of a fit, told to ``count`` and kept."""

    def __init__(self, count: Count | None) -> None:
        self._count = count
        self._columns: tuple[str, ...] = ()
        self._finished: list[FloatArray] = []
        self._theta: FloatArray | None = None
        self._steps = 0

    def begin(self, columns: tuple[str, ...]) -> None:
        """The table is read, into these columns; what an earlier reading had reached is forgotten."""
        self._columns, self._finished, self._theta, self._steps = columns, [], None, 0
        self._tell(0)

    def follow(self, theta: FloatArray, steps: int = 1) -> None:
        """Newton's method is at theta, so many steps further."""
        self._theta = theta
        self._steps += steps
        self._tell(steps)

    def _tell(self, steps: int) -> None:
        if self._count is not None:
            self._count(steps)

    def finish(self, found: Maximum) -> Maximum:
        """This parameter has its maximum."""
        self._finished.append(found.theta)
        self._theta = None
        return found

    def stopped(self) -> Interrupted:
        """The exception that has what there is."""
        reached = [*self._finished, *([] if self._theta is None else [self._theta])]
        if not reached:
            return Interrupted("stopped before the first Newton step: .result is None, the estimator as it was", None)
        done, steps = len(self._finished), self._steps
        found = UnfinishedFit(np.stack(reached), self._columns, done, steps)
        what = "not converged" if self._theta is not None else "without standard errors"
        said = f"stopped after {steps} Newton step{'' if steps == 1 else 's'}: .result has theta, {what}"
        return Interrupted(f"{said}; the estimator is as it was", found)


@contextmanager
def newton_steps(progress: Asked) -> Iterator[Steps]:
    """The steps of a fit, shown as ``progress`` says; Ctrl-C becomes :class:`livarot.Interrupted`."""
    with counted(progress, None, "Newton steps") as count:
        steps = Steps(count)
        try:
            yield steps
        except KeyboardInterrupt as stop:
            raise steps.stopped() from stop
