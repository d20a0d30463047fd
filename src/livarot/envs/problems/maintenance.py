"""Machine maintenance: a practical example.  **Synthetic**: the numbers are plausible but made up.

A machine runs 26 weeks.  Its state is its wear 0 (new) .. 4 (worn out), or 5: broken down.  Every week it runs *gently*
(pays .6), runs *hard* (pays 1), or is *serviced* (pays 0).  A running machine stays as it is, wears by one level, or
breaks down; a serviced one stays, improves by one level, or is as new; a broken one is repaired by service, or not.
The next state is a logit choice in eight features, the same every week; staying as it is has phi = 0:

=================  ==================================  =====  ===============================================
feature            1 (or the number given) if          theta  meaning
=================  ==================================  =====  ===============================================
wears              running, next is one level worse     -0.5  gently: odds .61 against staying
wears hard         the same, running hard                1.0  hard: odds 1.6
breaks             running, next is broken              -5.5  new machine, gently: odds .004
breaks by wear     the same, times wear/4                5.0  worn out, gently: odds .61
breaks hard        the same, running hard                1.0  worn out, hard: odds 1.6
improves           serviced, next is one level better    1.0  odds 2.7
as new             serviced, next is 0 (wear > 1)        2.0  odds 7.4
repaired           serviced when broken, next is 0      -1.5  odds .22: about five weeks
=================  ==================================  =====  ===============================================

The best policy runs the machine hard while it is young, services it when it is worn, and skips the service when the
end is near.
"""

from __future__ import annotations

import numpy as np

from livarot.core.arguments import checked
from livarot.model.building.validation import collect_stage
from livarot.model.problem import MNLMDP
from livarot.system.sizes import require_memory

GENTLY, HARD, SERVICE = range(3)
WORN_OUT, BROKEN = 4, 5
PAYS = (0.6, 1.0, 0.0)
THETA = (-0.5, 1.0, -5.5, 5.0, 1.0, 1.0, 2.0, -1.5)
WEARS, WEARS_HARD, BREAKS, BREAKS_BY_WEAR, BREAKS_HARD, IMPROVES, AS_NEW, REPAIRED = range(8)


@checked
def machine_maintenance(horizon: int = 26, *, param_bound: float | None = None) -> MNLMDP:
    """The machine over ``horizon`` weeks, beginning new; ``param_bound`` is for the features as listed above.

    >>> mdp = machine_maintenance()
    >>> mdp.probabilities(0, 0, GENTLY).round(4)  # stays new, wears, breaks
    array([0.6209, 0.3766, 0.0025])
    """
    require_memory("horizon", "the stages of the model", 64 * horizon)
    week = collect_stage(0, np.ones((BROKEN + 1, len(PAYS)), dtype=np.bool_), _features, None)
    return MNLMDP.from_arrays(
        horizon,
        BROKEN + 1,
        len(PAYS),
        outcomes=week["outcomes"],
        next_state=week["next_state"],
        features=week["features"],
        reward=[[0.0] * len(PAYS) if wear == BROKEN else PAYS for wear in range(BROKEN + 1)],
        theta=THETA,
        stage_table=np.zeros(horizon, dtype=np.int32),
        param_bound=param_bound,
        normalise=True,
        states=("new", "wear 1", "wear 2", "wear 3", "worn out", "broken"),
        actions=("gently", "hard", "service"),
    )


def _features(h: int, wear: int, action: int) -> tuple[list[int], list[list[float]]]:
    """The reachable states and their features."""
    stays = [0.0] * len(THETA)
    if wear == BROKEN:
        return ([BROKEN, 0], [stays, _row({REPAIRED: 1.0})]) if action == SERVICE else ([BROKEN], [stays])
    if action == SERVICE:
        better = [(wear, stays)]
        if wear > 0:
            better.append((wear - 1, _row({IMPROVES: 1.0})))
        if wear > 1:
            better.append((0, _row({AS_NEW: 1.0})))
        return [state for state, _ in better], [row for _, row in better]
    hard = float(action == HARD)
    breaks = _row({BREAKS: 1.0, BREAKS_BY_WEAR: wear / WORN_OUT, BREAKS_HARD: hard})
    if wear == WORN_OUT:
        return [wear, BROKEN], [stays, breaks]
    return [wear, wear + 1, BROKEN], [stays, _row({WEARS: 1.0, WEARS_HARD: hard}), breaks]


def _row(values: dict[int, float]) -> list[float]:
    return [values.get(column, 0.0) for column in range(len(THETA))]
