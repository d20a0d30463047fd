"""A store's figures for a paper: regret curves with bands, regret against a setting, paired differences.

Figures are objects, as in :mod:`livarot.report.drawing`; an agent has the same colour, dashes and marker in all of them
and on the page, so that it is known in grey print too.  A store may have any number of environments and agents, so a
figure shows the first :data:`MAX_PANELS` and in each the :data:`MAX_AGENTS` learners with the least regret, and says
what it leaves out; the page has all.  Controls are drawn where the summary asks for them, or where nothing learns.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, MaxNLocator, NullLocator

from livarot.errors import bad
from livarot.report.drawing import STYLE
from livarot.report.lettering import drawable, escaped, fonts, wrapped
from livarot.report.read_runs import read_runs, require_runs
from livarot.report.scaling import AGENT, Scaling, axis_name
from livarot.report.summary import CellSummary, Comparison, Summary, summarise, told
from livarot.sweeps.experiment.names import Name, counted, distinct, shortened

MAX_PANELS, MAX_AGENTS, COLUMNS, MAX_TICKS = 9, 8, 3, 8
MAX_COMPARED, PAGE_HEIGHT = 8, 9.5  # panels and inches of the figure of differences
ONE_RANGE = 10.0  # panels of an environment have one range of regret unless a curve would be this much lower
DODGE = 0.015  # agents of one size are moved apart by at most this share of it
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#222222", "#E69F00", "#56B4E9", "#8A6D00")
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1.2, 1, 1.2)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = "osD^vPX*"
INCH = 13.5  # characters of the small font in an inch, about


def figures(summary: Summary, against: str | None = None) -> dict[str, Figure]:
    """Every figure under the name of its files; those without content are absent.

    ``against`` is the axis of the figure of scaling; None is the first that has lines.
    """
    axes = dict.fromkeys(family.axis for family in summary.families)
    if against is not None and against not in axes:
        cure = f"one of: {', '.join(axes)}" if axes else "no runs differ in one number only"
        raise bad("against", f"no runs differ in {against!r} only", cure=cure)
    with mpl.rc_context(STYLE | {"font.family": list(fonts())}):
        found = {"curves": curve_figure(summary)}
        if axes:
            found["scaling"] = scaling_figure(summary, against or next(iter(axes)))
        if any(shown_pair(summary, one) for one in summary.comparisons):
            found["comparisons"] = comparison_figure(summary)
    return found


def plot_scaling(store: str | os.PathLike[str], against: str = "horizon", *, controls: bool = False) -> Figure:
    """The figure of the regret of a store's runs against a number that they are made with: ``horizon``, ``dim``,
    ``gap``, ``episodes`` or any other setting of the environment, ``agent.beta_scale`` or any other of the agent.
    """
    if not isinstance(store, str | os.PathLike) or not isinstance(against, str):
        wrong = "against" if isinstance(store, str | os.PathLike) else "store"
        raise bad(wrong, "is not text", cure="the folder of a store, and the name of a setting")
    runs = read_runs(Path(store))
    require_runs(runs)
    return figures(summarise(runs, controls=bool(controls)), against)["scaling"]


# -------------------------------------------------------------------- curves
def curve_figure(summary: Summary) -> Figure:
    """Mean cumulative regret against the episode, with simultaneous 95 % bands for the whole curve."""
    shown = range(min(MAX_PANELS, len(summary.panels)))
    figure, grid = _grid(len(shown), width=3.1, height=2.5)
    chosen = [_chosen(summary, summary.of_panel(panel)) for panel in shown]
    about = [summary.panels[panel] for panel in shown]
    _set_titles(figure, grid, [(one.parts, one.episodes) for one in about], characters=37)
    for axes, cells in zip(grid, chosen, strict=True):
        for one in cells:
            _curve(axes, one)
        axes.set_xlabel("episode")
        axes.set_ylabel(_regret_label(cells))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        if all(len(one.episodes) == 1 for one in cells):
            axes.set_xlim(0.5, 1.5)
    kinds = [(one.parts.base, _regret_label(cells)) for one, cells in zip(about, chosen, strict=True)]
    differ = _set_ranges(grid, kinds)
    has_bands = any(one.curves["regret"].simultaneous is not None for cells in chosen for one in cells)
    bands = "; bands hold the whole curve with 95 % (simultaneous)" if has_bands else ""
    able = [len(_candidates(summary, summary.of_panel(panel))) for panel in shown]
    missing = max(count - len(cells) for count, cells in zip(able, chosen, strict=True))
    notes = [f"exact regret, mean over seeds{bands}", differ, _left_out(len(summary.panels) - len(shown), missing)]
    _legend_below(figure, summary.agents, grid, notes)
    return figure


def _set_ranges(grid: list[Axes], environments: Sequence[tuple[str, str]]) -> str:
    """One range of regret for the panels of an environment in the same units, from 0; and the note on what differs."""
    tops, apart = [max(axes.get_ylim()[1], 0.0) for axes in grid], False
    for environment in set(environments):
        here = [k for k, one in enumerate(environments) if one == environment]
        low, high = min(tops[k] for k in here), max(tops[k] for k in here)
        apart |= low * ONE_RANGE < high
        for k in here if low * ONE_RANGE >= high else ():
            tops[k] = high
    for axes, top in zip(grid, tops, strict=True):
        axes.set_ylim(-0.02 * top, top or None)  # regret is not negative; a line at 0 can be seen
    differ = f"the range of regret differs between {'panels' if apart else 'environments'}"
    return differ if len(set(tops)) > 1 else ""


def _curve(axes: Axes, one: CellSummary) -> None:
    curve = one.curves["regret"]
    colour, marker = COLOURS[one.agent % len(COLOURS)], MARKERS[one.agent % len(MARKERS)]
    if curve.simultaneous is not None:
        low, high = curve.simultaneous.low, curve.simultaneous.high
        if len(one.episodes) > 1:
            axes.fill_between(one.episodes, low, high, color=colour, alpha=0.13, linewidth=0)
        else:
            axes.vlines(one.episodes, low, high, color=colour, linewidth=1.0)
    every = max(1, len(one.episodes) // 6)
    first = one.agent % every if len(one.episodes) > 6 else 0  # markers of two agents do not lie on each other
    axes.plot(
        one.episodes, curve.mean, color=colour, linestyle=_dash(one.agent), marker=marker, markersize=3.5,
        markevery=(first, every), gid=str(one.agent),
    )  # fmt: skip


def _regret_label(cells: Sequence[CellSummary]) -> str:
    """What the axis shows; where the environment has units of its own, that it is in them."""
    return "cumulative regret" + (", own units" if any(one.normalised is not None for one in cells) else "")


def _candidates(summary: Summary, cells: Sequence[CellSummary]) -> list[CellSummary]:
    """What may be drawn: all, or those that learn."""
    learners = [one for one in cells if one.agent not in summary.controls]
    return list(cells) if summary.with_controls or not learners else learners


def _chosen(summary: Summary, cells: list[CellSummary]) -> list[CellSummary]:
    """The learners that are best on the whole, then the controls, in the order of agents.

    A learner's place is its mean rank over the panels, so panels with the same agents show the same ones.
    """
    ranks, able = _mean_ranks(summary), _candidates(summary, cells)
    learners = sorted((one for one in able if one.agent not in summary.controls), key=lambda one: ranks[one.agent])
    controls = [one for one in able if one.agent in summary.controls]
    return sorted([*learners[:MAX_AGENTS], *controls[: MAX_AGENTS // 2]], key=lambda one: one.agent)


def _mean_ranks(summary: Summary) -> dict[int, tuple[float, int]]:
    places: dict[int, list[int]] = {}
    for panel in range(min(MAX_PANELS, len(summary.panels))):
        here = sorted(summary.of_panel(panel), key=lambda one: (float(one.values.mean()), one.agent))
        for place, one in enumerate(here):
            places.setdefault(one.agent, []).append(place)
    return {
        one.agent: (float(np.mean(places[one.agent])) if one.agent in places else math.inf, one.agent)
        for one in summary.cells
    }


def _left_out(panels: int, agents: int) -> str:
    """The note on what a figure leaves out."""
    parts = [counted(panels, "environment")] if panels else []
    parts += [f"{counted(agents, 'agent')} with more regret on the whole"] if agents else []
    return f"not shown: {' and '.join(parts)}; the page has all" if parts else ""


# -------------------------------------------------------------------- scaling
def scaling_figure(summary: Summary, axis: str) -> Figure:
    """Regret after the last episode against a number, doubly logarithmic, with 95 % intervals and slopes."""
    families = [k for k, family in enumerate(summary.families) if family.axis == axis]
    shown = families[:MAX_PANELS]
    able = [_candidate_lines(summary, family) for family in shown]
    drawn = [sorted(lines[:MAX_AGENTS], key=lambda line: line.agent) for lines in able]
    own = list(dict.fromkeys(line.name for line in summary.scaling if line.family in families))
    names = own if axis.startswith(AGENT) else summary.agents  # lines along a setting of agents are no agent's own
    looks = [[own.index(line.name) if names is own else line.agent for line in lines] for lines in drawn]
    entries = [_entries(lines, names, look) for lines, look in zip(drawn, looks, strict=True)]
    tallest = max(sum(entry.count("\n") + 1 for entry in panel) for panel in entries)
    figure, grid = _grid(len(shown), columns=2, width=4.8, height=max(2.7, 0.8 + 0.125 * tallest))
    about = [summary.families[k] for k in shown]
    _set_titles(figure, grid, [(one.name, one.episodes) for one in about], characters=58)
    for axes, lines, own_looks, told_as in zip(grid, drawn, looks, entries, strict=True):
        _scaling_panel(axes, summary, lines, own_looks, told_as)
        axes.set_xlabel(escaped(drawable(axis_name(axis))))
    notes = [
        f"regret after the last episode with 95 % intervals, and slopes, the exponents of "
        f"{axis_name(axis).split()[-1]}; agents stand side by side, within {100 * DODGE:g} %",
        _left_out(len(families) - len(shown), max(0, max(map(len, able)) - MAX_AGENTS)),
    ]
    figure.supxlabel(_note(figure, notes), fontsize=8)
    return figure


def _candidate_lines(summary: Summary, family: int) -> list[Scaling]:
    """What may be drawn: the best on the whole first, controls last, where these are drawn at all."""
    ranks = _mean_ranks(summary)
    every = [line for line in summary.scaling if line.family == family]
    learning = [line for line in every if line.agent not in summary.controls]
    every = every if summary.with_controls or not learning else learning
    return sorted(every, key=lambda line: (line.agent in summary.controls, ranks[line.agent]))


def _entries(lines: list[Scaling], called: Sequence[str], looks: list[int]) -> list[str]:
    """Agent and slope, as the legend of a panel names them."""
    names = distinct([drawable(called[look]) for look in looks], 80)
    return [escaped(wrapped(f"{name}: {_slope_text(line)}", 30)) for name, line in zip(names, lines, strict=True)]


def _scaling_panel(axes: Axes, summary: Summary, lines: list[Scaling], looks: list[int], entries: list[str]) -> None:
    sizes = sorted({size for line in lines for size in line.sizes})
    closest = min(np.diff(np.log2(sizes)), default=1.0)
    least, slopes = math.inf, []
    for place, (line, look, entry) in enumerate(zip(lines, looks, entries, strict=True)):
        away = min(DODGE, 0.1 * closest) * (2.0 * place / (len(lines) - 1) - 1.0) if len(lines) > 1 else 0.0
        found = np.array([summary.cells[index].totals["regret"] for index in line.cells], dtype=np.float64)  # (K, 3)
        known = bool(np.isfinite(found).all())
        least = min(least, *found[:, 0], *(found[:, 1][found[:, 1] > 0.1 * found[:, 0]] if known else ()))
        style: dict[str, Any] = {
            "color": COLOURS[look % len(COLOURS)],
            "linestyle": _dash(look),
            "linewidth": 1.3,
            "marker": MARKERS[look % len(MARKERS)],
            "markersize": 3.5,
        }
        places = [size * (1.0 + away) for size in line.sizes]
        if known:
            error = np.abs(found[:, 1:] - found[:, :1]).T
            axes.errorbar(places, found[:, 0], error, fmt="none", ecolor=style["color"], elinewidth=0.7, capsize=1.5)
        slopes += axes.plot(places, found[:, 0], gid=str(look), label=entry, **style)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.8 * least)
    for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        which(LogFormatter(minor_thresholds=(1.5, 0.5)))
    ticks = sizes[:: -(-len(sizes) // MAX_TICKS)]
    axes.set_xticks(ticks, [f"{size:.4g}" for size in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylabel(_regret_label([summary.cells[index] for line in lines for index in line.cells]))
    axes.legend(
        handles=slopes, title="agent: slope", frameon=False, fontsize=7, title_fontsize=7, handlelength=2.5,
        loc="upper left", bbox_to_anchor=(1.0, 1.0),
    )  # fmt: skip


def _slope_text(line: Scaling) -> str:
    """The exponent of the regret, as the page shows it."""
    text = told(line.slope)  # without an interval: too few seeds, or seeds without regret
    return f"{text[0]}\u00a0[{text[1]},\u00a0{text[2]}]" if len(text) == 3 else "–"


# -------------------------------------------------------------------- differences
def comparison_figure(summary: Summary) -> Figure:
    """The best learner of each environment minus the others, seed by seed, with 95 % intervals."""
    panels = list(dict.fromkeys(one.panel for one in summary.comparisons if shown_pair(summary, one)))
    shown = panels[:MAX_COMPARED]
    columns = min(2, len(shown))
    rows = math.ceil(len(shown) / columns)
    limit = max(2, int(((PAGE_HEIGHT - 1.0) / rows - 1.0) / 0.17))
    every = [_against_best(summary, panel) for panel in shown]
    lines = [_one_order(summary, found)[:limit] for found in every]
    names = [distinct([drawable(summary.agents[agent]) for agent in agents], 46) for agents in lines]
    side = 0.3 + 0.056 * max(len(name) for found in names for name in found)  # inches of the names
    tallest = max(map(len, lines))
    figure = Figure(figsize=(max(5.0, columns * (side + 2.5)), 1.0 + rows * (1.0 + 0.17 * tallest)))
    grid = list(figure.subplots(rows, columns, squeeze=False).reshape(-1))
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    about = [summary.panels[panel] for panel in shown]
    titles = _set_titles(figure, grid, [(one.parts, one.episodes) for one in about], characters=34)
    for axes, title, found, agents, called in zip(grid, titles, every, lines, names, strict=False):
        axes.axvline(0.0, color="#666666", linewidth=0.9, zorder=0)
        for one in found:
            if one.second in agents:
                _difference(axes, agents.index(one.second), one)
        if found[0].first in agents:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
            axes.text(0.0, agents.index(found[0].first), "best", fontsize=7, ha="center", va="center", bbox=box)
        axes.set_yticks(range(len(agents)), [escaped(name) for name in called], fontsize=7)
        axes.set_ylim(len(agents) - 0.5, -0.5)
        axes.tick_params(axis="x", labelsize=7)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        more = len(found) + 1 - len(agents)
        if more:
            axes.set_xlabel(f"{counted(more, 'agent')} more in the page", fontsize=7)
        best = f"{shortened(drawable(summary.agents[found[0].first]), 60)} minus …"
        axes.set_title(f"{title}\n{escaped(wrapped(best, 34))}", fontsize=8)
    notes = [
        "difference of regret, seed by seed, with its 95 % interval: the best learner (named above each panel) minus "
        "the agent of the line; left of zero the best learner is better; hollow marks: the interval holds zero; agents "
        "are in the order of their mean rank over panels, and each panel has its own range",
        _left_out(len(panels) - len(shown), 0),
    ]
    figure.supxlabel(_note(figure, notes), fontsize=8)
    return figure


def _against_best(summary: Summary, panel: int) -> list[Comparison]:
    """The comparisons of the agent that the summary lists first, the best learner."""
    here = [one for one in summary.comparisons if one.panel == panel and shown_pair(summary, one)]
    return [one for one in here if one.first == here[0].first]


def _one_order(summary: Summary, found: list[Comparison]) -> list[int]:
    """The agents of a panel, the best one too, in the order that all panels have."""
    ranks, agents = _mean_ranks(summary), {found[0].first, *(one.second for one in found)}
    return sorted(agents, key=lambda agent: (agent in summary.controls, ranks[agent]))


def shown_pair(summary: Summary, one: Comparison) -> bool:
    """Is the comparison drawn?  With controls only where these are asked for, or where nothing learns."""
    idle = summary.controls & {one.first, one.second}
    return not idle or summary.with_controls or len(summary.controls) == len(summary.agents)


def _difference(axes: Axes, place: int, one: Comparison) -> None:
    found = one.difference
    clear = found.high < 0.0 or found.low > 0.0
    error = [[found.estimate - found.low], [found.high - found.estimate]]
    colour, face = (COLOURS[one.second % len(COLOURS)],) * 2 if clear else ("#A8A8A8", "white")
    axes.errorbar(
        [found.estimate], [place], xerr=error, fmt=MARKERS[one.second % len(MARKERS)], color=colour, mfc=face,
        markersize=4, capsize=2, elinewidth=1.2,
    )  # fmt: skip


# -------------------------------------------------------------------- parts
def _dash(agent: int) -> Any:
    return DASHES[agent % len(DASHES)]  # with the colours, whose number has no factor in common: forty looks


def _grid(count: int, columns: int = COLUMNS, width: float = 3.1, height: float = 2.5) -> tuple[Figure, list[Axes]]:
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(max(5.0, 0.6 + width * columns), 0.4 + height * rows))
    grid = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, list(grid[:count])


def _set_titles(
    figure: Figure, grid: list[Axes], about: Sequence[tuple[Name, int | None]], characters: int
) -> list[str]:
    """A title for every panel, all different; what all have in common stands above the figure, once."""
    several = len(about) > 1
    same_length = several and len({episodes for _, episodes in about}) == 1
    same_base = several and len({parts.base for parts, _ in about}) == 1
    same_base &= all(parts.told or not same_length for parts, _ in about)  # something must be left for the panels
    above = [shortened(drawable(about[0][0].base), 180)] if same_base else []
    above += [_length(about[0][1])] if same_length and about[0][1] is not None else []
    if above:
        figure.suptitle(escaped(wrapped(", ".join(above), int(INCH * figure.get_figwidth()))), fontsize=10)
    names = [drawable(parts.told if same_base else str(parts)) for parts, _ in about]
    titles = []
    for name, (_, episodes) in zip(distinct(names, 3 * characters - 12), about, strict=True):
        own = [part for part in (name, "" if same_length else _length(episodes)) if part]
        titles.append(escaped(wrapped(", ".join(own), characters)))
    for axes, title in zip(grid, titles, strict=False):
        axes.set_title(title)
    return titles


def _length(episodes: int | None) -> str:
    return "" if episodes is None else f"T\u00a0=\u00a0{episodes}"  # no line break inside


def _legend_below(figure: Figure, called: Sequence[str], grid: list[Axes], notes: list[str]) -> None:
    """One legend in rows of its own under the panels, as many columns as fit; the figure grows by its height."""
    lines = {int(gid): line for axes in grid for line in axes.get_lines() if (gid := line.get_gid())}
    agents = sorted(lines)
    names = [wrapped(name, 44) for name in distinct([drawable(called[agent]) for agent in agents], 80)]
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    for columns in (4, 3, 2, 1):
        legend = figure.legend(
            [lines[agent] for agent in agents],
            [escaped(name) for name in names],
            loc="outside lower center",
            ncols=min(columns, len(agents)),
            frameon=False,
            fontsize=8,
            handlelength=3.5,
            title=_note(figure, notes),
            title_fontsize=8,
        )
        box = legend.get_window_extent(renderer)
        if box.width <= 0.97 * figure.bbox.width:
            break
        if columns > 1:
            legend.remove()
    figure.set_figheight(figure.get_figheight() + box.height / figure.dpi)


def _note(figure: Figure, notes: list[str]) -> str:
    return "\n".join(wrapped(note, int(INCH * figure.get_figwidth())) for note in notes if note)
