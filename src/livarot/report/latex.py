r"""The table of a report for LaTeX, with booktabs' rules and nothing that a name could turn into a command.

>>> escape("50% of $x_1$ \\input{/etc}")
'50\\% of \\$x\\_1\\$ \\textbackslash{}input\\{/etc\\}'
"""

from __future__ import annotations

import re

from livarot.report.statistics import Interval
from livarot.report.summary import CellSummary, Summary, best_learners, percent, told
from livarot.sweeps.experiment.names import counted

MAX_ROWS = 1000
LONG = 45  # lines; longer tables are broken over pages
COLUMNS = "lr r@{\\ }r r@{\\ }r r"
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
    """Text for LaTeX, on one line; an unprintable character becomes its code, and hyphens do not join to dashes."""
    signs = [sign if sign.isprintable() else f"[{ord(sign):02X}]" for sign in " ".join(text.split())]
    joined = "".join(_SIGNS.get(sign, sign) for sign in "".join(signs))
    return re.sub("-(?=-)", "-{}", joined)


def table(summary: Summary) -> str:
    """A heading per environment and a row per agent: mean and interquartile mean of the regret, coverage.

    The least mean regret of an environment is bold if at least two agents learn there; controls are never bold.
    """
    rows: list[str] = []
    count = 0
    for panel, about in enumerate(summary.panels):
        here = summary.of_panel(panel)[: MAX_ROWS - count]
        best = best_learners(summary, summary.of_panel(panel))
        if here:
            rows += [r"\midrule"] if rows else []
            rows.append(f"\\multicolumn{{7}}{{l}}{{{escape(about.name)}, $T = {about.episodes}$}} \\\\*")
        rows += [_row(summary, one, bold=one.agent in best) for one in here]
        count += len(here)
    if len(summary.cells) > count:
        rows += [r"\midrule", f"\\multicolumn{{7}}{{l}}{{{counted(len(summary.cells) - count, 'row')} left out}} \\\\"]
    scaled = any(one.normalised is not None for one in summary.cells)
    units = (
        ["% Regret is in the units of each environment's rewards; the page has the normalised one too."]
        if scaled
        else []
    )
    long = sum(row != r"\midrule" for row in rows) > LONG
    package = "booktabs, longtable" if long else "booktabs"
    head = [
        r"\toprule",
        r"agent & seeds & \multicolumn{2}{c}{regret} & \multicolumn{2}{c}{interquartile mean} & covered \\",
        r"\midrule",
    ]
    return "\n".join(
        [
            f"% Made by `livarot report`; needs \\usepackage{{{package}}} and \\usepackage[T1]{{fontenc}};",
            "% before 2020 also \\usepackage{textcomp}.",
            "% Names in other scripts than the Latin one need LuaLaTeX or XeLaTeX and a font that has them.",
            "% Cumulative exact regret after the last episode; brackets: 95 % bootstrap intervals over the seeds.",
            *units,
            f"\\begin{{{'longtable' if long else 'tabular'}}}{{{COLUMNS}}}",
            *head,
            *(["\\endhead"] if long else []),
            *(row if long else row.replace(r"\\*", r"\\") for row in rows),
            r"\bottomrule",
            f"\\end{{{'longtable' if long else 'tabular'}}}",
            "",
        ]
    )


def _row(summary: Summary, one: CellSummary, *, bold: bool) -> str:
    covered = one.audit["covered"]
    parts = [
        f"\\quad {escape(summary.agents[one.agent])}",
        str(len(one.seeds)),
        *_interval(one.totals["regret"], bold=bold),
        *_interval(one.totals["iqm"]),
        "" if covered is None else f"${percent([covered])[0]}\\,\\%$",
    ]
    return " & ".join(parts) + r" \\"


def _interval(found: Interval | None, *, bold: bool = False) -> tuple[str, str]:
    """The estimate and its interval, for two columns."""
    text = [_powers(number) for number in told(found)]
    if not text:
        return "", ""
    first = f"$\\mathbf{{{text[0]}}}$" if bold else f"${text[0]}$"
    return first, f"$[{text[1]}, {text[2]}]$" if len(text) == 3 else ""


def _powers(number: str) -> str:
    """Powers of ten as LaTeX writes them."""
    mantissa, _, exponent = number.partition("e")
    return f"{mantissa} \\cdot 10^{{{exponent}}}" if exponent else mantissa
