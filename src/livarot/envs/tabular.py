"""From a table of probabilities and rewards to an MNL MDP, and values back to the units of its rewards.

``P[s, a, s']`` (one for all stages, or one per stage) gives the reachable sets, and a feature map
(:mod:`livarot.envs.features`) the features; theta is what makes the model equal to P, by formula (one-hot) or by
least squares on the log-probabilities, centred in each pair:

    (phi_i - mean phi) . theta = z_i - mean z,     z_i = log p_i - offset_i

for all outcomes i of all (s, a).  A map that cannot represent P is refused, unless theta is given: then P is only the
nominal kernel.

Rewards, costs, discount, available actions and terminal states are those of :meth:`livarot.MNLMDP.from_function`, and
so are the units of the results.  With ``rescale=True`` results stay normalised instead: rewards outside [0, 1] are
mapped by r -> (r - shift) / scale; an episode has exactly H steps, so V_h = scale * V'_h + (H - h) * shift, the optimal
policy is the same, and :class:`RewardScale` undoes the map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
import scipy
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from livarot.envs.features import Encoding, FeatureMap, Moves, NextState, OneHot, Transitions
from livarot.errors import bad, require_finite, require_positive
from livarot.model.building.build import Terms, read_terms
from livarot.model.file import load_model
from livarot.model.problem import MNLMDP, Problem
from livarot.model.shown import html_of, problem_lines, text_of
from livarot.model.terms.units import PLAIN, Units
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
@dataclass(frozen=True, eq=False, repr=False)
class TabularMDP(MNLMDP):
    """An :class:`MNLMDP` that remembers how its rewards were mapped into [0, 1]; saved with the model."""

    reward_scale: RewardScale = field(default=RewardScale())

    def __repr__(self) -> str:
        return text_of("TabularMDP", self._lines())

    def _repr_html_(self) -> str:
        return html_of("TabularMDP", self._lines())

    def _lines(self) -> dict[str, str]:
        scale = self.reward_scale
        mapped = (
            {} if scale == RewardScale() else {"given": f"rewards {scale.shift:.6g} + {scale.scale:.6g} times these"}
        )
        return problem_lines(self.problem, self.theta) | mapped

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
    R: Any = None,
    horizon: int | None = None,
    start: Any = 0,
    *,
    features: Literal["one-hot", "moves", "next-state"] | FeatureMap = "one-hot",
    shared_parameter: bool = True,
    rescale: bool = False,
    theta: ArrayLike | None = None,
    param_bound: float | None = None,
    normalise: bool = True,
    **terms: Unpack[Terms],
) -> TabularMDP:
    """The MNL MDP of a tabular one.

    Parameters
    ----------
    P : (S, A, S) or (H, S, A, S); or scipy sparse, (S*A, S) with row s*A + a, or one (S, S) per action in a list.
        Rows of actions that are not ``available``, and of ``terminal`` states, are not read.
    R : rewards of any scale: (S, A), (H, S, A), (S, A, S') or (H, S, A, S'), sparse like P, a function or a table.
    start : a state or a distribution over states.
    features : a name or a feature map.
    theta : the parameter; None makes the model equal to P, and a feature map that cannot represent P is refused.
    shared_parameter : one theta for all stages, or one each.
    rescale : values stay in [0, H]; see ``TabularMDP.reward_scale`` and ``original_value``.
    param_bound : B, None is the largest |theta|; in the units of the features as the map gives them.
    normalise : divide features by their largest norm (theta and B are multiplied by it).
    terms : ``cost`` (in place of R), ``terminal_reward``, ``terminal_cost``, ``discount``, ``available``, ``terminal``,
        ``states`` and ``actions`` (names): as in :meth:`livarot.MNLMDP.from_function`.

    >>> P = [[[0.9, 0.1], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]
    >>> import livarot
    >>> livarot.solve(from_tabular(P, [[0, -1], [2, 0]], horizon=3)).value[:, 0].round(12)
    array([1.1, 0.2, 0. , 0. ])
    >>> mdp = from_tabular(P, [[0, -1], [2, 0]], horizon=3, rescale=True)
    >>> mdp.reward_scale
    RewardScale(shift=-1.0, scale=3.0)
    >>> mdp.original_value(livarot.solve(mdp).value)[:, 0].round(12)
    array([1.1, 0.2, 0. , 0. ])
    """
    if horizon is None:
        raise bad("horizon", "is missing", cure="without an end use livarot.infinite.InfiniteMDP.from_transitions")
    require_memory("horizon", "the stages of the model", 8 * horizon)
    matrix, n_states, n_actions, stage_table = _kernel(P, horizon)
    read, exists = read_terms(terms, stage_table, n_states, n_actions)
    outcomes, next_state, probability = _rows(matrix, exists)
    transitions = Transitions(n_states, n_actions, outcomes, next_state, probability, bool(shared_parameter))
    feature_map: Any = MAPS.get(features) if isinstance(features, str) else features
    if not hasattr(feature_map, "encode"):
        raise bad("features", f"{features!r} is unknown", cure=f"choose one of {', '.join(MAPS)}, or a feature map")
    reward = _reward("R", R, transitions, horizon, bool(exists.all()))
    read["cost"] = _reward("cost", read.get("cost"), transitions, horizon, bool(exists.all()))
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
        start=start,
        param_bound=bound,
        shared_parameter=transitions.shared_parameter,
        normalise=normalise,
        **read,
    )
    scale = RewardScale()
    if rescale:
        problem, scale = _rescaled(problem)
    return TabularMDP(problem, parameter * problem.feature_scale, scale)


def _rescaled(problem: Problem) -> tuple[Problem, RewardScale]:
    """The problem with results in [0, H], and the scale that undoes it; refused where an affine map does not."""
    units = problem.units
    if problem.discount != 1.0 or problem.terminal_reward is not None or problem.terminal is not None or units.cost:
        told = "has no meaning with a cost, a discount, terminal states or terminal rewards"
        raise bad("rescale", told, cure="leave it out: rewards of any scale are taken, results are in their units")
    return replace(problem, units=PLAIN), RewardScale(units.low, units.scale)


def _is_sparse(thing: Any) -> bool:
    return bool(scipy.sparse.issparse(thing))


def _kernel(P: Any, horizon: int) -> tuple[Any, int, int, Int32Array]:
    """P as CSR, a row per (table, state, action); the sizes, and which table a stage uses."""
    stage_table = np.zeros(horizon, dtype=np.int32)
    if _is_sparse(P) or (isinstance(P, Sequence) and len(P) > 0 and all(map(_is_sparse, P))):
        return *_sparse_kernel("P", P), stage_table
    dense = require_finite("P", P)
    if dense.ndim not in (3, 4) or dense.shape[-3] != dense.shape[-1] or 0 in dense.shape:
        cure = "give (S, A, S) or (H, S, A, S), or a scipy sparse (S*A, S)"
        raise bad("P", f"has shape {dense.shape}", cure=cure)
    n_states, n_actions = int(dense.shape[-3]), int(dense.shape[-2])
    if dense.ndim == 4:
        if len(dense) != horizon:
            raise bad("P", f"has {len(dense)} stages, the horizon is {horizon}", cure="give one table per stage")
        dense, stage_table = _distinct(dense)
    return scipy.sparse.csr_array(dense.reshape(-1, n_states)), n_states, n_actions, stage_table


def _rows(matrix: Any, exists: BoolArray) -> tuple[IntArray, IntArray, FloatArray]:
    """The positive entries of the pairs that exist, pair after pair: counts, next states and probabilities."""
    matrix.data[~np.repeat(exists.reshape(-1), np.diff(matrix.indptr))] = 0.0
    matrix.eliminate_zeros()

    def place(pair: int) -> tuple[int, ...]:
        where = tuple(int(i) for i in np.unravel_index(pair, exists.shape))
        return where if len(exists) > 1 else where[1:]

    owner = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    wrong = np.flatnonzero(~((matrix.data >= 0) & np.isfinite(matrix.data)))
    if len(wrong):
        entry = int(wrong[0])
        where = (*place(int(owner[entry])), int(matrix.indices[entry]))
        raise bad("P", f"{matrix.data[entry]:.6g} is not a probability", index=where, count=len(wrong))
    sums = np.asarray(matrix.sum(axis=1)).reshape(-1)
    off = np.flatnonzero((np.abs(sums - 1.0) > SUM_SLACK) & exists.reshape(-1))
    if len(off):
        what = "empty reachable set" if sums[off[0]] == 0 else f"sums to {sums[off[0]]:.9g}, not 1,"
        cure = "divide each row by its sum; an absorbing state reaches itself with probability 1; what does not exist"
        cure += " is left out of available=, or listed in terminal="
        raise bad("P", f"{what} at (state, action)", index=place(int(off[0])), count=len(off), cure=cure)
    return np.diff(matrix.indptr).astype(np.int64), matrix.indices.astype(np.int64), matrix.data / sums[owner]


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


def _reward(name: str, R: Any, transitions: Transitions, horizon: int, complete: bool) -> Any:
    """Rewards or costs as :meth:`Problem.from_arrays` takes them; shapes that can be read in two ways are refused."""
    t, pairs = transitions, (transitions.n_states, transitions.n_actions)
    if _is_sparse(R) or (isinstance(R, Sequence) and len(R) > 0 and all(map(_is_sparse, R))):
        matrix, n_states, n_actions = _sparse_kernel(name, R)
        if (n_states, n_actions) != pairs:
            raise bad(name, f"is for {n_states} states and {n_actions} actions, P for {pairs[0]} and {pairs[1]}")
        require_memory(name, "rewards (S, A, S') as a dense table", t.n_states**2 * t.n_actions)
        return matrix.toarray().reshape(*pairs, t.n_states)
    if R is None or callable(R) or hasattr(R, "keys"):
        return R
    array = require_finite(name, R) if complete else np.asarray(R)  # what does not exist may have NaN
    by_stage, by_next = (horizon, *pairs), (*pairs, t.n_states)
    if array.shape == by_stage == by_next:
        cure = "give (H, S, A, S') or (S, A)"
        raise bad(name, f"shape {array.shape} reads both as (H, S, A) and as (S, A, S')", cure=cure)
    if array.shape not in (pairs, by_stage, by_next, (horizon, *by_next)):
        raise bad(
            name, f"has shape {array.shape}", cure=f"give {pairs}, {by_stage}, {by_next} or {(horizon, *by_next)}"
        )
    return array


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
    begins, own = (
        t.first_row[t.outcomes > 0],
        np.repeat(np.arange(int((t.outcomes > 0).sum())), t.outcomes[t.outcomes > 0]),
    )
    score -= np.maximum.reduceat(score, begins)[own]
    weight = np.exp(score)
    error = np.abs(weight / np.add.reduceat(weight, begins)[own] - t.probability)
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
