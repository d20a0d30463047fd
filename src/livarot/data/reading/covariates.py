"""Covariates of transitions: columns of a log that belong to the decision maker or the moment, not to a next state.

A column of features is ``rows_j(s'|s, a)`` times a product of covariates ``x_k(n)`` of the observation n:
``age:next_state`` has the indicator of a next state times the age.  :class:`Design` keeps the first part once per
(stage, state, action), and how the columns are made, so that the features of any covariates can be computed again: of
another log, or of one profile for an MDP.  A log becomes one choice set per different (stage, state, action,
covariates).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from livarot.core.arrays import FloatArray, IntArray
from livarot.data.formulas.formula import Covariate, Encoding, Factor, Recipe, Terms, expander
from livarot.data.reading.choices import Choices
from livarot.data.reading.table import Table, read_table
from livarot.errors import bad
from livarot.system.sizes import require_memory

if TYPE_CHECKING:
    from livarot.data.reading.transitions import SetScope


class LogScope:
    """A formula's view of the rows of a log: every name is a column, the same for all next states."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def is_column(self, text: str) -> bool:
        return text in self.table

    def is_category(self, factor: Factor) -> bool:
        return factor.category

    def is_covariate(self, factor: Factor) -> bool:
        return True

    def role(self, text: str) -> str | None:
        return None

    def numbers(self, factor: Factor) -> NDArray[Any]:
        return self.table.numbers(str(factor.name), "features")

    def labels(self, factor: Factor) -> tuple[IntArray, list[Any]]:
        return self.table.labels(str(factor.name), "features")

    def categories(self, factor: Factor, met_first: bool = False) -> Sequence[Any] | None:
        return self.table.order(str(factor.name))

    def varies(self, codes: NDArray[Any]) -> bool:
        return False

    def frame(self) -> pd.DataFrame:
        raise bad("features", "a Computed feature cannot use covariates")


