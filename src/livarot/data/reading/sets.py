"""Reachable sets: given as a table or a mapping, all states, or inferred from what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from livarot.core.arrays import FloatArray, IntArray
from livarot.data.reading.columns import Columns, log_nominal
from livarot.data.reading.table import Table, named, read_table
from livarot.errors import bad
from livarot.model.labels import Labels, ModelLabels

MOST_ROWS = 50_000_000  # of reachable='all': states x actions x states


@dataclass(frozen=True, eq=False)
class ReachableSets:
    """One set per (state, action), or per (stage, state, action): which next states it can lead to."""

    labels: ModelLabels
    start: IntArray  # (sets + 1,)
    stage: IntArray | None  # (sets,)
    state: IntArray  # (sets,)
    action: IntArray  # (sets,)
    next_state: IntArray  # (rows,)
    offset: FloatArray | None  # (rows,)
    extra: Table  # other columns of the table of reachable sets, one entry per row

    @property
    def n_rows(self) -> int:
        return len(self.next_state)

    @cached_property
    def set_of_row(self) -> IntArray:
        return np.repeat(np.arange(len(self.state)), np.diff(self.start))

    def frame(self) -> pd.DataFrame:
        """The rows in labels."""
        found: dict[str, Any] = {}
        if self.stage is not None and self.labels.stages is not None:
            found["stage"] = self.labels.stages.decode(self.stage[self.set_of_row])
        found["state"] = self.labels.states.decode(self.state[self.set_of_row])
        found["action"] = self.labels.actions.decode(self.action[self.set_of_row])
        found["next_state"] = self.labels.states.decode(self.next_state)
        return pd.DataFrame(found).infer_objects()


def reachable_sets(table: Table, columns: Columns, staged: bool) -> tuple[ReachableSets, bool]:
    """The sets for a log, and whether they were inferred from it."""
    given = columns.reachable
    if given is None or isinstance(given, str):
        if given not in (None, "all"):
            raise bad("reachable", f"{given!r} is not known", cure="give a table, a mapping, 'all' or None")
        rows = None
    elif isinstance(given, Mapping):
        rows = _from_mapping(given, columns)
    else:
        rows = read_table(given)
    labels = _labels(table, columns, rows)
    state, action, target, extra = _pairs(table, columns, labels, rows)
    stage: IntArray | None = None
    if staged or (rows is not None and columns.stage is not None and columns.stage in rows):
        stages = labels.stages
        if stages is None:
            raise bad("stage", "is not given", cure="name the column of stages")
        if rows is not None and columns.stage in rows:
            codes = stages.encode(rows.raw(str(columns.stage)), named(str(columns.stage)))
            stage = codes[extra]
        else:  # the same sets at every stage
            n = len(state)
            stage = np.repeat(np.arange(len(stages)), n)
            state, action, target, extra = (np.tile(x, len(stages)) for x in (state, action, target, extra))
    return _sorted(labels, stage, state, action, target, extra, rows, columns), given is None


def _labels(table: Table, columns: Columns, rows: Table | None) -> ModelLabels:
    """All names: those of the log, or of the tables of states and actions, and those of the reachable sets."""
    seen = list(table.labels(columns.state, "state")[1])
    if columns.next_state in table:
        seen += table.labels(columns.next_state)[1]
    does = list(table.labels(columns.action, "action")[1])
    for given, label, names in ((columns.states, columns.state, seen), (columns.actions, columns.action, does)):
        if given is not None:
            from livarot.data.reading.transitions import attribute_table

            names[:] = attribute_table(given, label).labels(label)[1]  # others are refused where they are met
    if rows is not None:
        seen += rows.labels(columns.state, "reachable")[1] + rows.labels(columns.next_state, "reachable")[1]
        if columns.action in rows:
            does += rows.labels(columns.action)[1]
    stages = None if columns.stage is None else Labels(table.labels(columns.stage, "stage")[1])
    both = [name for name in (columns.state, columns.next_state) if name in table]
    return ModelLabels(_in_category_order(seen, table, both), _in_category_order(does, table, [columns.action]), stages)


def _in_category_order(labels: list[Any], table: Table, names: list[str]) -> Labels:
    """In the order of the pandas Categoricals of these columns, if all of them are such; sorted otherwise."""
    orders = [table.order(name) for name in names]
    known = dict.fromkeys(label for order in orders for label in order or ())
    if any(order is None for order in orders) or not set(labels) <= set(known):
        return Labels(labels)
    met = set(labels)
    return Labels([label for label in known if label in met], ordered=True)


def _from_mapping(given: Mapping[Any, Any], columns: Columns) -> Table:
    """``{(state, action): next states}`` or ``{state: next states}``; next states may carry nominal probabilities."""
    pairs = all(isinstance(key, tuple) and len(key) == 2 for key in given)
    found: dict[str, list[Any]] = {columns.state: [], columns.next_state: []}
    if pairs:
        found[columns.action] = []
    nominal: list[float] = []
    for key, nexts in given.items():
        for target in nexts:
            found[columns.state].append(key[0] if pairs else key)
            if pairs:
                found[columns.action].append(key[1])
            found[columns.next_state].append(target)
            if isinstance(nexts, Mapping):
                nominal.append(float(nexts[target]))
    if not found[columns.state]:
        raise bad("reachable", "is empty", cure="name the next states of each (state, action)")
    series = {name: pd.Series(_objects(values)) for name, values in found.items()}
    if nominal:
        if len(nominal) != len(found[columns.state]):
            raise bad("reachable", "gives probabilities for some pairs only", cure="for all of them or none")
        series[columns.nominal or "nominal"] = pd.Series(nominal)
    return read_table(pd.DataFrame(series))


def _objects(values: list[Any]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _pairs(
    table: Table, columns: Columns, labels: ModelLabels, rows: Table | None
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """State, action and next state of every row of every set, and its row in the table of reachable sets."""
    n_states, n_actions = len(labels.states), len(labels.actions)
    if rows is not None:
        state = labels.states.encode(rows.raw(columns.state), named(columns.state))
        target = labels.states.encode(rows.raw(columns.next_state), named(columns.next_state))
        extra = np.arange(rows.n_rows)
        if columns.action in rows:
            return state, labels.actions.encode(rows.raw(columns.action), named(columns.action)), target, extra
        action = np.repeat(np.arange(n_actions), rows.n_rows)
        return np.tile(state, n_actions), action, np.tile(target, n_actions), np.tile(extra, n_actions)
    if columns.reachable == "all":
        total = n_states * n_actions * n_states
        if total > MOST_ROWS:
            raise bad("reachable", f"'all' would make {total} rows", cure="give the sets that can occur")
        every = np.arange(total)
        return every // (n_states * n_actions), every // n_states % n_actions, every % n_states, every
    cure = "add a row for it to states= (actions=), or drop those logs"
    state = labels.states.encode(table.raw(columns.state), named(columns.state), cure)
    action = labels.actions.encode(table.raw(columns.action), named(columns.action), cure)
    target = labels.states.encode(table.raw(columns.next_state, "next_state"), named(columns.next_state), cure)
    seen = np.unique((state * n_actions + action) * n_states + target)
    return seen // (n_states * n_actions), seen // n_states % n_actions, seen % n_states, seen


def _sorted(
    labels: ModelLabels,
    stage: IntArray | None,
    state: IntArray,
    action: IntArray,
    target: IntArray,
    extra: IntArray,
    rows: Table | None,
    columns: Columns,
) -> ReachableSets:
    """Rows in order of (stage, state, action, next state), each once."""
    n_states, n_actions = len(labels.states), len(labels.actions)
    pair = state * n_actions + action
    pair = pair if stage is None else stage * (n_states * n_actions) + pair
    key = pair * n_states + target
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(np.diff(key[order]) == 0)
    if len(again):
        row = int(order[again[0] + 1])
        problem = f"{labels.states[int(target[row])]!r} is listed twice for {labels.states[int(state[row])]!r}"
        raise bad("reachable", problem, index=int(extra[row]), count=len(again), cure="list each next state once")
    pair = pair[order]
    first = np.concatenate(([0], np.flatnonzero(np.diff(pair)) + 1))
    taken = extra[order]
    return ReachableSets(
        labels=labels,
        start=np.append(first, len(pair)).astype(np.int64),
        stage=None if stage is None else stage[order][first],
        state=state[order][first],
        action=action[order][first],
        next_state=target[order],
        offset=_offset(rows, columns, taken),
        extra=Table((), len(taken), _nothing) if rows is None else _taken(rows, taken),
    )


def _nothing(name: str) -> Any:
    raise bad("column", f"there is no {name!r}")


def _taken(rows: Table, index: IntArray) -> Table:
    """The rows of a table in another order."""

    def get(name: str) -> Any:
        column = rows.raw(name)
        return column.iloc[index].reset_index(drop=True) if isinstance(column, pd.Series) else column[index]

    return Table(rows.names, len(index), get)


def _offset(rows: Table | None, columns: Columns, index: IntArray) -> FloatArray | None:
    total: FloatArray | None = None
    for name, argument in ((columns.offset, "offset"), (columns.nominal, "nominal")):
        if name is None:
            continue
        if rows is None:
            raise bad(argument, "needs the table of reachable sets", cure=f"give reachable= with a column {name!r}")
        values = rows.numbers(name, argument)
        part = log_nominal(values, named(name)) if argument == "nominal" else np.asarray(values, dtype=np.float64)
        total = part[index] if total is None else total + part[index]
    return total
