"""What follows a step: the numbers that all backward inductions take expectations of.

At stage h the row of next state s' is worth  v = next_reward[row] + discount V_{h+1}(s').  Rows with the same s' and
the same next_reward are of one *kind*, and v is computed once per stage for each kind (:func:`worth`).  Planners read
the kind of a row where they would read its next state.  Without discount and without rewards of the next state kinds
are states, and v is V_{h+1} itself: nothing is computed or copied.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from livarot.core.arrays import FloatArray, Int32Array
from livarot.core.compiling.inner import inner
from livarot.model.derived import derived
from livarot.model.problem import Problem


class After(NamedTuple):
    """The kinds of outcomes of a problem."""

    state: Any  # (kinds,) the next state; empty where v is V
    gain: Any  # (kinds,) what it adds to the reward
    end: Any  # (S,) V_H
    discount: float
    span: float  # largest minus smallest gain
    idle: int  # is everything after the last step worth 0?


class _Kinds(NamedTuple):
    after: After
    of_row: Int32Array  # (rows,)


@derived
def _kinds(problem: Problem) -> _Kinds:
    """The kinds of all rows of the problem."""
    rows, more, end = problem.rows, problem.next_reward, last_values(problem)
    of_row, state, gain = rows.next_state, np.zeros(0, dtype=np.int32), np.zeros(0)
    if more is not None:
        of_row, state, gain = number_kinds(rows.next_state, more)
    elif problem.discount != 1.0:
        state, gain = np.arange(problem.n_states, dtype=np.int32), np.zeros(problem.n_states)
    span = float(np.ptp(gain)) if len(gain) else 0.0
    idle = more is None and not (problem.discount * end).any()
    return _Kinds(After(state, gain, end, float(problem.discount), span, int(idle)), of_row)


def number_kinds(next_state: Int32Array, more: FloatArray) -> tuple[Int32Array, Int32Array, FloatArray]:
    """The kind of each row, and the next state and the reward of each kind."""
    order = np.lexsort((more, next_state))
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (np.diff(next_state[order]) != 0) | (np.diff(more[order]) != 0.0)
    kind = np.empty(len(order), dtype=np.int32)
    kind[order] = np.cumsum(new) - 1
    first = order[new]
    return kind, next_state[first].astype(np.int32), np.ascontiguousarray(more[first])


def after(problem: Problem) -> After:
    """The :class:`After` of a problem."""
    return _kinds(problem).after


def outcome_kinds(problem: Problem) -> Int32Array:
    """The kind of each row, in place of its next state."""
    return _kinds(problem).of_row


def last_values(problem: Problem) -> FloatArray:
    """V_H, (S,)."""
    return np.zeros(problem.n_states) if problem.terminal_reward is None else problem.terminal_reward


@derived
def gains(problem: Problem) -> FloatArray:
    """r_h(s, a) with -inf for pairs that do not exist: no maximum over actions chooses them."""
    if problem.all_exist:
        return np.ascontiguousarray(problem.reward)
    return np.where(problem.exists, problem.reward, -np.inf)


@derived
def first_actions(problem: Problem) -> Int32Array:
    """The first action that exists in each state, (H, S): what a policy says where nothing was planned."""
    return np.ascontiguousarray(problem.exists.argmax(axis=2).astype(np.int32))


def blank_values(problem: Problem, n_replicas: int) -> FloatArray:
    """Values (R, H + 1, S) to be filled: 0, and V_H after the last stage."""
    return last_filled(problem, np.zeros((n_replicas, problem.horizon + 1, problem.n_states)))


def last_filled(problem: Problem, value: FloatArray) -> FloatArray:
    """The same values (.., H + 1, S), with V_H after the last stage."""
    if problem.terminal_reward is not None:
        value[..., -1, :] = problem.terminal_reward
    return value


def blank_policy(problem: Problem, n_replicas: int) -> Int32Array:
    """Policies (R, H, S) to be filled: the first action that exists."""
    if problem.all_exist:
        return np.zeros((n_replicas, problem.horizon, problem.n_states), np.int32)
    first = first_actions(problem)
    return np.array(np.broadcast_to(first, (n_replicas, *first.shape)), dtype=np.int32, order="C")


def worths(problem: Problem, value: FloatArray) -> FloatArray:
    """What the kinds of outcomes of all stages are worth, (H, kinds), from V (H + 1, S)."""
    follow = after(problem)
    if len(follow.state) == 0:
        return np.ascontiguousarray(value[1:])
    return np.ascontiguousarray(follow.discount * value[1:, follow.state] + follow.gain)


@inner
def worth(after, value, room):
    """v of every kind of outcome, given V_{h+1}: in ``room``, or V_{h+1} itself where kinds are states."""
    if len(after.state) == 0:
        return value
    for k in range(len(after.state)):
        room[k] = after.discount * value[after.state[k]] + after.gain[k]
    return room
