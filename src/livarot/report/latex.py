r"""The table of a report for LaTeX, with booktabs' rules and nothing that a name could turn into a command.

>>> escape("50% of $x_1$ \\input{/etc}")
'50\\% of \\$x\\_1\\$ \\textbackslash{}input\\{/etc\\}'
"""

from __future__ import annotations

import math
import re

from livarot.experiments.statistics import Interval
from livarot.report.summary import NO_REGRET, CellSummary, Summary

MAX_ROWS = 200
_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
}


def escape(text: str) -> str:
    """Text as LaTeX prints it; what is not printable becomes a question mark, hyphens do not join to dashes."""
    joined = "".join(_SIGNS.get(sign, sign) if sign.isprintable() else "?" for sign in text)
    return re.sub("-(?=-)", "-{}", joined)


def table(summary: Summary) -> str:
    """One row per environment and agent: mean and interquartile mean of the regret with intervals, coverage.

    The least mean regret of an environment is bold.
    """
    lines = [
        "% Made by `livarot report`; needs \\usepackage{booktabs} and \\usepackage[T1]{fontenc} with textcomp's signs.",
        "% Cumulative exact regret after the last episode; brackets: 95 % bootstrap-t intervals over the seeds.",
        r"\begin{tabular}{llrrlll}",
        r"\toprule",
        r"environment & agent & $T$ & seeds & regret & interquartile mean & covered \\",
    ]
    count = 0
    for panel, about in enumerate(summary.panels):
        here = summary.of_panel(panel) if count < MAX_ROWS else []
        best = min((float(one.values.mean()) for one in here), default=math.nan)
        for place, one in enumerate(here[: MAX_ROWS - count]):
            lines.append(r"\midrule") if place == 0 else None
            name = escape(about.name) if place == 0 else ""
            lines.append(_row(name, summary, one, bold=float(one.values.mean()) <= best))
        count += len(here)
    if len(summary.cells) > MAX_ROWS:
        lines.append(f"% {len(summary.cells) - MAX_ROWS} rows left out")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _row(name: str, summary: Summary, one: CellSummary, *, bold: bool) -> str:
    covered = one.audit["covered"]
    regret = _interval(one.totals["regret"], bold=bold)
    parts = [
        name,
        escape(summary.agents[one.agent]),
        str(one.cell.episodes),
        str(len(one.seeds)),
        regret,
        _interval(one.totals["iqm"]),
        "" if covered is None else f"${100.0 * covered:.1f}\\,\\%$",
    ]
    return " & ".join(parts) + r" \\"


def _interval(found: Interval | None, *, bold: bool = False) -> str:
    if found is None:
        return ""
    first = _number(found.estimate)
    first = f"\\mathbf{{{first}}}" if bold else first
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        return f"${first}$"
    return f"${first}\\ [{_number(found.low)}, {_number(found.high)}]$"


def _number(value: float) -> str:
    """Four digits; powers of ten as LaTeX writes them, rounding errors of sums as 0."""
    text = f"{value:.4g}" if abs(value) > NO_REGRET else "0"
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return f"{mantissa} \\cdot 10^{{{int(exponent)}}}"
