"""Choices from a table with one row per alternative: a choice id, a ``chosen`` flag, features of the alternative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.data.formulas.formula import Factor, encode, stack
from livarot.data.reading.choices import Choices
from livarot.data.reading.columns import Columns, constant_within, counts_of, log_nominal, reference_of, terms_of
from livarot.data.reading.observations import logged
from livarot.data.reading.table import Table, labels_in_order, named
from livarot.errors import bad
from livarot.model.labels import Labels, ModelLabels, factorise


class _RowScope:
    """A formula's view of a table of alternatives: every name is a column."""

    def __init__(self, table: Table, columns: Columns, start: IntArray, order: IntArray | None) -> None:
        self.table, self.columns, self.start, self.order = table, columns, start, order

    def _name(self, factor: Factor) -> str:
        if factor.name is not None:
            return factor.name
        own = {"state": self.columns.state, "action": self.columns.action, "next": self.columns.next_state}
        return own.get(factor.side) or self.columns.stage or "stage"

    def is_column(self, text: str) -> bool:
        return text in self.table

    def is_category(self, factor: Factor) -> bool:
        return self.table.is_text(self._name(factor))

    def is_covariate(self, factor: Factor) -> bool:
        return False

    def role(self, text: str) -> str | None:
        return self.columns.role(text)

    def categories(self, factor: Factor, met_first: bool = False) -> Sequence[Any] | None:
        return self.table.order(self._name(factor))

    def numbers(self, factor: Factor) -> NDArray[Any]:
        column = self.table.numbers(self._name(factor), "features")
        return column if self.order is None else column[self.order]

    def labels(self, factor: Factor) -> tuple[IntArray, list[Any]]:
        codes, values = self.table.labels(self._name(factor), "features")
        return (codes if self.order is None else codes[self.order]), values

    def varies(self, codes: NDArray[Any]) -> bool:
        return not constant_within(codes, self.start).all()

    def frame(self) -> pd.DataFrame:
        found = {name: self.table.raw(name) for name in self.table.names}
        frame = pd.DataFrame({name: np.asarray(column) for name, column in found.items()})
        return frame if self.order is None else frame.iloc[self.order].reset_index(drop=True)


def from_alternatives(table: Table, columns: Columns, by_stage: bool, like: Choices | None) -> Choices:
    """Choices from alternative-specific rows."""
    ids = table.raw(columns.choice, "choice")
    start, order = group_rows(ids, named(columns.choice))
    order = _sorted_within(table, columns, start, order)
    scope = _RowScope(table, columns, start, order)
    encoding = encode(terms_of(columns, scope), scope, None if like is None else like.recipe, reference_of(columns))
    matrix = _in_place(encoding.arrays)
    count, log_row = _row_counts(table, columns, start, order, needed=like is None)
    offset = _row_offset(table, columns, order)
    if encoding.offset is not None:
        offset = encoding.offset if offset is None else offset + encoding.offset
    identity = _identity(table, columns, start, order, by_stage, like)
    choices = Choices(
        start=start,
        features=matrix,
        count=count,
        columns=encoding.names,
        term_of=encoding.terms,
        offset=offset,
        table_row=None if order is None else np.argsort(order),
        levels=encoding.recipe.levels,
        memory=encoding.recipe.memory,
        **identity,
    )
    if len(log_row):
        table_row = log_row if order is None else order[log_row]
        choices = logged(choices, log_row, table_row, table, columns, needed=like is None)
    return merge_equal(choices) if like is None and identity else choices


def _in_place(columns: list[NDArray[Any]]) -> FloatArray | tuple[NDArray[Any], ...]:
    """Columns as they lie in the table, if all are float64; stacked otherwise."""
    return tuple(columns) if all(column.dtype == np.float64 for column in columns) else stack(columns)


def group_rows(ids: Any, argument: str) -> tuple[IntArray, IntArray | None]:
    """Where each choice begins, and the order that puts its rows side by side (None if they are so already)."""
    values = ids if isinstance(ids, pd.Series) else pd.Series(ids, copy=False)
    lost = np.asarray(values.isna(), dtype=bool)
    if lost.any():
        cure = "give every row the id of its choice"
        raise bad(argument, "missing values", index=int(lost.argmax()), count=int(lost.sum()), cure=cure)
    flat = values.to_numpy()
    first = np.concatenate(([0], np.flatnonzero(flat[1:] != flat[:-1]) + 1))
    if values.iloc[first].is_unique:
        return np.append(first, len(flat)).astype(np.int64), None
    codes, _ = factorise(values, argument)
    order = np.argsort(codes, kind="stable")
    return np.concatenate(([0], np.cumsum(np.bincount(codes)))).astype(np.int64), order


