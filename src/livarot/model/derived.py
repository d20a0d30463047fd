"""What follows from a problem (layouts, bounds, designs): computed when first asked for and kept with the problem.

>>> import livarot
>>> @derived
... def choices(problem: Problem) -> int:
...     print("counting")
...     return int(problem.rows.outcomes.sum())
>>> problem = livarot.envs.river_swim(4, 6).problem
>>> choices(problem), choices(problem)
counting
(14, 14)

Another problem, such as a ``dataclasses.replace`` of this one, computes its own, and so does a copy or a pickle.
Threads that ask at the same time may compute it several times, but all of them get the same object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from livarot.model.problem import Problem

T = TypeVar("T")
Derived = dict[Callable[["Problem"], Any], Any]  # what a problem keeps, by the function that computes it


def derived(compute: Callable[[Problem], T]) -> Callable[[Problem], T]:
    """The same function, computed once per problem."""

    @wraps(compute)
    def lookup(problem: Problem) -> T:
        try:
            found: T = problem.derived[compute]
        except KeyError:
            found = problem.derived.setdefault(compute, compute(problem))
        return found

    return lookup
