"""A store's figures for a paper: regret curves with bands, scaling with the horizon, paired differences.

Figures are objects, as in :mod:`livarot.report.drawing`; an agent has the same colour and dashes in all of them and on
the page.  A store may have any number of environments and agents, so a figure shows the first :data:`MAX_PANELS` and in
each the :data:`MAX_AGENTS` learners with the least regret, and says what it leaves out; the page has all.
"""

from __future__ import annotations

import math
import textwrap
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.ticker import LogFormatter, MaxNLocator, NullLocator

from livarot.report.drawing import STYLE
from livarot.report.summary import CellSummary, Comparison, Scaling, Summary, told
from livarot.sweeps.experiment.names import Name, counted, distinct, shortened

MAX_PANELS, MAX_AGENTS, COLUMNS = 9, 8, 3
MAX_COMPARED, PAGE_HEIGHT = 8, 9.5  # panels and inches of the figure of differences
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#222222", "#E69F00", "#56B4E9", "#8A6D00")
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1.2, 1, 1.2)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = "osD^vPX*"
INCH = 13.5  # characters of the small font in an inch, about
FONTS = (
    "DejaVu Sans", "Noto Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans CJK KR", "Source Han Sans",
    "IPAexGothic", "IPAGothic", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Hiragino Sans",
    "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "Arial Unicode MS", "Noto Sans Arabic", "Noto Sans Devanagari",
    "Noto Sans Symbols2", "Noto Emoji", "Segoe UI Symbol", "Segoe UI Emoji", "FreeSans",
)  # fmt: skip


def figures(summary: Summary) -> dict[str, Figure]:
    """Every figure under the name of its files; those without content are absent."""
    with mpl.rc_context(STYLE | {"font.family": list(fonts())}):
        found = {"curves": curve_figure(summary)}
        if summary.scaling:
            found["scaling"] = scaling_figure(summary)
        if summary.comparisons:
            found["comparisons"] = comparison_figure(summary)
    return found


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
        axes.set_ylabel("cumulative regret")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        if all(len(one.episodes) == 1 for one in cells):
            axes.set_xlim(0.5, 1.5)
        axes.set_ylim(bottom=-0.02 * max(axes.get_ylim()[1], 0.0))  # regret is not negative; a line at 0 can be seen
    has_bands = any(one.curves["regret"].simultaneous is not None for cells in chosen for one in cells)
    bands = "; bands hold the whole curve with 95 % (simultaneous)" if has_bands else ""
    missing = max(len(summary.of_panel(panel)) - len(cells) for panel, cells in zip(shown, chosen, strict=True))
    notes = [f"exact regret, mean over seeds{bands}", _left_out(len(summary.panels) - len(shown), missing)]
    _legend_below(figure, summary, grid, notes)
    return figure


def _curve(axes: Axes, one: CellSummary) -> None:
    curve = one.curves["regret"]
    colour = COLOURS[one.agent % len(COLOURS)]
    marker = "o" if len(one.episodes) == 1 else ""  # a line of one point cannot be seen
    if curve.simultaneous is not None:
        low, high = curve.simultaneous.low, curve.simultaneous.high
        if len(one.episodes) > 1:
            axes.fill_between(one.episodes, low, high, color=colour, alpha=0.13, linewidth=0)
        else:
            axes.vlines(one.episodes, low, high, color=colour, linewidth=1.0)
    axes.plot(one.episodes, curve.mean, color=colour, linestyle=_dash(one.agent), marker=marker, gid=str(one.agent))


def _chosen(summary: Summary, cells: list[CellSummary]) -> list[CellSummary]:
    """The learners that are best on the whole, then the controls, in the order of agents.

    A learner's place is its mean rank over the panels, so panels with the same agents show the same ones.
    """
    ranks = _mean_ranks(summary)
    learners = sorted((one for one in cells if one.agent not in summary.controls), key=lambda one: ranks[one.agent])
    controls = [one for one in cells if one.agent in summary.controls]
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
def scaling_figure(summary: Summary) -> Figure:
    """Regret after the last episode against H, doubly logarithmic, with 95 % intervals and slopes."""
    families = list(dict.fromkeys(line.family for line in summary.scaling))
    shown = families[:MAX_PANELS]
    figure, grid = _grid(len(shown), columns=2, width=4.4, height=2.7)
    ranks = _mean_ranks(summary)
    episodes = {panel.family: panel.episodes for panel in summary.panels}
    _set_titles(figure, grid, [(summary.families[family], episodes[family]) for family in shown], characters=58)
    missing = 0
    for family, axes in zip(shown, grid, strict=True):
        every = [line for line in summary.scaling if line.family == family]
        lines = sorted(every, key=lambda line: (line.agent in summary.controls, ranks[line.agent]))[:MAX_AGENTS]
        missing = max(missing, len(every) - len(lines))
        _scaling_panel(axes, summary, sorted(lines, key=lambda line: line.agent))
    notes = [
        "regret after the last episode with 95 % intervals, and slopes, the exponents of H; agents stand side by side",
        _left_out(len(families) - len(shown), missing),
    ]
    _legend_below(figure, summary, grid, notes)
    return figure


