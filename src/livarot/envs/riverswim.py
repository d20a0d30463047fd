"""RiverSwim (Osband 2013; the variant of Cho et al. 2024), as an MNL MDP (certain).

States 0..S-1 on a river, start at 0.  *Left* always moves one state down and pays 5/1000 at state 0.  *Right* fights
the current: at 0 it stays with .4 and moves up with .6; in the middle .05 down, .6 stay, .35 up; at the top .4 down,
.6 stay.  Right at the top pays 1.

Two encodings of the same kernel:

``one-hot``  one coordinate per (s, a, s') except a support state with phi = 0, the most likely one; theta is the
             log-odds against it.  Nothing is shared between states: Gram matrices fall into blocks of size 1 or 2.
``moves``    shared features of "right" (up / down, and the same at either bank): d = 4, the few numbers that really
             describe the river.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from livarot.core.problem import MNLMDP
from livarot.errors import bad, require_positive_int

LEFT, RIGHT = 0, 1
SMALL_REWARD = 5.0 / 1000.0


def river_row(n_states: int, state: int) -> list[tuple[int, float]]:
    """Next states and probabilities of swimming right."""
    if state == 0:
        return [(0, 0.4), (1, 0.6)]
    if state == n_states - 1:
        return [(state - 1, 0.4), (state, 0.6)]
    return [(state - 1, 0.05), (state, 0.6), (state + 1, 0.35)]


def river_swim(
    n_states: int = 6,
    horizon: int = 20,
    *,
    features: Literal["one-hot", "moves"] = "one-hot",
    shared_parameter: bool = False,
    param_bound: float | None = None,
) -> MNLMDP:
    """RiverSwim with one parameter per stage, or one shared by all.

    >>> import livarot
    >>> round(float(livarot.solve(river_swim(6, 20)).value[0, 0]), 4)
    3.3973
    """
    require_positive_int("n_states", n_states, minimum=2)
    require_positive_int("horizon", horizon)
    if features not in ("one-hot", "moves"):
        raise bad("features", f"{features!r} is unknown", cure="choose 'one-hot' or 'moves'")
    outcomes = np.ones((n_states, 2), dtype=np.int64)
    next_state: list[int] = []
    rows: list[dict[int, float]] = []  # one sparse row per outcome
    weights: list[float] = []  # one-hot: theta, coordinate by coordinate
    for s in range(n_states):
        next_state.append(max(s - 1, 0))
        rows.append({})
        river = river_row(n_states, s)
        outcomes[s, RIGHT] = len(river)
        support = max(range(len(river)), key=lambda i: river[i][1])
        for i, (target, p) in enumerate(river):
            next_state.append(target)
            if features == "moves":
                rows.append(_move_features(n_states, s, target))
            elif i == support:
                rows.append({})
            else:
                rows.append({len(weights): 1.0})
                weights.append(math.log(p / river[support][1]))
    theta = np.array(weights)
    if features == "moves":
        # against "stay": up and down in the middle, up at the lower bank, down at the upper bank
        theta = np.log([0.35 / 0.6, 0.05 / 0.6, 0.6 / 0.4, 0.4 / 0.6])
    dense = np.zeros((len(rows), len(theta)))
    for index, row in enumerate(rows):
        for column, value in row.items():
            dense[index, column] = value
    reward = np.zeros((n_states, 2))
    reward[0, LEFT] = SMALL_REWARD
    reward[-1, RIGHT] = 1.0
    return MNLMDP.from_arrays(
        horizon,
        n_states,
        2,
        outcomes=outcomes,
        next_state=next_state,
        features=dense,
        reward=reward,
        theta=theta if shared_parameter else np.tile(theta, (horizon, 1)),
        stage_table=np.zeros(horizon, dtype=np.int32),
        param_bound=param_bound,
    )


def _move_features(n_states: int, state: int, target: int) -> dict[int, float]:
    if target == state:
        return {}
    if state == 0:
        return {2: 1.0}
    if state == n_states - 1:
        return {3: 1.0}
    return {0: 1.0} if target > state else {1: 1.0}
