"""Choices from a table with one row per observed transition: counts per (state, action, next state).

The log-likelihood needs these counts only, so a million logs are read once and then cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from livarot.core.arrays import IntArray
from livarot.data.fitting.formula import Factor, check_features, encode, stack
from livarot.data.reading.choices import Choices
from livarot.data.reading.columns import Columns, constant_within, counts_of
from livarot.data.reading.sets import ReachableSets, reachable_sets
from livarot.data.reading.table import Table, named, read_table, warn
from livarot.errors import bad
from livarot.model.labels import Labels


class _SetScope:
    """A formula's view of reachable sets: attributes of next states, states and actions."""

    def __init__(self, sets: ReachableSets, table: Table, columns: Columns) -> None:
        self.sets, self.table, self.columns = sets, table, columns
        self._own: dict[str, Table] = {}
        for side, given in (("state", columns.states), ("action", columns.actions)):
            if given is not None:
                self._own[side] = attribute_table(given, getattr(columns, side))

    def is_column(self, text: str) -> bool:
        own = self._own.get("state")
        return text in self.sets.extra or (own is not None and text in own) or text in self.table

    def _codes(self, side: str) -> tuple[IntArray, Labels]:
        labels, sets = self.sets.labels, self.sets
        if side == "next":
            return sets.next_state, labels.states
        if side == "stage":
            if sets.stage is None or labels.stages is None:
                raise bad("stage", "is not given", cure="name the column of stages")
            return sets.stage[sets.set_of_row], labels.stages
        if side == "state":
            return sets.state[sets.set_of_row], labels.states
        return sets.action[sets.set_of_row], labels.actions

    def _source(self, factor: Factor) -> tuple[Table, str | None, str]:
        """The table that holds an attribute, its column of labels (None: it is aligned with the rows), its name."""
        name = str(factor.name)
        kind = "action" if factor.side == "action" else "state"
        if factor.side == "next" and name in self.sets.extra:
            return self.sets.extra, None, name
        own = self._own.get(kind)
        if own is not None and name in own:
            return own, getattr(self.columns, kind), name
        label = self.columns.next_state if factor.side == "next" else getattr(self.columns, factor.side)
        return self.table, label, name

    def numbers(self, factor: Factor) -> NDArray[Any]:
        source, label, name = self._source(factor)
        values = source.numbers(name, "features")
        return values if label is None else self._spread(values, source, label, factor)

    def labels(self, factor: Factor) -> tuple[IntArray, list[Any]]:
        if factor.name is None:
            codes, labels = self._codes(factor.side)
            used, inverse = np.unique(codes, return_inverse=True)
            return inverse.reshape(-1), [labels[int(k)] for k in used]
        source, label, name = self._source(factor)
        codes, values = source.labels(name, "features")
        return (codes if label is None else self._spread(codes, source, label, factor)), values

    def _spread(self, values: NDArray[Any], source: Table, label: str, factor: Factor) -> NDArray[Any]:
        """An attribute given once per label (or in every log of it) to the rows of the sets."""
        wanted, labels = self._codes(factor.side)
        codes, seen = source.labels(label)
        place = np.array([labels.index(s) if s in labels else -1 for s in seen], dtype=np.int64)[codes]
        inside = place >= 0
        first = np.full(len(labels), -1, dtype=np.int64)
        rows = np.flatnonzero(inside)[::-1]
        first[place[rows]] = rows  # the earliest row of each label
        differs = inside & (values != values[first[place]])
        if differs.any():
            row = int(differs.argmax())
            problem = f"is not a function of {label!r}: {labels[int(place[row])]!r} has several values"
            cure = "use one row per alternative, with a chosen flag, for features that change from choice to choice"
            raise bad(named(str(factor.name)), problem, index=row, count=int(differs.sum()), cure=cure)
        lost = np.flatnonzero(first[wanted] < 0)
        if len(lost):
            label_text = repr(labels[int(wanted[lost[0]])])
            kind = "actions" if factor.side == "action" else "states"
            problem = f"has no value for {label_text}"
            cure = f"give it in {kind}=, a table with one row per label"
            raise bad(named(str(factor.name)), problem, count=len(np.unique(wanted[lost])), cure=cure)
        return np.asarray(values[first[wanted]])

    def varies(self, codes: IntArray) -> bool:
        return not constant_within(codes, self.sets.start).all()

    def frame(self) -> pd.DataFrame:
        return self.sets.frame()


