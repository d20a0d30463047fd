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

**Order and reference.**  The levels of a category are in the order of a pandas Categorical, otherwise sorted; the first
one, or the one named in ``reference={"zone": "north"}``, is the reference.

**Covariates.**  In a log of transitions a factor may also be a *covariate*, a column of the log that belongs to the
transition (the age of a patient): it is the same for all next states, so it matters in products only, such as
``"age:next_state"``.  Its columns are kept apart (``Encoding.covariates``), once per row of the log.

:mod:`livarot.data.formulas.wilkinson` reads formulas such as ``"~ wear + log(age):next_state"`` into the same factors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, IntArray
from livarot.data.formulas.expressions import SIDES, Leaf, Memory, Parsed, evaluate
from livarot.errors import bad, require_finite

LABELS = {"state": "state", "action": "action", "next_state": "next", "stage": "stage"}


@dataclass(frozen=True)
class Factor:
    """One factor: an attribute (``name``) or the label itself (None) of a side; a number or a category."""

    text: str
    side: str  # "state", "action", "next" or "stage"
    name: str | None
    category: bool
    expression: Parsed | None = None  # numbers computed from columns
    base: tuple[Any, ...] = ()  # the reference level, if one was named

    def leaves(self) -> tuple[Factor, ...]:
        """The columns it is made of, as factors."""
        if self.expression is None:
            return (self,)
        return tuple(leaf_factor(leaf) for leaf in self.expression.leaves)


def leaf_factor(leaf: Leaf) -> Factor:
    """A column named in an expression, as a number."""
    text = f"{leaf.side}.{leaf.name}" if leaf.side else leaf.name
    if not leaf.side and leaf.name in LABELS:
        return Factor(text, LABELS[leaf.name], None, False)
    return Factor(text, leaf.side or "next", leaf.name, False)


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


class Recipe(NamedTuple):
    """What an encoding has learned from its data, to be used again for other data."""

    levels: Levels  # categories (() for numbers), reference first, and whether they vary within sets
    memory: Memory  # constants of transforms


class Terms(NamedTuple):
    """The terms of a model; ``marginal`` says how categories are coded (:func:`_is_reduced`)."""

    products: Sequence[Computed | tuple[Factor, ...]]
    offsets: Sequence[Factor] = ()
    marginal: bool = False


class Scope(Protocol):
    """The rows a formula is evaluated on."""

    def is_column(self, text: str) -> bool: ...
    def is_category(self, factor: Factor) -> bool: ...
    def is_covariate(self, factor: Factor) -> bool: ...
    def role(self, text: str) -> str | None: ...
    def numbers(self, factor: Factor) -> NDArray[Any]: ...
    def labels(self, factor: Factor) -> tuple[IntArray, list[Any]]: ...
    def categories(self, factor: Factor, met_first: bool = False) -> Sequence[Any] | None: ...
    def varies(self, codes: NDArray[Any]) -> bool: ...
    def frame(self) -> pd.DataFrame: ...


Covariate: TypeAlias = "tuple[str, int]"  # the text of a factor, and which of its columns


class Column(NamedTuple):
    """One column of features: its part in the rows, times covariates."""

    name: str
    rows: NDArray[Any] | None  # None: a product of covariates alone
    covariates: tuple[Covariate, ...]
    term: str = ""


class Encoding(NamedTuple):
    """Columns of features, what they have learned, and the covariates they use, one number per row of the log."""

    columns: list[Column]
    recipe: Recipe
    covariates: dict[Covariate, FloatArray]
    offset: FloatArray | None  # known part of the logits that the terms name

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def terms(self) -> tuple[str, ...]:
        return tuple(column.term for column in self.columns)

    @property
    def arrays(self) -> list[NDArray[Any]]:
        """The columns, where there are no covariates."""
        return [column.rows for column in self.columns if column.rows is not None]


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
        if isinstance(feature, str) and "~" in feature:
            raise bad("features", f"{feature!r} is a formula", index=i, cure="pass it as formula=")
        terms.append(feature if isinstance(feature, Computed) else str(feature))
    return terms


