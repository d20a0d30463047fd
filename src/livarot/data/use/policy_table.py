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
from livarot.core.arrays import BoolArray, FloatArray
from livarot.core.tolerances import SUM_SLACK
from livarot.data.reading.table import Table, named, read_table
from livarot.data.use.intervals import as_probabilities
from livarot.data.use.plans import observed_counts
from livarot.data.use.to_mdp import labels_of
from livarot.errors import bad, require_finite
from livarot.infinite.problem import InfiniteMDP, check_stationary
from livarot.model.labels import Labels, ModelLabels, refuse
from livarot.model.problem import MNLMDP
from livarot.model.terms.after import first_actions
from livarot.storage import spreadsheet_safe as guarded
from livarot.storage import write_atomic
from livarot.system.sizes import require_memory

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition


@checked
def policy_table(
    mdp: MNLMDP | InfiniteMDP,
    policy: NDArray[Any],
    *,
    value: FloatArray | None = None,
    fit: MNLTransition | None = None,
) -> pd.DataFrame:
    """Columns stage, state, action, and probability (of stochastic policies), value, count where they are known.

    Only states that the start can reach at that stage are listed, and none where the episode is over.  ``policy`` is
    (H, S) or (H, S, A), ``value`` (H + 1, S) or (H, S); where costs were given there is a column ``cost``, its
    negative, instead.  With ``fit``, ``count`` says how often the (state, action) was observed.  States and actions
    without names are shown by their numbers, from 0.  Without an end there are no stages: ``policy`` is (S,) or (S, A),
    ``value`` (S,), and all states are listed.
    """
    labels, found = labels_of(mdp), dict[str, Any]()
    if isinstance(mdp, InfiniteMDP):
        own, costs = mdp.problem, mdp.problem.terms.costs
        table = check_stationary(own, policy)
        laws = (table if table.ndim == 2 else np.eye(own.n_actions)[table])[None]
        stage, state, action = np.nonzero((laws > 0.0) & ~own.terms.terminal[:, None])
    else:
        problem, costs = mdp.problem, mdp.problem.units.cost
        laws, decides = as_probabilities(problem, policy), problem.reachable[:-1, :, None]
        if problem.terminal is not None:
            decides = decides & ~problem.terminal[:, None]
        stage, state, action = np.nonzero((laws > 0.0) & decides)
        found["stage"] = stage if labels.stages is None else labels.stages.decode(stage)
    found |= {"state": labels.states.decode(state), "action": labels.actions.decode(action)}
    if np.asarray(policy).ndim == (2 if isinstance(mdp, InfiniteMDP) else 3):
        found["probability"] = laws[stage, state, action]
    if value is not None:
        values = _values(mdp, value)[stage, state]
        found |= {"cost": 0.0 - values} if costs else {"value": values}
    if fit is not None:
        found["count"] = observed_counts(fit, mdp)[state, action]
    return pd.DataFrame(found).infer_objects()


def _values(mdp: MNLMDP | InfiniteMDP, value: FloatArray) -> FloatArray:
    """Values with an axis of stages."""
    values, n_states = require_finite("value", value), mdp.problem.n_states
    if isinstance(mdp, InfiniteMDP):
        values, shapes = values[None], [(1, n_states)]
    else:
        shapes = [(mdp.problem.horizon + 1, n_states), (mdp.problem.horizon, n_states)]
    if values.shape not in shapes:
        raise bad("value", f"has shape {np.shape(value)}", cure=f"give {shapes[0] if len(shapes) > 1 else (n_states,)}")
    return values