@dataclass(frozen=True, eq=False)
class Design:
    """How covariates enter the features."""

    sets: Choices  # one set per (stage, state, action): the parts of the columns without covariates; counts are 0
    factors: tuple[Factor, ...]  # those of the covariates
    uses: tuple[tuple[Covariate, ...], ...]  # covariates of every column

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the log that are covariates."""
        found = dict.fromkeys(str(leaf.name) for factor in self.factors for leaf in factor.leaves())
        return tuple(found)

    def is_category(self, name: str) -> bool:
        return any(factor.category and factor.name == name for factor in self.factors)

    def keep_columns(self, kept: Sequence[int]) -> Design:
        """The same for some of the columns; all covariates stay known."""
        return replace(self, sets=self.sets.keep_columns(kept), uses=tuple(self.uses[j] for j in kept))

    def require(self, table: Table) -> None:
        """Refuse a table that lacks a covariate."""
        lost = [name for name in self.names if name not in table]
        if lost:
            text = ", ".join(map(repr, lost))
            cure = "give a value for every covariate of the fit"
            raise bad("covariates", f"{text} missing", count=len(lost), cure=cure)

    def covariates(self, table: Table) -> dict[Covariate, FloatArray]:
        """All columns of covariates, one number per row of a table."""
        self.require(table)
        work = expander(LogScope(table), Recipe(self.sets.levels, self.sets.memory))
        found = {}
        for factor in self.factors:
            for k, part in enumerate(work.expand(factor)[0]):
                found[factor.text, k] = np.asarray(part, dtype=np.float64)
        return found

    def choices(self, sets: IntArray, covariates: Mapping[Covariate, FloatArray]) -> Choices:
        """One choice set per entry of ``sets`` (numbers of (stage, state, action)), with its covariates."""
        own = self.sets
        sizes = own.sizes[sets]
        start = np.concatenate(([0], np.cumsum(sizes)))
        require_memory("data", "the features of all choices", int(start[-1]) * own.dim)
        rows = np.arange(start[-1]) - np.repeat(start[:-1] - own.start[sets], sizes)
        features = own.rows(rows)
        set_of_row = np.repeat(np.arange(len(sets)), sizes)
        for use in dict.fromkeys(self.uses):
            if use:
                factor = np.prod([covariates[key] for key in use], axis=0)[set_of_row]
                columns = [j for j, other in enumerate(self.uses) if other == use]
                features[:, columns] *= factor[:, None]
        assert own.state is not None  # noqa: S101 (this layout has them)
        assert own.action is not None  # noqa: S101
        assert own.next_state is not None  # noqa: S101
        return replace(
            own,
            start=start,
            features=features,
            count=np.zeros(len(rows)),
            offset=None if own.offset is None else own.offset[rows],
            stage=None if own.stage is None else own.stage[sets],
            state=own.state[sets],
            action=own.action[sets],
            next_state=own.next_state[rows],
            design=self,
        )

    def profiles(self, sets: IntArray, table: Table) -> tuple[Choices, IntArray]:
        """The different (set, covariates) of the rows of a table, and which of them each row has."""
        self.require(table)
        code = np.asarray(sets, dtype=np.int64)
        for name in self.names:
            column = table.raw(name)
            own, known = pd.factorize(column if isinstance(column, pd.Series) else np.asarray(column))
            code = pd.factorize(code * (len(known) + 1) + own + 1)[0].astype(np.int64)
        group, _ = pd.factorize(code)
        first = np.full(int(group.max()) + 1, -1, dtype=np.int64)
        first[group[::-1]] = np.arange(len(group))[::-1]
        covariates = {key: values[first] for key, values in self.covariates(table).items()}
        made = self.choices(sets[first], covariates)
        return replace(made, profile=self.profile_of(table, first)), group.astype(np.int64)

    def profile_of(self, table: Table, rows: IntArray) -> dict[str, NDArray[Any]]:
        """The covariates themselves, as numbers or labels."""
        found: dict[str, NDArray[Any]] = {}
        for name in self.names:
            if self.is_category(name):
                codes, values = table.labels(name)
                labels = np.empty(len(values), dtype=object)
                labels[:] = values
                found[name] = labels[codes[rows]]
            else:
                found[name] = np.asarray(table.numbers(name)[rows], dtype=np.float64)
        return found

    def at(self, profile: Mapping[str, Any]) -> Choices:
        """The sets of all (stage, state, action) at one profile of covariates."""
        if not isinstance(profile, Mapping):
            raise bad("at", "is not a mapping", cure=f"give a value for each of {', '.join(map(repr, self.names))}")
        strange = [name for name in profile if name not in self.names]
        if strange:
            cure = f"the covariates are {', '.join(map(repr, self.names))}"
            raise bad("at", f"{strange[0]!r} is not a covariate", count=len(strange), cure=cure)
        lost = [name for name in self.names if name not in profile]
        if lost:
            problem = f"has no value for {', '.join(map(repr, lost))}"
            raise bad("at", problem, count=len(lost), cure="give one for every covariate of the fit")
        table = read_table(pd.DataFrame({name: pd.Series([profile[name]]) for name in self.names}))
        one = self.covariates(table)
        every = np.arange(self.sets.n_sets)
        return self.choices(every, {key: np.repeat(values, len(every)) for key, values in one.items()})


def design_of(sets: Choices, encoding: Encoding, terms: Terms, scope: SetScope) -> Design:
    """The design of an encoding with covariates; ``sets`` has everything but the features."""
    parts = [np.ones(sets.n_rows) if column.rows is None else column.rows for column in encoding.columns]
    matrix = np.empty((sets.n_rows, len(parts)))
    for j, part in enumerate(parts):
        matrix[:, j] = part
    factors: dict[str, Factor] = {}
    for term in terms.products:
        if isinstance(term, tuple):
            factors |= {one.text: one for one in term if scope.is_covariate(one)}
    uses = tuple(column.covariates for column in encoding.columns)
    return Design(replace(sets, features=matrix), tuple(factors.values()), uses)
