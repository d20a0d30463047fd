"""A policy for people to read: one row per stage and state, with labels, as a table or a CSV file.

Spreadsheets run text that begins with ``= + - @`` (or a tab or a line end before them) as a formula, so a label such as
``=HYPERLINK(...)`` in somebody's log would run on the reader's computer.  Such text is written with an apostrophe
in front; numbers are numbers and stay as they are.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.data.use.intervals import as_probabilities
from livarot.data.use.plans import observed_counts
from livarot.data.use.to_mdp import labels_of
from livarot.errors import bad, require_finite
from livarot.model.problem import MNLMDP
from livarot.storage import spreadsheet_safe as guarded
from livarot.storage import write_atomic

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition


@checked
def policy_table(
    mdp: MNLMDP, policy: NDArray[Any], *, value: FloatArray | None = None, fit: MNLTransition | None = None
) -> pd.DataFrame:
    """Columns stage, state, action, and probability (of policies that draw), value, count where they are known.

    Only states that the start can reach at that stage are listed.  ``policy`` is (H, S) or (H, S, A), ``value``
    (H + 1, S) or (H, S); with ``fit``, ``count`` says how often the (state, action) was observed.  States
    and actions without names are shown by their numbers, from 0.
    """
    problem, labels = mdp.problem, labels_of(mdp)
    table = as_probabilities(problem, policy)
    stage, state, action = np.nonzero((table > 0.0) & problem.reachable[:-1, :, None])
    found: dict[str, Any] = {
        "stage": stage if labels.stages is None else labels.stages.decode(stage),
        "state": labels.states.decode(state),
        "action": labels.actions.decode(action),
    }
    if np.asarray(policy).ndim == 3:
        found["probability"] = table[stage, state, action]
    if value is not None:
        values = require_finite("value", value)
        if values.shape not in ((problem.horizon + 1, problem.n_states), (problem.horizon, problem.n_states)):
            raise bad("value", f"has shape {values.shape}", cure=f"give ({problem.horizon + 1}, {problem.n_states})")
        found["value"] = values[stage, state]
    if fit is not None:
        found["count"] = observed_counts(fit, mdp)[state, action]
    return pd.DataFrame(found).infer_objects()


@checked
def write_policy(path: str | Path, table: pd.DataFrame) -> None:
    """A table as CSV (UTF-8), complete or not at all, formulas guarded."""
    write_atomic(path, as_csv(table).encode())


def as_csv(table: pd.DataFrame) -> str:
    """A table as CSV text without its index; floats with all their digits.

    >>> print(as_csv(pd.DataFrame({"state": ["=1+1", "worn"], "value": [-1.0, 0.1]})), end="")
    state,value
    '=1+1,-1.0
    worn,0.1
    """
    safe = table.rename(columns=guarded)
    for at, name in enumerate(table.columns):
        column = table[name]
        if column.dtype == object or isinstance(column.dtype, pd.StringDtype | pd.CategoricalDtype):
            safe.isetitem(at, np.array([guarded(x) for x in column], dtype=object))
    text = str(safe.to_csv(index=False, lineterminator="\n"))
    if "\r" in text:  # not quoted by default: a reader would begin a new row there, past the guard
        text = str(safe.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC))
    return text
