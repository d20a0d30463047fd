"""The constructors of a model, from what a user gives: functions of (h, s, a), or long arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, Int32Array
from livarot.errors import require_share
from livarot.model.building.validation import (
    FeatureFunction,
    check_long,
    check_outcomes,
    check_rows,
    check_stage_table,
    check_start,
    check_theta,
    collect_stages,
)
from livarot.model.labels import check_labels
from livarot.model.terms.existing import check_available, check_terminal, require_actions
from livarot.model.terms.rewards import Names, RewardLike, read_gains, read_terminal
from livarot.model.terms.rewards import normalise as normalised
from livarot.system.sizes import require_memory

if TYPE_CHECKING:
    from livarot.model.problem import MNLMDP, Problem


class Terms(TypedDict, total=False):
    """What a model has beside its law and its rewards; see :meth:`livarot.MNLMDP.from_function`."""

    cost: Any
    terminal_reward: Any
    terminal_cost: Any
    discount: float
    available: Any
    terminal: Any
    states: Iterable[Hashable] | None
    actions: Iterable[Hashable] | None


def read_terms(terms: Terms, stage_table: Int32Array, n_states: int, n_actions: int) -> tuple[Terms, BoolArray]:
    """The terms, read once, and which pairs of each table some stage can take, (tables, S, A): these have next states.

    For what is made of tables of probabilities, where the rows of other pairs are not to be read.
    """
    shape = (len(stage_table), n_states, n_actions)
    states = check_labels("states", terms.get("states"), n_states)
    actions = check_labels("actions", terms.get("actions"), n_actions)
    ends = check_terminal(terms.get("terminal"), states, n_states)
    allowed = check_available(terms.get("available"), shape, states, actions)
    read: Terms = {**terms, "states": states, "actions": actions, "terminal": ends, "available": allowed}
    mask = _allowed(allowed, ends, shape)
    exists = np.full((int(stage_table.max()) + 1, n_states, n_actions), mask is None)
    if mask is not None:
        np.logical_or.at(exists, stage_table, np.broadcast_to(mask, shape))
    return read, exists


@checked(discount=require_share)
def from_function(
    cls: type[Problem],
    horizon: int,
    n_states: int,
    n_actions: int,
    *,
    features: FeatureFunction,
    reward: RewardLike | None = None,
    cost: RewardLike | None = None,
    terminal_reward: Any = None,
    terminal_cost: Any = None,
    discount: float = 1.0,
    available: Any = None,
    terminal: Any = None,
    start: Any = 0,
    param_bound: float,
    shared_parameter: bool = False,
    normalise: bool = False,
    offset: Callable[[int, int, int], ArrayLike] | None = None,
    states: Iterable[Hashable] | None = None,
    actions: Iterable[Hashable] | None = None,
) -> Problem:
    """Build from ``features(h, s, a) -> (next_states, phi)``; see :meth:`livarot.MNLMDP.from_function`."""
    shape = (horizon, n_states, n_actions)
    kept = 50 * n_states * n_actions + horizon * (n_states * n_actions + 1)  # 50 for one answer; and the rewards
    require_memory("n_states", "the answers of features for every (s, a)", kept)
    names = Names(check_labels("states", states, n_states), check_labels("actions", actions, n_actions))
    ends = check_terminal(terminal, names.states, n_states)
    allowed = _allowed(check_available(available, shape, *names), ends, shape)
    rows: dict[str, Any] = collect_stages(shape, features, offset, allowed)
    return cls.from_arrays(
        *shape,
        **rows,
        reward=reward,
        cost=cost,
        terminal_reward=terminal_reward,
        terminal_cost=terminal_cost,
        discount=discount,
        terminal=ends,
        start=start,
        param_bound=param_bound,
        shared_parameter=shared_parameter,
        normalise=normalise,
        states=names.states,
        actions=names.actions,
    )


def _allowed(mask: BoolArray | None, ends: BoolArray | None, shape: tuple[int, int, int]) -> BoolArray | None:
    """The pairs that a user's function is asked about: those that may exist, in states where the episode goes on."""
    if ends is None:
        return mask
    return np.broadcast_to(True if mask is None else mask, shape[1:] if mask is None else mask.shape) & ~ends[:, None]


@checked(discount=require_share)
def from_arrays(
    cls: type[Problem],
    horizon: int,
    n_states: int,
    n_actions: int,
    *,
    outcomes: ArrayLike,
    next_state: ArrayLike,
    features: Any,
    reward: RewardLike | None = None,
    cost: RewardLike | None = None,
    terminal_reward: Any = None,
    terminal_cost: Any = None,
    discount: float = 1.0,
    available: Any = None,
    terminal: Any = None,
    param_bound: float,
    start: Any = 0,
    stage_table: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    shared_parameter: bool = False,
    normalise: bool = False,
    states: Iterable[Hashable] | None = None,
    actions: Iterable[Hashable] | None = None,
) -> Problem:
    """Build from long arrays; see :meth:`livarot.MNLMDP.from_arrays`."""
    require_memory("horizon", "the rewards (H, S, A)", horizon * n_states * n_actions)
    names = Names(check_labels("states", states, n_states), check_labels("actions", actions, n_actions))
    counts = check_outcomes(outcomes, n_states * n_actions).reshape(-1, n_states, n_actions)
    long = check_long(counts, next_state, features, offset, check_stage_table(stage_table, len(counts), horizon))
    ends = check_terminal(terminal, names.states, n_states)
    long = long.only(check_available(available, (horizon, n_states, n_actions), *names), ends)
    if not long.complete:
        require_actions(long.counts, long.stage_table, ends)
    gains = read_gains(reward, cost, long, ends, names)
    final = read_terminal(terminal_reward, terminal_cost, n_states, names.states)
    costs = cost is not None or (reward is None and terminal_cost is not None)
    paid = normalised(gains, final, long, ends, discount, costs)
    next_reward = None
    if paid.more is not None:
        long, next_reward = long.with_rows(paid.more)
    rows, scale = check_rows(long, normalise)
    return cls(
        horizon=horizon,
        rows=rows,
        stage_table=long.stage_table,
        reward=paid.reward,
        start=check_start(start, n_states, names.states),
        param_bound=param_bound * scale,
        shared_parameter=shared_parameter,
        feature_scale=scale,
        states=names.states,
        actions=names.actions,
        discount=discount,
        next_reward=next_reward,
        terminal_reward=paid.terminal_reward,
        terminal=ends,
        units=paid.units,
    )


