"""What an agent gives (a :class:`Plan`) and what it gets back (:class:`Episodes`), for R replicas at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.core.problem import Problem
from livarot.core.ragged import FloatArray, Int32Array
from livarot.errors import bad

_FLOAT = np.dtype(np.float64)


class Estimate(NamedTuple):
    """theta with its Gram matrix, per replica and parameter; ``whiten`` is W with W'W = gram^-1.

    W is recomputed from ``gram`` whenever a block changes, so it cannot drift away from it.
    """

    theta: FloatArray  # (R, K, d)
    gram: FloatArray  # (R, K, G) packed
    whiten: FloatArray  # (R, K, G) packed, lower triangular blocks


class Plan(NamedTuple):
    """One policy per replica, fixed before the episode, with what the agent believes about it.

    ``policy`` is int (R, H, S), or float (R, H, S, A) when actions are drawn at random; a leading axis of 1 is one
    policy for all replicas.  States that the start cannot reach keep action 0.  The rest is for the judge and is
    None where an agent has no such thing: ``value`` (R, H+1, S) and ``start_value`` (R,) what the plan believes,
    ``upper`` (R,) a certified upper bound of the start value over the confidence sets, ``inner_gap`` (R,) the
    largest stationarity gap of the inner maxima relative to the stage's value range, and the confidence sets
    ``{theta : |theta - center|_gram <= radius}`` per parameter.
    """

    policy: NDArray[np.int32] | FloatArray
    value: FloatArray | None = None  # (R, H + 1, S)
    start_value: FloatArray | None = None  # (R,)
    upper: FloatArray | None = None  # (R,)
    inner_gap: FloatArray | None = None  # (R,)
    center: FloatArray | None = None  # (R, K, d)
    gram: FloatArray | None = None  # (R, K, G) packed
    radius: FloatArray | None = None  # (R,)


class Episodes(NamedTuple):
    """One episode per replica: ``choices`` says which of its reachable next states each transition took."""

    states: Int32Array  # (R, H + 1)
    actions: Int32Array  # (R, H)
    choices: Int32Array  # (R, H)

    @classmethod
    def from_states(cls, problem: Problem, states: NDArray[np.integer], actions: NDArray[np.integer]) -> Episodes:
        """Episodes observed elsewhere, from their states (R, H+1) and actions (R, H)."""
        horizon = problem.horizon
        states, actions = np.atleast_2d(np.asarray(states)), np.atleast_2d(np.asarray(actions))
        if states.shape[1] != horizon + 1 or actions.shape != (len(states), horizon):
            raise bad(
                "states",
                f"states {states.shape} and actions {actions.shape} do not fit horizon {horizon}",
                cure=f"give states (R, {horizon + 1}) and actions (R, {horizon})",
            )
        for argument, numbers, size in (("states", states, problem.n_states), ("actions", actions, problem.n_actions)):
            wrong = np.argwhere((numbers < 0) | (numbers >= size))
            if len(wrong):
                first = tuple(int(i) for i in wrong[0])
                cure = f"they are numbered 0..{size - 1}"
                raise bad(argument, f"{numbers[first]} is out of range", index=first, count=len(wrong), cure=cure)
        choices = np.zeros(actions.shape, dtype=np.int32)
        for r, h in np.ndindex(*actions.shape):
            found = np.flatnonzero(problem.next_states(h, int(states[r, h]), int(actions[r, h])) == states[r, h + 1])
            if len(found) == 0:
                raise bad(
                    "states",
                    f"state {states[r, h + 1]} cannot follow (state, action) {(states[r, h], actions[r, h])}",
                    index=(int(r), int(h) + 1),
                    cure="check the reachable sets of the problem against the data",
                )
            choices[r, h] = found[0]
        return cls(states.astype(np.int32), actions.astype(np.int32), choices)


def check_estimate(problem: Problem, estimate: Estimate) -> None:
    """Refuse an estimate that was made for another problem: kernels index its arrays without looking.

    Shapes and types only, since a plan asks every time: theta (R, K, d), gram and whiten (R, K, G), float64.
    """
    try:
        theta, gram, whiten = estimate
        replicas = len(theta)
        if (
            theta.shape[1:] == problem.theta_shape
            and gram.shape == whiten.shape == (replicas, *problem.gram_shape)
            and theta.dtype == gram.dtype == whiten.dtype == _FLOAT
        ):
            return
    except (TypeError, ValueError, AttributeError) as error:
        cure = "pass the Estimate in an agent's state"
        raise bad("estimate", f"is not an Estimate but {type(estimate).__name__}", cure=cure) from error
    for name, array in zip(Estimate._fields, estimate, strict=True):
        expected = (replicas, *(problem.theta_shape if name == "theta" else problem.gram_shape))
        if array.shape != expected or array.dtype != _FLOAT:
            found = f"{name} has shape {array.shape} and dtype {array.dtype}, this problem needs {expected} of float64"
            raise bad("estimate", found, cure="pass an estimate that was made for this problem")


def check_policy(problem: Problem, policy: NDArray[Any]) -> NDArray[Any]:
    """A policy as int32 (H, S) or float64 (H, S, A), or an error that says what is wrong with it."""
    table = np.asarray(policy)
    shape = (problem.horizon, problem.n_states)
    if np.issubdtype(table.dtype, np.integer) and table.shape == shape:
        wrong = np.argwhere((table < 0) | (table >= problem.n_actions))
        if len(wrong):
            first = tuple(int(i) for i in wrong[0])
            cure = f"actions are numbered 0..{problem.n_actions - 1}"
            raise bad("policy", f"no action {table[first]} at (h, s)", index=first, count=len(wrong), cure=cure)
        return np.ascontiguousarray(table, dtype=np.int32)
    if np.issubdtype(table.dtype, np.floating) and table.shape == (*shape, problem.n_actions):
        wrong = np.argwhere(~((np.abs(table.sum(axis=-1) - 1.0) < 1e-9) & (table >= 0).all(axis=-1)))
        if len(wrong):
            first = tuple(int(i) for i in wrong[0])
            raise bad("policy", "is no distribution over actions at (h, s)", index=first, count=len(wrong))
        return np.ascontiguousarray(table, dtype=np.float64)
    raise bad(
        "policy",
        f"has shape {table.shape} and dtype {table.dtype}",
        cure=f"give integers {shape} or probabilities {(*shape, problem.n_actions)}",
    )
