"""A combination lock as an MNL MDP: one action opens each stage, and only the features say which ones are alike.

Two states, *open* (0) and *shut* (1); the start is open, shut is absorbing, and the last stage pays 1 if the lock is
still open.  Every action a has a unit vector x_a of dimension d, drawn once; every stage has a secret action a_h:

    P(stays open | a, stage h) = sigmoid(clarity x_{a_h} . x_a - hardness)
    phi(open|a) = x_a,  phi(shut|a) = 0,  offset(open) = -hardness (known),  theta_h = clarity x_{a_h}

so the best action is a_h, it keeps the lock open with probability p = sigmoid(clarity - hardness), and

    V*_1 = p^(H-1).

A policy that does not know the combination hardly ever sees the later stages: uniform play has about .2^(H-1).  What
is learned about one action tells about the others, since there are more actions than dimensions.
"""

from __future__ import annotations

import numpy as np

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.model.problem import MNLMDP
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory

OPEN, SHUT = 0, 1


@checked
def combination_lock(
    horizon: int = 8,
    n_actions: int = 10,
    dim: int = 4,
    clarity: float = 6.0,
    hardness: float = 2.0,
    seed: int = 0,
    *,
    param_bound: float | None = None,
) -> MNLMDP:
    """The lock; the features are the same for all seeds, ``seed`` draws the combination.

    >>> import livarot, math
    >>> value = livarot.solve(combination_lock(8)).value[0, 0]
    >>> round(float(value), 6), round((1 / (1 + math.exp(-4.0))) ** 7, 6)
    (0.88069, 0.88069)
    """
    require_memory("horizon", "the lock", 4 * horizon * n_actions * (dim + 10))
    x = stream(0, "combination lock features").normal(size=(n_actions, dim))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    secret = stream(seed, "combination lock").integers(n_actions, size=horizon)
    reward = np.zeros((horizon, 2, n_actions))
    reward[-1, OPEN] = 1.0

    def features(h: int, s: int, a: int) -> tuple[list[int], FloatArray]:
        stays = np.zeros((1, dim))
        return ([SHUT], stays) if s == SHUT else ([OPEN, SHUT], np.concatenate((x[a : a + 1], stays)))

    return MNLMDP.from_function(
        horizon,
        2,
        n_actions,
        features=features,
        offset=lambda h, s, a: [0.0] if s == SHUT else [-hardness, 0.0],
        reward=reward,
        theta=clarity * x[secret],
        start=OPEN,
        param_bound=clarity if param_bound is None else param_bound,
    )
