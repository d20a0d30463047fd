"""How much a plan loses as the transitions are trusted less: robust values over a range of radii."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arrays import FloatArray, Int32Array, IntArray
from livarot.errors import bad, require_finite
from livarot.extras import extras_explained
from livarot.model.probabilities import Kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.model.shown import html_of, text_of
from livarot.planning.robust.nominal import as_nominal
from livarot.planning.robust.plan import evaluate_robust, solve_robust

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class RobustnessCurve:
    """Worst-case values at the start against the radius: of the robust policy and of the nominal one."""

    radii: FloatArray  # (n,)
    value: FloatArray  # (n,) of the robust policy of each radius
    nominal_value: FloatArray  # (n,) of the policy that is best at radius 0
    policy: Int32Array = field(repr=False)  # (n, H, S)
    changed: IntArray  # (n,) reachable (stage, state) where the policy differs from the nominal one
    problem: Problem = field(repr=False)

    def to_frame(self) -> pd.DataFrame:
        """One row per radius; costs, if costs were given."""
        with extras_explained():
            import pandas as pd

        name, sign = self._kind()
        return pd.DataFrame(
            {
                "radius": self.radii,
                f"robust {name}": 0.0 + sign * self.value,
                f"{name} of the nominal policy": 0.0 + sign * self.nominal_value,
                "changed": self.changed,
            }
        )

    def plot(self) -> Figure:
        """Worst-case values against the radius, and how much of the policy changes; the figure is returned."""
        with extras_explained():
            import matplotlib.pyplot as plt

        name, sign = self._kind()
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
        left.plot(self.radii, sign * self.value, marker="o", label="robust policy")
        left.plot(self.radii, sign * self.nominal_value, marker="s", linestyle="--", label="nominal policy")
        left.set(xlabel="radius (KL)", ylabel=f"worst-case {name} at the start")
        left.legend()
        right.plot(self.radii, self.changed, marker="o", color="tab:gray")
        right.set(xlabel="radius (KL)", ylabel="decisions that differ from the nominal policy")
        return figure

    def __repr__(self) -> str:
        return text_of("RobustnessCurve", self._lines())

    def _repr_html_(self) -> str:
        return html_of("RobustnessCurve", self._lines())

    def _kind(self) -> tuple[str, float]:
        return ("cost", -1.0) if self.problem.units.cost else ("value", 1.0)

    def _lines(self) -> dict[str, str]:
        name, sign = self._kind()
        lines = {"radius": f"robust {name}, {name} of the nominal policy, changed decisions"}
        for i in np.unique(np.linspace(0, len(self.radii) - 1, 8).astype(int)):
            numbers = f"{sign * self.value[i]:.6g}, {sign * self.nominal_value[i]:.6g}, {self.changed[i]}"
            lines[f"{self.radii[i]:.4g}"] = numbers
        return lines


def robustness_curve(nominal: MNLMDP | tuple[Problem, Kernel], radii: ArrayLike) -> RobustnessCurve:
    """Robust plans of :func:`livarot.solve_robust` for several radii, in the order given.

    >>> import livarot
    >>> livarot.robustness_curve(livarot.envs.river_swim(6, 20), [0.0, 0.01, 0.1])
    RobustnessCurve
      radius  robust value, value of the nominal policy, changed decisions
      0       3.39726, 3.39726, 0
      0.01    1.97117, 1.97108, 2
      0.1     0.280964, 0.272335, 10
    """
    listed = np.atleast_1d(require_finite("radii", radii))
    if listed.ndim != 1 or len(listed) == 0:
        raise bad("radii", f"has shape {listed.shape}", cure="list the radii, numbers >= 0")
    wrong = np.flatnonzero(listed < 0.0)
    if len(wrong):
        raise bad("radii", f"{listed[wrong[0]]:.6g} is negative", index=int(wrong[0]), count=len(wrong))
    model: Any = as_nominal(nominal)
    problem = model.problem
    plain = solve_robust(model, radius=0.0).policy
    plans = [solve_robust(model, radius=float(radius)) for radius in listed]
    kept = [evaluate_robust(model, plain, radius=float(radius)) for radius in listed]
    reach = problem.reachable[:-1]
    return RobustnessCurve(
        listed,
        np.array([float(problem.start @ plan.value[0]) for plan in plans]),
        np.array([float(problem.start @ value[0]) for value in kept]),
        np.stack([plan.policy for plan in plans]),
        np.array([int(((plan.policy != plain) & reach).sum()) for plan in plans]),
        problem,
    )
