"""Which column has which role, and small checks that both layouts share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.data.reading.table import Table, named
from livarot.errors import bad


@dataclass(frozen=True, eq=False)
class Columns:
    """Which column has which role, and the tables beside the log (see :class:`livarot.data.MNLTransition`)."""

    features: Any
    state: str = "state"
    action: str = "action"
    next_state: str = "next_state"
    stage: str | None = None
    choice: str = "choice"
    chosen: str = "chosen"
    count: str | None = None
    offset: str | None = None
    nominal: str | None = None
    reachable: Any = None
    states: Any = None
    actions: Any = None

    @classmethod
    def of(cls, holder: Any) -> Columns:
        """The columns named by an object that has attributes of the same names."""
        return cls(**{own.name: getattr(holder, own.name) for own in fields(cls)})


def counts_of(table: Table, name: str) -> FloatArray:
    count = np.asarray(table.numbers(name, "count"), dtype=np.float64)
    if (count < 0).any():
        wrong = count < 0
        raise bad(named(name), "negative counts", index=int(wrong.argmax()), count=int(wrong.sum()))
    return count


def log_nominal(p: NDArray[Any], argument: str) -> FloatArray:
    """log of probabilities, refused unless all are positive."""
    wrong = ~(p > 0)
    if wrong.any():
        cure = "leave alternatives that cannot be chosen out of the choice set"
        raise bad(argument, "not positive", index=int(wrong.argmax()), count=int(wrong.sum()), cure=cure)
    return np.asarray(np.log(p.astype(np.float64)))


def constant_within(codes: NDArray[Any], start: IntArray) -> BoolArray:
    """For each set: is the code the same in all of its rows?"""
    first = np.repeat(codes[start[:-1]], np.diff(start))
    return np.asarray(np.logical_and.reduceat(codes == first, start[:-1]))
