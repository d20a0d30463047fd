"""The paper's two figures in exact regret, and what the realised regret adds to it, for either family of chains.

Regret is divided by H^{3/2} throughout, so that all panels have one scale.  Bands and bars of exact regret are the 10
to 90 % quantiles over seeds: unlike mean ± sd they never leave the range of what they describe.  Realised regret is
exact regret and noise, which most agents of a seed share: curves of it are bands that lie on each other, so a figure
shows the noise, with its standard deviation, beside the differences between agents.  Figures are objects
(:mod:`livarot.report.drawing`).  An agent has the same colour in all of them; line styles and markers repeat it for
print without colour.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from livarot.core.arrays import FloatArray
from livarot.report.drawing import STYLE
from livarot.studies.paper.experiment import (
    CONTENDERS,
    FAMILIES,
    FIXED_GAP,
    SINGLE_PHASE,
    UNIFORM,
    Family,
    Regret,
    Reproduction,
)
from livarot.studies.runner import Contender
from livarot.studies.writing import COLOUR, DASHES, MARKER, seeds_told, spread

KINDS: tuple[Regret, ...] = ("exact", "realised")
POINTS = 250  # of a curve
BAND = (0.1, 0.9)  # quantiles over seeds
ORACLE, RATE = "sign oracle (mean only)", r"$C \log T$ (for $T \to \infty$)"
LIMIT = "#777777"
STEP = 0.012  # between neighbours at one horizon, of the range of horizons


def shown(family: Family) -> tuple[Contender, ...]:
    """The paper's two agents and the uniform policy; with the gap that can be learned also single-phase LIVAROT."""
    return tuple(c for c in CONTENDERS if family is FIXED_GAP or c is not SINGLE_PHASE)


def cumulative_figure(result: Reproduction, family: Family) -> Figure:
    """Figure 1: cumulative exact regret over H^{3/2} against the episode, one panel per horizon on one scale."""
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
            _cumulative_panel(panel, result, family, horizon)
            panel.set_title(f"H = {horizon}", pad=3)
            if index + columns >= len(result.horizons):
                panel.set_xlabel("episode t")
                panel.xaxis.set_tick_params(labelbottom=True)
        figure.supylabel(r"cumulative exact regret / $H^{3/2}$", fontsize=9)
        _legends(figure, figure.axes[: len(result.horizons)], _title(family, result))
    return figure


def scaled_figure(result: Reproduction, family: Family) -> Figure:
    """Figure 2: Regret_T / H^{3/2} against H, and what share of the uniform policy's regret that is."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 3.5))
        left, right = figure.subplots(1, 2)
        _scaled_panel(left, result, family)
        _scaled_panel(right, result, family, of_uniform=True)
        left.set_ylabel(r"exact Regret$_T$ / $H^{3/2}$")
        right.set_ylabel("% of the uniform policy's regret")
        _legends(figure, (left, right), _title(family, result))
    return figure


def finding_figure(result: Reproduction) -> Figure:
    """Figure 2 in exact regret for both gaps: with the paper's gap all are flat, the uniform policy too."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 3.5))
        panels = figure.subplots(1, 2)
        for panel, family in zip(panels, FAMILIES, strict=True):
            _scaled_panel(panel, result, family)
            panel.set_title(f"{family.title}, {family.formula}")
            panel.set_ylabel(r"exact Regret$_T$ / $H^{3/2}$")
        _legends(figure, panels, f"Hard chain; {_settings(result)}; each panel has its own range")
    return figure


