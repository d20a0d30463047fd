"""What the board shows; streamlit runs this file.

Names go into tables and, escaped, into figures and the heading, never into HTML.
"""

from __future__ import annotations

import html
import re
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

from livarot.errors import LivarotError
from livarot.report.curves import COLOURS
from livarot.report.page import METRICS
from livarot.report.read_runs import Runs, read_runs
from livarot.report.summary import CellSummary, Summary, summarise
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.names import cell_name, cell_names, counted, distinct, planned_cells, printable, reason

REFRESH_SECONDS = 3.0
AT_FIRST = 6  # agents shown before the user chooses
NAMED = 3  # experiments in the heading
LINE = 60  # characters on a line of a legend
SHORT = 48  # characters of a name in a table or a menu; the choice of agents and the legend show all of it
MARKDOWN = re.compile(r"([!-/:-@\[-`{-~])")  # ASCII punctuation: all that Markdown can give a meaning


def main(store: str) -> None:
    """The page: how far the sweep is, curves of chosen agents, comparisons, all runs."""
    import streamlit as st

    st.set_page_config(page_title="livarot board", layout="wide")
    live = st.sidebar.toggle("follow the sweep", value=True, key="live")
    st.fragment(run_every=REFRESH_SECONDS if live else None)(_body)(store)


def heading(runs: Runs, store: str) -> str:
    """The names of the experiments, or the folder's while there is none."""
    names = list(dict.fromkeys(experiment.name for experiment in runs.experiments)) or [Path(store).name]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def literal(text: str) -> str:
    r"""Text that Markdown shows as it is.

    >>> literal("*a* <b>")
    '\\*a\\* \\<b\\>'
    """
    return MARKDOWN.sub(r"\\\1", printable(text))


def failed_runs(runs: Runs) -> list[dict[str, Any]]:
    """The table of failed runs, each with its reason."""
    names = cell_names(planned_cells(runs.experiments), runs.experiments)
    found = []
    for key, note in runs.failures.items():
        try:
            cell, seed = Cell.from_content(note["content"]), note["content"]["seed"]
            name = names.get(cell.key) or cell_name(cell)
        except (KeyError, TypeError, AttributeError):
            name, seed = key, None  # not a note that livarot wrote
        why = reason(str(note.get("traceback", "")))
        found.append({"reason": why, "seed": seed, "attempts": note.get("attempts"), "run": name})
    return found


def planned_runs(runs: Runs) -> dict[str, int]:
    """Planned runs by cell, of all experiments of the store that are known here."""
    wanted: dict[str, set[int]] = {}
    for experiment in runs.experiments:
        try:
            for cell in experiment.cells():
                wanted.setdefault(cell.key, set()).update(experiment.seed_list())
        except LivarotError:
            continue  # it names agents or environments that are not registered here
    return {key: len(seeds) for key, seeds in wanted.items()}


def lines_of(summary: Summary, planned: dict[str, int]) -> list[dict[str, Any]]:
    """The table of cells: what is stored of what is planned, and the regret."""
    found = []
    worlds, agents = distinct([panel.name for panel in summary.panels], SHORT), distinct(summary.agents, SHORT)
    for one in summary.cells:
        panel, regret = summary.panels[one.panel], one.totals["regret"]
        found.append(
            {
                "environment": worlds[one.panel],
                "agent": agents[one.agent],
                "T": panel.episodes,
                "runs": len(one.seeds),
                "planned": max(planned.get(one.cell.key, 0), len(one.seeds)),
                "regret": None if regret is None else regret.estimate,
                "low": None if regret is None or len(one.seeds) < 5 else regret.low,
                "high": None if regret is None or len(one.seeds) < 5 else regret.high,
                "covered": one.audit["covered"],
            }
        )
    return found


