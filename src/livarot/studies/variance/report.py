"""The files of the study of sigma_bar: three figures, ``summary.json``, ``regret.csv``, tables and a text."""

from __future__ import annotations

import math
import os
from pathlib import Path as FilePath
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from livarot.core.arrays import FloatArray
from livarot.core.tolerances import ROUNDING
from livarot.report.drawing import STYLE
from livarot.report.output import check_folder, write_all
from livarot.studies.runner import Contender
from livarot.studies.variance import sigma_curves
from livarot.studies.variance.experiment import (
    ADAPTIVE,
    CONTENDERS,
    FAMILIES,
    GAP,
    GREEDY,
    HORIZON,
    LIVAROT,
    RESCALED,
    SOUND,
    UCRL_MNL_OL,
    UNIFORM,
    Study,
)
from livarot.studies.variance.paths import Path, mean_and_error
from livarot.studies.writing import COLOUR, DASHES, MARKER, contents, filled, seeds_told

TITLE = {
    "spread": "spread: fixed gap, values further apart",
    "lottery": "lottery: noise that no decision changes",
    "scale": "scale: all rewards multiplied",
    "random": "random MDPs: fixed gaps, V* multiplied",
}
FAMILY_COLOUR = {"hard-chain": "#D55E00", "kl-robust-chain": "#CC79A7", "kl-robust": "#0072B2", "random": "#009E73"}
FAMILY_MARKER = {"hard-chain": "o", "kl-robust-chain": "v", "kl-robust": "s", "random": "^"}


def regret_figure(study: Study) -> Figure:
    """Exact regret after T episodes against sigma_bar, one panel per family, mean ± 2 standard errors."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 6.4))
        panels = figure.subplots(2, 2, sharey=True).reshape(-1)
        for panel, family in zip(panels, FAMILIES, strict=True):
            sigmas = np.array([m.sigma_bar for m in FAMILIES[family]])
            for contender in CONTENDERS:
                _regret_line(panel, sigmas, study.of(family, contender), contender)
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_title(TITLE[family])
            panel.set_xlabel(r"$\bar\sigma$")
            panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            panel.xaxis.set_major_formatter(FuncFormatter(_plain))
            panel.xaxis.set_minor_formatter(NullFormatter())
            _guides(panel, sigmas, max(float(study.of(family, LIVAROT)[0].mean()), ROUNDING))
        for panel in panels[::2]:
            panel.set_ylabel(rf"exact Regret$_T$, T = {study.n_episodes}")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, handlelength=2.6)
        figure.suptitle(
            f"Regret against sigma_bar at fixed d, H = {HORIZON}, T, B and features; "
            f"{study.n_seeds} seeds, mean ± 2 s.e.",
            fontsize=9.5,
        )
    return figure


def _plain(x: float, position: int) -> str:
    return f"{x:g}"


def _regret_line(axes: Axes, sigmas: FloatArray, regret: FloatArray, contender: Contender) -> None:
    mean = np.maximum(regret.mean(axis=1), ROUNDING)
    error = np.array([mean_and_error(row)["standard_error"] for row in regret])
    axes.errorbar(
        sigmas,
        mean,
        yerr=np.stack([np.minimum(2 * error, 0.9 * mean), 2 * error]) if error.any() else None,
        color=COLOUR[contender.key],
        linestyle=DASHES[contender.key],
        marker=MARKER[contender.key],
        markersize=3.5,
        elinewidth=0.9,
        capsize=2,
        label=contender.label,
    )


def _guides(axes: Axes, sigmas: FloatArray, at: float) -> None:
    """Thin lines of slope 1 and 2 from half of LIVAROT's first point, named beyond the last, where no other line is."""
    for power in (1, 2):
        line = 0.5 * at * (sigmas / sigmas[0]) ** power
        axes.plot(sigmas, line, color="#999999", linewidth=0.8, zorder=0)
        axes.annotate(
            f"slope {power}", (sigmas[-1], line[-1]), fontsize=7, color="#777777", ha="left", va="center",
            xytext=(5, 0), textcoords="offset points", bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
        )  # fmt: skip
    axes.set_xlim(right=sigmas[-1] * (sigmas[-1] / sigmas[0]) ** 0.17)  # room for the two words


