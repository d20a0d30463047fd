"""The two-state instance of Park, Kwon and Lee, over a finite horizon.

State 1 pays 1 at every step, state 0 pays nothing; the start is 0 and the actions are {-1, 1}^{d-1}.  From state 1 the
walk falls back with probability delta (``base_probability``) whatever the action; from state 0 the right signs x climb
a little more often.  With Delta (``gap``) and bD, alpha, beta as in the hard chain (:mod:`livarot.envs.problems.hard`):

    phi(0|0, a) = (-alpha a, beta log(1/delta - 1)),   phi(1|0, a) = 0
    phi(1|1, a) = (0,        beta log(1/delta - 1)),   phi(0|1, a) = 0
    theta = (bD x / alpha, 1 / beta)

for all stages, so that P(1|0, a) = 1/(1 + (1/delta - 1) exp(-bD x . a)), which is delta + (d-1) Delta at a = x, and
P(0|1, a) = delta.  Features are then divided by their largest norm (theta multiplied by it).

The values d = 4, delta = .25 and the all-ones sign vector are those of the authors' experiment (certain).  Their
instance is for an infinite horizon; that its MNL features are these, by analogy with the chain, is likely.  Their
parameter .01 is read as Delta: a guess.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from livarot.core.arguments import checked, several
from livarot.envs.problems.hard import require_sign_actions, sign_features
from livarot.model.problem import MNLMDP
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory


@checked(dim=several)
def park_two_state(
    horizon: int = 20,
    dim: int = 4,
    base_probability: float = 0.25,
    gap: float = 0.01,
    seed: int | None = None,
    *,
    shared_parameter: bool = True,
    param_bound: float | None = None,
) -> MNLMDP:
    """Two states, 2^(d-1) actions; ``seed`` None takes all signs +1, as published, a number draws them.

    >>> mdp = park_two_state()
    >>> [round(float(mdp.probabilities(0, 0, a)[1]), 6) for a in (0, 7)]
    [0.222222, 0.28]
    """
    require_sign_actions(dim - 1)
    require_memory("horizon", "the rewards and rows of the model", 2 ** (dim - 1) * (2 * horizon + 4 * dim + 16))
    climb = sign_features(base_probability, gap, dim - 1)
    x = np.ones(dim - 1) if seed is None else stream(seed, "two-state signs").choice((-1.0, 1.0), size=dim - 1)
    actions = np.array(list(product((-1.0, 1.0), repeat=dim - 1)))
    bias = np.full((len(actions), 1), climb.bias)
    staying_low = np.hstack((-climb.alpha * actions, bias))
    staying_high = np.hstack((np.zeros_like(actions), bias))
    features = np.zeros((2, len(actions), 2, dim))  # outcomes 0 and 1, in this order
    features[0, :, 0] = staying_low
    features[1, :, 1] = staying_high
    theta = np.append(climb.tilt / climb.alpha * x, 1.0 / climb.beta)
    return MNLMDP.from_arrays(
        horizon,
        2,
        len(actions),
        outcomes=np.full((2, len(actions)), 2),
        next_state=np.tile([0, 1], 2 * len(actions)),
        features=features.reshape(-1, dim),
        reward=np.repeat([[0.0], [1.0]], len(actions), axis=1),
        theta=theta if shared_parameter else np.tile(theta, (horizon, 1)),
        stage_table=np.zeros(horizon, dtype=np.int32),
        param_bound=None if param_bound is None else param_bound / float(np.linalg.norm(staying_low, axis=1).max()),
        normalise=True,
    )
