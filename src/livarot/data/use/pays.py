"""Rewards or costs of a fitted model, read from what a user gives in the names of the log.

Every available (state, action) needs a number: one that is missing is an error, not a 0.  Nothing else may have one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from livarot.core.arguments import required_arguments
from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.data.reading.columns import Columns
from livarot.data.reading.table import read_table
from livarot.errors import LivarotError, bad, require_finite, require_number, shown
from livarot.model.labels import Labels, ModelLabels
from livarot.model.terms.existing import refuse_others

GIVE = "give a number for every available (state, action), also where it is 0"


class Steps(NamedTuple):
    """What can happen: the rows of a model, table after table."""

    labels: ModelLabels  # of the states that have names in the log
    state: IntArray  # (rows,)
    action: IntArray  # (rows,)
    next_state: IntArray  # (rows,)
    paid: BoolArray  # (S, A): the pairs that need a number (S counts the sink of unseen="sink" too)

    @property
    def asked(self) -> BoolArray:
        """The rows that need a number."""
        return np.asarray(self.paid[self.state, self.action])


Transition = Callable[[int, int, int, int], float]


def read_pay(argument: str, given: Any, steps: Steps, horizon: int | None, sign: float) -> FloatArray | Transition:
    """Rewards or costs as an array (S, A) or (H, S, A), or as a function of the numbers (h, s, a, s').

    Pairs that the model adds (``unseen=``, stages that are never reached) get the worst number that was given, or 0
    if that is worse.
    """
    if isinstance(given, pd.Series):
        given = given.to_dict()
    if isinstance(given, Mapping):
        array, rows = _of_mapping(argument, given, steps)
    elif callable(given):
        array, rows = _of_function(argument, given, steps)
    else:
        array, rows = _of_array(argument, given, steps, horizon)
    if rows is not None:
        asked = steps.asked
        worst = _worst(rows[asked], sign)
        places = zip(steps.state.tolist(), steps.action.tolist(), steps.next_state.tolist(), strict=True)
        found = dict(zip(places, np.where(asked, rows, worst).tolist(), strict=True))
        return lambda h, s, a, to: found[s, a, to]
    assert array is not None  # noqa: S101 (one of them is)
    known = array.shape[-2]
    full = np.zeros((*array.shape[:-2], *steps.paid.shape))
    full[..., steps.state, steps.action] = _worst(array[..., steps.paid[:known]], sign)
    full[..., :known, :] = np.where(steps.paid[:known], array, full[..., :known, :])
    return full


def _worst(numbers: FloatArray, sign: float) -> float:
    return sign * min(0.0, float((sign * numbers).min(initial=0.0)))


Found = tuple[FloatArray | None, FloatArray | None]  # (S, A) or (H, S, A), or one number for each row


def _of_array(argument: str, given: Any, steps: Steps, horizon: int | None) -> Found:
    """Numbers in the order of the labels; one for an action that does not exist is refused."""
    known, n_actions = len(steps.labels.states), len(steps.labels.actions)
    try:
        array = np.ma.filled(np.ma.asarray(given).astype(np.float64), np.nan)
    except (TypeError, ValueError) as error:
        cure = "give numbers, a table, a mapping from names, or a function of names"
        raise bad(argument, f"is not an array of numbers ({error})", cure=cure) from error
    spread = array.shape in ((), (known,))
    if spread:
        array = np.broadcast_to(array[..., None] if array.ndim else array, (known, n_actions))
    paid = steps.paid[:known]
    if array.shape in ((known, n_actions), (horizon, known, n_actions)):
        if not spread:
            refuse_others(argument, array, np.broadcast_to(paid, array.shape))
        require_finite(argument, np.where(paid, array, 0.0))
        return array, None
    if array.shape == (known, n_actions, known):
        to = np.minimum(steps.next_state, known - 1)
        rows = array[np.minimum(steps.state, known - 1), steps.action, to]
        return None, require_finite(argument, np.where(steps.asked, rows, 0.0))
    shapes = f"({known},), ({known}, {n_actions}), ({known}, {n_actions}, {known})"
    stages = "" if horizon is None else f" or ({horizon}, {known}, {n_actions})"
    raise bad(argument, f"has shape {array.shape}, expected {shapes}{stages}", cure="or give a mapping from labels")


def _of_function(argument: str, given: Callable[..., Any], steps: Steps) -> Found:
    """A function of the names (state, action) or (state, action, next_state), asked about what can be done."""
    states, actions = steps.labels.states, steps.labels.actions
    if required_arguments(given) == 3:
        rows, places = np.zeros(len(steps.state)), list[Any]()
        for i in np.flatnonzero(steps.asked).tolist():
            to = int(steps.next_state[i])
            after = states[to] if to < len(states) else None  # the sink has no name of the user's
            places.append((states[steps.state[i]], actions[steps.action[i]], after))
        rows[steps.asked] = _numbers(argument, places, [given(*place) for place in places])
        return None, rows
    array, paid = np.zeros((len(states), len(actions))), steps.paid[: len(states)]
    places = [(states[s], actions[a]) for s, a in np.argwhere(paid).tolist()]
    array[paid] = _numbers(argument, places, [given(*place) for place in places])
    return array, None


def _numbers(argument: str, keys: Sequence[Any], values: Sequence[Any]) -> list[float]:
    """Finite numbers; others are refused with the first key."""
    found, wrong = [], list[int]()
    for i, value in enumerate(values):
        try:
            found.append(require_number(argument, value))
        except LivarotError:
            wrong.append(i)
    if wrong:
        message = f"{shown(keys[wrong[0]])} has {shown(values[wrong[0]])}, not a finite number"
        raise bad(argument, message, count=len(wrong), cure="give finite numbers")
    return found


def _of_mapping(argument: str, given: Mapping[Any, Any], steps: Steps) -> Found:
    """{state: r}, {(state, action): r}, {(state, action, next_state): r}; the longest key that fits counts."""
    states, actions = steps.labels.states, steps.labels.actions
    known = len(states)
    by_state, by_pair = np.full(known, np.nan), np.full((known, len(actions)), np.nan)
    by_row: dict[tuple[int, int, int], float] = {}
    happens: set[Any] = set()
    if any(len(_parts(key, states)) == 3 for key in given):
        happens = set(zip(steps.state.tolist(), steps.action.tolist(), steps.next_state.tolist(), strict=True))
    foreign: list[Any] = []
    _refuse_unknown(argument, given, steps.labels)
    for key, number in zip(given, _numbers(argument, [*given], [*given.values()]), strict=True):
        parts = _parts(key, states)
        places = tuple(labels.index(part) for part, labels in zip(parts, (states, actions, states), strict=False))
        if len(parts) == 1:
            by_state[places[0]] = number
            if number != 0.0 and not steps.paid[places[0]].any():
                foreign.append(key)
        elif not steps.paid[places[:2]] or (len(parts) == 3 and places not in happens):
            foreign.append(key)
        elif len(parts) == 2:
            by_pair[places] = number
        else:
            by_row[places] = number  # type: ignore[index]
    if foreign:
        message = f"{foreign[0]!r} has a number, but does not exist in the model"
        cure = "leave it out, or make the action available; the value of an end is terminal_reward or terminal_cost"
        raise bad(argument, message, count=len(foreign), cure=cure)
    array = np.where(np.isnan(by_pair), by_state[:, None], by_pair)
    if not by_row:
        _require_all(argument, np.isnan(array) & steps.paid[:known], steps.labels)
        return np.nan_to_num(array), None
    rows = np.zeros(len(steps.state))
    lost = np.zeros(array.shape, dtype=np.bool_)
    for i in np.flatnonzero(steps.asked).tolist():
        s, a = int(steps.state[i]), int(steps.action[i])
        rows[i] = by_row.get((s, a, int(steps.next_state[i])), array[s, a])
        lost[s, a] |= np.isnan(rows[i])
    _require_all(argument, lost, steps.labels)
    return None, rows


def _parts(key: Any, states: Labels) -> tuple[Any, ...]:
    """(state,), (state, action) or (state, action, next_state); a tuple may be the name of a state."""
    whole = not isinstance(key, tuple) or (len(key) not in (2, 3)) or key in states
    return (key,) if whole else key


def _refuse_unknown(argument: str, given: Mapping[Any, Any], labels: ModelLabels) -> None:
    """Refuse keys with names that the model does not have."""
    kinds, wrong = (labels.states, labels.actions, labels.states), list[tuple[Any, Labels]]()
    for key in given:
        for part, own in zip(_parts(key, labels.states), kinds, strict=False):
            if not _named(part, own):
                wrong.append((key, own))
                break
    if wrong:
        forms = "a state, a (state, action) or a (state, action, next_state)"
        told = f"{shown(wrong[0][0])} is not {forms} of the model"
        raise bad(argument, told, count=len(wrong), cure=f"names are {wrong[0][1]!r}")


def _named(part: Any, labels: Labels) -> bool:
    try:
        return part in labels
    except TypeError:
        return False


def _require_all(argument: str, lost: BoolArray, labels: ModelLabels) -> None:
    """Refuse pairs that can be chosen and have no number."""
    if lost.any():
        pairs = np.argwhere(lost).tolist()
        few = ", ".join(repr((labels.states[s], labels.actions[a])) for s, a in pairs[:3])
        message = f"{len(pairs)} (state, action) have no number, such as {few}"
        raise bad(argument, message, index=tuple(pairs[0]), count=len(pairs), cure=GIVE)


def is_table(given: Any) -> bool:
    """A table, or the path of one (not a mapping from names, nor an array)."""
    if isinstance(given, Mapping | np.ndarray | pd.Series | list | tuple) or callable(given):
        return False
    return isinstance(given, str | Path | pd.DataFrame) or any(
        hasattr(given, name) for name in ("collect_schema", "column_names", "get_column", "__dataframe__")
    )


def table_of_pay(argument: str, given: Any, columns: Columns, labels: ModelLabels) -> dict[Any, float]:
    """A table with the columns state, (action, (next_state,)) and the number as a mapping from names.

    The columns have these names, or those of the log; the number is in a column with the name of the argument.
    Terminal rewards belong to states.
    """
    table = read_table(given)
    own = {"state": columns.state, "action": columns.action, "next_state": columns.next_state}
    found = {name: next((x for x in (log, name) if x in table), None) for name, log in own.items()}
    parts = [(found["state"] or "state", labels.states)]
    if found["action"] is not None and not argument.startswith("terminal"):
        parts.append((found["action"], labels.actions))
        if found["next_state"] is not None:
            parts.append((found["next_state"], labels.states))
    numbers = np.asarray(table.numbers(_column_of(argument, table.names), argument), dtype=np.float64)
    names = [[meant(argument, kind, x) for x in table.raw(name, argument)] for name, kind in parts]
    pay: dict[Any, float] = {}
    for i, key in enumerate(zip(*names, strict=True)):
        own_key = key if len(key) > 1 else key[0]
        if own_key in pay:
            raise bad(argument, f"{own_key!r} is given twice", index=i, cure="one row for each")
        pay[own_key] = float(numbers[i])
    return pay


def _column_of(argument: str, names: tuple[str, ...]) -> str:
    """The column of the numbers: that of terminal_cost is called so, or just cost."""
    return next((name for name in (argument, argument.removeprefix("terminal_")) if name in names), argument)


def meant(argument: str, labels: Labels, given: Any) -> Any:
    """The label that was meant: the one given, or the one that prints as the text given.

    >>> meant("start", Labels([1, 2, 3]), "2")
    2
    """
    if given in labels:
        return given
    found = [label for label in labels if str(label) == str(given)]
    if len(found) != 1:
        message = f"{given!r} is not known" if not found else f"{given!r} fits two labels"
        raise bad(argument, message, cure=f"{labels!r}")
    return found[0]