def realised_figure(result: Reproduction, family: Family) -> Figure:
    """The noise in realised regret, and on the same scale the agents' differences from the uniform policy."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 3.5))
        noise, differences = figure.subplots(1, 2, sharey=True)
        _noise_panel(noise, result, family)
        _difference_panel(differences, result, family)
        several = result.n_seeds > 1
        noise.set_title("realised minus exact" + (", mean ± sd" if several else ""))
        differences.set_title("agent minus uniform policy" + (", mean ± 2 s.e." if several else ""))
        noise.set_ylabel(r"difference in Regret$_T$ / $H^{3/2}$")
        differences.yaxis.set_tick_params(labelleft=True)
        for panel in figure.axes:
            panel.axhline(0.0, color=LIMIT, linewidth=0.9, zorder=0)
            _horizon_axis(panel, result.horizons)
        handles, labels = noise.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
        figure.suptitle(
            f"Hard chain, {family.title}, {family.formula}; T = {result.n_episodes}, {seeds_told(result.n_seeds)}",
            fontsize=9.5,
        )
    return figure


def figures(result: Reproduction) -> dict[str, Figure]:
    """Every figure of the experiment under the name of its files."""
    found = {"finding": finding_figure(result)}
    for family in FAMILIES:
        name = family.title.replace(" ", "-")
        found[f"figure1-{name}"] = cumulative_figure(result, family)
        found[f"figure2-{name}"] = scaled_figure(result, family)
        found[f"realised-{name}"] = realised_figure(result, family)
    return found


def _cumulative_panel(axes: Axes, result: Reproduction, family: Family, horizon: int) -> None:
    kept = _thinned(result.n_episodes)
    for layer, contender in enumerate(shown(family)):
        curves: FloatArray = result.of(family, contender, horizon).exact[:, kept] / horizon**1.5
        mean = curves.mean(axis=0)
        low, high = np.quantile(curves, BAND, axis=0)
        colour = COLOUR[contender.key]
        axes.fill_between(kept + 1, low, high, color=colour, alpha=0.08, linewidth=0)
        for edge in (low, high):
            axes.plot(kept + 1, edge, color=colour, linewidth=0.5, alpha=0.45)
        style = DASHES[contender.key]
        axes.plot(kept + 1, mean, color=colour, linestyle=style, label=contender.label, zorder=3 + layer)
    if (family.key, horizon) in result.oracle:
        curve = result.oracle[family.key, horizon].curve[kept] / horizon**1.5
        axes.plot(kept + 1, curve, color=LIMIT, linewidth=1.1, label=ORACLE)
    axes.set_xlim(0, result.n_episodes)
    axes.margins(y=0.02)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5))


def _scaled_panel(axes: Axes, result: Reproduction, family: Family, *, of_uniform: bool = False) -> None:
    """Exact regret after the last episode against H: over H^{3/2}, or in percent of the uniform policy's mean."""
    horizons = np.array(result.horizons, dtype=np.float64)
    contenders = shown(family)
    for index, contender in enumerate(contenders):
        found = [result.final(family, contender, h, "exact") for h in result.horizons]
        scale = [result.final(family, UNIFORM, h, "exact").mean() / 100 for h in result.horizons]
        values = np.array(found) / (np.array(scale) if of_uniform else horizons**1.5)[:, None]  # (horizons, seeds)
        low, high = np.quantile(values, BAND, axis=1)
        _line(axes, horizons, index - (len(contenders) - 1) / 2, values, (low, high), contender)
    limits = [result.limits(family, h) for h in result.horizons]
    if all(found is not None for found in limits):
        over = np.array(scale) if of_uniform else horizons**1.5
        least, rate = np.array(limits).T / over
        axes.plot(horizons, least, color=LIMIT, linewidth=1.1, label=ORACLE)
        if family is FIXED_GAP and not of_uniform:  # at the gap of the paper it is hundreds of times the regret of all
            axes.plot(horizons, rate, color=LIMIT, linewidth=0.9, linestyle=(0, (1, 2)), label=RATE)
    _horizon_axis(axes, result.horizons)
    axes.set_ylim(bottom=0)


