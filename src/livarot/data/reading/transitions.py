"""Choices from a table with one row per observed transition: counts per (state, action, next state).

The log-likelihood needs these counts only, so a million rows are read once and then cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from livarot.core.arrays import IntArray
from livarot.data.formulas.formula import Computed, Encoding, Factor, Terms, encode, stack
from livarot.data.reading.choices import NOTHING_LOGGED, Choices
from livarot.data.reading.columns import Columns, constant_within, names_stage, reference_of, terms_of
from livarot.data.reading.covariates import design_of
from livarot.data.reading.observations import logged
from livarot.data.reading.sets import ReachableSets, reachable_sets
from livarot.data.reading.table import Table, named, read_table, warn
from livarot.errors import bad
from livarot.model.labels import Labels


class SetScope:
    """A formula's view of reachable sets: attributes of next states, states and actions."""

    def __init__(self, sets: ReachableSets, table: Table, columns: Columns) -> None:
        self.sets, self.table, self.columns = sets, table, columns
        self._own: dict[str, Table] = {}
        for side, given in (("state", columns.states), ("action", columns.actions)):
            if given is not None:
                self._own[side] = attribute_table(given, getattr(columns, side))
        self._outside: dict[str, bool] = {}
        self._named = _covariate_names(columns, table)

    def is_column(self, text: str) -> bool:
        own = self._own.get("state")
        return text in self.sets.extra or (own is not None and text in own) or text in self.table

    def is_category(self, factor: Factor) -> bool:
        source, _, name = self._source(factor)
        return source.is_text(name)

    def role(self, text: str) -> str | None:
        return self.columns.role(text)

    def is_covariate(self, factor: Factor) -> bool:
        """Is it a column of the log that belongs to the transition: so named, or not a function of the next state?"""
        return any(self._is_outside(leaf) for leaf in factor.leaves())

    def _is_outside(self, factor: Factor) -> bool:
        if factor.side != "next" or factor.name is None:
            return False
        name = factor.name
        if name not in self._outside:
            own = self._own.get("state")
            elsewhere = name in self.sets.extra or (own is not None and name in own) or name not in self.table
            self._outside[name] = name in self._named or (not elsewhere and not self._follows(name))
        return self._outside[name]

    def _follows(self, name: str) -> bool:
        """Is a column of the log a function of the next state?"""
        text = self.table.is_text(name)
        values = self.table.labels(name, "features")[0] if text else self.table.numbers(name, "features")
        codes, seen = self.table.labels(self.columns.next_state, "next_state")
        first = np.zeros(len(seen), dtype=np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        return bool((values == values[first[codes]]).all())

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
        if factor.name is None:
            return self._label_numbers(factor)
        source, label, name = self._source(factor)
        if self._is_outside(factor):
            return source.numbers(name, "features")
        values = source.numbers(name, "features")
        return values if label is None else self._spread(values, source, label, factor)

    def labels(self, factor: Factor) -> tuple[IntArray, list[Any]]:
        if factor.name is None:
            codes, labels = self._codes(factor.side)
            used, inverse = np.unique(codes, return_inverse=True)
            return inverse.reshape(-1), [labels[int(k)] for k in used]
        source, label, name = self._source(factor)
        codes, values = source.labels(name, "features")
        if self._is_outside(factor):
            return codes, values
        return (codes if label is None else self._spread(codes, source, label, factor)), values

    def _label_numbers(self, factor: Factor) -> NDArray[Any]:
        """Labels that are numbers, in arithmetic such as ``abs(next_state - state)``."""
        codes, labels = self._codes(factor.side)
        numbers = labels.array()
        if numbers.dtype.kind not in "if":
            raise bad("formula", f"{factor.text!r} is not a number here", cure="use an attribute of the state instead")
        return np.asarray(numbers[codes], dtype=np.float64)

    def categories(self, factor: Factor, met_first: bool = False) -> Sequence[Any] | None:
        if factor.name is None:
            labels = self._codes(factor.side)[1]
            column = {"state": self.columns.state, "action": self.columns.action}.get(factor.side)
            if not met_first or column is None:
                return list(labels)
            met = set(self.table.labels(column)[1])
            return sorted(labels, key=lambda label: label not in met)
        source, _, name = self._source(factor)
        return source.order(name)

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

    def refuse_outside(self, factor: Factor) -> None:
        """Say why a column is not an attribute of the next state."""
        source, label, name = self._source(factor)
        values = source.labels(name)[0] if source.is_text(name) else source.numbers(name)
        self._spread(values, source, str(label), factor)

    def varies(self, codes: NDArray[Any]) -> bool:
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


def _covariate_names(columns: Columns, table: Table) -> tuple[str, ...]:
    given = columns.covariates
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Sequence) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise bad("covariates", "are not names of columns", cure="give a list of names")
    for name in names:
        table.raw(name, "covariates")
    return names


