"""Rewards and costs: read from all the forms that users may give them in, and normalised.

A reward may depend on the next state: r_h(s, a, s').  It is not averaged, since the law is what a learner does not
know.  It is kept in two parts, r'_h(s, a) = min over s' and the rest on the row of the next state: planners back up
E[rest + discount V].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import required_arguments
from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.errors import bad, require_finite
from livarot.model.building.long_arrays import Long
from livarot.model.labels import Labels
from livarot.model.terms.existing import known_places, number_named, refuse_others
from livarot.model.terms.units import Units

RewardLike = ArrayLike | Callable[..., float] | Mapping[Any, float]


class Names(NamedTuple):
    """The names of states and actions, None where they are numbers."""

    states: Labels | None = None
    actions: Labels | None = None


class Gains(NamedTuple):
    """Rewards in the user's units: r_h(s, a), 0 for pairs that do not exist, and what the rows of a stage add."""

    base: FloatArray  # (H, S, A)
    more: list[FloatArray] | None  # per stage, one number for each row of its table


def one_of(reward: Any, cost: Any, name: str = "reward") -> tuple[Any, str, float]:
    """What was given, under which name, and the sign that makes a reward of it."""
    other = name.replace("reward", "cost")
    if reward is not None and cost is not None:
        raise bad(other, f"{name} and {other} are both given", cure="give one of them: a cost is a negative reward")
    if cost is not None:
        return cost, other, -1.0
    return reward, name, 1.0


def read_gains(reward: Any, cost: Any, long: Long, terminal: BoolArray | None, names: Names) -> Gains:
    """The rewards of all pairs that exist, from any of the forms of :meth:`livarot.MNLMDP.from_function`."""
    given, argument, sign = one_of(reward, cost)
    if given is None:
        raise bad("reward", "is missing", cure="give reward= or cost=, any finite numbers")
    if hasattr(given, "to_dict") and not isinstance(given, Mapping):  # a pandas Series
        given = given.to_dict()
    if isinstance(given, Mapping):
        given = _by_names(argument, given, long, _paying(long, terminal), names)
    by = _by_function if callable(given) else _by_array
    read = by(argument, given, long, terminal)
    if isinstance(read, list):
        return next_gains(read if sign > 0.0 else [0.0 - rows for rows in read], long)
    return Gains(read if sign > 0.0 else 0.0 - read, None)


def _paying(long: Long, terminal: BoolArray | None) -> BoolArray:
    """Which pairs have a reward, (H, S, A): those that exist, but for terminal states."""
    return long.exists if terminal is None else long.exists & ~terminal[:, None]


def _by_array(argument: str, given: Any, long: Long, terminal: BoolArray | None) -> FloatArray | list[FloatArray]:
    """Rewards (H, S, A), or stage by stage those of all rows, if they depend on the next state."""
    _, n_states, n_actions = shape = (len(long.stage_table), *long.counts.shape[1:])
    array = given if isinstance(given, np.ndarray) else np.asarray(require_finite(argument, given))
    if array.shape in (shape[1:], shape):
        if long.complete and terminal is None:
            return np.broadcast_to(require_finite(argument, array), shape)
        exists = _paying(long, terminal)
        if array.dtype.kind in "fiu" and not np.ma.is_masked(array):
            refuse_others(argument, array, exists if array.ndim == 3 else np.asarray(exists.any(axis=0)))
            array = np.where(exists, array, 0.0)
        return np.where(exists, np.broadcast_to(require_finite(argument, array), shape), 0.0)
    if array.shape not in ((*shape[1:], n_states), (*shape, n_states)):
        forms = f"{shape[1:]}, {shape}, {(*shape[1:], n_states)} or {(*shape, n_states)}"
        raise bad(
            argument, f"has shape {array.shape}", cure=f"give (S, A), (H, S, A), (S, A, S) or (H, S, A, S): {forms}"
        )
    paid: dict[tuple[int, int], FloatArray] = {}
    more, exists = [], _paying(long, terminal)
    for h, table in enumerate(long.stage_table.tolist()):
        own = (table, h if array.ndim == 4 else 0)
        if own not in paid:
            pair, follow = long.pairs(table), long.nexts(table)
            rows = (array[h] if array.ndim == 4 else array).reshape(-1, n_states)[pair, follow]
            paid[own] = _finite(argument, rows, exists[h].reshape(-1)[pair], h, pair, follow, n_actions)
        more.append(paid[own])
    return more