def sigma_figure(study: Study) -> Figure:
    """sigma_bar against H: under pi* (lines) and at worst (crosses), with the paper's curves."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4.2))
        axes = figure.subplots()
        for curve in study.curves:
            h = np.array(curve.horizons, dtype=np.float64)
            colour = FAMILY_COLOUR[curve.key]
            axes.fill_between(h, curve.optimal.min(axis=1), curve.optimal.max(axis=1), color=colour, alpha=0.15, lw=0)
            axes.plot(h, curve.optimal.mean(axis=1), color=colour, marker=FAMILY_MARKER[curve.key], label=curve.label)
            axes.plot(h, curve.worst.mean(axis=1), color=colour, linestyle="", marker="x", markersize=4.5)
        h = np.array(study.curves[0].horizons, dtype=np.float64)
        for line, style, label in paper_lines(h):
            axes.plot(h, line, color="#444444", linestyle=style, linewidth=1.1, label=label)
        axes.plot([], [], color="#444444", linestyle="", marker="x", label="worst trajectory (mean over seeds)")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(h, [f"{int(x)}" for x in h])
        axes.set_xlabel("horizon H")
        axes.set_ylabel(r"$\bar\sigma$")
        axes.set_title(r"$\bar\sigma$ under the optimal policy: mean and range over seeds")
        figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


def paper_lines(horizons: FloatArray) -> list[tuple[FloatArray, Any, str]]:
    """The curves of the paper with their line styles and labels."""
    log_u, eta = math.log(sigma_curves.N_REACHABLE), sigma_curves.ROBUSTNESS
    return [
        (0.5 / np.sqrt(horizons), "-", r"$1/(2\sqrt{H})$: bound of $\bar\sigma$ under $\pi^*$"),
        (log_u / (eta * horizons), (0, (4, 2)), r"$\log U/(H\eta)$: rate for KL-robust"),
        (
            math.sqrt(log_u**2 + 2 * log_u + 2) / (eta * horizons),
            (0, (1, 1)),
            r"$\sqrt{\log^2 U + 2\log U + 2}/(H\eta)$, as printed",
        ),
    ]


def path_figure(study: Study) -> Figure:
    """sigma_bar along each agent's path over that of pi*, a row per problem; no trajectory goes beyond the bar."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.6))
        axes = figure.subplots()
        for row, path in enumerate(study.paths):
            axes.plot([path.ceiling] * 2, [row - 0.4, row + 0.4], color="#444444", linewidth=1.6)
            for place, contender in enumerate(CONTENDERS):
                found = mean_and_error(path.ratio[contender.key])
                axes.errorbar(
                    [found["mean"]], [row + 0.66 * (place / (len(CONTENDERS) - 1) - 0.5)],
                    xerr=[2.0 * found["standard_error"]], fmt=MARKER[contender.key], color=COLOUR[contender.key],
                    markersize=4, capsize=1.5, elinewidth=0.9, label=contender.label if row == 0 else None,
                )  # fmt: skip
        axes.plot([], [], color="#444444", linewidth=1.6, label="worst trajectory of the model")
        axes.axvline(1.0, color="#999999", linewidth=0.9, zorder=0)
        axes.set_yticks(range(len(study.paths)), [path.label for path in study.paths])
        axes.set_ylim(len(study.paths) - 0.5, -0.5)
        axes.set_xlabel(r"$\bar\sigma_T$ along the path / $\bar\sigma$ under $\pi^*$")
        axes.set_title(f"T = {study.path_episodes}, {seeds_told(study.n_seeds)}, mean ± 2 s.e.", loc="left")
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def figures(study: Study) -> dict[str, Figure]:
    """Every figure under the name of its files."""
    drawn = {"regret_sigma_bar": regret_figure(study), "sigma_bar": sigma_figure(study)}
    return drawn | {"sigma_bar_paths": path_figure(study)}


def table(study: Study) -> str:
    """One line per family, member, agent and seed."""
    lines = ["family,spread,lottery,gap,sigma_bar,agent,seed,exact_regret"]
    for (member, key), regret in study.regret.items():
        made = ",".join("" if x is None else f"{x:g}" for x in (member.spread, member.lottery))
        head = f"{member.family},{made},{member.gap:.10g},{member.sigma_bar:.10g},{key}"
        lines += [f"{head},{seed},{value:.10g}" for seed, value in enumerate(regret)]
    return "\n".join(lines) + "\n"


def rows(study: Study) -> dict[str, list[list[str]]]:
    """Per family: agent, regret at the smallest and at the largest sigma_bar, slope, rank correlation."""
    found = {}
    for family in FAMILIES:
        lines = []
        for contender in study.shown(family):
            ends = [mean_and_error(row) for row in study.of(family, contender)[[0, -1]]]
            fit = study.slope(family, contender)
            lines.append(
                [
                    contender.label,
                    *(f"{end['mean']:.4g} ± {_small(end['standard_error'])}" for end in ends),
                    _fit(fit),
                    f"{fit.rank_correlation:.2f}",
                ]
            )
        found[family] = lines
    return found


