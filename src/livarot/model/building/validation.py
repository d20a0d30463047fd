"""What a model may be built from: checks of user input, each with an error that says where and what to do."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Hashable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from livarot.core.tolerances import NORM_SLACK, SUM_SLACK
from livarot.errors import bad, require_finite
from livarot.model.building.long_arrays import Long
from livarot.model.ragged import Rows, build_rows

FeatureFunction = Callable[[int, int, int], tuple[Any, Any] | None]
OffsetFunction = Callable[[int, int, int], ArrayLike]


def collect_stages(
    shape: tuple[int, int, int], features: FeatureFunction, offset: OffsetFunction | None, allowed: BoolArray | None
) -> dict[str, NDArray[Any]]:
    """Long arrays from the user's functions, with one table for stages that are the same.

    The functions are asked about pairs that are ``allowed``, (S, A) or (H, S, A); None is all of them.
    """
    horizon = shape[0]
    tables: list[dict[str, NDArray[Any]]] = []
    stage_table = np.zeros(horizon, dtype=np.int32)
    for h in range(horizon):
        mask = np.broadcast_to(True if allowed is None else allowed[h] if allowed.ndim == 3 else allowed, shape[1:])
        table = collect_stage(h, mask, features, offset)
        same = [n for n, other in enumerate(tables) if all(np.array_equal(table[k], other[k]) for k in table)]
        stage_table[h] = same[0] if same else len(tables)
        if not same:
            tables.append(table)
    dims = {table["features"].shape[1] for table in tables if len(table["next_state"])}
    if not dims:
        raise bad("features", "no action exists at any stage", cure="give some state an action")
    for table in tables:
        if not len(table["next_state"]):
            table["features"] = np.zeros((0, max(dims)))
    if len(dims) > 1:
        raise bad("features", f"have different dimensions at different stages: {sorted(dims)}")
    return {k: np.concatenate([table[k] for table in tables]) for k in tables[0]} | {"stage_table": stage_table}


def collect_stage(
    h: int, mask: BoolArray, features: FeatureFunction, offset: OffsetFunction | None
) -> dict[str, NDArray[Any]]:
    """Call the user's functions for every (s, a) of a stage that the mask allows and check what comes back."""
    counts, nexts, phis, shifts = [], [], [], []
    empty: list[tuple[int, int, int]] = []
    infinite: list[tuple[int, int, int]] = []
    n_infinite = 0
    dim: int | None = None
    asked = mask.tolist()
    for s, a in product(range(mask.shape[0]), range(mask.shape[1])):
        answer = features(h, s, a) if asked[s][a] else None
        if answer is None:  # an action that does not exist
            counts.append(0)
            continue
        if not (isinstance(answer, Sequence) and len(answer) == 2):
            cure = "return None for an action that does not exist"
            raise bad("features", "features(h, s, a) must return (next_states, phi)", index=(h, s, a), cure=cure)
        states = whole_numbers("next_states", answer[0], (h, s, a))
        phi = _numbers("features", answer[1].toarray() if hasattr(answer[1], "toarray") else answer[1], (h, s, a))
        if len(states) == 0:
            empty.append((h, s, a))
            continue
        if phi.ndim == 1 and len(states) == 1:
            phi = phi[None, :]
        dim = phi.shape[-1] if dim is None else dim
        if phi.shape != (len(states), dim):
            problem = f"phi has shape {phi.shape}, expected {(len(states), dim)} at (h, s, a)"
            cure = "one row of d numbers per next state, the same d everywhere"
            raise bad("features", problem, index=(h, s, a), count=1, cure=cure)
        if not np.isfinite(phi).all():
            infinite.append((h, s, a))
            n_infinite += int((~np.isfinite(phi)).sum())
        shift = np.zeros(len(states)) if offset is None else _numbers("offset", offset(h, s, a), (h, s, a))
        if shift.shape != (len(states),):
            raise bad("offset", f"has shape {shift.shape}, expected {(len(states),)} at (h, s, a)", index=(h, s, a))
        counts.append(len(states))
        nexts.append(states)
        phis.append(phi)
        shifts.append(shift)
    if empty:
        cure = "give every (h, s, a) at least one next state (an absorbing state reaches itself)"
        raise bad("next_states", "empty reachable set at (h, s, a)", index=empty[0], count=len(empty), cure=cure)
    if infinite:
        cure = "replace NaN and infinite entries"
        raise bad("features", "not finite at (h, s, a)", index=infinite[0], count=n_infinite, cure=cure)
    return {
        "outcomes": np.asarray(counts, dtype=np.int64),
        "next_state": np.concatenate([np.zeros(0, dtype=np.int64), *nexts]),
        "features": np.concatenate(phis) if phis else np.zeros((0, 1)),
        "offset": np.concatenate([np.zeros(0), *shifts]),
    }