@checked(discount=require_share)
def model_from_function(
    cls: type[MNLMDP],
    horizon: int,
    n_states: int,
    n_actions: int,
    *,
    features: FeatureFunction,
    reward: RewardLike | None = None,
    cost: RewardLike | None = None,
    theta: ArrayLike,
    terminal_reward: Any = None,
    terminal_cost: Any = None,
    discount: float = 1.0,
    available: Any = None,
    terminal: Any = None,
    start: Any = 0,
    param_bound: float | None = None,
    normalise: bool = False,
    offset: Callable[[int, int, int], ArrayLike] | None = None,
    states: Iterable[Hashable] | None = None,
    actions: Iterable[Hashable] | None = None,
) -> MNLMDP:
    """Build from a function ``features(h, s, a) -> (next_states, phi)``, ``h`` from 0.

    ``next_states`` are U different states, ``phi`` is (U, d), dense or a scipy sparse array; None is the answer for an
    action that does not exist in the state.  ``theta`` (d,) is shared by all stages, (H, d) gives one per stage.
    ``offset(h, s, a)`` is added to the U logits.  ``param_bound`` None is the largest |theta|.  ``normalise=True``
    divides the features by their largest norm and multiplies theta and the bound by it.

    ``reward``, or ``cost``, its negative, is of any scale: an array (S, A), (H, S, A), (S, A, S') or (H, S, A, S'), a
    function of (h, s, a) or of (h, s, a, s'), or a table ``{(state, action): number}`` or
    ``{(state, action, next_state): number}`` with the names of the model.  ``terminal_reward``, or ``terminal_cost``,
    is what the last state is worth: (S,) numbers, one for all, or ``{state: number}``, 0 for states not in it.
    ``discount`` is from 0 to 1.  Results are in the units of these numbers (``problem.units``).

    ``available`` says which actions exist: bools (S, A) or (H, S, A), or a list of actions for each state (a table
    ``{state: actions}``).  ``terminal`` lists states without actions where an episode is over: V_h(s) is the terminal
    reward of s at every stage.  Functions are not asked about what does not exist.

    ``start`` is a state or a distribution over states.  ``states`` and ``actions`` are their names, any hashables, all
    different: use them wherever a state or an action is asked for.  (A number as ``start`` is always the number of a
    state.)
    """
    from livarot.model.problem import Problem  # which has these constructors as its methods

    vector, bound, shared = check_theta(theta, param_bound)
    problem = Problem.from_function(
        horizon,
        n_states,
        n_actions,
        features=features,
        reward=reward,
        cost=cost,
        terminal_reward=terminal_reward,
        terminal_cost=terminal_cost,
        discount=discount,
        available=available,
        terminal=terminal,
        start=start,
        param_bound=bound,
        shared_parameter=shared,
        normalise=normalise,
        offset=offset,
        states=states,
        actions=actions,
    )
    return cls(problem, vector * problem.feature_scale)


@checked(discount=require_share)
def model_from_arrays(
    cls: type[MNLMDP],
    horizon: int,
    n_states: int,
    n_actions: int,
    *,
    outcomes: ArrayLike,
    next_state: ArrayLike,
    features: Any,
    reward: RewardLike | None = None,
    cost: RewardLike | None = None,
    theta: ArrayLike,
    terminal_reward: Any = None,
    terminal_cost: Any = None,
    discount: float = 1.0,
    available: Any = None,
    terminal: Any = None,
    start: Any = 0,
    stage_table: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    param_bound: float | None = None,
    normalise: bool = False,
    states: Iterable[Hashable] | None = None,
    actions: Iterable[Hashable] | None = None,
) -> MNLMDP:
    """Build from long arrays, for large models.

    ``outcomes`` (S, A), or (tables, S, A), counts the reachable next states of each pair, 0 for an action that does not
    exist; ``next_state`` (rows,), ``features`` (rows, d) (dense or scipy sparse) and ``offset`` (rows,) list them in
    that order.  ``stage_table`` (H,) says which table a stage uses; None suffices if there is one table, or one per
    stage.  Rows of actions that are not ``available``, and of ``terminal`` states, are left out.  The rest is as in
    :meth:`from_function`.
    """
    from livarot.model.problem import Problem  # which has these constructors as its methods

    vector, bound, shared = check_theta(theta, param_bound)
    problem = Problem.from_arrays(
        horizon,
        n_states,
        n_actions,
        outcomes=outcomes,
        next_state=next_state,
        features=features,
        reward=reward,
        cost=cost,
        terminal_reward=terminal_reward,
        terminal_cost=terminal_cost,
        discount=discount,
        available=available,
        terminal=terminal,
        param_bound=bound,
        start=start,
        stage_table=stage_table,
        offset=offset,
        shared_parameter=shared,
        normalise=normalise,
        states=states,
        actions=actions,
    )
    return cls(problem, vector * problem.feature_scale)
