"""Features by name: a small formula language for the rows of choice sets.

A *term* is a product of *factors*, joined by ``:``, and gives one column, or one per category:

================  ====================================================================================
factor            value of the row (state, action, next state)
================  ====================================================================================
``x``             column x of the row: of the alternative, or of the next state
``next.x``        the same, written explicitly
``state.x``       attribute x of the state the choice was made in
``action.x``      attribute x of the action
``C(x)``          one column per category of x; ``C(state.x)``, ``C(action.x)`` likewise
``state``         one column per state; ``action``, ``next_state``, ``stage`` likewise
================  ====================================================================================

So ``"severity"`` is a next-state column, ``"action:severity"`` has one coefficient of severity per action,
``"state.age:C(ward)"`` lets the pull of each ward depend on age.  A factor that is the same for all rows of a choice
set cancels in the probabilities: alone it is refused, in a product it is allowed.  A category that varies within
choice sets drops its first level, the reference, since the sum of all its columns is one everywhere.

The four words of the last line always have this meaning; any other name that is itself a column is never taken apart.
Nothing is evaluated as code; a feature that no term can express is a function, :class:`Computed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, IntArray
from livarot.errors import bad, require_finite

SIDES = ("state", "action", "next")
LABELS = {"state": "state", "action": "action", "next_state": "next", "stage": "stage"}


@dataclass(frozen=True)
class Factor:
    """One factor: an attribute (``name``) or the label itself (None) of a side; a number or a category."""

    text: str
    side: str  # "state", "action", "next" or "stage"
    name: str | None
    category: bool


@checked
@dataclass(frozen=True)
class Computed:
    """A feature by a function of the rows: a DataFrame with the columns stage (where there is one), state, action
    and next_state, in labels; the answer is one number per row.

    >>> Computed("distance", lambda rows: abs(rows.next_state - rows.state)).name
    'distance'
    """

    name: str
    function: Callable[[pd.DataFrame], ArrayLike]


Feature: TypeAlias = "str | Computed"
Levels: TypeAlias = "dict[str, tuple[tuple[Any, ...], bool]]"


class Scope(Protocol):
    """The rows a formula is evaluated on."""

    def is_column(self, text: str) -> bool: ...
    def numbers(self, factor: Factor) -> NDArray[Any]: ...
    def labels(self, factor: Factor) -> tuple[IntArray, list[Any]]: ...
    def varies(self, codes: IntArray) -> bool: ...
    def frame(self) -> pd.DataFrame: ...


class Encoding(NamedTuple):
    """Columns of features, their names, and the categories met, each with whether its reference is dropped."""

    columns: list[NDArray[Any]]
    names: tuple[str, ...]
    levels: Levels


def parse(text: str, is_column: Callable[[str], bool]) -> tuple[Factor, ...]:
    """The factors of a term.

    >>> [factor.side for factor in parse("action:C(state.ward):age", lambda name: False)]
    ['action', 'state', 'next']
    """
    if is_column(text) and text not in LABELS:
        return (Factor(text, "next", text, False),)
    factors = []
    for part in (piece.strip() for piece in text.split(":")):
        category = part.startswith("C(") and part.endswith(")")
        inner = part[2:-1].strip() if category else part
        if not inner:
            raise bad("features", f"{text!r} has an empty factor", cure="write a:b for a product of columns")
        side, dot, name = inner.partition(".")
        if inner in LABELS:
            factors.append(Factor(part, LABELS[inner], None, True))
        elif is_column(inner) or not (dot and side in SIDES):
            factors.append(Factor(part, "next", inner, category))
        else:
            factors.append(Factor(part, side, name, category))
    return tuple(factors)


def check_features(features: Any) -> list[Feature]:
    """The user's list of terms, refused unless it is one."""
    if isinstance(features, str | Computed):
        features = [features]
    if features is None or not isinstance(features, Sequence | np.ndarray) or len(features) == 0:
        raise bad("features", "none are given", cure='name columns or terms, such as ["severity", "action:severity"]')
    terms: list[Feature] = []
    for i, feature in enumerate(features):
        if not isinstance(feature, str | Computed):
            raise bad("features", f"{feature!r} is neither text nor Computed", index=i)
        terms.append(feature if isinstance(feature, Computed) else str(feature))
    return terms


def encode(features: Sequence[Feature], scope: Scope, levels: Levels | None = None) -> Encoding:
    """The columns of all terms; ``levels`` are the categories of an earlier encoding, to be used again."""
    met: Levels = {} if levels is None else dict(levels)
    columns: list[NDArray[Any]] = []
    names: list[str] = []
    for feature in features:
        if isinstance(feature, Computed):
            answer = require_finite(f"feature {feature.name!r}", feature.function(scope.frame()))
            if answer.shape != (len(scope.frame()),):
                raise bad(f"feature {feature.name!r}", f"gives shape {answer.shape}, expected one number per row")
            found, called = [answer], [feature.name]
        else:
            found, called = [], [""]
            for factor in parse(feature, scope.is_column):
                parts, labels = _expand(factor, scope, met, levels is not None)
                found = [a * b for a in found for b in parts] if found else list(parts)
                called = [f"{a}:{b}".lstrip(":") for a in called for b in labels]
        columns += found
        names += called
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise bad("features", f"{twice[0]!r} is given twice", count=len(twice), cure="name every feature once")
    return Encoding(columns, tuple(names), met)


def _expand(factor: Factor, scope: Scope, met: Levels, fixed: bool) -> tuple[list[NDArray[Any]], list[str]]:
    """The columns of one factor and their names."""
    if not factor.category:
        return [scope.numbers(factor)], [factor.text]
    codes, values = scope.labels(factor)
    if not fixed and factor.text not in met:
        try:
            ordered = tuple(sorted(values))
        except TypeError:
            ordered = tuple(values)
        met[factor.text] = ordered, scope.varies(codes)
    ordered, drop = met[factor.text]
    place = {level: i for i, level in enumerate(ordered)}
    unknown = [value for value in values if value not in place]
    if unknown:
        row = int(np.flatnonzero(codes == values.index(unknown[0]))[0])
        problem = f"category {unknown[0]!r} was not in the data the model was fitted to"
        raise bad(f"feature {factor.text!r}", problem, index=row, count=len(unknown), cure="fit again with it")
    numbers = np.array([place[value] for value in values], dtype=np.int64)[codes]
    kept = range(1 if drop else 0, len(ordered))
    if not kept:
        raise bad(f"feature {factor.text!r}", f"has one category only, {ordered[0]!r}", cure="leave it out")
    return [(numbers == k).astype(np.float64) for k in kept], [f"{factor.text}[{ordered[k]}]" for k in kept]


def stack(columns: Sequence[NDArray[Any]]) -> FloatArray:
    """Columns side by side, (rows, d)."""
    matrix = np.empty((len(columns[0]), len(columns)))
    for j, column in enumerate(columns):
        matrix[:, j] = column
    return matrix