def _small(error: float) -> str:
    return f"{error:.2g}" if error > ROUNDING else "0"


def markdown(study: Study) -> str:
    """The tables of :func:`rows`, of paths, and sigma_bar against the horizon, for a document."""
    parts = []
    for family, lines in rows(study).items():
        sigmas = [m.sigma_bar for m in FAMILIES[family]]
        parts += [
            f"**{TITLE[family].replace('*', chr(92) + '*')}**; sigma_bar from {min(sigmas):.4f} to {max(sigmas):.4f}",
            _markdown_table(["agent", "regret at the least", "at the largest", "slope", "rank correlation"], lines),
        ]
    parts += [
        f"**sigma_bar along the path over sigma_bar under the optimal policy**, T = {study.path_episodes}; in the last "
        "tenth of the episodes after the comma; no trajectory has more than the worst",
        _markdown_table(
            ["problem", "under the optimal policy", "worst", *(contender.label for contender in CONTENDERS)],
            [_path_line(path) for path in study.paths],
        ),
    ]
    horizons = study.curves[0].horizons
    lines = []
    for curve in study.curves:
        found = curve.summary()
        for name, what in (("optimal", "under the optimal policy"), ("worst", "worst trajectory")):
            numbers = [f"{x:.3g}" for x in found[name]["mean"]]
            lines.append([curve.label, what, *numbers, f"{found[name]['slope']:.2f}"])
    parts += [
        "**sigma_bar against H**, mean over seeds; slope of log sigma_bar on log H over the longer half",
        _markdown_table(["family", "", *(f"H = {h}" for h in horizons), "slope"], lines),
    ]
    return "\n\n".join(parts) + "\n"


def _path_line(path: Path) -> list[str]:
    numbers = [
        f"{found['mean']:.3f} ± {_small(found['standard_error'])}, {path.late[c.key].mean():.3f}"
        for c in CONTENDERS
        for found in (mean_and_error(path.ratio[c.key]),)
    ]
    return [path.label, f"{path.optimal.mean():.4f}", f"{path.ceiling:.3f}", *numbers]


def _markdown_table(head: list[str], lines: list[list[str]]) -> str:
    body = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in body)


def text(study: Study) -> str:
    """What came out, in a few paragraphs."""
    return filled(part(study) for part in (_setting, _spread, _radii, _random, _lottery, _scale, _paths, _horizons))


def _setting(study: Study) -> str:
    return (
        f"Rows of {HORIZON // 2} independent decisions, d = 2, H = {HORIZON}, T = {study.n_episodes}, "
        f"{seeds_told(study.n_seeds)}. Regret is exact; a slope is that of log regret on log sigma_bar over a family, "
        "with a 95 % bootstrap interval over seeds."
    )


def _spread(study: Study) -> str:
    ours, theirs = study.slope("spread", LIVAROT), study.slope("spread", UCRL_MNL_OL)
    others = ", ".join(f"{c.label} {_fit(study.slope('spread', c))}" for c in (ADAPTIVE, SOUND))
    first, last = (study.of("spread", LIVAROT).mean(axis=1)[[0, -1]]).tolist()
    low, high = (study.of("spread", UCRL_MNL_OL).mean(axis=1)[[0, -1]]).tolist()
    sigmas = [m.sigma_bar for m in FAMILIES["spread"]]
    verdict = (
        "LIVAROT's regret follows sigma_bar here, and that of UCRL-MNL-OL, whose bonus is a multiple of H and not of "
        "the spread of the values, follows it less."
        if ours.low is not None and theirs.high is not None and ours.low > max(0.5, theirs.high)
        else "The two cannot be told apart by their slopes here."
    )
    return (
        f"Spread (gap {GAP:g}, sigma_bar from {min(sigmas):.4f} to {max(sigmas):.4f}): LIVAROT has slope {_fit(ours)} "
        f"and regret from {first:.3g} to {last:.3g}; slopes of {others}; UCRL-MNL-OL slope {_fit(theirs)} and regret "
        f"from {low:.3g} to {high:.3g}; without optimism slope {_fit(study.slope('spread', GREEDY))}; the uniform "
        f"policy has {study.of('spread', UNIFORM).mean():.3g} everywhere. {verdict}"
    )