def listed_terms(features: Sequence[Feature], is_column: Callable[[str], bool]) -> Terms:
    """The terms of a list of features."""
    return Terms([one if isinstance(one, Computed) else parse(one, is_column) for one in features])


def encode(
    terms: Terms, scope: Scope, known: Recipe | None = None, reference: Mapping[str, Any] | None = None
) -> Encoding:
    """The columns of all terms; ``known`` is what an earlier encoding learned, to be used again."""
    recipe = Recipe({}, {}) if known is None else Recipe(dict(known.levels), dict(known.memory))
    work = _Encoder(terms, scope, recipe, known is None, dict(reference or {}))
    columns: list[Column] = []
    for term in terms.products:
        columns += [_computed(term, scope)] if isinstance(term, Computed) else work.product(term)
    names = [column.name for column in columns]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise bad("features", f"{twice[0]!r} is given twice", count=len(twice), cure="name every feature once")
    if known is None and work.reference:
        key = next(iter(work.reference))
        known_as = ", ".join(map(repr, recipe.levels)) or "none"
        raise bad("reference", f"there is no category {key!r}", cure=f"the categories are {known_as}")
    return Encoding(columns, recipe, work.covariates, work.offset())


def expander(scope: Scope, recipe: Recipe) -> _Encoder:
    """What expands single factors as an earlier encoding did."""
    return _Encoder(Terms(()), scope, recipe, False, {})


def _computed(feature: Computed, scope: Scope) -> Column:
    frame = scope.frame()
    answer = require_finite(f"feature {feature.name!r}", feature.function(frame))
    if answer.shape != (len(frame),):
        raise bad(f"feature {feature.name!r}", f"gives shape {answer.shape}, expected one number per row")
    return Column(feature.name, answer, (), feature.name)


