"""From a table of probabilities and rewards to an MNL MDP, and values back to the units of its rewards.

``P[s, a, s']`` (one for all stages, or one per stage) gives the reachable sets, and a feature map
(:mod:`livarot.envs.features`) the features; theta is what makes the model equal to P, by formula (one-hot) or by
least squares on the log-probabilities, centred in each pair:

    (phi_i - mean phi) . theta = z_i - mean z,     z_i = log p_i - offset_i     for all outcomes i of all (s, a).

A map that cannot represent P is refused, unless theta is given: then P is only the nominal kernel.

Rewards outside [0, 1] are mapped by r -> (r - shift) / scale when ``rescale=True``.  An episode has exactly H steps,
so V_h = scale * V'_h + (H - h) * shift, the optimal policy is the same, and :class:`RewardScale` undoes the map.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array, IntArray
from livarot.envs.features import Encoding, FeatureMap, Moves, NextState, OneHot, Transitions
from livarot.errors import bad, require_finite, require_positive
from livarot.model.building.validation import check_start
from livarot.model.file import load_model
from livarot.model.problem import MNLMDP, Problem
from livarot.model.terms.units import Units
from livarot.storage import reading
from livarot.system.sizes import require_memory

SUM_SLACK = 1e-8  # rows of P may miss 1 by rounding only
FIT_SLACK = 1e-9  # largest error of a fitted probability
MAPS: dict[str, FeatureMap] = {"one-hot": OneHot(), "moves": Moves(), "next-state": NextState()}


class RewardScale(NamedTuple):
    """The affine map r' = (r - shift) / scale of rewards into [0, 1], and back (:mod:`livarot.model.terms.units`).

    A :class:`TabularMDP` is asked for its values in these units (``original_value``); models that are given rewards of
    any scale otherwise, as in :meth:`livarot.MNLMDP.from_arrays`, answer in them by themselves.

    >>> points = RewardScale(shift=-100.0, scale=120.0)
    >>> points.value(3.0, steps_left=2)
    160.0
    """

    shift: float = 0.0
    scale: float = 1.0

    def value(self, value: Any, steps_left: Any) -> Any:
        """Values in the units of the given rewards; ``steps_left`` is H - h (arrays broadcast)."""
        return Units(self.shift, self.scale).value(value, steps_left)

    def regret(self, regret: Any) -> Any:
        """Differences of values: the shift cancels."""
        return Units(self.shift, self.scale).regret(regret)

    def reward(self, reward: Any) -> Any:
        """A reward as it was given."""
        return Units(self.shift, self.scale).reward(reward)


@checked
@dataclass(frozen=True, eq=False)
class TabularMDP(MNLMDP):
    """An :class:`MNLMDP` that remembers how its rewards were mapped into [0, 1]; saved with the model."""

    reward_scale: RewardScale = field(default=RewardScale())

    def original_value(self, value: ArrayLike) -> FloatArray:
        """Values (H + 1, ...) of the model, stage first, in the units of the rewards as given."""
        array = require_finite("value", value)
        if array.ndim == 0 or len(array) != self.problem.horizon + 1:
            raise bad("value", f"has shape {array.shape}, expected ({self.problem.horizon + 1}, ...), stage first")
        left = np.arange(self.problem.horizon, -1, -1).reshape(-1, *(1,) * (array.ndim - 1))
        return np.asarray(self.reward_scale.value(array, left))

    def _more(self) -> dict[str, Any]:
        return {"reward_scale": list(map(float, self.reward_scale))}

    @classmethod
    def load(cls, path: str | Path) -> TabularMDP:
        """Read a model written by :meth:`save`, or by :meth:`livarot.MNLMDP.save`."""
        plain, header = load_model(path)
        with reading(path):
            scale = RewardScale(*require_finite("reward_scale", header.get("reward_scale", RewardScale())).tolist())
            require_positive("scale", scale.scale)
        return cls(plain.problem, plain.theta, scale)


@checked
def from_tabular(
    P: Any,
    R: Any,
    horizon: int,
    start: int | ArrayLike = 0,
    *,
    features: Literal["one-hot", "moves", "next-state"] | FeatureMap = "one-hot",
    shared_parameter: bool = True,
    rescale: bool = False,
    theta: ArrayLike | None = None,
    param_bound: float | None = None,
    normalise: bool = True,
    states: Iterable[Hashable] | None = None,
    actions: Iterable[Hashable] | None = None,
) -> TabularMDP:
    """The MNL MDP of a tabular one.

    Parameters
    ----------
    P : (S, A, S) or (H, S, A, S); or scipy sparse, (S*A, S) with row s*A + a, or one (S, S) per action in a list.
    R : (S, A), (H, S, A), (S, A, S') or (H, S, A, S'), or sparse like P: expected under P if it depends on s'.
    start : a state or a distribution over states.
    features : a name or a feature map.
    theta : the parameter; None makes the model equal to P, and a feature map that cannot represent P is refused.
    shared_parameter : one theta for all stages, or one each.
    rescale : map rewards outside [0, 1] affinely; see ``TabularMDP.reward_scale`` and ``original_value``.
    param_bound : B, None is the largest |theta|; in the units of the features as the map gives them.
    normalise : divide features by their largest norm (theta and B are multiplied by it).
    states, actions : their names, any hashables.

    >>> P = [[[0.9, 0.1], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]
    >>> mdp = from_tabular(P, [[0, -1], [2, 0]], horizon=3, rescale=True)
    >>> mdp.reward_scale
    RewardScale(shift=-1.0, scale=3.0)
    >>> import livarot
    >>> mdp.original_value(livarot.solve(mdp).value)[:, 0].round(12)
    array([1.1, 0.2, 0. , 0. ])
    """
    require_memory("horizon", "the stages of the model", 8 * horizon)
    outcomes, next_state, probability, n_states, n_actions, stage_table = _kernel(P, horizon)
    first = check_start(start, n_states)
    transitions = Transitions(n_states, n_actions, outcomes, next_state, probability, bool(shared_parameter))
    feature_map: Any = MAPS.get(features) if isinstance(features, str) else features
    if not hasattr(feature_map, "encode"):
        raise bad("features", f"{features!r} is unknown", cure=f"choose one of {', '.join(MAPS)}, or a feature map")
    reward = _reward(R, transitions, stage_table, tilted=theta is not None)
    reward, scale = _into_unit(reward, rescale)
    encoding = feature_map.encode(transitions)
    parameter = _parameter(encoding, transitions, theta, horizon, stage_table)
    bound = float(np.linalg.norm(parameter, axis=1).max()) if param_bound is None else param_bound
    problem = Problem.from_arrays(
        horizon,
        n_states,
        n_actions,
        outcomes=outcomes,
        next_state=next_state,
        features=encoding.features,
        offset=encoding.offset,
        stage_table=stage_table,
        reward=reward,
        start=first,
        param_bound=bound,
        shared_parameter=transitions.shared_parameter,
        normalise=normalise,
        states=states,
        actions=actions,
    )
    return TabularMDP(problem, parameter * problem.feature_scale, scale)


def _is_sparse(thing: Any) -> bool:
    return bool(scipy.sparse.issparse(thing))


def _kernel(P: Any, horizon: int) -> tuple[IntArray, IntArray, FloatArray, int, int, Int32Array]:
    """Check P; its positive entries, pair after pair, and which table a stage uses."""
    stage_table = np.zeros(horizon, dtype=np.int32)
    if _is_sparse(P) or (isinstance(P, Sequence) and len(P) > 0 and all(map(_is_sparse, P))):
        matrix, n_states, n_actions = _sparse_kernel("P", P)
    else:
        dense = require_finite("P", P)
        if dense.ndim not in (3, 4) or dense.shape[-3] != dense.shape[-1] or 0 in dense.shape:
            cure = "give (S, A, S) or (H, S, A, S), or a scipy sparse (S*A, S)"
            raise bad("P", f"has shape {dense.shape}", cure=cure)
        n_states, n_actions = int(dense.shape[-3]), int(dense.shape[-2])
        if dense.ndim == 4:
            if len(dense) != horizon:
                raise bad("P", f"has {len(dense)} stages, the horizon is {horizon}", cure="give one table per stage")
            dense, stage_table = _distinct(dense)
        matrix = scipy.sparse.csr_array(dense.reshape(-1, n_states))
    matrix.eliminate_zeros()

    def place(pair: int) -> tuple[int, ...]:
        table, rest = divmod(pair, n_states * n_actions)
        pairs = (rest // n_actions, rest % n_actions)
        return pairs if matrix.shape[0] == n_states * n_actions else (table, *pairs)

    owner = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    wrong = np.flatnonzero(~((matrix.data >= 0) & np.isfinite(matrix.data)))
    if len(wrong):
        entry = int(wrong[0])
        where = (*place(int(owner[entry])), int(matrix.indices[entry]))
        raise bad("P", f"{matrix.data[entry]:.6g} is not a probability", index=where, count=len(wrong))
    sums = np.asarray(matrix.sum(axis=1)).reshape(-1)
    off = np.flatnonzero(np.abs(sums - 1.0) > SUM_SLACK)
    if len(off):
        what = "empty reachable set" if sums[off[0]] == 0 else f"sums to {sums[off[0]]:.9g}, not 1,"
        cure = "divide each row by its sum; an absorbing state reaches itself with probability 1"
        raise bad("P", f"{what} at (state, action)", index=place(int(off[0])), count=len(off), cure=cure)
    probability = matrix.data / sums[owner]
    outcomes = np.diff(matrix.indptr).astype(np.int64)
    return outcomes, matrix.indices.astype(np.int64), probability, n_states, n_actions, stage_table


def _sparse_kernel(argument: str, P: Any) -> tuple[Any, int, int]:
    """A sparse (S*A, S), or A of (S, S), as CSR with row s*A + a; repeated entries are refused, not added."""
    parts = [P] if _is_sparse(P) else list(P)
    for number, part in enumerate(parts):
        entries = part.tocoo()
        key = entries.coords[0].astype(np.int64) * entries.shape[1] + entries.coords[1]
        order = np.argsort(key, kind="stable")
        repeated = order[1:][key[order][1:] == key[order][:-1]]
        if len(repeated):
            row, column = (int(axis[repeated.min()]) for axis in entries.coords)
            index = (row, column) if _is_sparse(P) else (number, row, column)
            cure = "call its sum_duplicates() first, if they are meant to add up"
            raise bad(argument, "a next state is listed twice", index=index, count=len(repeated), cure=cure)
        if not np.isfinite(entries.data).all():
            raise bad(argument, "NaN or infinite", count=int((~np.isfinite(entries.data)).sum()))
    n_states = int(parts[0].shape[1])
    csr_array = scipy.sparse.csr_array
    if _is_sparse(P):
        n_actions, rest = divmod(int(P.shape[0]), n_states)
        if rest or n_actions == 0:
            raise bad(argument, f"has shape {P.shape}", cure="give (S*A, S): a row per (state, action), s*A + a")
        matrix = csr_array(P, dtype=np.float64, copy=True)
    else:
        shapes = {part.shape for part in parts}
        if shapes != {(n_states, n_states)}:
            raise bad(argument, f"has shapes {sorted(shapes)}", cure="give one (S, S) per action")
        n_actions = len(parts)
        stacked = csr_array(scipy.sparse.vstack([csr_array(part, dtype=np.float64) for part in parts]))
        matrix = csr_array(stacked[np.arange(n_actions * n_states).reshape(n_actions, n_states).T.reshape(-1)])
    matrix.sort_indices()
    return matrix, n_states, n_actions


def _distinct(stages: FloatArray) -> tuple[FloatArray, Int32Array]:
    """The different tables among the stages, in order of appearance, and which one each stage uses."""
    kept: list[FloatArray] = []
    which = np.zeros(len(stages), dtype=np.int32)
    for h, table in enumerate(stages):
        for known, other in enumerate(kept):
            if np.array_equal(table, other):
                which[h] = known
                break
        else:
            which[h] = len(kept)
            kept.append(table)
    return np.stack(kept), which


def _reward(R: Any, transitions: Transitions, stage_table: Int32Array, tilted: bool) -> FloatArray:
    """Rewards (H, S, A), expected over the next state if they depend on it."""
    t, horizon = transitions, len(stage_table)
    pairs = (t.n_states, t.n_actions)
    if _is_sparse(R) or (isinstance(R, Sequence) and len(R) > 0 and all(map(_is_sparse, R))):
        matrix, n_states, n_actions = _sparse_kernel("R", R)
        if (n_states, n_actions) != pairs:
            raise bad("R", f"is for {n_states} states and {n_actions} actions, P for {pairs[0]} and {pairs[1]}")
        array: FloatArray = matrix.toarray().reshape(*pairs, t.n_states)
    else:
        array = require_finite("R", R)
    by_stage, by_next = (horizon, *pairs), (*pairs, t.n_states)
    if array.shape == by_stage == by_next:
        cure = "give (H, S, A, S') or (S, A)"
        raise bad("R", f"shape {array.shape} reads both as (H, S, A) and as (S, A, S')", cure=cure)
    if array.shape == pairs:
        return np.broadcast_to(array, by_stage)
    if array.shape == by_stage:
        return array
    if array.shape == by_next:
        array = np.broadcast_to(array, (horizon, *by_next))
    if array.shape != (horizon, *by_next):
        raise bad("R", f"has shape {array.shape}", cure=f"give {pairs}, {by_stage}, {by_next} or {(horizon, *by_next)}")
    return _expected(array, transitions, stage_table, tilted)


def _expected(array: FloatArray, transitions: Transitions, stage_table: Int32Array, tilted: bool) -> FloatArray:
    """Rewards (H, S, A, S') averaged over the next state."""
    t, n_pairs = transitions, transitions.n_states * transitions.n_actions
    expected = np.empty(array.shape[:3])
    for h, table in enumerate(stage_table):
        first, last = np.searchsorted(t.pair, (table * n_pairs, (table + 1) * n_pairs))
        local = t.pair[first:last] - table * n_pairs
        paid = array[h].reshape(n_pairs, t.n_states)[local, t.next_state[first:last]]
        begin = t.first_row[table * n_pairs : (table + 1) * n_pairs] - first
        low, high = np.minimum.reduceat(paid, begin), np.maximum.reduceat(paid, begin)
        uneven = np.flatnonzero(high > low)
        if tilted and len(uneven):
            raise bad(
                "R",
                "depends on the next state, whose probabilities the learner does not know, at (state, action)",
                index=(int(uneven[0]) // t.n_actions, int(uneven[0]) % t.n_actions),
                count=len(uneven),
                cure="with theta give rewards of (state, action), or pay in the next state one step later",
            )
        mean = np.bincount(local, weights=t.probability[first:last] * paid, minlength=n_pairs)
        expected[h] = np.clip(mean, low, high).reshape(expected[h].shape)  # rounding must not leave the range
    return expected


def _into_unit(reward: FloatArray, rescale: bool) -> tuple[FloatArray, RewardScale]:
    """Rewards in [0, 1] as they are; others mapped affinely into it if ``rescale``, and refused otherwise."""
    outside = np.argwhere((reward < 0) | (reward > 1))
    if len(outside) == 0:
        return reward, RewardScale()
    if not rescale:
        index = tuple(int(i) for i in outside[0])
        raise bad(
            "R",
            f"reward {reward[index]:.6g} is outside [0, 1] at (h, s, a)",
            index=index,
            count=len(outside),
            cure="pass rescale=True, which maps rewards into [0, 1] and is undone by mdp.original_value",
        )
    low, high = float(reward.min()), float(reward.max())
    scale = high - low if high > low else 1.0
    return np.clip((reward - low) / scale, 0.0, 1.0), RewardScale(low, scale)


def _parameter(
    encoding: Encoding, transitions: Transitions, theta: ArrayLike | None, horizon: int, stage_table: Int32Array
) -> FloatArray:
    """theta (K, d) in the units of the map's features: given, known to the map, or fitted to P."""
    shared, dim = transitions.shared_parameter, int(encoding.features.shape[1])
    n_parameters = 1 if shared else horizon
    if theta is not None:
        given = np.atleast_2d(require_finite("theta", theta))
        if given.shape == (1, dim):
            return np.repeat(given, n_parameters, axis=0)
        if given.shape != (n_parameters, dim):
            raise bad("theta", f"has shape {np.shape(theta)}, expected ({dim},) or {(n_parameters, dim)}")
        return given
    tables = encoding.theta if encoding.theta is not None else _fit(encoding, transitions)
    if shared:
        return tables
    return np.repeat(tables, horizon, axis=0) if len(tables) == 1 else tables[stage_table]


def _fit(encoding: Encoding, transitions: Transitions) -> FloatArray:
    """Least squares on the centred log-probabilities, one theta or one per table; refused if it misses P."""
    t = transitions
    features = scipy.sparse.csr_array(encoding.features)
    logit = np.log(t.probability) - (0.0 if encoding.offset is None else encoding.offset)
    averaging: Any = scipy.sparse.csr_array((1.0 / t.outcomes[t.pair], (t.pair, np.arange(t.n_rows))))
    centred = scipy.sparse.csr_array(features - (averaging @ features)[t.pair])
    target = logit - (averaging @ logit)[t.pair]
    groups = [slice(None)] if t.shared_parameter else [t.table == k for k in range(t.n_tables)]
    found = []
    for rows in groups:
        design, aim = centred[rows], target[rows]
        inverse = np.linalg.pinv((design.T @ design).toarray(), hermitian=True)
        theta = inverse @ (design.T @ aim)
        for _ in range(2):  # normal equations square the condition number; refinement gives the digits back
            theta += inverse @ (design.T @ (aim - design @ theta))
        found.append(theta)
    fitted = np.stack(found)
    own = np.zeros(t.n_rows, dtype=np.int64) if t.shared_parameter else t.table
    score = np.asarray(features.multiply(fitted[own]).sum(axis=1)).reshape(-1)
    score += 0.0 if encoding.offset is None else encoding.offset
    score -= np.maximum.reduceat(score, t.first_row)[t.pair]
    weight = np.exp(score)
    error = np.abs(weight / np.add.reduceat(weight, t.first_row)[t.pair] - t.probability)
    if error.max() > FIT_SLACK:
        worst = int(error.argmax())
        raise bad(
            "features",
            f"cannot represent P: off by {error[worst]:.3g} at (state, action, next state)",
            index=t.where(worst),
            count=int((error > FIT_SLACK).sum()),
            cure="use features='one-hot' or LogNominal(...), or give theta and take P as the set of transitions",
        )
    return fitted
