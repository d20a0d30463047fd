"""From tables to :class:`~livarot.data.reading.choices.Choices`.

Two layouts are understood:

*alternatives*  one row per alternative of a choice: a choice id, a ``chosen`` flag, features of the alternative, and,
                if the model is to become an MDP, state, action, next state (and stage).
*transitions*   one row per observed transition: state, action, next state (and stage).  Reachable sets are given,
                or inferred; features are those of next states, states and actions.  The log-likelihood needs the
                counts per (state, action, next state) only, so a million logs are read once and then cost nothing.

A table with the ``chosen`` (or ``choice``) column has the first layout, any other the second.
"""

from __future__ import annotations

from typing import Any

from livarot.data.reading.alternatives import from_alternatives
from livarot.data.reading.choices import Choices
from livarot.data.reading.columns import Columns
from livarot.data.reading.table import read_table
from livarot.data.reading.transitions import from_transitions, observe
from livarot.errors import bad


def read_choices(data: Any, columns: Columns, *, by_stage: bool = False, like: Choices | None = None) -> Choices:
    """The choices of a table; ``like`` are those a model was fitted to: same labels, categories and sets."""
    table = read_table(data)
    if table.n_rows == 0:
        raise bad("data", "the table has no rows")
    if columns.chosen in table or columns.choice in table:
        return from_alternatives(table, columns, by_stage, like)
    if like is not None and like.layout == "transitions":
        return observe(like, table, columns)
    return from_transitions(table, columns, by_stage)
