"""The units of a user's rewards: the affine map into [0, 1], which the theory needs, and the way back.

Rewards r (costs are their negatives) of any scale are kept as r' = (r - low) / scale, terminal rewards g as
g' = (g - end) / scale, such that every step is worth between 0 and 1, the last one with the discounted terminal reward.
With steps_left = H - h and discount gamma

    V_h = scale V'_h + L(H - h),     L(n) = low (1 + gamma + ... + gamma^(n-1)) + gamma^n end,

the same for Q_h; regrets and other differences of values are multiplied by scale, variances by its square.  The map has
the same shift for every state and action, so optimal policies and optimism are the same in both units.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from livarot.core.arrays import FloatArray
from livarot.errors import bad, require_finite, require_share


class Units(NamedTuple):
    """How rewards were mapped into [0, 1].

    >>> dollars = Units(low=-100.0, scale=120.0)
    >>> dollars.value(1.5, steps_left=2), dollars.reward(0.5), dollars.regret(0.1)
    (-20.0, -40.0, 12.0)
    """

    low: float = 0.0  # the reward that became 0 ...
    scale: float = 1.0  # ... and what lies between it and the one that became 1
    end: float = 0.0  # the terminal reward that became 0
    discount: float = 1.0
    cost: bool = False  # were costs given?  Results are rewards all the same: negative costs

    @property
    def identity(self) -> bool:
        """Are rewards kept as they were given?"""
        return self.low == 0.0 and self.scale == 1.0 and self.end == 0.0

    def shift(self, steps_left: Any) -> Any:
        """L(n): what V' = 0 is worth with n steps left (arrays too)."""
        if self.discount == 1.0:
            return self.low * steps_left + self.end
        faded = np.power(self.discount, steps_left)
        return self.low * (1.0 - faded) / (1.0 - self.discount) + self.end * faded

    def value(self, value: Any, steps_left: Any) -> Any:
        """Values in the user's units; ``steps_left`` is H - h (arrays broadcast)."""
        return value if self.identity else self.scale * value + self.shift(steps_left)

    def values(self, value: FloatArray, horizon: int) -> FloatArray:
        """Values or Q-values with the stage on the first axis: H + 1 or H of them."""
        if self.identity:
            return value
        left = (horizon - np.arange(len(value))).reshape(-1, *(1,) * (value.ndim - 1))
        return np.asarray(self.value(value, left))

    def normalised(self, value: Any, steps_left: Any) -> Any:
        """The way there: values in [0, H - h] from those in the user's units."""
        return value if self.identity else (value - self.shift(steps_left)) / self.scale

    def regret(self, regret: Any) -> Any:
        """Differences of values: the shift cancels."""
        return regret if self.scale == 1.0 else self.scale * regret

    def variance(self, variance: Any) -> Any:
        """Variances of values."""
        return variance if self.scale == 1.0 else self.scale**2 * variance

    def reward(self, reward: Any) -> Any:
        """Rewards of a step."""
        return reward if self.low == 0.0 and self.scale == 1.0 else self.scale * reward + self.low

    def terminal_reward(self, reward: Any) -> Any:
        """Terminal rewards."""
        return reward if self.end == 0.0 and self.scale == 1.0 else self.scale * reward + self.end


PLAIN = Units()


def units_of(given: list[Any]) -> Units:
    """The units that stand in a file's header."""
    numbers: Any = require_finite("units", given).tolist()
    if len(numbers) != len(Units._fields) or numbers[1] <= 0.0 or numbers[4] not in (0.0, 1.0):
        raise bad("units", f"{given} are not units of rewards")
    return Units(numbers[0], numbers[1], numbers[2], require_share("discount", numbers[3]), bool(numbers[4]))
