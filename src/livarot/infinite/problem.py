"""The model without stages: one kernel, one parameter, no end.

    P(s' | s, a) = exp(offset(s') + phi(s'|s, a) . theta) / sum_{s''} exp(offset(s'') + phi(s''|s, a) . theta),

s'' over the reachable next states, and rewards, available actions, terminal states and a discount in the user's own
terms (:mod:`livarot.infinite.terms`).  There is no stage axis, hence a small type of its own: rewards are (S, A),
policies (S,).  What is stored is a :class:`~livarot.model.problem.Problem` of one stage, so that estimators and kernels
of the episodic model serve here as they are: one step of a trajectory is an episode with H = 1.

All of it is sparse.  An action that does not exist has no rows.  A terminal state has no action; inside, it has a first
action that leads back to it and pays (1 - gamma) times its terminal reward at every step, which is worth just that
reward: so planners need no case for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray, Int32Array
from livarot.core.tolerances import SUM_SLACK
from livarot.errors import bad
from livarot.infinite import build
from livarot.infinite.terms import Given, Names, Terms, plain_terms, unit_of
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.model.ragged import Rows
from livarot.model.shown import html_of, text_of
from livarot.system.sizes import require_memory


@checked
@dataclass(frozen=True, eq=False)
class InfiniteProblem:
    """What a learner knows: features, rewards, start and the bound B; never theta."""

    stage: Problem  # of one stage
    own_terms: Terms | None = None  # the user's; None reads them off the stage

    def __post_init__(self) -> None:
        if self.stage.horizon != 1:
            raise bad("stage", f"has horizon {self.stage.horizon}, expected 1", cure="use InfiniteMDP.from_mdp(mdp)")

    def __repr__(self) -> str:
        return text_of("InfiniteProblem", self.described())

    def _repr_html_(self) -> str:
        return html_of("InfiniteProblem", self.described())

    def described(self) -> dict[str, str]:
        """The lines of the display, by title."""
        terms = self.terms
        pays = terms.reward[self.available]
        if terms.outcome_reward is not None:
            pays = terms.outcome_reward + np.repeat(terms.reward.reshape(-1), self.rows.outcomes)
        low, high = float(pays.min(initial=math.inf)), float(pays.max(initial=-math.inf))
        paid = f"{0.0 - high:.6g} to {0.0 - low:.6g} a step" if terms.costs else f"{low:.6g} to {high:.6g} a step"
        paid += "" if terms.outcome_reward is None else ", depending on the next state"
        lines = {"sizes": f"{self.n_states} states, {self.n_actions} actions, {self.rows.n_rows} transitions"}
        for name, labels in (("states", self.stage.states), ("actions", self.stage.actions)):
            if labels is not None:
                lines[name] = ", ".join(map(str, labels[:12])) + (", ..." if len(labels) > 12 else "")
        lines["costs" if terms.costs else "rewards"] = paid
        lines["discount"] = "none: average reward" if terms.discount is None else f"{terms.discount:.9g}"
        if not self.available.all():
            lines["available"] = f"{self.available.mean():.0%} of all (state, action)"
        if terms.terminal.any():
            lines["terminal"] = f"{int(terms.terminal.sum())} states"
        lines["parameter"] = f"{self.dim} numbers, |theta| <= {self.param_bound:.6g}"
        return lines

    @cached_property
    def terms(self) -> Terms:
        """Rewards, terminal states and discount."""
        return plain_terms(np.asarray(self.stage.reward[0])) if self.own_terms is None else self.own_terms

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
        """r(s, a) in the user's units, (S, A), without what depends on the next state; 0 where there is no action."""
        return self.terms.reward

    @property
    def start(self) -> FloatArray:
        """(S,)"""
        return self.stage.start

    @property
    def discount(self) -> float | None:
        return self.terms.discount

    @cached_property
    def available(self) -> BoolArray:
        """Which actions exist, (S, A); none in a terminal state."""
        exists = (self.rows.outcomes > 0).reshape(self.n_states, self.n_actions)
        return np.asarray(exists & ~self.terms.terminal[:, None])

    @cached_property
    def names(self) -> Names:
        return Names(self.n_states, self.n_actions, self.stage.states, self.stage.actions)

    def next_states(self, state: int, action: int) -> Int32Array:
        return self.stage.next_states(0, state, action)

    def features(self, state: int, action: int) -> FloatArray:
        """phi(.|s, a), dense (U, d), in the order of :meth:`next_states`."""
        return self.stage.features(0, state, action)

    def scaled_pay(self, gamma: float, mean: FloatArray | float = 0.0) -> FloatArray:
        """r(s, a)/unit plus ``mean``, (S, A): what planners read; -inf where there is no action (see the module)."""
        terms = self.terms
        pay = terms.reward / terms.unit + mean
        pay[(self.rows.outcomes == 0).reshape(pay.shape)] = -math.inf
        if terms.terminal.any():
            pay[terms.terminal, 0] = (1.0 - gamma) * (terms.terminal_reward[terms.terminal] / terms.unit)
        return pay

    @cached_property
    def scaled_outcome_reward(self) -> FloatArray | None:
        """r(s, a, s')/unit of every row, (rows,), or None."""
        own = self.terms.outcome_reward
        return None if own is None else np.ascontiguousarray(own / self.terms.unit)


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
    terms: Terms | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.problem  # noqa: B018 (refuses a model of several stages)

    def __repr__(self) -> str:
        return text_of("InfiniteMDP", self.problem.described())

    def _repr_html_(self) -> str:
        return html_of("InfiniteMDP", self.problem.described())

    @cached_property
    def problem(self) -> InfiniteProblem:
        return InfiniteProblem(self.stage.problem, self.terms)

    @property
    def discount(self) -> float | None:
        """The discount that planners use unless they are given another one."""
        return self.problem.discount

    @property
    def theta(self) -> FloatArray:
        """(d,)"""
        return np.asarray(self.stage.theta[0])

    @classmethod
    @checked
    def from_mdp(cls, mdp: MNLMDP) -> InfiniteMDP:
        """The stationary model behind an episodic one: same features, rewards and theta at every stage.

        Its units, available actions, terminal states and rewards of the next state are kept; a discount of 1 becomes
        the average reward.  The terminal reward after the last stage is dropped: there is no last stage.
        """
        problem = mdp.problem
        if (problem.stage_table != problem.stage_table[0]).any():
            first = int(np.flatnonzero(problem.stage_table != problem.stage_table[0])[0])
            raise bad("mdp", "its features change at a stage", index=first, cure="give the same features at all stages")
        if problem.n_parameters > 1 and (mdp.theta != mdp.theta[0]).any():
            first = int(np.flatnonzero((mdp.theta != mdp.theta[0]).any(axis=1))[0])
            raise bad("mdp", "its parameter changes at a stage", index=first, cure="build it with one shared theta")
        changes = ((problem.reward != problem.reward[0]) & problem.available).any(axis=(1, 2))
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
        return cls(MNLMDP(stage, np.ascontiguousarray(mdp.theta[:1])), _terms_of(problem))

    from_function = classmethod(build.from_function)
    from_arrays = classmethod(build.from_arrays)
    from_transitions = classmethod(build.from_transitions)

    def with_terms(self, **terms: Unpack[Given]) -> InfiniteMDP:
        """The same transitions with other rewards or costs, discount, start or names; see `from_function`.

        Without ``reward`` and ``cost`` the present ones stay; with them, terminal states pay what ``terminal`` says,
        else 0.  Available actions and terminal states themselves cannot change.

        >>> from livarot.envs import park_two_state
        >>> mdp = InfiniteMDP.from_mdp(park_two_state()).with_terms(cost=[3.0, 1.0], states=["poor", "rich"])
        >>> mdp.problem.reward[:, 0], mdp.problem.stage.states
        (array([-3., -1.]), Labels(['poor', 'rich']))
        """
        return build.with_terms(self, terms)

    @checked
    def with_horizon(self, horizon: int) -> MNLMDP:
        """The episodic model of the first ``horizon`` steps, in the same units; states that are terminal stay so.

        >>> import livarot
        >>> mdp = InfiniteMDP.from_mdp(livarot.envs.park_two_state()).with_terms(discount=0.9)
        >>> livarot.solve(mdp.with_horizon(200)).value[0].round(6)
        array([4.367418, 6.10052 ])
        """
        return build.with_horizon(self, horizon)

    def save(self, path: str | Path) -> None:
        """Write the model, in the user's terms, to one file (safetensors, no code inside), complete or not at all."""
        from livarot.infinite.file import save_infinite

        save_infinite(path, self)

    @classmethod
    def load(cls, path: str | Path) -> InfiniteMDP:
        """Read a model written by :meth:`save`; a file that does not hold one, whatever it holds, is refused."""
        from livarot.infinite.file import load_infinite

        return load_infinite(path)

    def probabilities(self, state: int, action: int) -> FloatArray:
        """P(.|s, a) over ``problem.next_states(s, a)``."""
        return self.stage.probabilities(0, state, action)

    @cached_property
    def prob(self) -> FloatArray:
        """The probability of every row of the model, (rows,)."""
        kernel = transition_kernel(self.stage)
        return np.ascontiguousarray(kernel.prob[int(kernel.base[0]) : int(kernel.base[0]) + self.problem.rows.n_rows])

    @cached_property
    def _mean_outcome_reward(self) -> FloatArray | float:
        """sum_s' P(s'|s, a) r(s, a, s')/unit, (S, A), or 0 where nothing depends on the next state."""
        own, rows = self.problem.scaled_outcome_reward, self.problem.rows
        if own is None:
            return 0.0
        owner = np.repeat(np.arange(rows.n_pairs), rows.outcomes)
        sums = np.bincount(owner, self.prob * own, minlength=rows.n_pairs)
        return np.asarray(sums.reshape(self.problem.n_states, -1), dtype=np.float64)

    def scaled_pay(self, gamma: float) -> FloatArray:
        """The mean reward of every pair over ``unit``, (S, A), -inf where there is no action: what planners read."""
        return self.problem.scaled_pay(gamma, self._mean_outcome_reward)

    @cached_property
    def mean_reward(self) -> FloatArray:
        """E[r(s, a, s')] in the user's units, (S, A); 0 where there is no action, and in terminal states."""
        pay = self.problem.terms.unit * self.scaled_pay(0.0)
        return np.where(self.problem.available, pay, 0.0)

    @cached_property
    def table(self) -> FloatArray:
        """P as a dense table (S, A, S)."""
        problem = self.problem
        require_memory("mdp", "a dense table (S, A, S)", problem.n_states**2 * problem.n_actions)
        dense = np.zeros((problem.n_states * problem.n_actions, problem.n_states))
        dense[np.repeat(np.arange(len(dense)), problem.rows.outcomes), problem.rows.next_state] = self.prob
        return dense.reshape(problem.n_states, problem.n_actions, problem.n_states)