def whole_numbers(argument: str, values: Any, index: tuple[int, ...] | None = None) -> IntArray:
    """Integers (any shape, flattened); 1.0 is accepted, 0.7 and NaN are not."""
    try:
        numbers = np.asarray(values).reshape(-1)
    except (TypeError, ValueError) as error:
        raise bad(argument, f"are not numbers ({error})", index=index) from error
    if numbers.size == 0:
        return np.zeros(0, dtype=np.int64)
    if numbers.dtype.kind not in "iufb":
        raise bad(argument, f"are not integers but of dtype {numbers.dtype}", index=index)
    if numbers.dtype.kind == "i":
        return numbers.astype(np.int64)
    wrong = np.flatnonzero((np.abs(numbers.astype(np.float64)) >= 2.0**63) | (np.rint(numbers) != numbers))
    if len(wrong):
        where = index if index is not None else int(wrong[0])
        raise bad(argument, f"{numbers[wrong[0]]} is not an integer below 2^63", index=where, count=len(wrong))
    return numbers.astype(np.int64)


def feature_matrix(features: Any, n_rows: int) -> Any:
    """The features (rows, d): a dense array, or a scipy sparse one with every entry once."""
    if hasattr(features, "tocoo"):
        sparse = features.tocsr().copy()
        sparse.sum_duplicates()  # scipy adds up repeated entries
        if sparse.shape[0] != n_rows:
            raise bad("features", f"has {sparse.shape[0]} rows, expected {n_rows}")
        require_finite("features", np.asarray(sparse.data, dtype=np.float64))
        return sparse
    dense = require_finite("features", features)
    if dense.ndim != 2 or len(dense) != n_rows or dense.shape[1] < 1:
        raise bad("features", f"has shape {dense.shape}, expected ({n_rows}, d) with d >= 1")
    return dense


def check_outcomes(outcomes: ArrayLike, n_pairs: int) -> IntArray:
    """How many next states each pair has, for one or more tables of pairs."""
    counts = whole_numbers("outcomes", outcomes)
    if (counts < 0).any():
        first = int(np.flatnonzero(counts < 0)[0])
        raise bad("outcomes", "is negative", index=first, count=int((counts < 0).sum()))
    if len(counts) == 0 or len(counts) % n_pairs:
        raise bad("outcomes", f"has {len(counts)} entries, expected a multiple of {n_pairs}")
    return counts


def check_long(
    counts: IntArray, next_state: ArrayLike, features: Any, offset: ArrayLike | None, stage_table: Int32Array
) -> Long:
    """The long arrays of a model, of lengths that fit; counts (tables, S, A)."""
    nexts = whole_numbers("next_state", next_state)
    if counts.max() > len(nexts) or counts.sum() != len(nexts):  # the maximum first: the sum might exceed 2^63
        raise bad("next_state", f"has {len(nexts)} entries, outcomes add up to {sum(counts.reshape(-1).tolist())}")
    matrix = feature_matrix(features, len(nexts))
    shift = None if offset is None else require_finite("offset", offset)
    if shift is not None and shift.shape != nexts.shape:
        raise bad("offset", f"has shape {shift.shape}, expected {nexts.shape}")
    return Long(counts, nexts, matrix, shift, stage_table)


def check_rows(long: Long, normalise: bool) -> tuple[Rows, float]:
    """The rows of a model, and what its features were divided by."""
    matrix, (_, n_states, n_actions) = long.features, long.counts.shape
    dim = int(matrix.shape[1])
    if hasattr(matrix, "tocoo"):
        entries = matrix.tocoo()
        matrix = (entries.coords[0], entries.coords[1], np.asarray(entries.data, dtype=np.float64))
    counts = long.counts.reshape(-1)
    rows = build_rows(n_states, n_actions, dim, counts, long.next_state, matrix, long.offset)
    norms = rows.norms()
    over = np.flatnonzero(norms > 1.0 + NORM_SLACK)
    if len(over) and not normalise:
        raise bad(
            "features",
            f"norm {norms[over[0]]:.6g} > 1 at (table, state, action, outcome)",
            index=row_index(rows, int(over[0])),
            count=len(over),
            cure="pass normalise=True (theta is rescaled to match) or divide the features yourself",
        )
    scale = float(norms.max(initial=0.0)) if normalise else 0.0
    return (rows, 1.0) if scale in (0.0, 1.0) else (rows.scaled(1.0 / scale), scale)