def figure_of(summary: Summary, cells: list[CellSummary], metric: str) -> Any:
    """Mean curves with pointwise bands, for plotly."""
    import plotly.graph_objects as go  # type: ignore[import-untyped]

    figure = go.Figure()
    for one in cells:
        curve = one.curves.get(metric)
        if curve is None:
            continue
        colour, x = COLOURS[one.agent % len(COLOURS)], one.episodes.tolist()
        if curve.pointwise is not None:
            low, high = curve.pointwise.low.tolist(), curve.pointwise.high.tolist()
            outline = {
                "fill": "toself",
                "fillcolor": f"rgba{(*bytes.fromhex(colour[1:]), 0.16)}",
                "line": {"width": 0},
                "hoverinfo": "skip",
                "showlegend": False,
            }
            figure.add_scatter(x=x + x[::-1], y=high + low[::-1], mode="lines", **outline)
        name = in_legend(summary.agents[one.agent])
        figure.add_scatter(
            x=x, y=curve.mean.tolist(), mode="lines" if len(x) > 1 else "markers", name=name, line={"color": colour}
        )
    figure.update_layout(xaxis_title="episode", yaxis_title=dict(METRICS)[metric], margin={"t": 20}, height=480)
    return figure


def in_legend(name: str) -> str:
    """A name on as many lines as it needs; plotly reads a few tags in its texts.

    >>> in_legend("<b>")
    '&lt;b&gt;'
    """
    lines = textwrap.wrap(name, LINE, break_long_words=False, break_on_hyphens=False)
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def _body(store: str) -> None:
    import streamlit as st

    state = st.session_state
    known = state.setdefault("known", {})
    try:
        runs = read_runs(store, known=known)
    except LivarotError as error:
        st.error("The store cannot be read.")
        st.text(str(error))
        return
    st.title(literal(heading(runs, store)), anchor=False)
    st.text(store)
    planned = planned_runs(runs)
    total = max(sum(planned.values()), runs.n_runs)
    share = runs.n_runs / total if total else 0.0
    text = f"{runs.n_runs} of {counted(total, 'run')}, {len(runs.failures)} failed"
    st.progress(min(1.0, share), text=f"{text}, {len(runs.damaged)} damaged" if runs.damaged else text)
    if runs.failures:
        st.subheader("Failed", anchor=False)
        st.dataframe(failed_runs(runs), hide_index=True, key="failed")
    if not runs.cells:
        st.info("No run is stored yet.")
        return
    summary = _current(state, runs, finished=runs.n_runs == total)
    _compare(st, summary)
    st.subheader("Runs")
    st.dataframe(lines_of(summary, planned), hide_index=True, key="runs")


def _current(state: Any, runs: Runs, *, finished: bool) -> Summary:
    """The summary of the runs, or an earlier one: at most a fifth of the time is spent on bootstraps."""
    known: tuple[int, float, float, Summary] | None = state.get("summary")
    now = time.monotonic()
    if known is not None and (known[0] == runs.n_runs or (not finished and now - known[1] < 5.0 * known[2])):
        return known[3]
    found = summarise(runs)
    state["summary"] = (runs.n_runs, now, time.monotonic() - now, found)
    return found


def _compare(st: Any, summary: Summary) -> None:
    left, right = st.columns([3, 2])
    worlds = distinct([panel.name for panel in summary.panels], SHORT)
    names = [f"{world}, T = {panel.episodes}" for world, panel in zip(worlds, summary.panels, strict=True)]
    panel = left.selectbox("environment", range(len(names)), format_func=names.__getitem__, key="panel")
    metric = right.selectbox("curve", [key for key, _ in METRICS], format_func=dict(METRICS).__getitem__, key="metric")
    here = summary.of_panel(panel)
    agents = [one.agent for one in here]
    chosen = st.multiselect(
        "agents", agents, default=agents[:AT_FIRST], format_func=summary.agents.__getitem__, key=f"agents {panel}"
    )
    st.plotly_chart(figure_of(summary, [one for one in here if one.agent in chosen], metric), key="curves")
    short = distinct(summary.agents, SHORT)
    pairs = [
        {
            "first": short[one.first],
            "second": short[one.second],
            "first - second": one.difference.estimate,
            "low": one.difference.low,
            "high": one.difference.high,
            "P(first is better)": one.improvement.estimate,
            "seeds": one.difference.n_seeds,
        }
        for one in summary.comparisons
        if one.panel == panel and one.first in chosen and one.second in chosen
    ]
    if pairs:
        st.subheader("Paired comparisons, 95 %")
        st.dataframe(pairs, hide_index=True, key="pairs")


if __name__ == "__main__":
    main(sys.argv[1])