def _sorted_within(table: Table, columns: Columns, start: IntArray, order: IntArray | None) -> IntArray | None:
    """The order of :func:`group_rows`, with the rows of each choice by their next state, where there is one."""
    if not all(name in table for name in (columns.state, columns.action, columns.next_state)):
        return order
    codes, labels = table.labels(columns.next_state)
    own = labels_in_order(table, columns.state, columns.next_state)
    rank = np.array([own.index(label) for label in labels], dtype=np.int64)[codes]
    rank = rank if order is None else rank[order]
    step = np.diff(rank)
    step[start[1:-1] - 1] = 1  # from one choice to the next
    if (step < 0).any():
        place = np.repeat(np.arange(len(start) - 1), np.diff(start))
        again = np.lexsort((rank, place))
        order = again if order is None else order[again]
        step = np.diff(rank[again])
        step[start[1:-1] - 1] = 1
    if (step == 0).any():
        row = int(np.argmax(step == 0)) + 1
        where = row if order is None else int(order[row])
        problem = "names a next state twice within a choice"
        raise bad(named(columns.next_state), problem, index=where, count=int((step == 0).sum()), cure="list it once")
    return order


def chosen_rows(flags: BoolArray, start: IntArray, argument: str, order: IntArray | None) -> IntArray:
    """The chosen row of each choice, refused unless there is exactly one."""
    per_choice = np.add.reduceat(flags.astype(np.int64), start[:-1])
    wrong = np.flatnonzero(per_choice != 1)
    if len(wrong):
        row = int(start[wrong[0]])
        problem = f"{len(wrong)} choices do not have exactly one chosen row, the first has {per_choice[wrong[0]]}"
        where = row if order is None else int(order[row])
        cure = "mark one row per choice, or drop the choice"
        raise bad(argument, problem, index=where, count=len(wrong), cure=cure)
    return np.flatnonzero(flags)


def _row_counts(
    table: Table, columns: Columns, start: IntArray, order: IntArray | None, *, needed: bool
) -> tuple[FloatArray, IntArray]:
    """How often each row was chosen, and the rows chosen (of one observation each)."""
    nothing = np.empty(0, dtype=np.int64)
    if columns.count is not None:
        if columns.count in table and columns.chosen in table:
            problem = f"two columns say how often rows were chosen: {columns.count!r} and {columns.chosen!r}"
            raise bad("count", problem, cure="leave one of them out (count=None, or drop the other column)")
        count = counts_of(table, columns.count)
        count = count if order is None else count[order]
        known = columns.cluster is not None or columns.weights is not None
        return count, np.flatnonzero(count > 0) if known else nothing
    if columns.chosen not in table and not needed:
        return np.zeros(int(start[-1])), nothing
    flags = table.flags(columns.chosen)
    flags = flags if order is None else flags[order]
    return flags.astype(np.float64), chosen_rows(flags, start, named(columns.chosen), order)


def _row_offset(table: Table, columns: Columns, order: IntArray | None) -> FloatArray | None:
    """The known part of the logits: a column, and the log of a column of nominal probabilities."""
    total: FloatArray | None = None
    if columns.offset is not None:
        total = np.array(table.numbers(columns.offset, "offset"), dtype=np.float64)
    if columns.nominal is not None:
        log_p = log_nominal(table.numbers(columns.nominal, "nominal"), named(columns.nominal))
        total = log_p if total is None else total + log_p
    return total if total is None or order is None else total[order]