def check_stage_table(stage_table: ArrayLike | None, n_tables: int, horizon: int) -> Int32Array:
    if stage_table is None:
        if n_tables not in (1, horizon):
            raise bad("stage_table", f"{n_tables} tables for {horizon} stages", cure="say which table a stage uses")
        return np.arange(horizon, dtype=np.int32) if n_tables == horizon else np.zeros(horizon, dtype=np.int32)
    table = whole_numbers("stage_table", stage_table)
    if table.shape != (horizon,) or (table < 0).any() or (table >= n_tables).any():
        raise bad("stage_table", f"must be ({horizon},) with entries in 0..{n_tables - 1}")
    return table.astype(np.int32)


def check_theta(theta: ArrayLike, param_bound: float | None) -> tuple[FloatArray, float, bool]:
    vector = require_finite("theta", theta)
    if vector.ndim not in (1, 2) or vector.size == 0:
        raise bad("theta", f"has shape {vector.shape}, expected (d,) or (H, d)")
    shared = vector.ndim == 1
    vector = np.atleast_2d(vector)
    with np.errstate(over="ignore"):  # an infinite bound is refused where it is used
        bound = float(np.linalg.norm(vector, axis=1).max()) if param_bound is None else param_bound
    return vector, bound, shared


def check_parameters(theta: FloatArray, shape: tuple[int, int], bound: float) -> None:
    """Refuse parameters (K, d) of another shape, or longer than B."""
    if theta.shape != shape:
        cure = "give (d,) for one parameter shared by all stages, (H, d) for one per stage"
        raise bad("theta", f"has shape {theta.shape}, expected {shape}", cure=cure)
    norms = np.linalg.norm(theta, axis=1)
    over = np.flatnonzero(norms > bound * (1.0 + NORM_SLACK))
    if len(over):
        raise bad(
            "theta",
            f"|theta| = {norms[over[0]]:.6g} exceeds param_bound = {bound:.6g} at stage",
            index=int(over[0]),
            count=len(over),
            cure="raise param_bound, or leave it None to take the largest |theta|",
        )


def _numbers(argument: str, answer: Any, index: tuple[int, int, int]) -> FloatArray:
    """What a user's function of (h, s, a) gave, as float64; a masked entry becomes NaN: it holds no data."""
    try:
        if isinstance(answer, np.ma.MaskedArray):
            answer = np.ma.filled(answer.astype(np.float64), np.nan)
        return np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise bad(argument, f"are not numbers at (h, s, a) ({error})", index=index) from error


def check_start(start: Any, n_states: int, states: Any = None) -> FloatArray:
    """The distribution of the first state, from a state's number, its name (if that is not a number) or weights."""
    cure = f"give a state 0..{n_states - 1} or a distribution"
    if states is not None and isinstance(start, Hashable) and not isinstance(start, numbers.Number) and start in states:
        start = states.index(start)
    try:
        array = np.asarray(start)
    except ValueError as error:  # a ragged list
        raise bad("start", f"is not a state ({error})", cure=cure) from error
    if array.dtype.kind not in "iuf" or np.ma.is_masked(start):
        raise bad("start", f"{start!r} is not a state", cure=cure)
    if array.ndim == 0:
        if not np.issubdtype(array.dtype, np.integer) or not 0 <= int(array) < n_states:
            raise bad("start", f"{start!r} is not a state", cure=cure)
        return np.asarray(np.eye(1, n_states, int(array))[0])
    weights = array.astype(np.float64)
    if weights.shape != (n_states,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise bad("start", "is not a distribution over states", cure=f"give ({n_states},) numbers >= 0 that sum to 1")
    if abs(weights.sum() - 1.0) > SUM_SLACK:
        raise bad("start", f"sums to {weights.sum():.9g}, not 1", cure="divide it by its sum")
    return np.asarray(weights / weights.sum())


def row_index(rows: Rows, row: int) -> tuple[int, int, int, int]:
    pair = int(np.searchsorted(rows.row_start, row, side="right")) - 1
    table, rest = divmod(pair, rows.n_states * rows.n_actions)
    return table, rest // rows.n_actions, rest % rows.n_actions, int(row - rows.row_start[pair])
