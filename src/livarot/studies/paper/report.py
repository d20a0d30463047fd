"""The files of the paper's experiment: figures, ``summary.json``, ``regret.csv`` and a text on what they say."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from livarot.agents.base import declared
from livarot.report.output import check_folder, write_all
from livarot.studies.paper.experiment import (
    CONTENDERS,
    DIM,
    FAMILIES,
    FIXED_GAP,
    LIVAROT,
    PAPER_GAP,
    SINGLE_PHASE,
    UCRL_MNL_OL,
    UNIFORM,
    Family,
    Reproduction,
)
from livarot.studies.runner import Contender
from livarot.studies.writing import contents, filled, seeds_told

CHECKPOINTS = 20  # rows of the CSV per run
LEARNERS = tuple(c for c in CONTENDERS if c is not UNIFORM)


def write_files(result: Reproduction, folder: str | os.PathLike[str]) -> list[Path]:
    """Write all files, each complete or not at all; all are rendered before the first one is written."""
    check_folder(folder)
    return write_all(folder, files(result))


def files(result: Reproduction) -> dict[str, bytes]:
    """The content of every file by its name."""
    from livarot.studies.paper.figures import figures

    return contents(text(result), result.summary(), {"regret.csv": table(result)}, figures(result))


def table(result: Reproduction) -> str:
    """Cumulative regret as a long CSV: one line per run, seed and checkpoint (the last one is T)."""
    marks = sorted({-(-result.n_episodes * k // CHECKPOINTS) for k in range(1, CHECKPOINTS + 1)})
    lines = ["family,agent,horizon,seed,episode,exact_regret,realised_regret"]
    for cell, curves in result.curves.items():
        head = f"{cell.family},{cell.contender},{cell.horizon}"
        for seed in range(result.n_seeds):
            for episode in marks:
                exact, realised = (float(part[seed, episode - 1]) for part in curves)
                lines.append(f"{head},{seed},{episode},{exact:.10g},{realised:.10g}")
    return "\n".join(lines) + "\n"


def text(result: Reproduction) -> str:
    """What the figures show, in a few paragraphs."""
    return filled(part(result) for part in (_setting, _paper_gap, _noise, _fixed_gap, _limits, _locked_in, _burn_in))


def _setting(result: Reproduction) -> str:
    return (
        f"Hard chain, d = {DIM}, T = {result.n_episodes} episodes, {seeds_told(result.n_seeds)}, "
        f"H = {_list(result.horizons)}. Unless said otherwise a number is the mean over seeds of Regret_T / H^1.5 "
        "in exact regret, from its lowest to its highest value over H."
    )


def _paper_gap(result: Reproduction) -> str:
    shares = _shares(result, PAPER_GAP, (LIVAROT, UCRL_MNL_OL))
    verdict = (
        "A flat Figure 2 therefore cannot tell a learner from a coin."
        if np.mean(shares) > 0.75
        else "In this run the learners are visibly below it."
    )
    return (
        f"With the gap of the paper, 1/(4 sqrt(2HT)), the uniform policy, which never learns, has "
        f"{_ratio(result, PAPER_GAP, UNIFORM)}; {_ratios(result, PAPER_GAP, (LIVAROT, UCRL_MNL_OL))}: "
        f"{_percent(shares)} of the uniform policy's regret. The gap shrinks as 1/sqrt(HT), so the regret of "
        f"every policy that errs at a constant rate grows as H^1.5 sqrt(T), and its ratio to H^1.5 is flat. "
        f"{verdict}"
    )


def _noise(result: Reproduction) -> str:
    found = [result.ratio(PAPER_GAP, c, "realised") for c in (LIVAROT, UCRL_MNL_OL, UNIFORM)]
    means, sds = np.array([mean for mean, _ in found]), np.array([sd for _, sd in found])
    spread = f" with a standard deviation over seeds of {_span(sds.flat)}" if result.n_seeds > 1 else ""
    return (
        f"In realised regret, which the paper plots, the same means are {_span(means.flat)}{spread}, while "
        f"the means of the three agents at one H differ by at most {np.ptp(means, axis=0).max():.2f}."
    )


def _fixed_gap(result: Reproduction) -> str:
    shares = _shares(result, FIXED_GAP, LEARNERS)
    verdict = (
        "Here learning shows." if max(shares) < 0.75 else "Not every learner is well below it after this many episodes."
    )
    return (
        f"With a gap independent of T, 1/(2H), the uniform policy has {_ratio(result, FIXED_GAP, UNIFORM)}; "
        f"{_ratios(result, FIXED_GAP, LEARNERS)}: {_percent(shares)} of the uniform policy's regret. "
        f"{verdict}"
    )


def _limits(result: Reproduction) -> str:
    """How far the learners are from what can be had."""
    families = []
    for family, contenders in ((FIXED_GAP, LEARNERS), (PAPER_GAP, (LIVAROT, UCRL_MNL_OL))):
        found = [limits for h in result.horizons if (limits := result.limits(family, h)) is not None]
        if len(found) < len(result.horizons):
            return "The sign oracle was not run."
        least = [limits[0] / h**1.5 for limits, h in zip(found, result.horizons, strict=True)]
        over = "; ".join(
            f"{c.label} {_span(x / y for x, y in zip(result.ratio(family, c, 'exact')[0], least, strict=True))}"
            for c in contenders
        )
        families.append((_span(least), over, _span(x[1] / h**1.5 for x, h in zip(found, result.horizons, strict=True))))
    (fixed, over, rate), (paper, over_paper, _) = families
    return (
        f"What can be had: an oracle that knows everything but the signs has {fixed} at the gap independent of T. "
        f"Regret over the oracle's: {over}. C log T, the least of a consistent learner for large T and no "
        f"bound at a given T, is {rate} there. At the gap of the paper the oracle itself has {paper}; over it: "
        f"{over_paper}."
    )


def _locked_in(result: Reproduction) -> str:
    parts = []
    for contender in LEARNERS:
        found = [result.locked_in(FIXED_GAP, contender, h) or 0.0 for h in result.horizons]
        parts.append(f"{contender.label} {_percent(found)}")
    return (
        "Locked-in seeds, those whose exact regret exceeds half of the uniform policy's, at that gap: "
        f"{'; '.join(parts)}."
    )


def _burn_in(result: Reproduction) -> str:
    def compared(family: Family) -> str:
        return _percent(_relative(result, family, SINGLE_PHASE, LIVAROT))

    length = declared(LIVAROT.agent).burn_in
    return (
        f"Without the burn-in of {length} episodes {LIVAROT.label} has {compared(FIXED_GAP)} of the regret it has "
        f"with it at the gap independent of T, and {compared(PAPER_GAP)} at the gap of the paper."
    )


def _ratio(result: Reproduction, family: Family, contender: Contender) -> str:
    return _span(result.ratio(family, contender, "exact")[0])


def _ratios(result: Reproduction, family: Family, contenders: Iterable[Contender]) -> str:
    return "; ".join(f"{c.label} has {_ratio(result, family, c)}" for c in contenders)


def _shares(result: Reproduction, family: Family, contenders: Iterable[Contender]) -> list[float]:
    """Mean exact regret of each agent and horizon relative to the uniform policy's."""
    return [share for c in contenders for share in _relative(result, family, c, UNIFORM)]