def attribute_table(given: Any, label: str) -> Table:
    """A table of attributes with its column of labels, which may be a pandas index."""
    if isinstance(given, pd.DataFrame) and label not in given.columns:
        given = given.reset_index(names=label)
    elif isinstance(given, Mapping) and label not in given:
        given = pd.DataFrame(given).reset_index(names=label)
    table = read_table(given)
    codes, values = table.labels(label)
    if len(values) < table.n_rows:
        repeated = np.bincount(codes)[codes] > 1
        row = int(np.flatnonzero(repeated)[1])
        raise bad(named(label), f"{values[codes[row]]!r} has several rows", index=row, cure="one row per label")
    return table


def from_transitions(table: Table, columns: Columns, by_stage: bool) -> Choices:
    """Choices from logged transitions."""
    features = check_features(columns.features)
    if by_stage and columns.stage is None:
        raise bad("stage", "is not given", cure="name the column of stages, or fit with homogeneous=True")
    staged = by_stage or any(isinstance(f, str) and "stage" in f.split(":") for f in features)
    sets, inferred = reachable_sets(table, columns, staged)
    encoding = encode(features, _SetScope(sets, table, columns))
    choices = Choices(
        start=sets.start,
        features=stack(encoding.columns),
        count=np.zeros(sets.n_rows),
        columns=encoding.names,
        offset=sets.offset,
        stage=sets.stage,
        state=sets.state,
        action=sets.action,
        next_state=sets.next_state,
        labels=sets.labels,
        levels=encoding.levels,
        layout="transitions",
    )
    observed = observe(choices, table, columns)
    if inferred:
        single = int((observed.sizes == 1).sum())
        warn(
            "reachable sets were inferred from the data: a next state that was never seen after a (state, action) is "
            f"taken to be impossible there ({single} of {observed.n_sets} pairs have one next state only, and teach "
            "nothing); pass reachable= with the sets you know, or reachable='all'"
        )
    return observed


def observe(choices: Choices, table: Table, columns: Columns) -> Choices:
    """The sets of ``choices`` with the counts of another log."""
    labels = choices.labels
    if labels is None:
        raise bad("data", "the model has no states and actions")
    sets = locate_rows(choices, table, columns)
    if columns.next_state not in table:
        return replace(choices, count=np.zeros(choices.n_rows), log_row=np.empty(0, dtype=np.int64))
    cure = "add it to reachable= (and states=), or drop those rows"
    target = labels.states.encode(table.raw(columns.next_state, "next_state"), named(columns.next_state), cure)
    assert choices.next_state is not None  # noqa: S101 (this layout has them)
    wide = len(labels.states)
    keys = choices.set_of_row * wide + choices.next_state
    order = np.argsort(keys, kind="stable")
    wanted = sets * wide + target
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    row = order[at]
    wrong = np.flatnonzero(keys[row] != wanted)
    if len(wrong):
        i = int(wrong[0])
        problem = f"{len(wrong)} rows went to a next state outside their reachable set, such as"
        label = labels.states[int(target[i])]
        raise bad(named(columns.next_state), f"{problem} {label!r}", index=i, count=len(wrong), cure=cure)
    weights = None if columns.count is None else counts_of(table, columns.count)
    count = np.bincount(row, weights=weights, minlength=choices.n_rows).astype(np.float64)
    return replace(choices, count=count, log_row=row)


def locate_rows(choices: Choices, table: Table, columns: Columns) -> IntArray:
    """The choice set of every row of a log, refused where there is none."""
    labels = choices.labels
    assert labels is not None  # noqa: S101 (callers have checked)
    cure = "fit again with it, or drop those rows"
    state = labels.states.encode(table.raw(columns.state, "state"), named(columns.state), cure)
    action = labels.actions.encode(table.raw(columns.action, "action"), named(columns.action), cure)
    stage = None
    if choices.stage is not None and labels.stages is not None and columns.stage is not None:
        stage = labels.stages.encode(table.raw(columns.stage, "stage"), named(columns.stage), cure)
    sets = choices.locate(state, action, stage)
    lost = np.flatnonzero(sets < 0)
    if len(lost):
        i = int(lost[0])
        pair = (labels.states[int(state[i])], labels.actions[int(action[i])])
        problem = f"{len(lost)} rows have a (state, action) without a reachable set, such as {pair!r}"
        raise bad(named(columns.state), problem, index=i, count=len(lost), cure="give its set in reachable=")
    return sets