def _identity(
    table: Table, columns: Columns, start: IntArray, order: IntArray | None, by_stage: bool, like: Choices | None
) -> dict[str, Any]:
    """State, action, next state and stage of the sets, where the table has them (a stage alone is enough to fit)."""
    found: dict[str, Any] = {}
    if by_stage and columns.stage is None:
        raise bad("stage", "is not given", cure="name the column of stages, or fit with homogeneous=True")
    known = None if like is None else like.labels
    stages = None
    if columns.stage is not None:
        codes, stages = _codes(table, columns.stage, order, known.stages if known else None)
        found["stage"] = _per_set(codes, start, columns.stage, order)
    names = (columns.state, columns.action, columns.next_state)
    if not all(name in table for name in names):
        if found:
            found["labels"] = ModelLabels(Labels([]), Labels([]), stages)
        return found
    if known is not None and len(known.states):
        states, actions = known.states, known.actions
    else:
        states = labels_in_order(table, columns.state, columns.next_state)
        actions = labels_in_order(table, columns.action)
    codes, _ = _codes(table, columns.state, order, states)
    found["state"] = _per_set(codes, start, columns.state, order)
    codes, _ = _codes(table, columns.action, order, actions)
    found["action"] = _per_set(codes, start, columns.action, order)
    found["next_state"], _ = _codes(table, columns.next_state, order, states)
    found["labels"] = ModelLabels(states, actions, stages)
    return found


def _codes(table: Table, name: str, order: IntArray | None, known: Labels | None) -> tuple[IntArray, Labels]:
    labels = known if known is not None else labels_in_order(table, name)
    codes = labels.encode(table.raw(name), named(name), cure="fit again with it, or drop those rows")
    return (codes if order is None else codes[order]), labels


def _per_set(codes: IntArray, start: IntArray, name: str, order: IntArray | None) -> IntArray:
    same = constant_within(codes, start)
    if not same.all():
        row = int(start[np.argmin(same)])
        problem = "changes within a choice"
        cure = "all rows of a choice must have the same one"
        where = row if order is None else int(order[row])
        raise bad(named(name), problem, index=where, count=int((~same).sum()), cure=cure)
    return codes[start[:-1]]


def merge_equal(choices: Choices, *, always: bool = False) -> Choices:
    """Equal choice sets of a (stage, state, action) stored once, with counts; others stay as they are.

    It costs one pass over the data, so unless ``always`` it is tried only where it can halve them.
    """
    if choices.state is None or choices.action is None or choices.next_state is None:
        return choices
    key = np.asarray(choices._key(choices.state, choices.action, choices.stage))
    if not always and 2 * len(np.unique(key)) > choices.n_sets:
        return choices
    _, first, group = np.unique(_digest(choices, key), return_index=True, return_inverse=True)
    twin = first[group.reshape(-1)]  # the set each one is equal to, unless digests collide
    twin = np.where(choices.sizes[twin] == choices.sizes, twin, np.arange(choices.n_sets))
    row = np.arange(choices.n_rows) + np.repeat(choices.start[twin] - choices.start[:-1], choices.sizes)
    same = choices.next_state == choices.next_state[row]
    same &= (key == key[twin])[choices.set_of_row]
    columns = choices.features if isinstance(choices.features, tuple) else tuple(choices.features.T)
    for column in columns if choices.offset is None else (*columns, choices.offset):
        same &= column == column[row]
    equal = np.logical_and.reduceat(same, choices.start[:-1])
    row = np.where(np.repeat(equal, choices.sizes), row, np.arange(choices.n_rows))
    kept = ~equal | (twin == np.arange(choices.n_sets))
    renumber = np.cumsum(np.repeat(kept, choices.sizes)) - 1  # row here -> row among those kept
    place = renumber[row]
    merged = choices.select(kept).with_counts(np.bincount(place, weights=choices.count))
    table_row = place if choices.table_row is None else place[choices.table_row]
    return replace(
        merged,
        log_row=place[choices.log_row],
        log_count=choices.log_count,
        log_weight=choices.log_weight,
        cluster=choices.cluster,
        table_row=table_row,
    )


def _digest(choices: Choices, key: IntArray) -> NDArray[np.uint64]:
    """A number per set that equal sets share: of its key and of its rows in their order."""
    columns = choices.features if isinstance(choices.features, tuple) else tuple(choices.features.T)
    rows = pd.util.hash_array(np.asarray(choices.next_state))
    for column in columns if choices.offset is None else (*columns, choices.offset):
        values = np.asarray(column, dtype=np.float64) + 0.0  # -0.0 is 0.0
        rows = rows * np.uint64(0x9E3779B97F4A7C15) + pd.util.hash_array(values)
    place = np.arange(choices.n_rows) - np.repeat(choices.start[:-1], choices.sizes)
    rows = rows * (2 * pd.util.hash_array(place) + 1)
    return np.asarray(np.add.reduceat(rows, choices.start[:-1]) + pd.util.hash_array(key), dtype=np.uint64)
