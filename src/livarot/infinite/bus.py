"""Rust's bus engines: keep one running at a rising cost of maintenance, or replace it."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.tolerances import SUM_SLACK
from livarot.errors import bad, require_finite, require_positive_int
from livarot.infinite.problem import InfiniteMDP
from livarot.infinite.terms import below_one
from livarot.system.sizes import require_memory

PUBLISHED = (0.3919, 0.5953, 0.0128)
ACTIONS = ("keep", "replace")


@checked(n_bins=partial(require_positive_int, minimum=2, maximum=10**6), discount=below_one)
def bus_engine(
    n_bins: int = 90,
    *,
    increments: ArrayLike = PUBLISHED,
    maintenance: float = 2.2930,
    replacement: float = 10.0750,
    discount: float = 0.9999,
) -> InfiniteMDP:
    """The engine replacement problem of Rust (Econometrica 55, 1987) as a stationary model, in costs per month.

    A state is the mileage since the last replacement, in ``n_bins`` bins of 5000 miles; in a month it rises by 0, 1, 2,
    .. bins with the probabilities ``increments``, and stays in the last bin once there.  Keeping the engine in bin x
    costs .001 ``maintenance`` x; replacing it costs ``replacement`` and starts from bin 0.  The increments are a
    multinomial logit: theta_k = log(q_k/q_0), one feature for each increment above 0 (where the last bin cuts some of
    them off, the law is taken as known).

    *Published* (Table IX, group 4, discount .9999): the bins, the form of the costs, maintenance 2.2930 and replacement
    10.0750 (in units of the scale of his shocks), and the increments .3919, .5953 and .0128.
    *Not there*: Rust's private shocks to each choice, which make his policy a probability: here the mean costs are
    minimised, so the policy is a threshold.  Logs made with :func:`simulate` are simulated, not Rust's records.

    >>> from livarot.infinite import solve
    >>> found = solve(bus_engine())
    >>> int((np.asarray(found.policy) == 1).argmax()), found.policy.action(0)     # the first bin where it is replaced
    (74, 'keep')
    """
    q = require_finite("increments", increments)
    require_memory("n_bins", "the bins", 100 * n_bins)
    if q.ndim != 1 or not 2 <= len(q) <= n_bins or (q <= 0.0).any():
        raise bad("increments", f"{q} are not probabilities of 0, 1, 2, .. bins", cure="give two or more numbers > 0")
    if abs(q.sum() - 1.0) > SUM_SLACK:
        raise bad("increments", f"sum to {q.sum():.9g}, not 1", cure="divide them by their sum")
    most, logs = len(q) - 1, np.log(q)
    outcomes, nexts, features, offset = [], [], [], []
    for s in range(n_bins):
        for from_bin in (s, 0):
            n = min(most, n_bins - 1 - from_bin) + 1
            outcomes.append(n)
            nexts.append(from_bin + np.arange(n))
            whole = n == most + 1
            features.append(np.eye(most + 1, most, -1)[:n] if whole else np.zeros((n, most)))
            cut = np.append(logs[: n - 1], np.log(q[n - 1 :].sum()))
            offset.append(np.zeros(n) if whole else cut)
    cost = np.column_stack((0.001 * maintenance * np.arange(n_bins), np.full(n_bins, replacement)))
    return InfiniteMDP.from_arrays(
        n_bins,
        2,
        outcomes=np.array(outcomes),
        next_state=np.concatenate(nexts),
        features=np.concatenate(features),
        offset=np.concatenate(offset),
        theta=logs[1:] - logs[0],
        cost=cost,
        discount=discount,
        actions=ACTIONS,
    )
