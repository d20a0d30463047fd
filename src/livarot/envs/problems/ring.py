"""Many coordinates, few of them in each pair: what a dimension costs when it is not spread over all pairs.

S states on a ring; from s the actions reach s + 1 and U - 1 other states drawn without replacement.  Every outcome but
the first has a feature with k non-zero entries among d coordinates (places drawn, signs +-1/sqrt k, so |phi| = 1), the
first has phi = 0.  theta is uniform on the sphere of radius B, one for all stages.  State S - 1 pays 1,
state 0, the start, a tenth, and all others nothing.

Pairs share coordinates by chance, so Gram matrices do not fall into small blocks, but each pair touches at most
(U - 1) k of the d coordinates.
"""

from __future__ import annotations

import math

import numpy as np

from livarot.core.arguments import checked
from livarot.errors import bad
from livarot.model.problem import MNLMDP
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory


@checked
def sparse_mdp(
    n_states: int = 10,
    n_actions: int = 4,
    n_reachable: int = 3,
    dim: int = 50,
    n_active: int = 3,
    horizon: int = 10,
    param_bound: float = 8.0,
    seed: int = 0,
) -> MNLMDP:
    """The ring; the reachable sets and features are the same for all seeds, ``seed`` draws theta.

    >>> problem = sparse_mdp().problem
    >>> problem.dim, problem.max_reachable, int(problem.rows.col_count.max())
    (50, 3, 6)
    """
    if not 2 <= n_reachable <= n_states:
        raise bad("n_reachable", f"is {n_reachable}", cure=f"take 2 to {n_states}")
    if not 1 <= n_active <= dim:
        raise bad("n_active", f"is {n_active}", cure=f"take 1 to {dim}")
    require_memory("n_states", "the ring", n_states * n_actions * (n_reachable * (dim + 10) + horizon))
    draws = stream(0, "sparse features")
    sets, rows = {}, {}
    for s in range(n_states):
        for a in range(n_actions):
            ahead = (s + 1) % n_states
            others = draws.permutation([n for n in range(n_states) if n != ahead])[: n_reachable - 1]
            phi = np.zeros((n_reachable, dim))
            for i in range(1, n_reachable):
                phi[i, draws.permutation(dim)[:n_active]] = draws.choice((-1.0, 1.0), n_active) / math.sqrt(n_active)
            sets[s, a], rows[s, a] = [ahead, *map(int, others)], phi
    theta = stream(seed, "sparse parameter").normal(size=dim)
    theta *= param_bound / np.linalg.norm(theta)
    reward = np.zeros((n_states, n_actions))
    reward[-1], reward[0] = 1.0, 0.1
    return MNLMDP.from_function(
        horizon,
        n_states,
        n_actions,
        features=lambda h, s, a: (sets[s, a], rows[s, a]),
        reward=reward,
        theta=theta,
        start=0,
        param_bound=param_bound,
    )
