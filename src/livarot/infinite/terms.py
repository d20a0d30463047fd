"""What a user says about a stationary model besides its transitions: rewards or costs, available actions, terminals.

    rewards     a number; r(s); r(s, a) as an array, a function of (s, a) or a table {(s, a): r}; r(s, a, s') as a
                function of (s, a, s'), an array (S, A, S), sparse matrices, a table, or one number per row of the model
    costs       the same with the other sign: what is minimised
    available   a mask (S, A); a list of actions for each state; a table {state: actions}; a function of (s, a)
    terminal    states where everything ends, as a list or a mask, or a table {state: reward at the end}

Tables and lists use the names of states and actions if they have names, their numbers otherwise; functions are called
with numbers, and only where the action exists.  r(s, a, s') is kept per next state and not averaged: an uncertain
transition has an uncertain reward, so robust and optimistic planners optimise E[r(s, a, s') + gamma V(s')].

Planners compute with rewards divided by ``unit``, a power of two near the largest |r|: this is exact, and their
tolerances then mean the same for pennies and for billions.  ``unit`` is 1 for rewards within [0, 1], unless all of them
are tiny.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import required_arguments
from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.errors import bad, require_finite, require_number, shown
from livarot.model.labels import Labels
from livarot.model.ragged import Rows
from livarot.model.terms.existing import check_available, check_terminal, number_named, refuse_others
from livarot.model.terms.rewards import finite_answers

LARGEST = 1e150
TINY = 1e-3  # rewards in [0, 1] whose largest is below this are scaled too

PayLike = ArrayLike | Callable[..., float] | Mapping[Any, Any]


class Given(TypedDict, total=False):
    """The keywords that all constructors of stationary models share; see the module's docstring."""

    reward: Any
    cost: Any
    available: Any
    terminal: Any
    discount: float | None
    start: Any
    states: Iterable[Hashable] | None
    actions: Iterable[Hashable] | None


@dataclass(frozen=True, eq=False)
class Terms:
    """Rewards in the user's units, the states where everything ends, and the discount."""

    reward: FloatArray  # (S, A), 0 where there is no action
    outcome_reward: FloatArray | None  # (rows,) what the next state adds, r(s, a, s')
    terminal: BoolArray  # (S,)
    terminal_reward: FloatArray  # (S,)
    discount: float | None
    costs: bool  # costs were given: rewards are their negatives
    unit: float  # a power of two; see the module's docstring


def plain_terms(reward: FloatArray) -> Terms:
    """Rewards (S, A) in [0, 1], every action everywhere, no end, no discount."""
    n = len(reward)
    return Terms(reward, None, np.zeros(n, dtype=np.bool_), np.zeros(n), None, False, 1.0)


def stored_discount(argument: str, discount: Any) -> float | None:
    """A discount in [0, 1], or None; 1 is the average reward."""
    if discount is None:
        return None
    number = require_number(argument, discount)
    if not 0.0 <= number <= 1.0:
        raise bad(argument, f"{number:.6g} is outside [0, 1]", cure="give a number in [0, 1); 1 is the average reward")
    return number


def below_one(argument: str, discount: Any) -> float | None:
    """A discount in [0, 1), or None for the model's own."""
    number = stored_discount(argument, discount)
    if number == 1.0:
        raise bad(argument, "1 has no discounted value", cure="use solve_average, or a discount below 1")
    return number


@dataclass(frozen=True)
class Names:
    """How many states and actions there are, and what they are called."""

    n_states: int
    n_actions: int
    states: Labels | None
    actions: Labels | None

    def state(self, label: Any, argument: str) -> int:
        return number_named(argument, label, self.states, self.n_states)

    def action(self, label: Any, argument: str) -> int:
        return number_named(argument, label, self.actions, self.n_actions)

    def pair_names(self, pair: int) -> str:
        """(s, a) as a user writes it."""
        s, a = divmod(pair, self.n_actions)
        return f"({self.states[s] if self.states else s!r}, {self.actions[a] if self.actions else a!r})"


def read_terminal(given: Any, names: Names, sign: float) -> tuple[BoolArray, FloatArray]:
    """Where everything ends, (S,), and what is paid there."""
    ends, pay = np.zeros(names.n_states, dtype=np.bool_), np.zeros(names.n_states)
    if given is None:
        return ends, pay
    if isinstance(given, Mapping):
        for label, reward in given.items():
            s = names.state(label, "terminal")
            ends[s], pay[s] = True, sign * require_number("terminal", reward)
        return ends, pay
    found = check_terminal(given, names.states, names.n_states)
    return (ends if found is None else found), pay