def policy_array(policy: Any, labels: ModelLabels, mdp: MNLMDP | None, visited: BoolArray) -> FloatArray:
    """A policy as probabilities (H, S, A): an array, or a table (or its path) that :func:`policy_table` made.

    A table lists every state that the model's start can reach at a stage (without a model those that were ``visited``,
    (T, S)); others get the first action.
    """
    sizes = len(labels.states), len(labels.actions)
    if isinstance(policy, str | Path | pd.DataFrame | Table):
        return _from_table(read_table(policy), labels, mdp, visited)
    if mdp is not None:
        return as_probabilities(mdp.problem, policy)
    array = np.asarray(policy)
    if array.ndim == 2 and array.dtype.kind in "iu" and array.shape[1] == sizes[0]:
        wrong = np.argwhere((array < 0) | (array >= sizes[1]))
        if len(wrong):
            first = tuple(int(i) for i in wrong[0])
            raise bad("policy", f"action {array[first]} is out of range", index=first, count=len(wrong))
        return np.asarray(np.eye(sizes[1])[array])
    if array.ndim == 3 and array.dtype.kind == "f" and array.shape[1:] == sizes:
        wrong = np.argwhere(~((array >= 0.0).all(axis=2) & (np.abs(array.sum(axis=2) - 1.0) <= SUM_SLACK)))
        if len(wrong):
            first = tuple(int(i) for i in wrong[0])
            raise bad("policy", "probabilities do not add up to 1", index=first, count=len(wrong))
        return np.asarray(array, dtype=np.float64)
    shapes = f"int (H, {sizes[0]}) or float (H, {sizes[0]}, {sizes[1]}), in the order of the labels"
    raise bad("policy", f"has shape {array.shape} and dtype {array.dtype}", cure=f"give {shapes}")


def _from_table(table: Table, labels: ModelLabels, mdp: MNLMDP | None, visited: BoolArray) -> FloatArray:
    """The policy in a table of stage, state, action (, probability); stages are labels, or numbers from 0."""
    known = "use the labels of the model"
    state = labels.states.encode(_plain(table, "state", labels.states), named("state"), known)
    action = labels.actions.encode(_plain(table, "action", labels.actions), named("action"), known)
    names = labels.stages
    if names is not None and mdp is not None:
        stage = names.encode(_plain(table, "stage", names), named("stage"), known)
        horizon = len(names)
    else:
        stage = np.asarray(table.numbers("stage", "policy"))
        refuse(named("stage"), "is not a whole number >= 0", (stage < 0) | (stage != np.rint(stage)), "number from 0")
        stage = stage.astype(np.int64)
        horizon = mdp.problem.horizon if mdp is not None else int(stage.max(initial=-1)) + 1
        refuse(named("stage"), f"is beyond the model's {horizon} stages", stage >= horizon, "plan in the same model")
    require_memory("policy", "its table", horizon * len(labels.states) * len(labels.actions))
    found = np.zeros((horizon, len(labels.states), len(labels.actions)))
    share = table.numbers("probability", "policy") if "probability" in table else np.ones(table.n_rows)
    np.add.at(found, (stage, state, action), np.asarray(share, dtype=np.float64))
    total = found.sum(axis=2)
    listed = np.zeros(total.shape, dtype=bool)
    listed[stage, state] = True
    wrong = listed & (np.abs(total - 1.0) > SUM_SLACK)
    if wrong.any():
        h, s = (int(i) for i in np.argwhere(wrong)[0])
        problem = f"the actions of {labels.states[s]!r} at stage {h} have probability {total[h, s]:g} together"
        raise bad("policy", problem, index=(h, s), count=int(wrong.sum()), cure="one action per stage and state")
    needed = (mdp.problem.reachable[:-1] if mdp is not None else visited)[:horizon]
    if mdp is not None and mdp.problem.terminal is not None:
        needed = needed & ~mdp.problem.terminal
    lost = np.argwhere(needed & ~listed[: len(needed)])
    if len(lost):
        h, s = (int(i) for i in lost[0])
        problem = f"no action for {labels.states[s]!r} at stage {h}"
        cure = "list every state that can be reached; a plan from one start has those that follow it only"
        raise bad("policy", problem, index=(h, s), count=len(lost), cure=cure)
    stage, state = np.nonzero(~listed)
    found[stage, state, 0 if mdp is None else first_actions(mdp.problem)[stage, state]] = 1.0
    return found


def _plain(table: Table, name: str, known: Labels) -> Any:
    """A column of labels; those that were guarded or became text in a CSV file are recognised."""
    column = list(table.raw(name, "policy"))
    texts = {guarded(str(label)): label for label in known}
    return [x if x in known else texts.get(str(x), x) for x in column]


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
