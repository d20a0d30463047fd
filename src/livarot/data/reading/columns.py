"""Which column has which role, and small checks that both layouts share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.data.formulas.formula import Scope, Terms, check_features, listed_terms
from livarot.data.formulas.wilkinson import read_formula, uses_stage
from livarot.data.reading.table import Table, named
from livarot.errors import bad

ACTION = "action"  # the name of the column of actions, unless another one is given
ONLY = "(none)"  # the one action of a log without actions


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
    formula: str | None = None
    reference: Any = None
    covariates: Any = None
    cluster: str | None = None
    weights: str | None = None
    warn_of_action: bool = False  # where there is no column of actions

    @classmethod
    def of(cls, holder: Any) -> Columns:
        """The columns named by an object that has attributes of the same names."""
        given = {own.name: getattr(holder, own.name) for own in fields(cls) if own.name != "warn_of_action"}
        return cls(**given | {"action": given["action"] or ACTION, "warn_of_action": given["action"] is not None})

    def role(self, text: str) -> str | None:
        """What a column is called in formulas: "state", "action", "next", "stage", or None."""
        named_as = {self.next_state: "next", self.state: "state", self.action: "action", self.stage: "stage"}
        return named_as.get(text)


def counts_of(table: Table, name: str) -> FloatArray:
    count = np.asarray(table.numbers(name, "count"), dtype=np.float64)
    if (count < 0).any():
        wrong = count < 0
        raise bad(named(name), "negative counts", index=int(wrong.argmax()), count=int(wrong.sum()))
    return count


def terms_of(columns: Columns, scope: Scope) -> Terms:
    """The terms of the model: those of its formula, or of its list of features."""
    if columns.formula is not None:
        if columns.features is not None:
            raise bad("formula", "formula and features are both given", cure="leave one of them out")
        return read_formula(columns.formula, scope, (columns.next_state, columns.chosen, "next_state", "chosen"))
    return listed_terms(check_features(columns.features), scope.is_column)


def reference_of(columns: Columns) -> Mapping[str, Any]:
    """The reference levels that were asked for."""
    if columns.reference is None:
        return {}
    if not isinstance(columns.reference, Mapping):
        raise bad("reference", "is not a mapping", cure="give {'zone': 'north'}")
    return columns.reference


def names_stage(columns: Columns) -> bool:
    """Do the features name the stage?"""
    if columns.formula is not None:
        return uses_stage(columns.formula)
    return any(isinstance(f, str) and "stage" in f.split(":") for f in check_features(columns.features))


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