def read_available(given: Any, names: Names) -> BoolArray:
    """Which actions exist, (S, A)."""
    shape = names.n_states, names.n_actions
    if given is None:
        return np.ones(shape, dtype=np.bool_)
    if callable(given):
        return np.array([[bool(given(s, a)) for a in range(shape[1])] for s in range(shape[0])])
    found = check_available(given, (1, *shape), names.states, names.actions)
    return np.array(found if found is not None and found.ndim == 2 else found[0])  # type: ignore[index]


def require_actions(outcomes: IntArray, terminal: BoolArray, names: Names) -> None:
    """Refuse a state that has no action and is not terminal."""
    stuck = np.flatnonzero(~(outcomes.reshape(names.n_states, -1) > 0).any(axis=1) & ~terminal)
    if len(stuck):
        s = int(stuck[0])
        name = repr(names.states[s]) if names.states else str(s)
        cure = "give it an action with next states, or list it in terminal="
        raise bad("available", f"state {name} has no action and is not terminal", index=s, count=len(stuck), cure=cure)


class Pairs:
    """Which pairs rewards are read for: those with rows, except in terminal states."""

    def __init__(self, rows: Rows, terminal: BoolArray, names: Names) -> None:
        self.rows, self.names = rows, names
        self.shape = names.n_states, names.n_actions
        self.exists = (rows.outcomes > 0) & ~np.repeat(terminal, names.n_actions)  # (S A,)
        self.owner = np.repeat(np.arange(rows.n_pairs), rows.outcomes)  # (rows,)
        self.kept = self.exists[self.owner]  # (rows,)

    def spread(self, numbers: Any) -> FloatArray:
        """The numbers of the rows that are read as an array over all rows, 0 elsewhere."""
        full = np.zeros(self.rows.n_rows)
        full[self.kept] = numbers
        return full


def read_pay(reward: Any, cost: Any, pairs: Pairs) -> tuple[FloatArray, FloatArray | None, bool]:
    """Rewards (S, A), those of the rows or None, and whether costs were given."""
    if (reward is None) == (cost is None):
        message = "reward and cost are both missing" if reward is None else "reward and cost are both given"
        raise bad("reward", message, cure="give exactly one: reward= to be maximised, cost= to be minimised")
    argument = "reward" if cost is None else "cost"
    pair, row = _pay(argument, reward if cost is None else cost, pairs)
    sign = 1.0 if cost is None else -1.0
    return np.ascontiguousarray(sign * pair) + 0.0, None if row is None else sign * row + 0.0, cost is not None


def _pay(argument: str, given: Any, pairs: Pairs) -> tuple[FloatArray, FloatArray | None]:
    nothing = np.zeros(pairs.shape)
    if isinstance(given, Mapping):
        return _pay_of_table(argument, given, pairs)
    if callable(given):
        return _pay_of_function(argument, given, pairs)
    several = isinstance(given, Sequence) and len(given) > 0 and all(hasattr(one, "tocsr") for one in given)
    if several or hasattr(given, "tocsr"):
        return nothing, _pay_of_matrices(argument, given, pairs)
    try:
        numbers = np.ma.filled(np.ma.asarray(given).astype(np.float64), np.nan)
    except (TypeError, ValueError) as error:
        raise bad(argument, f"is not an array of numbers ({error})") from error
    if numbers.shape in ((), pairs.shape[:1]):
        require_finite(argument, numbers)
        full = np.broadcast_to(numbers[..., None] if numbers.ndim else numbers, pairs.shape)
        return np.where(pairs.exists.reshape(pairs.shape), full, 0.0), None
    if numbers.shape == pairs.shape:
        return _pay_of_pairs(argument, numbers, pairs), None
    count = int(pairs.kept.sum())
    if numbers.shape == (count,):
        return nothing, pairs.spread(require_finite(argument, numbers))
    if numbers.shape == (*pairs.shape, pairs.shape[0]):
        own = numbers.reshape(-1, pairs.shape[0])[pairs.owner[pairs.kept], pairs.rows.next_state[pairs.kept]]
        return nothing, pairs.spread(require_finite(argument, own))
    cure = f"give {pairs.shape}, {(*pairs.shape, pairs.shape[0])}, one number for each of {count} rows, or a function"
    raise bad(argument, f"has shape {numbers.shape}", cure=cure)


def _pay_of_function(argument: str, given: Callable[..., Any], pairs: Pairs) -> tuple[FloatArray, FloatArray | None]:
    n_actions, pay = pairs.shape[1], np.zeros(pairs.shape)
    if required_arguments(given) >= 3:
        calls = zip(pairs.owner[pairs.kept].tolist(), pairs.rows.next_state[pairs.kept].tolist(), strict=True)
        return pay, pairs.spread(_answers(argument, [given(*divmod(p, n_actions), to) for p, to in calls]))
    exists = pairs.exists.reshape(pairs.shape)
    places = np.argwhere(exists)
    pay[exists] = finite_answers(argument, [given(*place) for place in places.tolist()], places)
    return pay, None