class _Encoder:
    """The columns of products, one after the other."""

    def __init__(self, terms: Terms, scope: Scope, recipe: Recipe, learn: bool, reference: dict[str, Any]) -> None:
        self.terms, self.scope, self.recipe, self.learn, self.reference = terms, scope, recipe, learn, reference
        self.present = {_key(term) for term in terms.products if not isinstance(term, Computed)}
        self.covariates: dict[Covariate, FloatArray] = {}

    def product(self, term: tuple[Factor, ...]) -> list[Column]:
        found = [Column("", None, ())]
        expanded = [self.expand(factor) for factor in term]
        for factor, (parts, labels) in zip(term, expanded, strict=True):
            outside = self.scope.is_covariate(factor)
            first = 1 if factor.category and self._is_reduced(factor, term) else 0
            if first >= len(parts):
                level = self.recipe.levels[factor.text][0][0]
                raise bad(f"feature {factor.text!r}", f"has one category only, {level!r}", cure="leave it out")
            made = []
            for column in found:
                for k in range(first, len(parts)):
                    name = f"{column.name}:{labels[k]}".lstrip(":")
                    if outside:
                        self.covariates[factor.text, k] = parts[k]
                        made.append(Column(name, column.rows, (*column.covariates, (factor.text, k))))
                    else:
                        rows = parts[k] if column.rows is None else column.rows * parts[k]
                        made.append(Column(name, rows, column.covariates))
            found = made
        text = ":".join(factor.text for factor in term)
        return [column._replace(term=text) for column in found]

    def expand(self, factor: Factor) -> tuple[list[NDArray[Any]], list[str]]:
        """All columns of one factor, the reference level included, and their names."""
        if factor.expression is not None:
            parts = self.computed(factor.expression)
            return parts, [factor.text] if len(parts) == 1 else [f"{factor.text}[{k + 1}]" for k in range(len(parts))]
        if not factor.category:
            return [self.scope.numbers(factor)], [factor.text]
        codes, values = self.scope.labels(factor)
        if self.learn and factor.text not in self.recipe.levels:
            self.recipe.levels[factor.text] = self._ordered(factor, values), self._varies(factor, codes)
        ordered = self.recipe.levels[factor.text][0] if factor.text in self.recipe.levels else ()
        place = {level: i for i, level in enumerate(ordered)}
        unknown = [value for value in values if value not in place]
        if unknown:
            row = int(np.flatnonzero(codes == values.index(unknown[0]))[0])
            problem = f"category {unknown[0]!r} was not in the data the model was fitted to"
            raise bad(f"feature {factor.text!r}", problem, index=row, count=len(unknown), cure="fit again with it")
        numbers = np.array([place[value] for value in values], dtype=np.int64)[codes]
        parts = [(numbers == k).astype(np.float64) for k in range(len(ordered))]
        return parts, [f"{factor.text}[{level}]" for level in ordered]

    def computed(self, expression: Parsed) -> list[NDArray[Any]]:
        def column(leaf: Leaf) -> NDArray[Any]:
            return self.scope.numbers(leaf_factor(leaf))

        return list(evaluate(expression, column, self.recipe.memory, learn=self.learn))

    def offset(self) -> FloatArray | None:
        total: FloatArray | None = None
        for factor in self.terms.offsets:
            if self.scope.is_covariate(factor):
                raise bad("formula", f"offset({factor.text}) is the same for all next states", cure="leave it out")
            (own,), _ = self.expand(factor)
            total = np.array(own, dtype=np.float64) if total is None else total + own
        return total

    def _ordered(self, factor: Factor, values: list[Any]) -> tuple[Any, ...]:
        """The levels in order, the reference first."""
        order = self.scope.categories(factor, met_first=self.terms.marginal)
        if order is not None:
            met = set(values)
            ordered = tuple(level for level in order if level in met)
        else:
            try:
                ordered = tuple(sorted(values))
            except TypeError:
                ordered = tuple(values)
        inner = factor.text[2:-1].strip() if factor.text.startswith("C(") else factor.text
        base = factor.base
        for key in (inner, factor.text):
            if key in self.reference:
                base = (self.reference.pop(key),)
        if not base:
            return ordered
        if base[0] not in ordered:
            shown = ", ".join(map(repr, ordered[:8]))
            raise bad("reference", f"{base[0]!r} is not a category of {inner!r}", cure=f"its categories are {shown}")
        return (base[0], *(level for level in ordered if level != base[0]))

    def _varies(self, factor: Factor, values: NDArray[Any]) -> bool:
        fixed = factor.side in ("state", "action", "stage") and factor.expression is None
        return not fixed and not self.scope.is_covariate(factor) and self.scope.varies(values)

    def _changes(self, factor: Factor) -> bool:
        """Does a factor vary within choice sets?"""
        if factor.text not in self.recipe.levels:
            self.recipe.levels[factor.text] = (), any(self._varies(factor, part) for part in self.expand(factor)[0])
        return self.recipe.levels[factor.text][1]

    def _is_reduced(self, factor: Factor, term: tuple[Factor, ...]) -> bool:
        """Does a category leave out its reference?

        Lists of features: where it varies within choice sets, since its columns add up to one.  Formulas
        (``marginal``): where the term without it is in the model, or cancels; then all of its columns would add up to
        what is there.
        """
        if not self.terms.marginal:
            return self.recipe.levels[factor.text][1]
        rest = tuple(other for other in term if other is not factor)
        return _key(rest) in self.present or not any(self._changes(other) for other in rest)


def _key(term: Sequence[Factor]) -> frozenset[str]:
    return frozenset(factor.text for factor in term)


def stack(columns: Sequence[NDArray[Any]]) -> FloatArray:
    """Columns side by side, (rows, d)."""
    matrix = np.empty((len(columns[0]), len(columns)))
    for j, column in enumerate(columns):
        matrix[:, j] = column
    return matrix
