"""Figures of a fit: coefficients, and probabilities against a covariate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from livarot.core.arguments import checked
from livarot.data.fitting.effects import probability_interval
from livarot.data.fitting.summary import axes
from livarot.errors import bad, require_finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from livarot.data.estimator import MNLTransition


@checked
def plot_coefficients(fit: MNLTransition, level: float = 0.95, ax: Any = None) -> Axes:
    """Coefficients with their intervals."""
    return fit.summary(level).plot(ax)


@checked
def plot_probabilities(
    fit: MNLTransition,
    covariate: str,
    *,
    state: Any,
    action: Any = None,
    at: Mapping[str, Any] | None = None,
    values: ArrayLike | None = None,
    level: float = 0.95,
    ax: Any = None,
) -> Axes:
    """The probabilities of the next states of one (state, action) against a covariate, with bands.

    ``at`` has the other covariates.  ``values`` is where to draw; None is the range that was observed.
    """
    check_is_fitted(fit, "theta_")
    design = fit.choices_.design
    if design is None or covariate not in design.names or design.is_category(covariate):
        known = [] if design is None else [name for name in design.names if not design.is_category(name)]
        cure = f"numeric covariates are {', '.join(map(repr, known)) or 'none'}"
        raise bad("covariate", f"{covariate!r} is not a numeric covariate", cure=cure)
    met = fit.choices_.profile[covariate]
    grid = np.linspace(met.min(), met.max(), 60) if values is None else require_finite("values", values).reshape(-1)
    if not len(grid):
        raise bad("values", "is empty", cure="give the values to draw at, or None")
    others = dict(at or {})
    columns: dict[str, Any] = {fit._columns().state: [state] * len(grid), covariate: grid}
    if action is not None or len(fit.actions_) > 1:
        columns[fit._columns().action] = [action] * len(grid)
    columns |= {name: [value] * len(grid) for name, value in others.items()}
    table = probability_interval(fit, pd.DataFrame(columns), level)
    drawn = axes(ax, (6.0, 4.0))
    for label in fit.states_:
        own = table[table["next_state"] == label]
        if len(own):
            x = grid[own["row"].to_numpy()]
            style = ("-", "--", "-.", ":")[len(drawn.lines) % 4]  # told apart in grey too
            (line,) = drawn.plot(x, own["probability"], linestyle=style, label=str(label))
            drawn.fill_between(x, own["lower"], own["upper"], color=line.get_color(), alpha=0.2, linewidth=0.0)
    drawn.set(xlabel=covariate, ylabel=f"probability of the state after {state!r}", ylim=(0.0, 1.0))
    drawn.legend(frameon=False, title=f"{100 * level:g} % bands")
    return drawn
