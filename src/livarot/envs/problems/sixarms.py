"""SixArms (Strehl and Littman 2008), as an MNL MDP (certain; there are two readings of room 1).

State 0 is the hub, 1..6 are the rooms.  In the hub, arm i = 0..5 opens room i + 1 with probability
1, .15, .1, .05, .03, .01 and does nothing otherwise.  In room i + 1 the matching action i stays and pays
50, 133, 300, 800, 1660, 6000 (divided by 6000 here); any other action returns to the hub and pays nothing.  Room 1 is
different as published: actions 0, 1, 2, 3 and 5 stay and pay, action 4 returns.  One re-implementation uses the
matching rule there as well: ``first_room="matching"``.  From the hub the best policy never opens room 1 (two steps
for 50/6000, against 1/100 with the last arm), so that V* is the same for both.

Only the five uncertain arms teach anything: d = 5 one-hot, and every other pair has one outcome.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from livarot.core.arguments import checked
from livarot.envs.tabular import TabularMDP, from_tabular

OPENS = (1.0, 0.15, 0.1, 0.05, 0.03, 0.01)
PAYS = (50.0, 133.0, 300.0, 800.0, 1660.0, 6000.0)
HUB, N_ARMS = 0, 6
STAYS_IN_ROOM_1 = (0, 1, 2, 3, 5)


@checked
def six_arms(
    horizon: int = 20,
    *,
    first_room: Literal["published", "matching"] = "published",
    shared_parameter: bool = True,
    param_bound: float | None = None,
) -> TabularMDP:
    """SixArms over ``horizon`` steps, beginning in the hub.

    >>> import livarot
    >>> [round(float(livarot.solve(six_arms(H)).value[0, 0]), 4) for H in (10, 20, 50)]
    [0.4382, 1.7907, 10.5006]
    """
    kernel = np.zeros((N_ARMS + 1, N_ARMS, N_ARMS + 1))
    reward = np.zeros((N_ARMS + 1, N_ARMS))
    for arm, (opens, pays) in enumerate(zip(OPENS, PAYS, strict=True)):
        room = arm + 1
        kernel[HUB, arm, HUB] = 1.0 - opens
        kernel[HUB, arm, room] = opens
        staying = STAYS_IN_ROOM_1 if arm == 0 and first_room == "published" else (arm,)
        for action in range(N_ARMS):
            kernel[room, action, room if action in staying else HUB] = 1.0
            reward[room, action] = pays / PAYS[-1] if action in staying else 0.0
    return from_tabular(
        kernel,
        reward,
        horizon,
        HUB,
        shared_parameter=shared_parameter,
        param_bound=param_bound,
        states=("hub", *(f"room {arm + 1}" for arm in range(N_ARMS))),
        actions=[f"arm {arm}" for arm in range(N_ARMS)],
    )