def _noise_panel(axes: Axes, result: Reproduction, family: Family) -> None:
    """Realised minus exact regret of the same seed, with the standard deviation over seeds."""
    horizons = np.array(result.horizons, dtype=np.float64)
    contenders = shown(family)
    for index, contender in enumerate(contenders):
        both = [[result.final(family, contender, h, kind) for h in result.horizons] for kind in KINDS]
        values = (np.array(both[1]) - np.array(both[0])) / horizons[:, None] ** 1.5
        error = np.array([spread(x) for x in values])
        mean = values.mean(axis=1)
        _line(axes, horizons, index - (len(contenders) - 1) / 2, values, (mean - error, mean + error), contender)


def _difference_panel(axes: Axes, result: Reproduction, family: Family) -> None:
    """Regret of every agent minus that of the uniform policy with the same seed: exact (filled), realised (hollow)."""
    horizons = np.array(result.horizons, dtype=np.float64)
    sides = [(contender, kind) for contender in shown(family) if contender is not UNIFORM for kind in KINDS]
    for index, (contender, kind) in enumerate(sides):
        both = [[result.final(family, c, h, kind) for h in result.horizons] for c in (contender, UNIFORM)]
        values = (np.array(both[0]) - np.array(both[1])) / horizons[:, None] ** 1.5
        error = np.array([2.0 * spread(x) / len(x) ** 0.5 for x in values])
        mean, face = values.mean(axis=1), None if kind == "exact" else "white"
        _line(axes, horizons, index - (len(sides) - 1) / 2, values, (mean - error, mean + error), contender, face)
    looks = [Line2D([], [], color=LIMIT, marker="o", linestyle="", markersize=4, mfc=face) for face in (LIMIT, "white")]
    axes.legend(looks, [f"{kind} regret" for kind in KINDS], loc="lower right", fontsize=8)


def _line(
    axes: Axes, horizons: FloatArray, place: float, values: FloatArray, ends: tuple[FloatArray, FloatArray],
    contender: Contender, face: str | None = None,
) -> None:  # fmt: skip
    """Means over seeds, (horizons, seeds), with bars to both ends; a little beside H, so that bars stay visible."""
    mean = values.mean(axis=1)
    bars = np.maximum([mean - ends[0], ends[1] - mean], 0.0)  # outliers can pull a mean out of a band of quantiles
    axes.errorbar(
        horizons + place * STEP * max(float(np.ptp(horizons)), 5.0),
        mean,
        yerr=bars if bars.any() else None,
        color=COLOUR[contender.key],
        linestyle=DASHES[contender.key],
        marker=MARKER[contender.key],
        markerfacecolor=face,
        markersize=4,
        elinewidth=0.9,
        capsize=2,
        label=contender.label,
    )


def _horizon_axis(axes: Axes, horizons: Sequence[int]) -> None:
    axes.set_xticks(horizons, [str(h) for h in horizons])
    axes.set_xlabel("horizon H (agents side by side)")


def _legends(figure: Figure, panels: Sequence[Axes], title: str) -> None:
    """One legend where all panels have the same lines; otherwise each panel has its own, of what it shows."""
    figure.suptitle(title, fontsize=9.5)
    handles, labels = panels[0].get_legend_handles_labels()
    if all(panel.get_legend_handles_labels()[1] == labels for panel in panels):
        columns = len(labels) if len(labels) < 5 else 3
        figure.legend(
            handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8, handlelength=2.6
        )
        return
    for panel in panels:
        panel.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, frameon=False, fontsize=7, handlelength=2.4,
            columnspacing=1.0,
        )  # fmt: skip


def _title(family: Family, result: Reproduction) -> str:
    return f"Hard chain, {family.title}, {family.formula}; {_settings(result)}"


def _settings(result: Reproduction) -> str:
    seeds = f"{result.n_seeds} seeds: mean and 10-90 %" if result.n_seeds > 1 else "1 seed"
    return f"T = {result.n_episodes}, {seeds}"


def _thinned(n_episodes: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """At most about `POINTS` episodes (0-based), the first and the last among them."""
    kept: Sequence[int] = range(0, n_episodes, max(1, n_episodes // POINTS))
    return np.unique(np.append(np.array(kept, dtype=np.int64), n_episodes - 1))