def from_transitions(table: Table, columns: Columns, by_stage: bool) -> Choices:
    """Choices from logged transitions."""
    if by_stage and columns.stage is None:
        raise bad("stage", "is not given", cure="name the column of stages, or fit with homogeneous=True")
    sets, inferred = reachable_sets(table, columns, by_stage or names_stage(columns))
    scope = SetScope(sets, table, columns)
    terms = terms_of(columns, scope)
    encoding = encode(terms, scope, None, reference_of(columns))
    offset = sets.offset
    if encoding.offset is not None:
        offset = encoding.offset if offset is None else offset + encoding.offset
    choices = Choices(
        start=sets.start,
        features=np.empty((sets.n_rows, 0)) if encoding.covariates else stack(encoding.arrays),
        count=np.zeros(sets.n_rows),
        columns=encoding.names,
        term_of=encoding.terms,
        offset=offset,
        stage=sets.stage,
        state=sets.state,
        action=sets.action,
        next_state=sets.next_state,
        labels=sets.labels,
        levels=encoding.recipe.levels,
        memory=encoding.recipe.memory,
        layout="transitions",
    )
    if encoding.covariates:
        _refuse_cancelled(terms, encoding, scope)
        choices = replace(choices, design=design_of(choices, encoding, terms, scope))
    observed = observe(choices, table, columns, needed=True)
    if inferred:
        single = int((choices.sizes == 1).sum())
        warn(
            "reachable sets were inferred from the data: a next state that was never seen after a (state, action) is "
            f"taken to be impossible there ({single} of {choices.n_sets} pairs have one next state only, and teach "
            "nothing); pass reachable= with the sets you know, or reachable='all'"
        )
    return observed


def _refuse_cancelled(terms: Terms, encoding: Encoding, scope: SetScope) -> None:
    """Refuse terms of covariates alone in a list of features (a formula may have them: ``age * next_state``)."""
    for term in () if terms.marginal else terms.products:
        if isinstance(term, Computed) or not all(scope.is_covariate(f) or f.side != "next" for f in term):
            continue
        for factor in term:
            if scope.is_covariate(factor) and factor.name is not None:
                scope.refuse_outside(factor)


def observe(choices: Choices, table: Table, columns: Columns, *, needed: bool = False) -> Choices:
    """The sets of ``choices`` with the counts of another log; with covariates, the sets that the log has."""
    own = choices if choices.design is None else choices.design.sets
    labels = own.labels
    if labels is None:
        raise bad("data", "the model has no states and actions")
    sets = locate_rows(own, table, columns)
    made, group = (choices, sets) if choices.design is None else choices.design.profiles(sets, table)
    if columns.next_state not in table:
        nothing = np.empty(0, dtype=np.int64)
        return replace(made, count=np.zeros(made.n_rows), log_row=nothing, **NOTHING_LOGGED)
    row = chosen_row(own, sets, table, columns)
    row = row - own.start[sets] + made.start[group]
    return logged(made, row, np.arange(table.n_rows), table, columns, needed=needed)


def chosen_row(choices: Choices, sets: IntArray, table: Table, columns: Columns) -> IntArray:
    """The row of the next state of every log, refused where its set does not have it."""
    labels = choices.labels
    assert labels is not None  # noqa: S101 (this layout has them)
    assert choices.next_state is not None  # noqa: S101
    cure = "add it to reachable= (and states=), or drop those rows"
    target = labels.states.encode(table.raw(columns.next_state, "next_state"), named(columns.next_state), cure)
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
    return np.asarray(row)


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
        cure = "give its set in reachable=; if it has one, its own columns were dropped for want of data"
        raise bad(named(columns.state), problem, index=i, count=len(lost), cure=cure)
    return sets
