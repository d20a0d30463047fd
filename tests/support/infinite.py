"""Problems without stages, large and sparse."""

import numpy as np

from livarot.infinite import InfiniteMDP


def sparse_model(n, rng, *, near=None, n_actions=3, n_out=4):
    """Random laws over ``n_out`` states: anywhere, or within ``near`` of the state, so that the chain mixes slowly."""
    nexts = np.empty((n, n_actions, n_out), dtype=np.int64)
    for s in range(n):
        for a in range(n_actions):
            if near is None:
                nexts[s, a] = np.sort(rng.choice(n, n_out, replace=False))
            else:
                nexts[s, a] = np.sort((s + rng.choice(2 * near + 1, n_out, replace=False) - near) % n)
    law, reward = rng.dirichlet(np.ones(n_out), (n, n_actions)), rng.random((n, n_actions))
    return InfiniteMDP.from_function(
        n,
        n_actions,
        features=lambda s, a: (nexts[s, a], np.zeros((n_out, 1))),
        offset=lambda s, a: np.log(law[s, a]),
        reward=reward,
        theta=[0.0],
        param_bound=1.0,
    )