def _terms_of(problem: Problem) -> Terms | None:
    """The terms of an episodic problem, None where they are the paper's."""
    units, plain = problem.units, problem.next_reward is None and problem.terminal is None
    if plain and units.identity and problem.discount == 1.0:
        return None
    n = problem.n_states
    ends = np.zeros(n, dtype=np.bool_) if problem.terminal is None else problem.terminal
    reward = np.where(problem.available[0], units.reward(problem.reward[0]), 0.0)
    last = np.zeros(n) if problem.terminal_reward is None else problem.terminal_reward
    paid = np.where(ends, units.terminal_reward(last), 0.0)
    more = None
    if problem.next_reward is not None:
        starts, per_table = problem.rows.row_start, n * problem.n_actions
        first = int(problem.stage_table[0]) * per_table
        more = units.scale * problem.next_reward[starts[first] : starts[first + per_table]]
        more = np.where(
            np.repeat(np.repeat(ends, problem.n_actions), np.diff(starts[first : first + per_table + 1])), 0.0, more
        )
    discount = None if problem.discount == 1.0 else problem.discount
    return Terms(reward, more, ends, paid, discount, units.cost, unit_of(reward, more, paid))


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
    """A stationary policy as int32 (S,) or float64 (S, A), or an error that says what is wrong with it.

    What it does in terminal states is not looked at: inside, their first action is played.
    """
    try:
        table = np.asarray(policy)
    except ValueError as error:
        raise bad("policy", f"is not an array ({error})") from error
    ends = problem.terms.terminal
    if np.issubdtype(table.dtype, np.integer) and table.shape == (problem.n_states,):
        actions = np.where(ends, 0, table)
        wrong = np.flatnonzero((actions < 0) | (actions >= problem.n_actions))
        if len(wrong):
            cure = f"actions are numbered 0..{problem.n_actions - 1}"
            raise bad("policy", f"no action {table[wrong[0]]}", index=int(wrong[0]), count=len(wrong), cure=cure)
        lacking = np.flatnonzero(~problem.available[np.arange(problem.n_states), actions] & ~ends)
        if len(lacking):
            action = f"action {problem.names.pair_names(int(lacking[0] * problem.n_actions + actions[lacking[0]]))}"
            cure = "see problem.available"
            raise bad("policy", f"{action} does not exist", index=int(lacking[0]), count=len(lacking), cure=cure)
        return np.ascontiguousarray(actions, dtype=np.int32)
    if np.issubdtype(table.dtype, np.floating) and table.shape == (problem.n_states, problem.n_actions):
        if ends.any():
            table = np.where(ends[:, None], np.eye(1, problem.n_actions)[0], table)
        wrong = np.flatnonzero(~((np.abs(table.sum(axis=1) - 1.0) < SUM_SLACK) & (table >= 0).all(axis=1)))
        if len(wrong):
            raise bad("policy", "is not a distribution over actions", index=int(wrong[0]), count=len(wrong))
        lacking = np.flatnonzero(((table > 0) & ~problem.available).any(axis=1) & ~ends)
        if len(lacking):
            message = "gives weight to an action that does not exist"
            raise bad("policy", message, index=int(lacking[0]), count=len(lacking), cure="see problem.available")
        return np.ascontiguousarray(table, dtype=np.float64)
    shape = (problem.n_states,)
    cure = f"give integers {shape} or probabilities {(*shape, problem.n_actions)}"
    raise bad("policy", f"has shape {table.shape} and dtype {table.dtype}", cure=cure)
