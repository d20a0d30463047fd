"""The paper's two figures, for either family of chains.

Regret is divided by H^{3/2} throughout, so that all panels have one scale.  Bands and bars are the 10 to 90 % quantiles
over seeds: unlike mean ± sd they never leave the range of what they describe.  Figures are objects
(:mod:`livarot.report.drawing`).  An agent has the same colour in all of them; line styles and markers repeat it for
print without colour.
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
    UNIFORM,
    Family,
    Regret,
    Reproduction,
)
from livarot.studies.runner import Contender
from livarot.studies.writing import COLOUR, DASHES, MARKER

NAME: dict[Regret, str] = {"exact": "exact regret", "realised": "realised regret"}
POINTS = 250  # of a curve
BAND = (0.1, 0.9)  # quantiles over seeds
ORACLE, RATE = "sign oracle", r"$C \log T$ (Lai and Robbins, $T \to \infty$)"
LIMIT = "#777777"


def shown(family: Family) -> tuple[Contender, ...]:
    """The paper's two agents and the uniform policy; with the gap that can be learned also single-phase LIVAROT."""
    return tuple(c for c in CONTENDERS if family is FIXED_GAP or c is not SINGLE_PHASE)


def cumulative_figure(result: Reproduction, family: Family, regret: Regret) -> Figure:
    """Figure 1: cumulative regret over H^{3/2} against the episode, one panel per horizon on one scale."""
    with mpl.rc_context(STYLE):
        columns = min(3, len(result.horizons))
        rows = -(-len(result.horizons) // columns)
        figure = Figure(figsize=(2.45 * columns + 0.3, 2.0 * rows + 0.75))
        panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
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
        figure.supylabel(rf"cumulative {NAME[regret]} / $H^{{3/2}}$", fontsize=9)
        _legend(figure, panels[0, 0], _title(family, result))
    return figure


def scaled_figure(result: Reproduction, family: Family) -> Figure:
    """Figure 2: Regret_T / H^{3/2} against H, and what share of the uniform policy's regret that is."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.8, 3.2))
        left, right = figure.subplots(1, 2)
        _scaled_panel(left, result, family)
        _scaled_panel(right, result, family, of_uniform=True)
        left.set_ylabel(r"exact Regret$_T$ / $H^{3/2}$")
        right.set_ylabel("% of the uniform policy's regret")
        _legend(figure, left, _title(family, result))
    return figure


def finding_figure(result: Reproduction) -> Figure:
    """Figure 2 in exact regret for both gaps: with the paper's gap all are flat, the uniform policy too."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.8, 3.2))
        for panel, family in zip(figure.subplots(1, 2), FAMILIES, strict=True):
            _scaled_panel(panel, result, family)
            panel.set_title(f"{family.title}, {family.formula}")
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
        curves: FloatArray = getattr(result.of(family, contender, horizon), regret)[:, kept] / horizon**1.5
        mean = curves.mean(axis=0)
        low, high = np.quantile(curves, BAND, axis=0)
        colour = COLOUR[contender.key]
        axes.fill_between(kept + 1, low, high, color=colour, alpha=0.08, linewidth=0)
        for edge in (low, high):
            axes.plot(kept + 1, edge, color=colour, linewidth=0.5, alpha=0.45)
        style = DASHES[contender.key]
        axes.plot(kept + 1, mean, color=colour, linestyle=style, label=contender.label, zorder=3 + layer)
    if regret == "exact" and (family.key, horizon) in result.oracle:
        curve = result.oracle[family.key, horizon].curve[kept] / horizon**1.5
        axes.plot(kept + 1, curve, color=LIMIT, linewidth=1.1, marker="|", markevery=0.1, markersize=4, label=ORACLE)
    axes.set_xlim(0, result.n_episodes)
    axes.margins(y=0.02)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))


def _scaled_panel(axes: Axes, result: Reproduction, family: Family, *, of_uniform: bool = False) -> None:
    """Exact regret after the last episode against H: over H^{3/2}, or in percent of the uniform policy's mean."""
    horizons = np.array(result.horizons, dtype=np.float64)
    contenders = shown(family)
    step = 0.012 * max(float(np.ptp(horizons)), 5.0)
    for index, contender in enumerate(contenders):
        found = [result.final(family, contender, h, "exact") for h in result.horizons]
        scale = [result.final(family, UNIFORM, h, "exact").mean() / 100 for h in result.horizons]
        values = np.array(found) / (np.array(scale) if of_uniform else horizons**1.5)[:, None]  # (horizons, seeds)
        mean = values.mean(axis=1)
        low, high = np.quantile(values, BAND, axis=1)
        bars = np.maximum([mean - low, high - mean], 0.0)  # outliers can pull a mean out of the band
        beside = horizons + step * (index - (len(contenders) - 1) / 2)  # so that bars do not cover each other
        axes.errorbar(
            beside,
            mean,
            yerr=bars if bars.any() else None,
            color=COLOUR[contender.key],
            linestyle=DASHES[contender.key],
            marker=MARKER[contender.key],
            markersize=4,
            elinewidth=0.9,
            capsize=2,
            label=contender.label,
        )
    limits = [result.limits(family, h) for h in result.horizons]
    if all(found is not None for found in limits):
        over = np.array(scale) if of_uniform else horizons**1.5
        least, rate = np.array(limits).T / over
        axes.plot(horizons, least, color=LIMIT, linewidth=1.1, marker="|", markersize=6, label=ORACLE)
        if family is FIXED_GAP and not of_uniform:  # at the gap of the paper it is hundreds of times the regret of all
            axes.plot(horizons, rate, color=LIMIT, linewidth=0.9, linestyle=(0, (1, 2)), label=RATE)
    axes.set_xticks(horizons, [str(h) for h in result.horizons])
    axes.set_xlabel("horizon H")
    axes.set_ylim(bottom=0)


def _legend(figure: Figure, source: Axes, title: str) -> None:
    handles, labels = source.get_legend_handles_labels()
    figure.suptitle(title, fontsize=9.5)
    columns = len(labels) if len(labels) < 5 else 3
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, handlelength=2.6)


def _title(family: Family, result: Reproduction) -> str:
    return f"Hard chain, {family.title}, {family.formula}; {_settings(result)}"


def _settings(result: Reproduction) -> str:
    seeds = f"{result.n_seeds} seeds, mean and 10-90 %" if result.n_seeds > 1 else "1 seed"
    return f"T = {result.n_episodes}, {seeds}"


def _thinned(n_episodes: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """At most about `POINTS` episodes (0-based), the first and the last among them."""
    kept: Sequence[int] = range(0, n_episodes, max(1, n_episodes // POINTS))
    return np.unique(np.append(np.array(kept, dtype=np.int64), n_episodes - 1))