def _scaling_panel(axes: Axes, summary: Summary, lines: list[Scaling]) -> None:
    horizons = sorted({_horizon(summary, index) for line in lines for index in line.cells})
    closest = min(np.diff(np.log2(horizons)), default=1.0)
    least, slopes = math.inf, []
    for place, line in enumerate(lines):
        away = 0.3 * closest * (place / max(len(lines) - 1, 1) - 0.5)
        found = np.array([summary.cells[index].totals["regret"] for index in line.cells], dtype=np.float64)  # (K, 3)
        known = bool(np.isfinite(found).all())
        least = min(least, *found[:, 0], *(found[:, 1][found[:, 1] > 0.1 * found[:, 0]] if known else ()))
        look: dict[str, Any] = {
            "color": COLOURS[line.agent % len(COLOURS)],
            "linestyle": _dash(line.agent),
            "linewidth": 1.3,
            "marker": MARKERS[line.agent % len(MARKERS)],
            "markersize": 3.5,
        }
        places = [_horizon(summary, index) * 2.0**away for index in line.cells]
        if known:
            error = np.abs(found[:, 1:] - found[:, :1]).T
            axes.errorbar(places, found[:, 0], error, fmt="none", ecolor=look["color"], elinewidth=0.7, capsize=1.5)
        slopes += axes.plot(places, found[:, 0], gid=str(line.agent), label=_slope_text(line), **look)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.8 * least)
    for which in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        which(LogFormatter(minor_thresholds=(1.5, 0.5)))
    axes.set_xticks(horizons, [str(h) for h in horizons])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("horizon H")
    axes.set_ylabel("cumulative regret")
    axes.legend(
        handles=slopes, title="slope", frameon=False, fontsize=7, title_fontsize=7, handlelength=2.5,
        loc="upper left", bbox_to_anchor=(1.0, 1.0),
    )  # fmt: skip


def _slope_text(line: Scaling) -> str:
    """The exponent of the regret in H, as the page shows it."""
    text = told(line.slope)
    return f"{text[0]} [{text[1]}, {text[2]}]" if len(text) == 3 else "–"  # too few seeds, or seeds without regret


def _horizon(summary: Summary, index: int) -> int:
    return summary.panels[summary.cells[index].panel].horizon or 0


# -------------------------------------------------------------------- differences
def comparison_figure(summary: Summary) -> Figure:
    """The best learner of each environment minus the others, seed by seed, with 95 % intervals."""
    panels = list(dict.fromkeys(one.panel for one in summary.comparisons))
    shown = panels[:MAX_COMPARED]
    columns = min(2, len(shown))
    rows = math.ceil(len(shown) / columns)
    limit = max(2, int(((PAGE_HEIGHT - 1.0) / rows - 1.0) / 0.17))
    every = [_against_best(summary, panel) for panel in shown]
    lines = [found[:limit] for found in every]
    names = [distinct([drawable(summary.agents[one.second]) for one in found], 46) for found in lines]
    side = 0.3 + 0.056 * max(len(name) for found in names for name in found)  # inches of the names
    tallest = max(map(len, lines))
    figure = Figure(figsize=(max(5.0, columns * (side + 2.5)), 1.0 + rows * (1.0 + 0.17 * tallest)))
    grid = list(figure.subplots(rows, columns, squeeze=False).reshape(-1))
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    about = [summary.panels[panel] for panel in shown]
    titles = _set_titles(figure, grid, [(one.parts, one.episodes) for one in about], characters=34)
    for place, (axes, title, found) in enumerate(zip(grid, titles, lines, strict=False)):
        for line, one in enumerate(found):
            _difference(axes, line, one)
        axes.axvline(0.0, color="#666666", linewidth=0.9, zorder=0)
        axes.set_yticks(range(len(found)), [escaped(name) for name in names[place]], fontsize=7)
        axes.set_ylim(len(found) - 0.5, -0.5)
        axes.tick_params(axis="x", labelsize=7)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        more = len(every[place]) - len(found)
        if more:
            axes.set_xlabel(f"{counted(more, 'agent')} more in the page", fontsize=7)
        best = f"{shortened(drawable(summary.agents[found[0].first]), 60)} minus …"
        axes.set_title(f"{title}\n{escaped(wrapped(best, 34))}", fontsize=8)
    notes = [
        "difference of regret, seed by seed, with its 95 % interval: the best learner (named above each panel) minus "
        "the agent of the line; left of zero the best learner is better; an interval that holds zero is grey",
        _left_out(len(panels) - len(shown), 0),
    ]
    figure.supxlabel(_note(figure, notes), fontsize=8)
    return figure


