"""From what a user gives, functions of (h, s, a) or long arrays, to a problem: its constructors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import IntArray
from livarot.core.sizes import require_memory
from livarot.errors import bad, require_finite
from livarot.model.labels import check_labels
from livarot.model.ragged import Rows, build_rows
from livarot.model.validation import (
    NORM_SLACK,
    FeatureFunction,
    RewardLike,
    check_reward,
    check_stage_table,
    check_start,
    collect_stage,
    feature_matrix,
    row_index,
    whole_numbers,
)

if TYPE_CHECKING:
    from livarot.model.problem import Problem


@checked
def from_function(
    cls: type[Problem],
    horizon: int,
    n_states: int,
    n_actions: int,
    *,
    features: FeatureFunction,
    reward: RewardLike,
    start: int | ArrayLike = 0,
    param_bound: float,
    shared_parameter: bool = False,
    normalise: bool = False,
    offset: Callable[[int, int, int], ArrayLike] | None = None,
    states: Iterable[Hashable] | None = None,
    actions: Iterable[Hashable] | None = None,
) -> Problem:
    """Build from ``features(h, s, a) -> (next_states, phi)``; see :meth:`livarot.MNLMDP.from_function`."""
    return cls.from_arrays(
        horizon,
        n_states,
        n_actions,
        **_called(horizon, n_states, n_actions, features, offset),
        reward=reward,
        start=start,
        param_bound=param_bound,
        shared_parameter=shared_parameter,
        normalise=normalise,
        states=states,
        actions=actions,
    )


@checked
def from_arrays(
    cls: type[Problem],
    horizon: int,
    n_states: int,
    n_actions: int,
    *,
    outcomes: ArrayLike,
    next_state: ArrayLike,
    features: Any,
    reward: RewardLike,
    param_bound: float,
    start: int | ArrayLike = 0,
    stage_table: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    shared_parameter: bool = False,
    normalise: bool = False,
    states: Iterable[Hashable] | None = None,
    actions: Iterable[Hashable] | None = None,
) -> Problem:
    """Build from long arrays; see :meth:`livarot.MNLMDP.from_arrays`."""
    require_memory("horizon", "the rewards (H, S, A)", horizon * n_states * n_actions)
    counts = _counted(outcomes, n_states * n_actions)
    table = check_stage_table(stage_table, len(counts) // (n_states * n_actions), horizon)
    rows, scale = _rows(n_states, n_actions, counts, next_state, features, offset, normalise=normalise)
    return cls(
        horizon=horizon,
        rows=rows,
        stage_table=table,
        reward=check_reward(reward, horizon, n_states, n_actions),
        start=check_start(start, n_states),
        param_bound=param_bound * scale,
        shared_parameter=shared_parameter,
        feature_scale=scale,
        states=check_labels("states", states, n_states),
        actions=check_labels("actions", actions, n_actions),
    )


def _called(
    horizon: int,
    n_states: int,
    n_actions: int,
    features: FeatureFunction,
    offset: Callable[[int, int, int], ArrayLike] | None,
) -> dict[str, NDArray[Any]]:
    """The answers of the user's functions as arguments of ``from_arrays``; equal stages share a table."""
    pairs = n_states * n_actions
    # what Python keeps of one answer, and the rewards
    require_memory("n_states", "the answers of features for every (s, a)", 50 * pairs + horizon * (pairs + 1))
    tables: list[dict[str, NDArray[Any]]] = []
    stage_table = np.zeros(horizon, dtype=np.int32)
    for h in range(horizon):
        table = collect_stage(h, n_states, n_actions, features, offset)
        for known, other in enumerate(tables):
            if all(np.array_equal(table[k], other[k]) for k in table):
                stage_table[h] = known
                break
        else:
            stage_table[h] = len(tables)
            tables.append(table)
    dims = {int(table["dim"]) for table in tables}
    if len(dims) > 1:
        raise bad("features", f"have different dimensions at different stages: {sorted(dims)}")
    columns = {"outcomes": "outcomes", "next_state": "next_state", "features": "phi", "offset": "offset"}
    joined = {name: np.concatenate([t[k] for t in tables]) for name, k in columns.items()}
    return joined | {"stage_table": stage_table}


def _counted(outcomes: ArrayLike, per_table: int) -> IntArray:
    counts = whole_numbers("outcomes", outcomes)
    if (counts < 0).any():
        first = int(np.flatnonzero(counts < 0)[0])
        raise bad("outcomes", "is negative", index=first, count=int((counts < 0).sum()))
    if len(counts) % per_table or len(counts) == 0:
        raise bad("outcomes", f"has {len(counts)} entries, expected a multiple of {per_table}")
    return counts


def _rows(
    n_states: int,
    n_actions: int,
    counts: IntArray,
    next_state: ArrayLike,
    features: Any,
    offset: ArrayLike | None,
    *,
    normalise: bool,
) -> tuple[Rows, float]:
    """The rows of long arrays, and what the features were divided by."""
    nexts = whole_numbers("next_state", next_state)
    if counts.max() > len(nexts) or counts.sum() != len(nexts):  # in this order: a sum may pass 2^63
        raise bad("next_state", f"has {len(nexts)} entries, outcomes add up to {sum(counts.tolist())}")
    matrix, dim = feature_matrix(features, len(nexts))
    shift = None if offset is None else require_finite("offset", offset)
    if shift is not None and shift.shape != nexts.shape:
        raise bad("offset", f"has shape {shift.shape}, expected {nexts.shape}")
    rows = build_rows(n_states, n_actions, dim, counts, nexts, matrix, shift)
    norms = rows.norms()
    largest = float(norms.max(initial=0.0))
    if largest > 1.0 + NORM_SLACK and not normalise:
        over = np.flatnonzero(norms > 1.0 + NORM_SLACK)
        raise bad(
            "features",
            f"norm {norms[over[0]]:.6g} > 1 at (table, state, action, outcome)",
            index=row_index(rows, int(over[0])),
            count=len(over),
            cure="pass normalise=True (theta is rescaled to match) or divide the features yourself",
        )
    scale = largest if normalise and largest > 0 else 1.0
    return rows if scale == 1.0 else rows.scaled(1.0 / scale), scale
