"""The table of ``benchmarks.agents`` as a picture: ``python -m benchmarks.agents_figure FILE.json --out FILE.png``.

FILE.json is what ``python -m benchmarks.agents --json`` printed.  One panel per problem, one line per agent, in the
order of the tuned regret: a filled dot with its 95 % band for tuned settings, a ring for the defaults (alone where an
agent was not tuned), and a dashed line for the oracle that lacks only the signs, where there are signs.
"""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogFormatterMathtext, LogLocator, NullFormatter

from benchmarks.agents import FEW_HELD_OUT, FIELD, HOSPITALS, N_EPISODES
from livarot.report.drawing import STYLE
from livarot.storage import write_atomic

FLOOR = 1e-4  # regrets below are drawn here
OURS, THEIRS, TABULAR = "#0072B2", "#D55E00", "#777777"
COLOURS = {name: OURS for name in FIELD if "livarot" in name}
COLOURS |= dict.fromkeys(("ucbvi", "ucbvi-any", "psrl", "psrl-any", "rlsvi", "ucrl2", "uniform"), TABULAR)


def panel(axes: Axes, problem: str, rows: list[dict[str, Any]]) -> None:
    rows = sorted(rows, key=lambda row: -row["regret_mean"])
    for place, row in enumerate(rows):
        colour = COLOURS.get(row["agent"], THEIRS)
        low, high = (max(edge, FLOOR) for edge in row["regret_band"])
        if row["tuned"]:
            axes.plot([low, high], [place, place], color=colour, linewidth=1.6, solid_capstyle="butt")
            axes.plot(max(row["regret_mean"], FLOOR), place, "o", color=colour, markersize=4)
        axes.plot(max(row["default_mean"], FLOOR), place, "o", color=colour, markersize=5, markerfacecolor="none")
    if rows[0]["oracle_mean"] is not None:
        axes.axvline(rows[0]["oracle_mean"], color="black", linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(rows)), [row["agent"] for row in rows])
    axes.tick_params(axis="y", length=0, labelsize=7)
    axes.tick_params(axis="x", labelsize=7)
    axes.set_xscale("log")
    left, right = axes.get_xlim()
    wide = right > 100 * left
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(LogFormatterMathtext() if wide else FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="x", which="major", color="#dddddd", linewidth=0.5)
    floored = any((row["tuned"] and row["regret_mean"] < FLOOR) or row["default_mean"] < FLOOR for row in rows)
    axes.set_title(f"{problem} (marks at {FLOOR:g}: less)" if floored else problem, fontsize=9, loc="left")


def figure(rows: list[dict[str, Any]]) -> bytes:
    problems = list(dict.fromkeys(row["env"] for row in rows))
    lines = -(-len(problems) // 2)
    few = f" ({len(FEW_HELD_OUT)} of them for sepsis)" if set(problems) & set(HOSPITALS) else ""
    with mpl.rc_context(STYLE):
        drawn, grid = plt.subplots(lines, 2, figsize=(8.5, 2.9 * lines), layout="constrained", squeeze=False)
        for axes, problem in zip(grid.flat, problems, strict=False):
            panel(axes, problem, [row for row in rows if row["env"] == problem])
        for axes in grid.flat[len(problems) :]:
            axes.set_axis_off()
        drawn.supxlabel(
            f"exact regret after {N_EPISODES} episodes, mean of {rows[0]['default_n_seeds']} held-out seeds{few}; "
            "every panel has its own range\n"
            "dot: tuned, with its 95 % interval; ring: default settings; ring alone: not tuned; dashed: sign oracle\n"
            "blue: LIVAROT and variants; orange: other agents for MNL models; grey: tabular agents and uniform",
            fontsize=8,
        )
        buffer = io.BytesIO()
        drawn.savefig(buffer, format="png", dpi=100, metadata={"Software": None})
        plt.close(drawn)
    return buffer.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("json", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    write_atomic(options.out, figure(json.loads(options.json.read_text())))


if __name__ == "__main__":
    main()
