"""The constructors of a model, from what a user gives: functions of (h, s, a), or long arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.model.labels import check_labels
from livarot.model.validation import (
    FeatureFunction,
    RewardLike,
    check_outcomes,
    check_reward,
    check_rows,
    check_stage_table,
    check_start,
    collect_stages,
)
from livarot.system.sizes import require_memory

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
    kept = 50 * n_states * n_actions + horizon * (n_states * n_actions + 1)  # 50 for one answer; and the rewards
    require_memory("n_states", "the answers of features for every (s, a)", kept)
    return cls.from_arrays(
        horizon,
        n_states,
        n_actions,
        **collect_stages(horizon, n_states, n_actions, features, offset),
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
    counts = check_outcomes(outcomes, n_states * n_actions)
    table = check_stage_table(stage_table, len(counts) // (n_states * n_actions), horizon)
    rows, scale = check_rows(n_states, n_actions, counts, next_state, features, offset, normalise)
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
