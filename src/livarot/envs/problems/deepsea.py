"""DeepSea (Osband et al.), as an MNL MDP.

A diver sinks one row per step through a grid of N rows and goes left or right; the state is (row r, column c),
c <= r, and the horizon is N.  *Right* costs .01/N, and pays 1 in the lowest row at column N - 1, which only N - 1
moves to the right can reach.  *Left* moves to max(c - 1, 0) and is free.

All pairs of the deterministic version have one outcome: there is nothing to learn, since the learner knows the
reachable sets.  Hence ``slip``: going right keeps the column with this probability.  The default 1/N is that of the
stochastic version of the behaviour suite (likely; its reward noise is left out, since rewards are known here).  The
same action is "right" in all states (the reachable sets would reveal it anyway).

With p = 1 - slip and c = .01/N the value on the diagonal is

    V_{N-1} = 1 - c,   V_h = max(0, -c + p V_{h+1}),   V* = p^{N-1} - c (1 - p^N)/(1 - p)

where that is positive.  Rewards are shifted by c to lie in [0, 1]:
``mdp.original_value`` gives the values above.

``one-hot`` features have one coordinate per state in which right may slip, N (N - 1)/2; ``slips`` shares one: d = 1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy

from livarot.core.arguments import checked, several
from livarot.envs.features import FeatureMap, Function
from livarot.envs.tabular import TabularMDP, from_tabular
from livarot.errors import bad
from livarot.system.sizes import require_memory

LEFT, RIGHT = 0, 1
MOVE_COST = 0.01  # in all, over N moves to the right


def cell(row: int, column: int) -> int:
    """The state of a cell of the triangle."""
    return row * (row + 1) // 2 + column


@checked(size=several)
def deep_sea(
    size: int = 8,
    *,
    slip: float | None = None,
    features: Literal["one-hot", "slips"] = "one-hot",
    shared_parameter: bool = True,
    param_bound: float | None = None,
) -> TabularMDP:
    """DeepSea with ``size`` rows; ``slip`` None is 1/size, 0 is the deterministic version.

    >>> import livarot
    >>> mdp = deep_sea(8, slip=0.0)
    >>> round(float(mdp.original_value(livarot.solve(mdp).value)[0, 0]), 12)
    0.99
    """
    slips = 1.0 / size if slip is None else slip
    if slips >= 1.0:
        raise bad("slip", f"must be below 1, got {slips:.6g}")
    maps: dict[str, Literal["one-hot"] | FeatureMap] = {"one-hot": "one-hot", "slips": Function(_stays)}
    n_states = cell(size, 0)
    require_memory("size", "the sea and its rewards", n_states * (2 * size + 100))
    kernel = scipy.sparse.lil_array((2 * n_states, n_states))
    reward = np.zeros((n_states, 2))
    for row in range(size):
        for column in range(row + 1):
            state = cell(row, column)
            reward[state, RIGHT] = -MOVE_COST / size
            if row == size - 1:  # the last step: where it leads does not matter
                kernel[2 * state + LEFT, state] = kernel[2 * state + RIGHT, state] = 1.0
                continue
            kernel[2 * state + LEFT, cell(row + 1, max(column - 1, 0))] = 1.0
            kernel[2 * state + RIGHT, cell(row + 1, column + 1)] = 1.0 - slips
            if slips > 0.0:
                kernel[2 * state + RIGHT, cell(row + 1, column)] = slips
    reward[cell(size - 1, size - 1), RIGHT] += 1.0
    return from_tabular(
        kernel.tocsr(),
        reward,
        size,
        cell(0, 0),
        features=maps[features],
        shared_parameter=shared_parameter,
        rescale=True,
        param_bound=param_bound,
        states=[(row, column) for row in range(size) for column in range(row + 1)],
        actions=("left", "right"),
    )


def _stays(state: int, action: int, next_state: int) -> float:
    """1 if the diver slipped: the column is the same, one row below."""
    row, other = (int((np.sqrt(8 * s + 1) - 1) // 2) for s in (state, next_state))
    slipped = other == row + 1 and next_state - cell(other, 0) == state - cell(row, 0)
    return float(action == RIGHT and slipped)
