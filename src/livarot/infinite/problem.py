"""The model without stages: one kernel, one parameter, no end.

    P(s' | s, a) = exp(offset + phi(s'|s,a) . theta) / sum over the reachable s'' of the same,   r(s, a) in [0, 1].

There is no stage axis, hence a small type of its own: rewards are (S, A), policies (S,).  What is stored is a
:class:`~livarot.model.problem.Problem` of one stage, so that estimators and kernels of the episodic model serve here as
they are: one step of a trajectory is an episode with H = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array
from livarot.core.tolerances import SUM_SLACK
from livarot.errors import bad, require_finite
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.model.ragged import Rows
from livarot.system.sizes import require_memory

PairFunction = Callable[[int, int], Any]


@checked
@dataclass(frozen=True, eq=False)
class InfiniteProblem:
    """What a learner knows: features, rewards, start and the bound B; never theta."""

    stage: Problem  # of one stage

    def __post_init__(self) -> None:
        if self.stage.horizon != 1:
            raise bad("stage", f"has horizon {self.stage.horizon}, expected 1", cure="use InfiniteMDP.from_mdp(mdp)")

    @property
    def rows(self) -> Rows:
        return self.stage.rows

    @property
    def n_states(self) -> int:
        return self.stage.n_states

    @property
    def n_actions(self) -> int:
        return self.stage.n_actions

    @property
    def dim(self) -> int:
        return self.stage.dim

    @property
    def param_bound(self) -> float:
        return self.stage.param_bound

    @property
    def max_reachable(self) -> int:
        return self.stage.max_reachable

    @property
    def reward(self) -> FloatArray:
        """(S, A)"""
        return np.asarray(self.stage.reward[0])

    @property
    def start(self) -> FloatArray:
        """(S,)"""
        return self.stage.start

    def next_states(self, state: int, action: int) -> Int32Array:
        return self.stage.next_states(0, state, action)

    def features(self, state: int, action: int) -> FloatArray:
        """phi(.|s, a), dense (U, d), in the order of :meth:`next_states`."""
        return self.stage.features(0, state, action)


@checked
@dataclass(frozen=True, eq=False)
class InfiniteMDP:
    """An :class:`InfiniteProblem` with its true parameter.

    >>> from livarot.envs import park_two_state
    >>> mdp = InfiniteMDP.from_mdp(park_two_state())
    >>> mdp.probabilities(0, 7).round(6)
    array([0.72, 0.28])
    """

    stage: MNLMDP  # of one stage

    def __post_init__(self) -> None:
        self.problem  # noqa: B018 (refuses a model of several stages)

    @cached_property
    def problem(self) -> InfiniteProblem:
        return InfiniteProblem(self.stage.problem)

    @property
    def theta(self) -> FloatArray:
        """(d,)"""
        return np.asarray(self.stage.theta[0])

    @classmethod
    @checked
    def from_mdp(cls, mdp: MNLMDP) -> InfiniteMDP:
        """The stationary model behind an episodic one: same features, rewards and theta at every stage."""
        problem = mdp.problem
        if (problem.stage_table != problem.stage_table[0]).any():
            first = int(np.flatnonzero(problem.stage_table != problem.stage_table[0])[0])
            raise bad("mdp", "its features change at a stage", index=first, cure="give the same features at all stages")
        if problem.n_parameters > 1 and (mdp.theta != mdp.theta[0]).any():
            first = int(np.flatnonzero((mdp.theta != mdp.theta[0]).any(axis=1))[0])
            raise bad("mdp", "its parameter changes at a stage", index=first, cure="build it with one shared theta")
        changes = (problem.reward != problem.reward[0]).any(axis=(1, 2))
        if changes.any():
            first = int(np.flatnonzero(changes)[0])
            raise bad("mdp", "its rewards change at a stage", index=first, cure="give rewards (S, A)")
        stage = Problem(
            horizon=1,
            rows=_only_table(problem.rows, int(problem.stage_table[0])),
            stage_table=np.zeros(1, dtype=np.int32),
            reward=np.ascontiguousarray(problem.reward[:1]),
            start=problem.start,
            param_bound=problem.param_bound,
            shared_parameter=True,
            feature_scale=problem.feature_scale,
            states=problem.states,
            actions=problem.actions,
        )
        return cls(MNLMDP(stage, np.ascontiguousarray(mdp.theta[:1])))

    @classmethod
    @checked
    def from_function(
        cls,
        n_states: int,
        n_actions: int,
        *,
        features: PairFunction,
        reward: ArrayLike | Callable[[int, int], float],
        theta: ArrayLike,
        start: int | ArrayLike = 0,
        param_bound: float | None = None,
        normalise: bool = False,
        offset: PairFunction | None = None,
        states: Iterable[Hashable] | None = None,
        actions: Iterable[Hashable] | None = None,
    ) -> InfiniteMDP:
        """Build from ``features(s, a) -> (next_states, phi)``; see :meth:`livarot.MNLMDP.from_function`.

        >>> def features(s, a):            # stay or leave, a logit in one feature
        ...     return [0, 1], [[0.0], [1.0 if a else -1.0]]
        >>> mdp = InfiniteMDP.from_function(2, 2, features=features, reward=[[0, 0], [1, 1]], theta=[0.5])
        >>> mdp.problem.n_states, mdp.problem.dim
        (2, 1)
        """
        if require_finite("theta", theta).ndim != 1:
            raise bad("theta", f"has {np.ndim(theta)} axes, expected (d,)", cure="there is one parameter and no stage")
        require_memory("n_states", "the answers of features for every (s, a)", 50 * n_states * n_actions)
        payoff: Any = reward
        if callable(reward):
            payoff = [[reward(s, a) for a in range(n_actions)] for s in range(n_states)]
        mdp = MNLMDP.from_function(
            1,
            n_states,
            n_actions,
            features=lambda h, s, a: features(s, a),
            reward=payoff,
            theta=theta,
            start=start,
            param_bound=param_bound,
            normalise=normalise,
            offset=None if offset is None else lambda h, s, a: offset(s, a),
            states=states,
            actions=actions,
        )
        return cls.from_mdp(mdp)

    def probabilities(self, state: int, action: int) -> FloatArray:
        """P(.|s, a) over ``problem.next_states(s, a)``."""
        return self.stage.probabilities(0, state, action)

    @cached_property
    def prob(self) -> FloatArray:
        """The probability of every row of the model, (rows,)."""
        kernel = transition_kernel(self.stage)
        return np.ascontiguousarray(kernel.prob[int(kernel.base[0]) : int(kernel.base[0]) + self.problem.rows.n_rows])

    @cached_property
    def table(self) -> FloatArray:
        """P as a dense table (S, A, S)."""
        problem = self.problem
        require_memory("mdp", "a dense table (S, A, S)", problem.n_states**2 * problem.n_actions)
        dense = np.zeros((problem.n_states * problem.n_actions, problem.n_states))
        dense[np.repeat(np.arange(len(dense)), problem.rows.outcomes), problem.rows.next_state] = self.prob
        return dense.reshape(problem.n_states, problem.n_actions, problem.n_states)


def _only_table(rows: Rows, table: int) -> Rows:
    """The rows of one table; blocks stay as they are (they may be coarser than needed, never finer)."""
    if rows.n_tables == 1:
        return rows
    first, last = table * rows.n_states * rows.n_actions, (table + 1) * rows.n_states * rows.n_actions
    begin, end = rows.row_start[first], rows.row_start[last]
    origin = rows.feat_start[first]  # features lie in the order of the pairs
    size = int((rows.outcomes[first:last] * rows.col_count[first:last]).sum())
    shared = not rows.col_start.any()  # one list of columns for all pairs
    columns = rows.col_start[first]
    listed = slice(None) if shared else slice(columns, columns + int(rows.col_count[first:last].sum()))
    return Rows(
        n_states=rows.n_states,
        n_actions=rows.n_actions,
        dim=rows.dim,
        row_start=rows.row_start[first : last + 1] - begin,
        next_state=rows.next_state[begin:end],
        offset=rows.offset[begin:end],
        pair_block=rows.pair_block[first:last],
        col_start=rows.col_start[first:last] - columns,
        col_count=rows.col_count[first:last],
        cols=rows.cols[listed],
        feat_start=rows.feat_start[first:last] - origin,
        feat=rows.feat[origin : origin + size],
        block_start=rows.block_start,
        block_coords=rows.block_coords,
        gram_start=rows.gram_start,
    )


def check_stationary(problem: InfiniteProblem, policy: ArrayLike) -> NDArray[Any]:
    """A stationary policy as int32 (S,) or float64 (S, A), or an error that says what is wrong with it."""
    try:
        table = np.asarray(policy)
    except ValueError as error:
        raise bad("policy", f"is not an array ({error})") from error
    if np.issubdtype(table.dtype, np.integer) and table.shape == (problem.n_states,):
        wrong = np.flatnonzero((table < 0) | (table >= problem.n_actions))
        if len(wrong):
            cure = f"actions are numbered 0..{problem.n_actions - 1}"
            raise bad("policy", f"no action {table[wrong[0]]}", index=int(wrong[0]), count=len(wrong), cure=cure)
        return np.ascontiguousarray(table, dtype=np.int32)
    if np.issubdtype(table.dtype, np.floating) and table.shape == (problem.n_states, problem.n_actions):
        wrong = np.flatnonzero(~((np.abs(table.sum(axis=1) - 1.0) < SUM_SLACK) & (table >= 0).all(axis=1)))
        if len(wrong):
            raise bad("policy", "is not a distribution over actions", index=int(wrong[0]), count=len(wrong))
        return np.ascontiguousarray(table, dtype=np.float64)
    shape = (problem.n_states,)
    cure = f"give integers {shape} or probabilities {(*shape, problem.n_actions)}"
    raise bad("policy", f"has shape {table.shape} and dtype {table.dtype}", cure=cure)
