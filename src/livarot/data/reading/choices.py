"""Observed choices, ready for a likelihood: ragged choice sets with counts, and the labels they came with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.data.formulas.expressions import Memory
from livarot.data.formulas.formula import Levels, Recipe
from livarot.errors import bad, require_finite
from livarot.model.labels import ModelLabels

if TYPE_CHECKING:
    from livarot.data.reading.covariates import Design

NOTHING_LOGGED: dict[str, Any] = {"log_count": None, "log_weight": None, "cluster": None}


@dataclass(frozen=True, eq=False)
class Choices:
    """Choice sets g with rows ``start[g]:start[g+1]``, and how often each row was chosen.

    ``features`` is (rows, d), or a tuple of d columns that are read in place (a table is then not copied, and must
    not be changed while this object is in use).  Sets that are equal are stored once: ``count`` adds them up, and
    ``log_row`` says which row each observation chose.

    >>> two = Choices.from_arrays([[[0.0], [1.0]], [[0.0], [2.0]]], chosen=[1, 0])
    >>> two.n_sets, two.n_choices, two.count
    (2, 2.0, array([0., 1., 1., 0.]))
    """

    start: IntArray  # (sets + 1,)
    features: FloatArray | tuple[NDArray[Any], ...]  # (rows, d)
    count: FloatArray  # (rows,)
    columns: tuple[str, ...]  # (d,)
    offset: FloatArray | None = None  # (rows,)
    stage: IntArray | None = None  # (sets,)
    state: IntArray | None = None  # (sets,)
    action: IntArray | None = None  # (sets,)
    next_state: IntArray | None = None  # (rows,)
    labels: ModelLabels | None = None
    log_row: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # (observations,)
    log_count: FloatArray | None = None  # (observations,) how often each occurred; None is once
    log_weight: FloatArray | None = None  # (observations,) sampling weights; ``count`` has them too
    cluster: IntArray | None = None  # (observations,) which person, plant, ... each belongs to
    table_row: IntArray | None = None  # row here of each row of the table, where they differ
    term_of: tuple[str, ...] | None = None  # (d,) the term each column belongs to; None: every column is a term
    levels: Levels = field(default_factory=dict)  # categories met by the features
    memory: Memory = field(default_factory=dict)  # constants of transforms
    layout: str = "alternatives"  # or "transitions"
    design: Design | None = None  # how covariates enter, where there are some
    profile: dict[str, NDArray[Any]] = field(default_factory=dict)  # covariates of every set, (sets,) each

    @property
    def n_sets(self) -> int:
        return len(self.start) - 1

    @property
    def n_rows(self) -> int:
        return int(self.start[-1])

    @property
    def dim(self) -> int:
        return len(self.columns)

    @cached_property
    def sizes(self) -> IntArray:
        """Alternatives of each set."""
        return np.diff(self.start)

    @cached_property
    def set_of_row(self) -> IntArray:
        return np.repeat(np.arange(self.n_sets), self.sizes)

    @cached_property
    def weight(self) -> FloatArray:
        """N_g, how often each set was met."""
        return np.add.reduceat(self.count, self.start[:-1])

    @cached_property
    def n_choices(self) -> float:
        """Observations, counts included."""
        return float(self.weight.sum())

    @property
    def n_observations(self) -> float:
        """Observations as they were sampled: counts included, sampling weights not."""
        if self.log_weight is None:
            return self.n_choices
        return float(len(self.log_row) if self.log_count is None else self.log_count.sum())

    @property
    def terms(self) -> tuple[str, ...]:
        """The term that each column belongs to, (d,)."""
        return self.columns if self.term_of is None else self.term_of

    @property
    def recipe(self) -> Recipe:
        """What the features have learned from the data."""
        return Recipe(self.levels, self.memory)

    def rows(self, index: Any) -> FloatArray:
        """The features of some rows, dense."""
        if isinstance(self.features, tuple):
            return np.stack([np.asarray(column[index], dtype=np.float64) for column in self.features], axis=-1)
        return np.asarray(self.features[index])

    def with_counts(self, count: ArrayLike) -> Choices:
        """The same sets with other counts (a resample, say)."""
        counts = require_finite("count", count)
        if counts.shape != (self.n_rows,) or (counts < 0).any():
            raise bad("count", f"must be ({self.n_rows},) numbers >= 0", cure="one count per row")
        return replace(self, count=counts, log_row=np.empty(0, dtype=np.int64), **NOTHING_LOGGED)

    def keep_columns(self, kept: Sequence[int]) -> Choices:
        """The same choices with some of the columns."""
        names = tuple(self.columns[j] for j in kept)
        if isinstance(self.features, tuple):
            features: Any = tuple(self.features[j] for j in kept)
        else:
            features = np.ascontiguousarray(self.features[:, list(kept)])
        design = None if self.design is None else self.design.keep_columns(kept)
        terms = tuple(self.terms[j] for j in kept)
        return replace(self, features=features, columns=names, term_of=terms, design=design)

    def select(self, sets: BoolArray | IntArray) -> Choices:
        """Some of the sets, with their observations."""
        chosen = np.flatnonzero(sets) if np.asarray(sets).dtype == np.bool_ else np.asarray(sets)
        sizes = self.sizes[chosen]
        start = np.concatenate(([0], np.cumsum(sizes)))
        rows = np.arange(start[-1]) - np.repeat(start[:-1] - self.start[chosen], sizes)
        moved = np.full(self.n_rows, -1, dtype=np.int64)
        moved[rows] = np.arange(len(rows))
        log_row = moved[self.log_row]
        logged = log_row >= 0

        def part(values: NDArray[Any] | None, index: NDArray[Any]) -> Any:
            return None if values is None else values[index]

        return replace(
            self,
            start=start,
            features=self.rows(rows),
            count=self.count[rows],
            offset=part(self.offset, rows),
            stage=part(self.stage, chosen),
            state=part(self.state, chosen),
            action=part(self.action, chosen),
            next_state=part(self.next_state, rows),
            log_row=log_row[logged],
            log_count=part(self.log_count, logged),
            log_weight=part(self.log_weight, logged),
            cluster=part(self.cluster, logged),
            table_row=None,
            profile={name: values[chosen] for name, values in self.profile.items()},
        )

    def locate(self, state: IntArray, action: IntArray, stage: IntArray | None = None) -> IntArray:
        """The set of each (state, action), or (stage, state, action): -1 where there is none."""
        sorted_keys, order = self._keys
        key = self._key(state, action, stage if self.stage is not None else None)
        at = np.minimum(np.searchsorted(sorted_keys, key), len(sorted_keys) - 1)
        return np.where(sorted_keys[at] == key, order[at], -1)

    def _key(self, state: IntArray, action: IntArray, stage: IntArray | None) -> IntArray:
        if self.labels is None:
            raise bad("data", "has no state and action columns", cure="name them: state=..., action=...")
        key = state * len(self.labels.actions) + action
        return key if stage is None else stage * (len(self.labels.states) * len(self.labels.actions)) + key

    @cached_property
    def _keys(self) -> tuple[IntArray, IntArray]:
        if self.state is None or self.action is None:
            raise bad("data", "has no state and action columns", cure="name them: state=..., action=...")
        key = self._key(self.state, self.action, self.stage)
        order = np.argsort(key, kind="stable")
        return key[order], order

    def frame(self) -> pd.DataFrame:
        """The rows with their labels and counts: stage, state, action, next_state, count."""
        found: dict[str, Any] = {"set": self.set_of_row}
        if self.labels is not None:
            if self.stage is not None and self.labels.stages is not None:
                found["stage"] = self.labels.stages.decode(self.stage[self.set_of_row])
            if self.state is not None:
                found["state"] = self.labels.states.decode(self.state[self.set_of_row])
            if self.action is not None:
                found["action"] = self.labels.actions.decode(self.action[self.set_of_row])
            if self.next_state is not None:
                found["next_state"] = self.labels.states.decode(self.next_state)
        frame = pd.DataFrame(found).infer_objects()
        frame["count"] = self.count
        return frame

    @classmethod
    @checked
    def from_arrays(
        cls,
        features: ArrayLike,
        *,
        chosen: ArrayLike,
        choice: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        columns: Sequence[str] | None = None,
    ) -> Choices:
        """Choices from plain arrays, without a copy.

        ``features`` is (choices, alternatives, d) with ``chosen`` (choices,) the index of the alternative taken;
        or (rows, d) with ``choice`` (rows,) saying which rows belong together and ``chosen`` (rows,) flags.
        """
        matrix = require_finite("features", features)
        if matrix.ndim == 3:
            n, size, d = matrix.shape
            taken = np.asarray(chosen)
            if taken.shape != (n,) or taken.dtype.kind not in "iu":
                raise bad("chosen", f"has shape {taken.shape}, expected ({n},) indices", cure="one index per choice")
            wrong = (taken < 0) | (taken >= size)
            if wrong.any():
                raise bad("chosen", f"outside 0..{size - 1}", index=int(wrong.argmax()), count=int(wrong.sum()))
            start = np.arange(n + 1, dtype=np.int64) * size
            log_row = start[:-1] + taken
            count = np.zeros(n * size)
            count[log_row] = 1.0
            matrix = matrix.reshape(n * size, d)
            shift = None if offset is None else require_finite("offset", offset).reshape(-1)
            table_row = None
        else:
            from livarot.data.reading.alternatives import chosen_rows, group_rows

            if matrix.ndim != 2 or choice is None:
                raise bad("features", f"has shape {matrix.shape}", cure="(N, J, d), or (rows, d) with choice=ids")
            for name, given in (("choice", choice), ("chosen", chosen)):
                if np.ndim(given) != 1 or np.size(given) != len(matrix):
                    raise bad(name, f"has shape {np.shape(given)}, expected ({len(matrix)},)", cure="one per row")
            start, order = group_rows(np.asarray(choice), "choice")
            flags = np.asarray(chosen) != 0
            shift = None if offset is None else require_finite("offset", offset)
            table_row = None
            if order is not None:
                matrix, flags = matrix[order], flags[order]
                shift = None if shift is None else shift[order]
                table_row = np.argsort(order)
            log_row = chosen_rows(flags, start, "chosen", order)
            count = flags.astype(np.float64)
        if matrix.shape[0] == 0 or matrix.shape[1] == 0:
            raise bad("features", f"has shape {matrix.shape}", cure="give at least one choice and one column")
        if shift is not None and shift.shape != (len(matrix),):
            raise bad("offset", f"has {shift.size} entries, expected {len(matrix)}")
        names = tuple(f"x{j}" for j in range(matrix.shape[1])) if columns is None else tuple(map(str, columns))
        if len(names) != matrix.shape[1]:
            raise bad("columns", f"{len(names)} names for {matrix.shape[1]} columns")
        kept = np.ascontiguousarray(matrix)
        return cls(start, kept, count, names, shift, log_row=log_row, table_row=table_row)