def _radii(study: Study) -> str:
    parts = []
    for contender in RESCALED:
        first, last = (study.of("spread", contender).mean(axis=1)[[0, -1]]).tolist()
        fit = _fit(study.slope("spread", contender))
        parts.append(f"{contender.label}: slope {fit}, regret from {first:.3g} to {last:.3g}")
    narrow = next(c for c in RESCALED if c.key == f"{UCRL_MNL_OL.key}-x0.1")
    ratio = study.of("spread", narrow).mean(axis=1) / np.maximum(study.of("spread", LIVAROT).mean(axis=1), ROUNDING)
    return (
        f"With other radii, spread family. {'; '.join(parts)}. UCRL-MNL-OL with a tenth of its radius has "
        f"{ratio.min():.2g} to {ratio.max():.2g} times the regret that LIVAROT has with its own."
    )


def _random(study: Study) -> str:
    parts = []
    for contender in CONTENDERS:
        first, last = (study.of("random", contender).mean(axis=1)[[0, -1]]).tolist()
        parts.append(f"{contender.label} {_fit(study.slope('random', contender))}, from {first:.3g} to {last:.3g}")
    sigmas = [m.sigma_bar for m in FAMILIES["random"]]
    return (
        f"Random MDPs with fixed gaps (sigma_bar from {min(sigmas):g} to {max(sigmas):g}), slopes and regret: "
        f"{'; '.join(parts)}."
    )


def _lottery(study: Study) -> str:
    worst = max(float(np.ptp(study.of("lottery", c), axis=0).max()) for c in CONTENDERS)
    sigmas = [m.sigma_bar for m in FAMILIES["lottery"]]
    verdict = "Regret does not follow sigma_bar here at all." if worst < 1e-6 else "Regret changes a little."
    return (
        f"Lottery (sigma_bar from {min(sigmas):.4f} to {max(sigmas):.4f}): the regret of an agent with a given seed "
        f"changes by at most {worst:.1g} over the family. {verdict} sigma_bar counts all variance of V*, also where "
        "there is nothing to learn: a small sigma_bar makes a problem easy, a large one need not make it hard."
    )


def _scale(study: Study) -> str:
    parts = "; ".join(f"{c.label} {_fit(study.slope('scale', c))}" for c in CONTENDERS)
    return (
        f"Scale: slopes are {parts}. Every agent that plays by the values alone has slope 1, the uniform policy too: "
        "it is not evidence of learning."
    )


def _paths(study: Study) -> str:
    learners = [c for c in CONTENDERS if c is not UNIFORM]
    *usual, near_tie = study.paths
    means = [path.ratio[c.key].mean() for path in usual for c in learners]
    waiting = "; ".join(f"{c.label} {near_tie.ratio[c.key].mean():.2f}" for c in CONTENDERS)
    return (
        f"Along the path (T = {study.path_episodes}): sigma_bar of the learner's path is {min(means):.2f} to "
        f"{max(means):.2f} times that of the optimal policy on {len(usual)} problems. In the {near_tie.label}, where "
        f"waiting costs next to nothing and keeps the variance ahead, it is: {waiting}; the worst trajectory has "
        f"{near_tie.ceiling:.2f}. Little regret does not imply little sigma_bar: a bound by that of the optimal policy "
        "alone has to pay for near ties."
    )


def _horizons(study: Study) -> str:
    parts = []
    for curve in study.curves:
        found = curve.summary()
        parts.append(
            f"{curve.label}: slope of log sigma_bar on log H {found['optimal']['slope']:.2f} under the optimal policy, "
            f"{found['worst']['slope']:.2f} at worst"
        )
    h = np.array(study.curves[0].horizons, dtype=np.float64)[:, None]
    share = max(float((2.0 * np.sqrt(h) * curve.optimal).max()) for curve in study.curves)
    return (
        f"Against the horizon (the longer half of H = {', '.join(map(str, study.curves[0].horizons))}). "
        f"{'; '.join(parts)}. The largest share of the bound 1/(2 sqrt(H)) that is reached under the optimal policy is "
        f"{share:.2f}."
    )


def _fit(fit: Any) -> str:
    if fit.slope is None:
        return "undefined"
    slope, low, high = (round(x, 2) + 0.0 for x in (fit.slope, fit.low, fit.high))  # + 0.0: no -0.00
    return f"{slope:.2f} [{low:.2f}, {high:.2f}]"


def files(study: Study) -> dict[str, bytes]:
    """The content of every file by its name."""
    tables = {"regret.csv": table(study), "tables.md": markdown(study)}
    return contents(text(study), study.summary(), tables, figures(study))


def write_files(study: Study, folder: str | os.PathLike[str]) -> list[FilePath]:
    """Write all files, each complete or not at all; all are rendered before the first one is written."""
    check_folder(folder)
    return write_all(folder, files(study))
