"""The paper's two figures, for either family of chains and either regret.

Figures are objects (:mod:`livarot.report.drawing`).  An agent has the same colour in all of them; line styles and
markers repeat it for print without colour.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from livarot.core.arrays import FloatArray
from livarot.report.drawing import STYLE
from livarot.studies.paper.experiment import (
    CONTENDERS,
    FAMILIES,
    FIXED_GAP,
    PAPER_GAP,
    SINGLE_PHASE,
    Family,
    Regret,
    Reproduction,
)
from livarot.studies.runner import Contender
from livarot.studies.writing import COLOUR, DASHES, MARKER

NAME: dict[Regret, str] = {"exact": "exact regret", "realised": "realised regret"}
POINTS = 250  # of a curve


def shown(family: Family) -> tuple[Contender, ...]:
    """The paper's two agents and the uniform policy; with the fixed gap also single-phase LIVAROT."""
    return tuple(c for c in CONTENDERS if family is FIXED_GAP or c is not SINGLE_PHASE)


def cumulative_figure(result: Reproduction, family: Family, regret: Regret) -> Figure:
    """Figure 1: cumulative regret against the episode, one panel per horizon, mean ± 1 sd over seeds."""
    with mpl.rc_context(STYLE):
        columns = min(3, len(result.horizons))
        rows = -(-len(result.horizons) // columns)
        figure = Figure(figsize=(2.45 * columns + 0.3, 2.0 * rows + 0.75))
        panels = figure.subplots(rows, columns, squeeze=False, sharex=True)
        for index, panel in enumerate(panels.flat):
            if index >= len(result.horizons):
                panel.set_visible(False)
                continue
            horizon = result.horizons[index]
            _cumulative_panel(panel, result, family, regret, horizon)
            panel.set_title(f"H = {horizon}", pad=3)
            if index + columns >= len(result.horizons):
                panel.set_xlabel("episode t")
                panel.xaxis.set_tick_params(labelbottom=True)
        figure.supylabel(f"cumulative {NAME[regret]}", fontsize=9)
        _legend(figure, panels[0, 0], _title(family, result))
    return figure


def scaled_figure(result: Reproduction, family: Family) -> Figure:
    """Figure 2: Regret_T / H^{3/2} against H, realised (as in the paper) and exact, mean ± 1 sd."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.8, 3.2))
        left, right = figure.subplots(1, 2, sharey=True)
        _scaled_panel(left, result, family, "realised")
        _scaled_panel(right, result, family, "exact")
        left.set_title("realised regret, as in the paper")
        right.set_title("exact regret")
        left.set_ylabel(r"Regret$_T$ / $H^{3/2}$")
        _legend(figure, left, _title(family, result))
    return figure


def finding_figure(result: Reproduction) -> Figure:
    """Figure 2 in exact regret for both gaps: with the paper's gap all are flat, the uniform policy too."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.8, 3.2))
        for panel, family in zip(figure.subplots(1, 2), FAMILIES, strict=True):
            _scaled_panel(panel, result, family, "exact")
            panel.set_ylim(bottom=0)
            panel.set_title(f"{family.title} {family.formula}")
            panel.set_ylabel(r"exact Regret$_T$ / $H^{3/2}$")
        _legend(figure, figure.axes[1], f"Hard chain; {_settings(result)}")
    return figure


def figures(result: Reproduction) -> dict[str, Figure]:
    """Every figure of the experiment under the name of its files."""
    found = {"finding": finding_figure(result)}
    for family in (PAPER_GAP, FIXED_GAP):
        found[f"figure2-{family.key}"] = scaled_figure(result, family)
        for regret in NAME:
            found[f"figure1-{family.key}-{regret}"] = cumulative_figure(result, family, regret)
    return found


def _cumulative_panel(axes: Axes, result: Reproduction, family: Family, regret: Regret, horizon: int) -> None:
    kept = _thinned(result.n_episodes)
    for layer, contender in enumerate(shown(family)):
        curves: FloatArray = getattr(result.of(family, contender, horizon), regret)[:, kept]
        mean = curves.mean(axis=0)
        sd = curves.std(axis=0, ddof=1) if result.n_seeds > 1 else np.zeros_like(mean)
        colour = COLOUR[contender.key]
        axes.fill_between(kept + 1, mean - sd, mean + sd, color=colour, alpha=0.08, linewidth=0)
        for edge in (mean - sd, mean + sd):
            axes.plot(kept + 1, edge, color=colour, linewidth=0.5, alpha=0.45)
        style = DASHES[contender.key]
        axes.plot(kept + 1, mean, color=colour, linestyle=style, label=contender.label, zorder=3 + layer)
    axes.set_xlim(0, result.n_episodes)
    axes.margins(y=0.02)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))


def _scaled_panel(axes: Axes, result: Reproduction, family: Family, regret: Regret) -> None:
    horizons = np.array(result.horizons, dtype=np.float64)
    contenders = shown(family)
    step = 0.012 * max(float(np.ptp(horizons)), 5.0)
    for index, contender in enumerate(contenders):
        mean, sd = result.ratio(family, contender, regret)
        beside = horizons + step * (index - (len(contenders) - 1) / 2)  # so that bars do not cover each other
        axes.errorbar(
            beside,
            mean,
            yerr=sd if sd.any() else None,
            color=COLOUR[contender.key],
            linestyle=DASHES[contender.key],
            marker=MARKER[contender.key],
            markersize=4,
            elinewidth=0.9,
            capsize=2,
            label=contender.label,
        )
    axes.set_xticks(horizons, [str(h) for h in result.horizons])
    axes.set_xlabel("horizon H")
    axes.axhline(0.0, color="#999999", linewidth=0.8, zorder=0)


def _legend(figure: Figure, source: Axes, title: str) -> None:
    handles, labels = source.get_legend_handles_labels()
    figure.suptitle(title, fontsize=9.5)
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, handlelength=2.6)


def _title(family: Family, result: Reproduction) -> str:
    return f"Hard chain, {family.title} {family.formula}; {_settings(result)}"


def _settings(result: Reproduction) -> str:
    seeds = f"{result.n_seeds} seeds" if result.n_seeds > 1 else "1 seed"
    return f"T = {result.n_episodes}, {seeds}, mean ± 1 sd"


def _thinned(n_episodes: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """At most about `POINTS` episodes (0-based), the first and the last among them."""
    kept: Sequence[int] = range(0, n_episodes, max(1, n_episodes // POINTS))
    return np.unique(np.append(np.array(kept, dtype=np.int64), n_episodes - 1))
