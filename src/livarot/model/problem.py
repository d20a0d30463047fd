"""The model: ``Problem`` is what a learner knows, ``MNLMDP`` adds the parameter it does not know.

An inhomogeneous episodic MNL mixture MDP has horizon H, states 0..S-1, actions 0..A-1, known rewards
``r_h(s, a)`` in [0, 1], known features with ``|phi| <= 1`` and unknown ``theta_h`` with ``|theta_h| <= B``:

    P_h(s' | s, a) = exp(offset + phi_h(s'|s,a) . theta_h) / sum over the reachable s'' of the same.

The paper has no offset and features that do not depend on h; both are allowed here (reading E21).  One theta
may be shared by all stages.  Stages are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from livarot.core.jit import jit
from livarot.core.sizes import require_memory
from livarot.core.tolerances import NORM_SLACK
from livarot.errors import LivarotError, bad, require_finite
from livarot.model.ragged import STORED, Rows, build_rows
from livarot.model.validation import (
    FeatureFunction,
    RewardLike,
    check_reward,
    check_stage_table,
    check_start,
    check_theta,
    collect_stage,
    feature_matrix,
    row_index,
    whole_numbers,
)
from livarot.storage import content_digest

LABELS = "labels"  # in Problem.cache: names of (states, actions, stages)


@dataclass(frozen=True, eq=False)
class Problem:
    """What a learner knows: features, rewards, horizon, start and the bound B; never theta."""

    horizon: int
    rows: Rows
    stage_table: Int32Array  # (H,)
    reward: FloatArray  # (H, S, A)
    start: FloatArray  # (S,) distribution of the first state
    param_bound: float  # B
    shared_parameter: bool = False  # one theta for all stages?
    feature_scale: float = 1.0  # features were divided by it (theta multiplied)
    cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_states(self) -> int:
        return self.rows.n_states

    @property
    def n_actions(self) -> int:
        return self.rows.n_actions

    @property
    def dim(self) -> int:
        return self.rows.dim

    @property
    def n_parameters(self) -> int:
        """K: one parameter per stage, or one for all."""
        return 1 if self.shared_parameter else self.horizon

    @cached_property
    def theta_shape(self) -> tuple[int, int]:
        """(K, d)."""
        return self.n_parameters, self.dim

    @cached_property
    def gram_shape(self) -> tuple[int, int]:
        """(K, G), G numbers in a packed Gram matrix."""
        return self.n_parameters, self.rows.gram_size

    @cached_property
    def max_reachable(self) -> int:
        """U, the largest number of reachable next states."""
        return int(self.rows.outcomes.max())

    @cached_property
    def stage_parameter(self) -> Int32Array:
        """Which parameter each stage uses, (H,)."""
        own = np.zeros if self.shared_parameter else np.arange
        return np.asarray(own(self.horizon), dtype=np.int32)

    @cached_property
    def reachable(self) -> BoolArray:
        """Which states can be reached from the start at each stage, (H + 1, S)."""
        reach = np.zeros((self.horizon + 1, self.n_states), dtype=np.bool_)
        reach[0] = self.start > 0
        _propagate(reach, self.stage_table, self.rows.row_start, self.rows.next_state, self.n_actions)
        return reach

    @cached_property
    def nodes(self) -> tuple[IntArray, Int32Array]:
        """The reachable states stage by stage: ``node_state[node_start[h]:node_start[h+1]]``."""
        stage, state = np.nonzero(self.reachable[:-1])
        start = np.searchsorted(stage, np.arange(self.horizon + 1))
        return start.astype(np.int64), state.astype(np.int32)

    @checked
    def pair(self, stage: int, state: int, action: int) -> int:
        sizes = {"stage": (stage, self.horizon), "state": (state, self.n_states), "action": (action, self.n_actions)}
        for name, (number, size) in sizes.items():
            if number >= size:
                raise bad(name, f"{number} is out of range", cure=f"they are numbered 0..{size - 1}")
        return self.rows.pair(int(self.stage_table[stage]), state, action)

    def next_states(self, stage: int, state: int, action: int) -> Int32Array:
        """The U states that may follow."""
        pair = self.pair(stage, state, action)
        return self.rows.next_state[self.rows.row_start[pair] : self.rows.row_start[pair + 1]]

    def features(self, stage: int, state: int, action: int) -> FloatArray:
        """phi_h(.|s, a), dense (U, d), in the order of :meth:`next_states`."""
        return self.rows.features(self.pair(stage, state, action))

    def offset(self, stage: int, state: int, action: int) -> FloatArray:
        """What is added to the logits, (U,), in the order of :meth:`next_states`."""
        pair = self.pair(stage, state, action)
        return self.rows.offset[self.rows.row_start[pair] : self.rows.row_start[pair + 1]].copy()

    def probabilities(self, theta: ArrayLike, stage: int, state: int, action: int) -> FloatArray:
        """softmax(offset + phi_h(.|s, a) . theta), (U,), in the order of :meth:`next_states`.

        ``theta`` is the stage's own parameter (d,), or all of them (K, d).

        >>> import livarot
        >>> problem = livarot.envs.hard_chain(4, gap=0.1).problem
        >>> problem.next_states(0, 0, 1), problem.probabilities(np.zeros(problem.theta_shape), 0, 0, 1)
        (array([1, 5], dtype=int32), array([0.5, 0.5]))
        """
        from livarot.core.mnl import softmax

        phi, own = self.features(stage, state, action), require_finite("theta", theta)
        if own.shape == self.theta_shape:
            own = own[self.stage_parameter[stage]]
        if own.shape != (self.dim,):
            shapes = f"({self.dim},) or {self.theta_shape}"
            raise bad("theta", f"has shape {own.shape}", cure=f"give the stage's own parameter or all: {shapes}")
        return softmax(self.offset(stage, state, action) + phi @ own)

    def original_theta(self, theta: ArrayLike) -> FloatArray:
        """A parameter in the units of the features as they were given (undoes ``normalise=True``)."""
        return require_finite("theta", theta) / self.feature_scale

    @checked
    def same_as(self, other: Problem) -> bool:
        """Do both describe the same knowledge, number for number?"""
        if self is other or (self.rows is other.rows and self.reward is other.reward):
            return True
        mine, theirs = self._tensors(), other._tensors()
        return self._header() == other._header() and all(np.array_equal(mine[k], theirs[k]) for k in mine)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that the problem is: equal for problems that are :meth:`same_as` each other, only for them."""
        return content_digest(self._header(), self._tensors())

    @classmethod
    @checked
    def from_function(
        cls,
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
    ) -> Problem:
        """Build from ``features(h, s, a) -> (next_states, phi)``; see :meth:`MNLMDP.from_function`."""
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
        joined = {k: np.concatenate([t[k] for t in tables]) for k in ("outcomes", "next_state", "phi", "offset")}
        return cls.from_arrays(
            horizon,
            n_states,
            n_actions,
            outcomes=joined["outcomes"],
            next_state=joined["next_state"],
            features=joined["phi"],
            offset=joined["offset"],
            stage_table=stage_table,
            reward=reward,
            start=start,
            param_bound=param_bound,
            shared_parameter=shared_parameter,
            normalise=normalise,
        )

    @classmethod
    @checked
    def from_arrays(
        cls,
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
    ) -> Problem:
        """Build from long arrays; see :meth:`MNLMDP.from_arrays`."""
        require_memory("horizon", "the rewards (H, S, A)", horizon * n_states * n_actions)
        counts = whole_numbers("outcomes", outcomes)
        if (counts < 0).any():
            first = int(np.flatnonzero(counts < 0)[0])
            raise bad("outcomes", "is negative", index=first, count=int((counts < 0).sum()))
        n_tables, rest = divmod(len(counts), n_states * n_actions)
        if rest or n_tables == 0:
            raise bad("outcomes", f"has {len(counts)} entries, expected a multiple of {n_states * n_actions}")
        table = check_stage_table(stage_table, n_tables, horizon)
        nexts = whole_numbers("next_state", next_state)
        if counts.max() > len(nexts) or counts.sum() != len(nexts):  # in this order: a sum may pass 2^63
            raise bad("next_state", f"has {len(nexts)} entries, outcomes add up to {sum(counts.tolist())}")
        matrix, dim = feature_matrix(features, len(nexts))
        shift = None if offset is None else require_finite("offset", offset)
        if shift is not None and shift.shape != nexts.shape:
            raise bad("offset", f"has shape {shift.shape}, expected {nexts.shape}")
        rows = build_rows(n_states, n_actions, dim, counts, nexts, matrix, shift)
        scale = 1.0
        norms = rows.norms()
        largest = float(norms.max(initial=0.0))
        if largest > 1.0 + NORM_SLACK:
            if not normalise:
                over = np.flatnonzero(norms > 1.0 + NORM_SLACK)
                raise bad(
                    "features",
                    f"norm {norms[over[0]]:.6g} > 1 at (table, state, action, outcome)",
                    index=row_index(rows, int(over[0])),
                    count=len(over),
                    cure="pass normalise=True (theta is rescaled to match) or divide the features yourself",
                )
            scale = largest
        if normalise and largest > 0:
            scale = largest
        if scale != 1.0:
            rows = rows.scaled(1.0 / scale)
        return cls(
            horizon=horizon,
            rows=rows,
            stage_table=table,
            reward=check_reward(reward, horizon, n_states, n_actions),
            start=check_start(start, n_states),
            param_bound=param_bound * scale,
            shared_parameter=shared_parameter,
            feature_scale=scale,
        )

    def _header(self) -> dict[str, Any]:
        return {
            "horizon": self.horizon,
            "n_states": self.n_states,
            "n_actions": self.n_actions,
            "dim": self.dim,
            "param_bound": self.param_bound,
            "shared_parameter": self.shared_parameter,
            "feature_scale": self.feature_scale,
        }

    def _tensors(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {name: getattr(self.rows, name) for name in STORED}
        return arrays | {"stage_table": self.stage_table, "reward": self.reward, "start": self.start}


@checked
@dataclass(frozen=True, eq=False)
class MNLMDP:
    """A :class:`Problem` with its true parameter: for the simulator, the planner and the judge.

    >>> import livarot
    >>> def features(h, s, a):            # stay or leave, a logit in one feature
    ...     return [0, 1], [[0.0], [1.0 if a else -1.0]]
    >>> mdp = livarot.MNLMDP.from_function(
    ...     3, 2, 2, features=features, reward=[[0, 0], [1, 1]], theta=[0.5], start=0)
    >>> livarot.solve(mdp).policy[:, 0]
    array([1, 1, 0], dtype=int32)
    """

    problem: Problem
    theta: FloatArray  # (K, d)

    def __post_init__(self) -> None:
        theta = np.require(require_finite("theta", self.theta), requirements=["C", "W"])
        expected = (self.problem.n_parameters, self.problem.dim)
        if theta.shape != expected:
            raise bad(
                "theta",
                f"has shape {theta.shape}, expected {expected}",
                cure="give (d,) for one parameter shared by all stages, (H, d) for one per stage",
            )
        norms = np.linalg.norm(theta, axis=1)
        bound = self.problem.param_bound * (1.0 + NORM_SLACK)
        over = np.flatnonzero(norms > bound)
        if len(over):
            raise bad(
                "theta",
                f"|theta| = {norms[over[0]]:.6g} exceeds param_bound = {self.problem.param_bound:.6g} at stage",
                index=int(over[0]),
                count=len(over),
                cure="raise param_bound, or leave it None to take the largest |theta|",
            )
        object.__setattr__(self, "theta", theta)

    @property
    def original_theta(self) -> FloatArray:
        """theta in the units of the features as given."""
        return self.problem.original_theta(self.theta)

    @classmethod
    @checked
    def from_function(
        cls,
        horizon: int,
        n_states: int,
        n_actions: int,
        *,
        features: FeatureFunction,
        reward: RewardLike,
        theta: ArrayLike,
        start: int | ArrayLike = 0,
        param_bound: float | None = None,
        normalise: bool = False,
        offset: Callable[[int, int, int], ArrayLike] | None = None,
    ) -> MNLMDP:
        """Build from a function ``features(h, s, a) -> (next_states, phi)``, ``h`` from 0.

        ``next_states`` are U different states, ``phi`` is (U, d), dense or a scipy sparse array.  ``reward``
        is an array (H, S, A) or (S, A), or a function of (h, s, a).  ``theta`` (d,) is shared by all stages,
        (H, d) gives one per stage.  ``start`` is a state or a distribution over states.  ``offset(h, s, a)``
        is added to the U logits.  ``param_bound`` None is the largest |theta|.  ``normalise=True`` divides the
        features by their largest norm and multiplies theta and the bound by it.
        """
        vector, bound, shared = check_theta(theta, param_bound)
        problem = Problem.from_function(
            horizon,
            n_states,
            n_actions,
            features=features,
            reward=reward,
            start=start,
            param_bound=bound,
            shared_parameter=shared,
            normalise=normalise,
            offset=offset,
        )
        return cls(problem, vector * problem.feature_scale)

    @classmethod
    @checked
    def from_arrays(
        cls,
        horizon: int,
        n_states: int,
        n_actions: int,
        *,
        outcomes: ArrayLike,
        next_state: ArrayLike,
        features: Any,
        reward: RewardLike,
        theta: ArrayLike,
        start: int | ArrayLike = 0,
        stage_table: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        param_bound: float | None = None,
        normalise: bool = False,
    ) -> MNLMDP:
        """Build from long arrays, for large models.

        ``outcomes`` (S, A), or (tables, S, A), counts the reachable next states of each pair; ``next_state``
        (rows,), ``features`` (rows, d) (dense or scipy sparse) and ``offset`` (rows,) list them in that order.
        ``stage_table`` (H,) says which table a stage uses: all the first one, or one each, when it is None.
        """
        vector, bound, shared = check_theta(theta, param_bound)
        problem = Problem.from_arrays(
            horizon,
            n_states,
            n_actions,
            outcomes=outcomes,
            next_state=next_state,
            features=features,
            reward=reward,
            param_bound=bound,
            start=start,
            stage_table=stage_table,
            offset=offset,
            shared_parameter=shared,
            normalise=normalise,
        )
        return cls(problem, vector * problem.feature_scale)

    def probabilities(self, stage: int, state: int, action: int) -> FloatArray:
        """P_h(.|s, a) over :meth:`Problem.next_states`."""
        return self.problem.probabilities(self.theta, stage, state, action)

    def save(self, path: str | Path) -> None:
        """Write the model, and its labels, to one file (safetensors, no code inside), complete or not at all."""
        from livarot.model.file import save_model

        save_model(path, self, self._more())

    def _more(self) -> dict[str, Any]:
        """What the file's header says beside the problem."""
        return {}

    @classmethod
    def load(cls, path: str | Path) -> MNLMDP:
        """Read a model written by :meth:`save`; a file that does not hold one, whatever it holds, is refused."""
        from livarot.model.file import load_model

        return load_model(path)[0]


def not_a_model(given: Any, index: int | None = None) -> LivarotError:
    """The error for something that should have been an :class:`MNLMDP`."""
    told = f"{given.__name__} is a class" if isinstance(given, type) else f"{type(given).__name__} is not an MNLMDP"
    cure = "give an MNLMDP, such as livarot.envs.hard_chain(5)"
    if isinstance(given, str):
        cure = f"make it: livarot.envs.make({given[:60]!r})"
    elif isinstance(given, Problem):
        cure = "a Problem does not say what theta is: give the MNLMDP"
    return bad("mdp", told, index=index, cure=cure)


def require_problem(given: Any) -> None:
    """Our error for something that should have been a :class:`Problem`."""
    if not isinstance(given, Problem):
        cure = "give mdp.problem" if isinstance(given, MNLMDP) else "give a livarot.Problem"
        raise bad("problem", f"{type(given).__name__} is not a Problem", cure=cure)


def require_model(given: Any) -> Problem:
    """The problem of a model, or our error if it is not one."""
    if not isinstance(given, MNLMDP):
        raise not_a_model(given)
    return given.problem


@jit
def _propagate(reach, stage_table, row_start, next_state, n_actions):  # type: ignore[no-untyped-def]
    horizon, n_states = reach.shape[0] - 1, reach.shape[1]
    for h in range(horizon):
        first = stage_table[h] * n_states * n_actions
        for s in range(n_states):
            if reach[h, s]:
                begin = row_start[first + s * n_actions]
                end = row_start[first + (s + 1) * n_actions]
                for row in range(begin, end):
                    reach[h + 1, next_state[row]] = True