def _against_best(summary: Summary, panel: int) -> list[Comparison]:
    """The comparisons of the agent that the summary lists first, the best learner."""
    here = [one for one in summary.comparisons if one.panel == panel]
    return [one for one in here if one.first == here[0].first]


def _difference(axes: Axes, place: int, one: Comparison) -> None:
    found = one.difference
    clear = found.high < 0.0 or found.low > 0.0
    error = [[found.estimate - found.low], [found.high - found.estimate]]
    colour = COLOURS[one.second % len(COLOURS)] if clear else "#A8A8A8"
    axes.errorbar([found.estimate], [place], xerr=error, fmt="o", color=colour, markersize=4, capsize=2, elinewidth=1.2)


# -------------------------------------------------------------------- parts
def _dash(agent: int) -> Any:
    return DASHES[agent // len(COLOURS) % len(DASHES)]


def _grid(count: int, columns: int = COLUMNS, width: float = 3.1, height: float = 2.5) -> tuple[Figure, list[Axes]]:
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(max(5.0, 0.6 + width * columns), 0.4 + height * rows))
    grid = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, list(grid[:count])


def _set_titles(figure: Figure, grid: list[Axes], about: Sequence[tuple[Name, int]], characters: int) -> list[str]:
    """A title for every panel, all different; what all have in common stands above the figure, once."""
    several = len(about) > 1
    same_length = several and len({episodes for _, episodes in about}) == 1
    same_base = several and len({parts.base for parts, _ in about}) == 1
    same_base &= all(parts.told or not same_length for parts, _ in about)  # something must be left for the panels
    above = [shortened(drawable(about[0][0].base), 180)] if same_base else []
    above += [_length(about[0][1])] if same_length else []
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


def _length(episodes: int) -> str:
    return f"T\u00a0=\u00a0{episodes}"  # no line break inside


def _legend_below(figure: Figure, summary: Summary, grid: list[Axes], notes: list[str]) -> None:
    """One legend in rows of its own under the panels, as many columns as fit; the figure grows by its height."""
    lines = {int(gid): line for axes in grid for line in axes.get_lines() if (gid := line.get_gid())}
    agents = sorted(lines)
    names = [wrapped(name, 44) for name in distinct([drawable(summary.agents[agent]) for agent in agents], 80)]
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


# -------------------------------------------------------------------- text
def drawable(text: str) -> str:
    """The text on one line; a character that no installed font has loses its accents, or becomes its code.

    >>> drawable("two\\nlines\\x07")
    'two lines[07]'
    """
    return "".join(sign if _drawn(sign) else _replaced(sign) for sign in " ".join(text.split()))


def escaped(text: str) -> str:
    """The text so that matplotlib shows it unchanged: not as mathematics, and not hidden from a legend."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") or not text.strip() else text


def wrapped(text: str, width: int) -> str:
    """The text on lines of at most this many characters, broken between words where there are any."""
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False)) or " "


def _replaced(sign: str) -> str:
    plain = "".join(part for part in unicodedata.normalize("NFKD", sign) if not unicodedata.combining(part))
    if plain != sign and plain and all(_drawn(part) for part in plain):
        return plain
    return f"[{ord(sign):02X}]"


@cache
def fonts() -> tuple[str, ...]:
    """Those of :data:`FONTS` that are installed; the first comes with matplotlib."""
    installed = {font.name for font in fontManager.ttflist}
    return tuple(name for name in FONTS if name in installed or name == FONTS[0])


@cache
def _drawn(sign: str) -> bool:
    if not sign.isprintable():
        return False
    return any(get_font(findfont(FontProperties(family=[name]))).get_char_index(ord(sign)) for name in fonts())
