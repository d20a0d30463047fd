"""What is known about the value of a policy from a log: estimates side by side, and how far to trust them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from livarot.core.arrays import FloatArray
from livarot.data.evaluation.estimators import Interval
from livarot.errors import bad
from livarot.extras import extras_explained

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("value", "standard_error", "lower", "upper")


@dataclass(frozen=True, eq=False)
class PolicyEvaluation:
    """Estimates of a policy's value by :func:`livarot.data.evaluate_policy`; ``found["doubly robust"]`` is one of them.

    ``effective`` is the effective sample size after each step, (T,); ``no_overlap`` lists the (state, action) that the
    policy takes where the log never did: index of labels, columns ``steps`` (logged steps at which it would) and
    ``first_step``.
    """

    estimates: dict[str, Interval]
    level: float
    n_episodes: int
    effective: FloatArray
    no_overlap: pd.DataFrame
    behaviour: str  # "known", "counts", "stage counts" or "logit"
    truncation: float = 0.0  # without an end: how far steps after the log can move a value; in the intervals

    def __getitem__(self, name: str) -> Interval:
        if name not in self.estimates:
            raise bad("name", f"there is no {name!r}", cure=f"it has {', '.join(map(repr, self.estimates))}")
        return self.estimates[name]

    def to_frame(self) -> pd.DataFrame:
        """One row per estimator: value, standard_error, lower, upper."""
        return pd.DataFrame.from_dict(self.estimates, orient="index", columns=list(COLUMNS)).rename_axis("estimator")

    @property
    def facts(self) -> list[str]:
        """What to know beside the estimates, a line each."""
        size = f"effective sample size {self.effective[-1]:.1f} of {self.n_episodes} episodes"
        lines = [f"{100 * self.level:g} % intervals; behaviour {self.behaviour}; {size}"]
        if self.truncation:
            steps = f"the {len(self.effective)} logged steps"
            lines.append(f"what comes after {steps} moves a value by at most {self.truncation:.4g}, in the intervals")
        if len(self.no_overlap):
            state, action = self.no_overlap.index[0]
            lines.append(f"no overlap: {len(self.no_overlap)} (state, action), such as {action!r} in {state!r}")
        return lines

    def __repr__(self) -> str:
        return "\n".join([self.to_frame().round(4).to_string(), *self.facts])

    def _repr_html_(self) -> str:
        import html

        notes = "".join(f"<p>{html.escape(line)}</p>" for line in self.facts)
        return str(self.to_frame().to_html()) + notes

    def plot(self, ax: Axes | None = None) -> Axes:
        """The intervals side by side."""
        if ax is None:
            with extras_explained():
                from matplotlib.figure import Figure

            ax = Figure(figsize=(5.5, 0.45 * len(self.estimates) + 1.0), layout="constrained").subplots()
        frame = self.to_frame()
        off = [frame["value"] - frame["lower"], frame["upper"] - frame["value"]]
        places = list(range(len(frame)))[::-1]
        ax.errorbar(frame["value"], places, xerr=off, fmt="o", markersize=5.0, linewidth=1.4, capsize=3.0)
        ax.set_yticks(places, list(frame.index))
        ax.set(xlabel=f"value, {100 * self.level:g} % interval", ylim=(-0.6, len(frame) - 0.4))
        ax.grid(axis="x", color="0.9")
        return ax
