"""Probabilities of next states, for the rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livarot.core.arrays import FloatArray, IntArray
from livarot.data.reading.choices import Choices
from livarot.data.reading.read import with_action
from livarot.data.reading.table import read_table
from livarot.data.reading.transitions import locate_rows
from livarot.errors import bad

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition


def sets_of(fit: MNLTransition, data: Any) -> tuple[Choices, IntArray]:
    """The different choice sets of the rows of a table of transitions, and which of them each row has."""
    own = fit.choices_
    table = with_action(read_table(data), fit._columns(), own)
    base = own if own.design is None else own.design.sets
    sets = locate_rows(base, table, fit._columns())
    if own.design is not None:
        return own.design.profiles(sets, table)
    used, inverse = np.unique(sets, return_inverse=True)
    return own.select(used), inverse.reshape(-1)


def on_states(choices: Choices, values: FloatArray, n_states: int) -> FloatArray:
    """Numbers of the rows (rows, ...) as an array (sets, S, ...): 0 where a state cannot be reached."""
    if choices.next_state is None:
        raise bad("data", "has no next states", cure="name their column when fitting")
    dense = np.zeros((choices.n_sets, n_states, *values.shape[1:]))
    dense[choices.set_of_row, choices.next_state] = values
    return dense


def probabilities(fit: MNLTransition, data: Any) -> FloatArray:
    """See :meth:`livarot.data.MNLTransition.predict_proba`."""
    if isinstance(data, Choices):
        return np.exp(fit._log_probabilities(data))
    if fit.choices_.layout == "transitions":
        choices, row = sets_of(fit, data)
        return on_states(choices, np.exp(fit._log_probabilities(choices)), len(fit.states_))[row]
    choices = fit._read(data, like=fit.choices_)
    p = np.exp(fit._log_probabilities(choices))
    return p if choices.table_row is None else np.asarray(p[choices.table_row])