def _relative(result: Reproduction, family: Family, one: Contender, other: Contender) -> list[float]:
    """Mean exact regret of one agent over that of the other, per horizon where the other has any."""
    pairs = zip(result.ratio(family, one, "exact")[0], result.ratio(family, other, "exact")[0], strict=True)
    return [float(x / y) for x, y in pairs if y > 0.0]


def _span(values: Iterable[float]) -> str:
    low, high = (f"{x:.2f}" if abs(x) < 10 else f"{x:.1f}" for x in _ends(values))
    return low if low == high else f"{low} to {high}"


def _percent(values: Iterable[float]) -> str:
    low, high = (f"{100 * x:.3g}" for x in _ends(values))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _ends(values: Iterable[float]) -> tuple[float, float]:
    found = list(values) or [math.nan]
    return min(found), max(found)


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def rows(result: Reproduction) -> dict[str, list[list[str]]]:
    """For printing: per family the lines (what, H, one cell per agent, the sign oracle, C log T)."""
    found = {}
    for family in FAMILIES:
        lines = []
        for regret in ("exact", "realised"):
            columns = [result.ratio(family, c, regret) for c in CONTENDERS]
            for k, horizon in enumerate(result.horizons):
                cells = [f"{mean[k]:.2f} ± {sd[k]:.2f}" for mean, sd in columns]
                limits = result.limits(family, horizon) if regret == "exact" else None
                told = ("", "") if limits is None else (f"{x / horizon**1.5:.2f}" for x in limits)
                lines.append([regret, str(horizon), *cells, *told])
        for horizon in result.horizons:
            shares = [result.locked_in(family, c, horizon) for c in CONTENDERS]
            lines.append(
                ["locked in", str(horizon), *("" if s is None else f"{100 * s:.3g} %" for s in shares), "", ""]
            )
        found[family.title] = lines
    return found
