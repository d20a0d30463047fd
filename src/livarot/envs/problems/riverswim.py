"""RiverSwim in its four published variants, as an MNL MDP.

States 0..S-1 on a river.  *Left* always moves one state down and pays a little at state 0.  *Right* fights the current
and pays at the top.  Probabilities of swimming right, (down, stay, up):

=========  =====================  =================  =================  =======================  ==================
variant    middle                 lowest: stay, up   top: down, stay    pays: left at 0; right   start
=========  =====================  =================  =================  =======================  ==================
osband     .05, .6, .35           .4, .6             .4, .6             .005; 1                  0
park       .05, .6, .35           .4, .6             .4, .6             .05; 1                   0
vtr        .1, .6, .3             .3, .7             .1, .9             .005; 1                  0
strehl     .1, .6, .3             .7, .3             .7, .3             .0005; 1 if it stays     states 1 and 2, .5
=========  =====================  =================  =================  =======================  ==================

``osband`` is that of Osband 2013 and Cho et al. 2024 (certain), ``park`` the copy of Park et al. with another small
reward (certain), ``vtr`` that of the UCRL-VTR code, S = 5 and H = 20 there (certain), ``strehl`` that of Strehl and
Littman 2008, S = 6, rewards 5 and 10000 divided by 10000 (sizes and rewards certain, rows likely).  There the large
reward is paid for *staying* at the top, so the reward of swimming right at the top is its expectation .3.

**The four variants test little** where the reachable sets are known, as they are here: *left* is then certain, and the
plan at theta = 0 is already optimal.  They stay for comparison with older work and are left out of rankings.  In
:func:`unknown_river` (ours) both actions have the same outcomes, so that what an action does has to be learned: *left*
moves down, stays or moves up with probability .9, .08, .02; at the bottom it stays or moves up with .98, .02, at the
top it moves down or stays with .9, .1.

Two encodings of the same kernel (:mod:`livarot.envs.features`):

``one-hot``  one coordinate per (s, a, s') except a support state with phi = 0, the most likely one; theta is the
             log-odds against it.  Nothing is shared between states: Gram matrices fall into blocks of size 1 or 2.
``moves``    shared features of "right" (up / down, and the same at either bank): d = 4, the few numbers that really
             describe the river; d = 8 with an uncertain left.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.envs.tabular import TabularMDP, from_tabular
from livarot.errors import require_positive_int
from livarot.system.sizes import require_memory

LEFT, RIGHT = 0, 1


class River(NamedTuple):
    """Swimming right: (down, stay, up) in the middle, (stay, up) at the bottom, (down, stay) at the top; what pays."""

    middle: tuple[float, float, float]
    bottom: tuple[float, float]
    top: tuple[float, float]
    small_reward: float  # left at 0
    large_reward: float  # right at the top
    starts: tuple[int, ...] = (0,)


UNCERTAIN_LEFT = River((0.9, 0.08, 0.02), (0.98, 0.02), (0.9, 0.1), 0.0, 0.0)
RIVERS = {
    "osband": River((0.05, 0.6, 0.35), (0.4, 0.6), (0.4, 0.6), 5 / 1000, 1.0),
    "park": River((0.05, 0.6, 0.35), (0.4, 0.6), (0.4, 0.6), 0.05, 1.0),
    "vtr": River((0.1, 0.6, 0.3), (0.3, 0.7), (0.1, 0.9), 5 / 1000, 1.0),
    "strehl": River((0.1, 0.6, 0.3), (0.7, 0.3), (0.7, 0.3), 5 / 10000, 0.3, (1, 2)),
}


@checked
def river_swim(
    n_states: int = 6,
    horizon: int = 20,
    *,
    variant: Literal["osband", "park", "vtr", "strehl"] = "osband",
    features: Literal["one-hot", "moves"] = "one-hot",
    shared_parameter: bool = False,
    param_bound: float | None = None,
) -> TabularMDP:
    """RiverSwim with one parameter per stage, or one shared by all.

    >>> import livarot
    >>> round(float(livarot.solve(river_swim(6, 20)).value[0, 0]), 4)
    3.3973
    >>> round(float(livarot.solve(river_swim(5, 20, variant="vtr")).value[0, 0]), 4)
    5.5851
    """
    river = RIVERS[variant]
    require_positive_int("n_states", n_states, minimum=max(2, max(river.starts) + 1))
    require_memory("n_states", "the river", 2 * n_states * (horizon + 100))
    kernel = _kernel(river, n_states, None)
    start = np.zeros(n_states)
    start[list(river.starts)] = 1.0 / len(river.starts)
    return from_tabular(
        kernel,
        _rewards(river, n_states),
        horizon,
        start,
        features=features,
        shared_parameter=shared_parameter,
        param_bound=param_bound,
        actions=("left", "right"),
    )


@checked
def unknown_river(
    n_states: int = 6,
    horizon: int = 20,
    *,
    features: Literal["one-hot", "moves"] = "moves",
    shared_parameter: bool = True,
    param_bound: float | None = None,
) -> TabularMDP:
    """RiverSwim (osband) in which both actions have the same outcomes, so that what they do has to be learned.

    >>> import livarot
    >>> round(float(livarot.solve(unknown_river(6, 20)).value[0, 0]), 4)
    3.3972
    """
    river = RIVERS["osband"]
    require_positive_int("n_states", n_states, minimum=2)
    require_memory("n_states", "the river", 2 * n_states * (horizon + 100))
    return from_tabular(
        _kernel(river, n_states, UNCERTAIN_LEFT),
        _rewards(river, n_states),
        horizon,
        0,
        features=features,
        shared_parameter=shared_parameter,
        param_bound=param_bound,
        actions=("left", "right"),
    )


def _kernel(right: River, n_states: int, left: River | None) -> Any:
    """The sparse kernel (2 S, S); without ``left`` swimming left is certain."""
    kernel = scipy.sparse.lil_array((2 * n_states, n_states))
    for s in range(n_states):
        for target, p in [(max(s - 1, 0), 1.0)] if left is None else river_row(left, n_states, s):
            kernel[2 * s + LEFT, target] = p
        for target, p in river_row(right, n_states, s):
            kernel[2 * s + RIGHT, target] = p
    return kernel.tocsr()


def _rewards(river: River, n_states: int) -> FloatArray:
    reward = np.zeros((n_states, 2))
    reward[0, LEFT] = river.small_reward
    reward[-1, RIGHT] = river.large_reward
    return reward


def river_row(river: River, n_states: int, state: int) -> list[tuple[int, float]]:
    """Next states and probabilities of a move."""
    if state == 0:
        return list(zip((0, 1), river.bottom, strict=True))
    if state == n_states - 1:
        return list(zip((state - 1, state), river.top, strict=True))
    return list(zip((state - 1, state, state + 1), river.middle, strict=True))
