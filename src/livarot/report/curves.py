"""A store's figures for a paper: regret curves with bands, scaling with the horizon, paired differences.

Figures are objects, as in :mod:`livarot.report.figures`; colours belong to agents in all of them.  A store may have any
number of environments and agents, so a figure shows the first :data:`MAX_PANELS` and in each the :data:`MAX_AGENTS`
with the least regret; the page has all.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

from livarot.report.figures import STYLE
from livarot.report.summary import CellSummary, Comparison, Scaling, Summary

MAX_PANELS, MAX_AGENTS, MAX_PAIRS, COLUMNS = 9, 8, 8, 3
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#222222", "#E69F00", "#56B4E9", "#8A6D00")
DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 1, 1, 1, 1, 1)))
WIDTH = 44  # characters of a name in a figure


def figures(summary: Summary) -> dict[str, Figure]:
    """Every figure under the name of its files; those without content are absent."""
    found = {"curves": curve_figure(summary)}
    if summary.scaling:
        found["scaling"] = scaling_figure(summary)
    if summary.comparisons:
        found["comparisons"] = comparison_figure(summary)
    return found


def curve_figure(summary: Summary) -> Figure:
    """Mean cumulative regret against the episode with 95 % bands: dark pointwise, light for the whole curve."""
    shown = range(min(MAX_PANELS, len(summary.panels)))
    with mpl.rc_context(STYLE):
        figure, grid = _grid(len(shown))
        for panel, axes in zip(shown, grid, strict=True):
            for one in _best(summary.of_panel(panel)):
                _curve(axes, summary, one)
            about = summary.panels[panel]
            axes.set_title(safe(f"{about.name}, T = {about.episodes}"))
            axes.set_xlabel("episode")
            axes.set_ylabel("cumulative regret")
        _legend(figure, grid)
    return figure


def _curve(axes: Axes, summary: Summary, one: CellSummary) -> None:
    curve = one.curves["regret"]
    colour = COLOURS[one.agent % len(COLOURS)]
    for band, strength in ((curve.simultaneous, 0.12), (curve.pointwise, 0.22)):
        if band is not None:
            axes.fill_between(one.episodes, band.low, band.high, color=colour, alpha=strength, linewidth=0)
    axes.plot(one.episodes, curve.mean, color=colour, linestyle=_dash(one.agent), label=safe(summary.agents[one.agent]))


def scaling_figure(summary: Summary) -> Figure:
    """Regret after the last episode against H, doubly logarithmic, with 95 % intervals and slopes."""
    families = list(dict.fromkeys(line.family for line in summary.scaling))[:MAX_PANELS]
    with mpl.rc_context(STYLE):
        figure, grid = _grid(len(families), columns=2, width=4.6, height=3.6)
        for family, axes in zip(families, grid, strict=True):
            lines = [line for line in summary.scaling if line.family == family]
            lines.sort(key=lambda line: float(summary.cells[line.cells[-1]].values.mean()))
            for line in lines[:MAX_AGENTS]:
                _scaling_line(axes, summary, line)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            horizons = sorted({_horizon(summary, index) for line in lines for index in line.cells})
            axes.set_xticks(horizons, [str(h) for h in horizons])
            episodes = summary.panels[summary.cells[lines[0].cells[0]].panel].episodes
            axes.set_title(safe(f"{summary.families[family]}, T = {episodes}"))
            axes.set_xlabel("horizon H")
            axes.set_ylabel("cumulative regret")
            axes.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return figure


def _scaling_line(axes: Axes, summary: Summary, line: Scaling) -> None:
    chosen = [summary.cells[index] for index in line.cells]
    horizons = [_horizon(summary, index) for index in line.cells]
    found = np.array([one.totals["regret"] for one in chosen], dtype=np.float64)  # (K, 3)
    slope = (
        "" if line.slope is None else f", slope {line.slope.estimate:.2f} [{line.slope.low:.2f}, {line.slope.high:.2f}]"
    )
    known = bool(np.isfinite(found).all())
    axes.errorbar(
        horizons,
        found[:, 0],
        yerr=np.abs(found[:, 1:] - found[:, :1]).T if known else None,
        color=COLOURS[line.agent % len(COLOURS)],
        linestyle=_dash(line.agent),
        marker="o",
        markersize=4,
        elinewidth=0.9,
        capsize=2,
        label=safe(summary.agents[line.agent]) + slope,
    )


def _horizon(summary: Summary, index: int) -> int:
    return summary.panels[summary.cells[index].panel].horizon or 0


def comparison_figure(summary: Summary) -> Figure:
    """Differences of regret seed by seed with 95 % intervals; those clear of zero are dark."""
    panels = list(dict.fromkeys(one.panel for one in summary.comparisons))[:MAX_PANELS]
    with mpl.rc_context(STYLE):
        chosen = {p: [one for one in summary.comparisons if one.panel == p][:MAX_PAIRS] for p in panels}
        heights = [1.0 + 0.25 * len(chosen[p]) for p in panels]
        figure = Figure(figsize=(8.0, 0.4 + sum(heights)))
        grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
        for panel, axes in zip(panels, grid, strict=True):
            for place, one in enumerate(chosen[panel]):
                _difference(axes, place, one)
            axes.axvline(0.0, color="#999999", linewidth=0.8, zorder=0)
            names = [
                f"{safe(summary.agents[p.first], 24)} - {safe(summary.agents[p.second], 24)}" for p in chosen[panel]
            ]
            axes.set_yticks(range(len(names)), names)
            axes.set_ylim(len(names) - 0.5, -0.5)
            about = summary.panels[panel]
            axes.set_title(safe(f"{about.name}, T = {about.episodes}"))
        grid[-1].set_xlabel("difference of regret, seed by seed (negative: the first is better)")
    return figure


def _difference(axes: Axes, place: int, one: Comparison) -> None:
    found = one.difference
    clear = found.high < 0.0 or found.low > 0.0
    error = [[found.estimate - found.low], [found.high - found.estimate]]
    axes.errorbar([found.estimate], [place], xerr=error, fmt="o", color="#0072B2" if clear else "#999999", capsize=2)


def _best(cells: list[CellSummary]) -> list[CellSummary]:
    return sorted(cells, key=lambda one: (float(one.values.mean()), one.agent))[:MAX_AGENTS]


def _dash(agent: int) -> Any:
    return DASHES[agent // len(COLOURS) % len(DASHES)]


def _grid(count: int, columns: int = COLUMNS, width: float = 3.1, height: float = 2.5) -> tuple[Figure, list[Axes]]:
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(0.6 + width * columns, 0.7 + height * rows))
    grid = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, list(grid[:count])


def _legend(figure: Figure, grid: list[Axes]) -> None:
    handles: dict[str, Any] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=min(3, len(handles)), frameon=False
    )


def safe(text: str, width: int = WIDTH) -> str:
    """A name that matplotlib shows as it is: no mathematics, no sign its font lacks, not hidden from a legend.

    >>> safe("_$a$")
    ' _\\\\$a\\\\$'
    """
    text = "".join(sign if sign.isprintable() and _drawn(sign) else "?" for sign in text)
    text = text if len(text) <= width else f"{text[: width - 1]}…"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") or not text.strip() else text


@cache
def _drawn(sign: str) -> bool:
    return bool(get_font(findfont(FontProperties())).get_char_index(ord(sign)))