def _answers(argument: str, answers: list[Any]) -> FloatArray:
    numbers = require_finite(argument, answers) if answers else np.zeros(0)
    if numbers.shape != (len(answers),):
        raise bad(argument, f"answers have shape {numbers.shape[1:]}", cure="return one number")
    return numbers


def _pay_of_pairs(argument: str, numbers: FloatArray, pairs: Pairs) -> FloatArray:
    """r(s, a) as an array: where there is no action it must be 0, missing (NaN) or infinite."""
    exists = pairs.exists.reshape(pairs.shape)
    refuse_others(argument, numbers, exists)
    return require_finite(argument, np.where(exists, numbers, 0.0))


def _pay_of_matrices(argument: str, given: Any, pairs: Pairs) -> FloatArray:
    """r(s, a, s') from one sparse matrix (S A, S), or from one (S, S) for each action."""
    from livarot.infinite.build import stacked

    table, (n, n_actions) = stacked(argument, given), pairs.shape
    if table.shape != (n * n_actions, n):
        raise bad(argument, f"has shape {table.shape}", cure=f"give ({n * n_actions}, {n}), or (S, S) for each action")
    own = table[pairs.owner[pairs.kept], pairs.rows.next_state[pairs.kept]]
    return pairs.spread(require_finite(argument, np.asarray(own).reshape(-1)))


def _pay_of_table(argument: str, table: Mapping[Any, Any], pairs: Pairs) -> tuple[FloatArray, FloatArray | None]:
    """A table {s: r}, {(s, a): r} or {(s, a, s'): r}; all that exists must be listed, and nothing else.

    A number for a next state replaces that of its pair, and a number for a pair that of its state.
    """
    rows, names, n_actions = pairs.rows, pairs.names, pairs.shape[1]
    state, pair, row = (np.full(n, np.nan) for n in (names.n_states, rows.n_pairs, rows.n_rows))
    for key, pay in table.items():
        number = require_number(argument, pay)
        parts = key if isinstance(key, tuple) and not (names.states is not None and key in names.states) else (key,)
        if len(parts) not in (1, 2, 3):
            raise bad(argument, f"{shown(key)} is not a state, (state, action) or (state, action, next state)")
        s = names.state(parts[0], argument)
        if len(parts) == 1:
            state[s] = number
            continue
        p = s * n_actions + names.action(parts[1], argument)
        if not pairs.exists[p]:
            cure = "make the action available, or leave the reward out"
            raise bad(argument, f"{names.pair_names(p)} does not exist", index=divmod(p, n_actions), count=1, cure=cure)
        if len(parts) == 2:
            pair[p] = number
            continue
        to, first = names.state(parts[2], argument), int(rows.row_start[p])
        at = np.flatnonzero(rows.next_state[first : int(rows.row_start[p + 1])] == to)
        if len(at) == 0:
            raise bad(argument, f"{shown(key)}: that state cannot follow", index=(*divmod(p, n_actions), to), count=1)
        row[first + int(at[0])] = number
    pair = np.where(np.isnan(pair), np.repeat(state, n_actions), pair)
    missing = np.flatnonzero(np.isnan(pair)[pairs.owner] & np.isnan(row) & pairs.kept)
    if len(missing):
        unpaid = np.unique(pairs.owner[missing])
        few = ", ".join(names.pair_names(int(p)) for p in unpaid[:3])
        index = divmod(int(unpaid[0]), n_actions)
        raise bad(argument, f"is missing for {few}", index=index, count=len(unpaid), cure="give one for every pair")
    pair = np.where(pairs.exists, np.nan_to_num(pair), 0.0)
    if np.isnan(row).all():
        return pair.reshape(pairs.shape), None
    return np.zeros(pairs.shape), np.where(np.isnan(row), pair[pairs.owner], row)


def unit_of(reward: FloatArray, outcome_reward: FloatArray | None, terminal_reward: FloatArray) -> float:
    """The power of two that rewards are divided by in all planners."""
    parts = [reward, terminal_reward] + ([] if outcome_reward is None else [outcome_reward])
    top = max(float(np.abs(part).max(initial=0.0)) for part in parts)
    low = min(float(part.min(initial=0.0)) for part in parts)
    if top > LARGEST:
        raise bad("reward", f"{top:.3g} is too large: its sums overflow", cure=f"keep rewards below {LARGEST:.0e}")
    if top == 0.0 or (low >= 0.0 and TINY <= top <= 1.0):
        return 1.0
    return math.ldexp(1.0, max(math.frexp(top)[1], -1000))