def _by_function(
    argument: str, given: Callable[..., Any], long: Long, terminal: BoolArray | None
) -> FloatArray | list[FloatArray]:
    """The same from a function of (h, s, a) or of (h, s, a, s')."""
    exists, n_actions = _paying(long, terminal), long.counts.shape[2]
    if required_arguments(given) != 4:
        places = np.argwhere(exists)
        base = np.zeros(exists.shape)
        base[exists] = finite_answers(argument, [given(*map(int, place)) for place in places], places)
        return base
    more = []
    for h, table in enumerate(long.stage_table.tolist()):
        pair, follow = long.pairs(table), long.nexts(table)
        there = exists[h].reshape(-1)[pair]
        steps = zip(pair.tolist(), follow.tolist(), there.tolist(), strict=True)
        rows = [given(h, p // n_actions, p % n_actions, s) if known else 0.0 for p, s, known in steps]
        more.append(_finite(argument, np.asarray(rows, dtype=np.float64), there, h, pair, follow, n_actions))
    return more


def finite_answers(argument: str, answers: list[Any], places: IntArray) -> FloatArray:
    """What a user's function said at these places, one finite number each."""
    numbers = np.asarray(answers)
    if numbers.dtype.kind == "f" and numbers.shape == (len(places),):
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if len(wrong):
            index, cure = tuple(int(i) for i in places[wrong[0]]), "let the function return finite numbers"
            raise bad(argument, "NaN or infinite", index=index, count=len(wrong), cure=cure)
    return require_finite(argument, answers).reshape(-1)


def _by_names(argument: str, given: Mapping[Any, Any], long: Long, exists: BoolArray, names: Names) -> FloatArray:
    """A table of rewards as an array (S, A) or (S, A, S'); every pair, or every transition, has to be in it."""
    _, n_states, n_actions = exists.shape
    sizes = {len(key) if isinstance(key, tuple) else 0 for key in given}
    if sizes not in ({2}, {3}):
        cure = "use keys (state, action), or (state, action, next_state), one kind only"
        raise bad(argument, f"is a table with keys such as {next(iter(given), None)!r}", cure=cure)
    per_row = sizes == {3}
    table = np.full((n_states, n_actions, n_states) if per_row else (n_states, n_actions), np.nan)
    known = np.zeros(table.shape, dtype=np.bool_)
    for t in sorted(set(long.stage_table.tolist())):
        known.reshape(n_states * n_actions, -1)[long.pairs(t), long.nexts(t) if per_row else 0] = True
    sometimes: BoolArray = np.asarray(exists.any(axis=0))
    known &= sometimes[:, :, None] if per_row else sometimes
    foreign = []
    kinds = (names.states, names.actions, names.states), (n_states, n_actions, n_states)
    for key, place in known_places(argument, given, *kinds).items():
        number = given[key]
        if not known[place]:
            foreign.append(key)
        elif not isinstance(number, bool | str):
            table[place] = number
    if foreign:
        message = f"{foreign[0]!r} is not a transition of the model" if per_row else f"{foreign[0]!r} does not exist"
        cure = "leave out what cannot happen, or make the action available"
        raise bad(argument, message, count=len(foreign), cure=cure)
    wrong = known & ~np.isfinite(table)
    if wrong.any():
        first = [
            labels[i] if labels else int(i)
            for i, labels in zip(np.argwhere(wrong)[0], (*names, names[0]), strict=False)
        ]
        message = f"is missing or not a number for {tuple(first)!r}"
        raise bad(argument, message, count=int(wrong.sum()), cure="give one number for everything that can happen")
    return np.where(known, table, 0.0)


def _finite(
    argument: str, rows: FloatArray, there: BoolArray, h: int, pair: IntArray, follow: IntArray, n_actions: int
) -> FloatArray:
    """Rewards of rows as float64, 0 where the pair does not exist; refused where they are not finite."""
    wrong = np.flatnonzero(there & ~np.isfinite(rows))
    if len(wrong):
        first = int(wrong[0])
        index = (h, int(pair[first]) // n_actions, int(pair[first]) % n_actions, int(follow[first]))
        raise bad(argument, "NaN or infinite at (h, s, a, s')", index=index, count=len(wrong))
    return np.where(there, rows, 0.0).astype(np.float64)


def next_gains(paid: list[FloatArray], long: Long) -> Gains:
    """r_h(s, a) = the least that a pair pays, and the rest on its rows; no rest where no reward asks for s'."""
    base, more, even = np.zeros((len(paid), *long.counts.shape[1:])), [], True
    for h, table in enumerate(long.stage_table.tolist()):
        pair, counts = long.pairs(table), long.counts[table].reshape(-1)
        least = np.zeros(counts.shape)
        begin = np.cumsum(counts) - counts
        least[counts > 0] = np.minimum.reduceat(paid[h], begin[counts > 0])
        base[h] = least.reshape(base[h].shape)
        more.append(paid[h] - least[pair])
        even = even and not more[-1].any()
    return Gains(base, None if even else more)


def read_terminal(reward: Any, cost: Any, n_states: int, states: Labels | None) -> FloatArray | None:
    """The terminal rewards (S,): numbers, one for all states, or a table {state: number}, 0 for those not in it."""
    given, argument, sign = one_of(reward, cost, "terminal_reward")
    if given is None:
        return None
    if hasattr(given, "to_dict") and not isinstance(given, Mapping):
        given = given.to_dict()
    if isinstance(given, Mapping):
        array = np.zeros(n_states)
        for state, number in given.items():
            array[number_named(argument, state, states, n_states)] = require_finite(argument, number)
    else:
        array = require_finite(argument, given)
        if array.ndim == 0:
            array = np.full(n_states, float(array))
    if array.shape != (n_states,):
        raise bad(argument, f"has shape {array.shape}", cure=f"give one number for each of the {n_states} states")
    return sign * array if array.any() else None


class Normalised(NamedTuple):
    """Rewards in [0, 1], with the units to undo the map."""

    reward: FloatArray  # (H, S, A)
    more: list[FloatArray] | None
    terminal_reward: FloatArray | None
    units: Units


def normalise(
    gains: Gains, end: FloatArray | None, long: Long, terminal: BoolArray | None, discount: float, cost: bool
) -> Normalised:
    """The rewards as they are, if every step is worth between 0 and 1; else mapped so that it is."""
    base, paid = gains.base, gains.base
    if terminal is not None:
        base = np.array(base)
        base[:, terminal, 0] = 0.0 if end is None else (1.0 - discount) * end[terminal]  # keeps V_h(s) = g(s)
    if terminal is not None or not long.complete:
        paid = base[long.exists]
    low, most, least = float(paid.min()), float(paid.max()), 0.0 if end is None else float(end.min())
    high = max(most, _largest(base, gains.more, end, long, discount))
    if low >= 0.0 and least >= 0.0 and high <= 1.0:
        return Normalised(_kernel_array(base), gains.more, end, Units(discount=discount, cost=cost))
    if end is not None and least != 0.0:
        high = max(most, _largest(base, gains.more, end - least, long, discount))
    scale = high - low
    if not scale < 1e150:  # its square is the scale of variances
        cure = "use larger units"
        raise bad("cost" if cost else "reward", f"from {low:.6g} to {high:.6g}: the range is too wide", cure=cure)
    scale = scale if scale > 0.0 else 1.0
    units = Units(low, scale, least, discount, cost)
    reward = _kernel_array(np.where(long.exists, np.clip((base - low) / scale, 0.0, 1.0), 0.0))
    more = None if gains.more is None else [rows / scale for rows in gains.more]
    return Normalised(reward, more, None if end is None else (end - least) / scale, units)


def _kernel_array(array: FloatArray) -> FloatArray:
    return np.require(array, requirements=["C", "W"])  # for read-only arrays kernels would be compiled again


def _largest(
    base: FloatArray, more: list[FloatArray] | None, end: FloatArray | None, long: Long, discount: float
) -> float:
    """The largest reward of a step with what its next state adds and, at the last stage, the terminal reward.

    -inf where nothing is added: the rewards r_h(s, a) themselves are looked at elsewhere.
    """
    most, last = -np.inf, len(base) - 1
    if more is None and end is None:
        return most
    for h, table in enumerate(long.stage_table.tolist()):
        if more is None and h < last:
            continue
        paid = base[h].reshape(-1)[long.pairs(table)] + (0.0 if more is None else more[h])
        if h == last and end is not None:
            paid = paid + discount * end[long.nexts(table)]
        most = max(most, float(paid.max()))
    return most
