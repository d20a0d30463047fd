"""Which actions exist in which state, and where an episode ends: from what users give to arrays.

A pair (state, action) exists at a stage if it has a row in the stage's table.  A terminal state has no action: the
episode is over there, and V_h(s) is its terminal reward at every stage h.  Inside, its action 0 leads back to it, with
the reward that keeps V_h(s) at that.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from livarot.core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from livarot.errors import LivarotError, bad, shown
from livarot.model.labels import Labels


def number_named(argument: str, given: Any, labels: Labels | None, size: int) -> int:
    """The number of a state or action, from its name; a number is itself if no names are given, or only texts."""
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool | np.bool_)
    if labels is not None and isinstance(given, Hashable) and given in labels:
        return labels.index(given)
    if labels is not None and not (whole and all(isinstance(name, str) for name in labels)):
        raise bad(argument, f"{shown(given)} is not a name of the model", cure=f"use one of {labels!r}")
    if not whole or not 0 <= given < size:
        cure = "give a number, or give the model names: states=, actions="
        raise bad(argument, f"{shown(given)} is not among 0..{size - 1}", cure=cure)
    return int(given)


def check_terminal(given: Any, labels: Labels | None, n_states: int) -> BoolArray | None:
    """The terminal states, (S,), from a mask, one state or several; None where there are none."""
    if given is None:
        return None
    array = given if isinstance(given, np.ndarray) else None
    if array is not None and array.dtype == np.bool_:
        if array.shape != (n_states,):
            raise bad("terminal", f"has shape {array.shape}", cure=f"give {n_states} bools, or the terminal states")
        return np.array(array) if array.any() else None
    one = isinstance(given, str | bytes | int | np.integer) or (isinstance(given, Hashable) and given in (labels or ()))
    if not one and not isinstance(given, Iterable):
        raise bad("terminal", f"{shown(given)} is not a list of states", cure="list the terminal states")
    listed = [given] if one else (given.tolist() if array is not None else list(given))
    if listed and all(isinstance(entry, bool) for entry in listed):
        return check_terminal(np.array(listed), labels, n_states)
    found = np.zeros(n_states, dtype=np.bool_)
    for entry in listed:
        found[number_named("terminal", entry, labels, n_states)] = True
    return found if found.any() else None


def check_available(
    given: Any, shape: tuple[int, int, int], states: Labels | None, actions: Labels | None
) -> BoolArray | None:
    """Which actions a user allows, (S, A) or (H, S, A): from a mask, or from a list of actions for each state."""
    if given is None:
        return None
    cure = f"give bools {shape[1:]} or {shape}, or a list of actions for each of the {shape[1]} states"
    if isinstance(given, Mapping):
        return _ragged(given.items(), shape, states, actions)
    if isinstance(given, np.ndarray) or not isinstance(given, Iterable) or isinstance(given, str | bytes):
        mask = np.asarray(given)
        if mask.dtype != np.bool_ or mask.shape not in (shape[1:], shape):
            raise bad("available", f"has shape {mask.shape} and dtype {mask.dtype}", cure=cure)
        return mask
    listed = list(given)
    try:
        mask = np.asarray(listed)
    except ValueError:
        mask = np.empty(0)  # ragged
    if mask.dtype == np.bool_ and mask.size:
        return check_available(mask, shape, states, actions)
    if len(listed) != shape[1]:
        raise bad("available", f"has {len(listed)} lists of actions for {shape[1]} states", cure=cure)
    return _ragged(enumerate(listed), shape, None, actions)


def _ragged(
    listed: Iterable[tuple[Any, Any]], shape: tuple[int, int, int], states: Labels | None, actions: Labels | None
) -> BoolArray:
    mask = np.zeros(shape[1:], dtype=np.bool_)
    for state, own in listed:
        s = number_named("available", state, states, shape[1])
        if isinstance(own, str | bytes) or not isinstance(own, Iterable):
            raise bad("available", f"{shown(own)} is not a list of actions", index=s, cure="list the state's actions")
        for action in own:
            mask[s, number_named("available", action, actions, shape[2])] = True
    return mask


def refuse_others(argument: str, numbers: FloatArray, exists: BoolArray) -> None:
    """Refuse numbers for actions that do not exist, arrays of one shape; 0, NaN and infinity say that there is none."""
    ghost = np.argwhere(~exists & np.isfinite(numbers) & (numbers != 0.0))
    if len(ghost):
        where = tuple(int(i) for i in ghost[0])
        told = f"an action that does not exist has {numbers[where]:.6g} at ({'h, ' * (len(where) == 3)}s, a)"
        cure = (
            "leave it 0 (NaN, in a NumPy array), or make the action available; what an end is worth is terminal_reward="
        )
        raise bad(argument, told, index=where, count=len(ghost), cure=cure)


def known_places(
    argument: str, keys: Iterable[Any], labels: tuple[Labels | None, ...], sizes: tuple[int, ...]
) -> dict[Any, tuple[int, ...]]:
    """The numbers of the states and actions in the keys of a table; keys with others are refused, all at once."""
    found: dict[Any, tuple[int, ...]] = {}
    wrong: list[tuple[Any, LivarotError]] = []
    for key in keys:
        try:
            kinds = zip(key, labels, sizes, strict=False)
            found[key] = tuple(number_named(argument, part, names, size) for part, names, size in kinds)
        except LivarotError as error:
            wrong.append((key, error))
    if wrong:
        told = f"{shown(wrong[0][0])} has a state or an action that the model does not have"
        raise bad(argument, told, count=len(wrong), cure=wrong[0][1].cure)
    return found


def require_actions(counts: IntArray, stage_table: Int32Array, terminal: BoolArray | None) -> None:
    """Refuse states that are not terminal and have no action; counts (tables, S, A)."""
    stuck: BoolArray = np.asarray(~(counts > 0).any(axis=2))
    if terminal is not None:
        stuck &= ~terminal
    for place, wrong in (("(h, s)", stuck[stage_table]), ("(table, s)", stuck)):
        if wrong.any():
            at = np.argwhere(wrong)
            cure = "give it an action (one with a next state), or list it in terminal="
            where = tuple(int(i) for i in at[0])
            raise bad("available", f"a state has no action at {place}", index=where, count=len(at), cure=cure)
