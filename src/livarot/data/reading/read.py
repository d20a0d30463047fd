"""From tables to :class:`~livarot.data.reading.choices.Choices`.

Two layouts are understood:

*alternatives*  one row per alternative of a choice: a choice id, a ``chosen`` flag, features of the alternative, and,
                if the model is to become an MDP, state, action, next state (and stage).
*transitions*   one row per observed transition: state, action, next state (and stage).  Reachable sets are given,
                or inferred; features are those of next states, states and actions.  The log-likelihood needs the
                counts per (state, action, next state) only, so a million rows are read once and then cost nothing.

A table with the ``chosen`` (or ``choice``) column has the first layout, any other the second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from livarot.data.reading.alternatives import from_alternatives
from livarot.data.reading.choices import Choices
from livarot.data.reading.columns import ACTION, ONLY, Columns
from livarot.data.reading.table import Table, read_table, warn
from livarot.data.reading.transitions import from_transitions, observe
from livarot.errors import bad


def with_action(table: Table, columns: Columns, like: Choices | None = None) -> Table:
    """A table with a column of actions: where there is none, every row has the same action."""
    if columns.action in table or (columns.state not in table and columns.next_state not in table):
        return table
    if like is not None:
        chain = like.labels is not None and list(like.labels.actions) == [ONLY]
        return table.with_column(columns.action, np.full(table.n_rows, ONLY, dtype=object)) if chain else table
    if columns.action != ACTION or columns.actions is not None:
        return table  # it was named: that it is missing is an error
    if columns.warn_of_action:
        warn("there is no column 'action': a Markov chain, with one action; say action=None, or name the column")
    return table.with_column(columns.action, np.full(table.n_rows, ONLY, dtype=object))


def with_target(table: Table, y: Any, name: str) -> Table:
    """A table with one more column: what was chosen, given apart from it."""
    if not isinstance(y, Iterable) or isinstance(y, str):
        raise bad("y", f"is a {type(y).__name__}", cure="give one entry per row")
    values = y if isinstance(y, pd.Series) else pd.Series(list(y))
    if len(values) != table.n_rows:
        raise bad("y", f"has {len(values)} entries for {table.n_rows} rows")
    return table.with_column(name, values.reset_index(drop=True))


def read_choices(data: Any, columns: Columns, *, by_stage: bool = False, like: Choices | None = None) -> Choices:
    """The choices of a table; ``like`` are those a model was fitted to: same labels, categories and sets."""
    table = read_table(data)
    if table.n_rows == 0:
        raise bad("data", "the table has no rows")
    table = with_action(table, columns, like)
    if columns.chosen in table or columns.choice in table:
        return from_alternatives(table, columns, by_stage, like)
    if like is not None and like.layout == "transitions":
        return observe(like, table, columns)
    return from_transitions(table, columns, by_stage)
