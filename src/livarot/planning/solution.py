"""What :func:`livarot.solve` gives back: arrays that know their problem, its names and its units."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from livarot.core.arrays import FloatArray, Int32Array
from livarot.model.problem import Problem


class Arrays(NamedTuple):
    """Optimal values of every state and stage, reachable or not."""

    value: FloatArray  # (H + 1, S)
    q: FloatArray  # (H, S, A), -inf for actions that do not exist
    policy: Int32Array  # (H, S)
    variance: FloatArray  # (H, S) of what follows, r' + discount V*_{h+1}(s'), under the policy's action


class Solution(Arrays):
    """Optimal values of every state and stage, reachable or not, in the units of the rewards or costs that were given.

    It unpacks as ``value, q, policy, variance``.  Values are rewards: of a model with costs they are negative costs.
    """

    problem: Problem | None = None  # what was solved
    plain: Arrays | None = None  # the same in normalised units

    @classmethod
    def of(cls, problem: Problem, plain: Arrays) -> Self:
        """The solution of a problem from normalised values."""
        units, horizon = problem.units, problem.horizon
        value, q = units.values(plain.value, horizon), units.values(plain.q, horizon)
        made = cls(value, q, plain.policy, np.asarray(units.variance(plain.variance)))
        made.problem, made.plain = problem, plain
        return made

    @property
    def normalised(self) -> Arrays:
        """The same with rewards in [0, 1], as theory and audits take it."""
        return self if self.plain is None else self.plain

    def _replace(self, **changed: Any) -> Self:
        """A copy with other arrays; it no longer knows its normalised values."""
        made = type(self)(**(self._asdict() | changed))
        made.problem = self.problem
        return made
