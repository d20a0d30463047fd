"""A store as one HTML page, and all files of ``livarot report``.

The page holds everything it needs: plotly, our script, the numbers.  Its Content-Security-Policy allows exactly these
two scripts, by their SHA-256, and no request at all, so it can be mailed and opened anywhere.  Names come from files
that others wrote: in the HTML they are escaped, the numbers are a JSON block in which no ``<`` occurs, and the script
puts text into the page as text only.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import logging
import math
import os
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from livarot.core.arrays import FloatArray
from livarot.errors import bad
from livarot.extras import extras_explained
from livarot.report.output import check_folder, write_all
from livarot.report.read_runs import Runs, read_runs, require_runs
from livarot.report.scaling import axis_name
from livarot.report.statistics import Interval
from livarot.report.summary import CellSummary, Curve, Summary, contradicted, percent, summarise, told
from livarot.sweeps.experiment.names import counted, distinct, natural

logger = logging.getLogger(__name__)

ASSETS = Path(__file__).parent / "assets"
METRICS = (
    ("regret", "cumulative regret (exact)"),
    ("realised_regret", "cumulative regret (realised)"),
    ("optimism_gap", "optimism: value of the plan minus V*"),
)
DIGITS = 5  # of what is drawn; what is printed is rounded from the full numbers, by `told`
SHORT, TINY, SELECTED = 48, 26, 64  # characters of an agent in a plot, on a narrow screen, and of an environment
MAX_SPEC = 20_000  # characters of a spec on the page
MAX_FAILURES = 50
FIGURES = ("curves", "scaling", "comparisons")
FILES = ("report.html", "table.tex", *(f"{name}.{kind}" for name in FIGURES for kind in ("pdf", "png")))


def report(
    store: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    controls: bool = False,
    against: str | None = None,
) -> list[Path]:
    """Read a store and write page, figures and table into the folder ``out``; their paths.

    ``controls``: the uniform policy and the oracle are drawn and compared too.  ``against``: the number on the axis of
    the figure of scaling (:mod:`livarot.report.scaling`).

    All files are made before the first one is written, and each is written complete or not at all.  Figures of an
    earlier report that this one does not have are removed.  Damaged runs are left out, and named by warnings.
    """
    check_folder(out)
    runs = read_runs(Path(store))
    _warn(runs)
    require_runs(runs)
    return write_all(out, files(summarise(runs, controls=controls), against), own=FILES)


def _warn(runs: Runs) -> None:
    for text in runs.damaged[:MAX_FAILURES]:
        logger.warning("left out: %s", text)
    if len(runs.damaged) > MAX_FAILURES:
        logger.warning("left out: %d more damaged files", len(runs.damaged) - MAX_FAILURES)


def files(summary: Summary, against: str | None = None) -> dict[str, bytes]:
    """The content of every file by its name."""
    from livarot.report.curves import figures
    from livarot.report.drawing import render
    from livarot.report.latex import table

    found = {"report.html": page(summary).encode(), "table.tex": table(summary).encode()}
    for name, figure in figures(summary, against).items():
        found[f"{name}.pdf"] = render(figure, "pdf")
        found[f"{name}.png"] = render(figure, "png")
    return found


def page(summary: Summary) -> str:
    """The page as text."""
    with extras_explained():
        from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    # a parser of HTML turns CR LF into LF, and the hashes are those of the text after it
    scripts = [_script_text(get_plotlyjs()), _script_text((ASSETS / "report.js").read_text(encoding="utf-8"))]
    allowed = " ".join(f"'sha256-{_sha256(text)}'" for text in scripts)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    names = [experiment.name for experiment in summary.runs.experiments]
    title = ", ".join(dict.fromkeys(names)) or "livarot"
    parts = {
        "POLICY": html.escape(policy),
        "TITLE": html.escape(title[:300]),
        "STYLE": (ASSETS / "report.css").read_text(encoding="utf-8"),
        "INTRO": _intro(summary),
        "LEFT": _left_out(summary),
        "PROVENANCE": _provenance(summary),
        "DATA": _json(data_of(summary)),
        "PLOTLY": scripts[0],
        "SCRIPT": scripts[1],
    }
    # in one pass: text that was put in is not searched again
    pieces = PAGE.split("@@")
    return "".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def data_of(summary: Summary) -> dict[str, Any]:
    """What the script draws, ready for JSON; numbers that it prints come as text."""
    from livarot.report.curves import COLOURS, DASHES

    panel_names = distinct([panel.name for panel in summary.panels], SELECTED)
    return _scaling(summary) | {
        "agents": summary.agents,
        "short": distinct(summary.agents, SHORT),
        "tiny": distinct(summary.agents, TINY),
        "agent_rank": _ranks(summary.agents),
        "controls": sorted(summary.controls),
        "with_controls": summary.with_controls,
        "colours": [colour.lower() for colour in COLOURS],
        "dashes": len(DASHES),
        "panels": [
            {
                "name": panel.name,
                "short": short,
                "horizon": panel.horizon,
                "episodes": panel.episodes,
            }
            for panel, short in zip(summary.panels, panel_names, strict=True)
        ],
        "panel_rank": _ranks([panel.name for panel in summary.panels]),
        "units": any(one.normalised is not None for one in summary.cells),
        "metrics": [list(metric) for metric in METRICS if any(metric[0] in one.curves for one in summary.cells)],
        "cells": [_cell(one) for one in summary.cells],
        "pairs": [
            {
                "panel": one.panel,
                "first": one.first,
                "second": one.second,
                "difference": _triple(one.difference[:3]),
                "improvement": _triple(one.improvement),
                "told": [spread(one.difference[:3]), spread(one.improvement)],
                "seeds": one.difference.n_seeds,
            }
            for one in summary.comparisons
        ],
    }


def _scaling(summary: Summary) -> dict[str, Any]:
    """Regret against settings: axes, families, names of lines, and the lines."""
    names = distinct([str(family.name) for family in summary.families], SELECTED)
    lines = list(dict.fromkeys(line.name for line in summary.scaling))
    return {
        "axes": [[axis, axis_name(axis)] for axis in dict.fromkeys(family.axis for family in summary.families)],
        "families": [
            {"axis": family.axis, "name": name, "episodes": family.episodes}
            for family, name in zip(summary.families, names, strict=True)
        ],
        "lines": lines,
        "scaling": [
            {
                "family": line.family,
                "agent": line.agent,
                "name": lines.index(line.name),
                "agents": sorted({summary.cells[index].agent for index in line.cells}),
                "panels": sorted({summary.cells[index].panel for index in line.cells}),
                "sizes": line.sizes,
                "mean": [_number(_regret(summary, index)[0]) for index in line.cells],
                "low": [_number(_regret(summary, index)[1]) for index in line.cells],
                "high": [_number(_regret(summary, index)[2]) for index in line.cells],
                "slope": spread(line.slope),
            }
            for line in summary.scaling
        ],
    }


def spread(values: Iterable[float] | None) -> str:
    """An estimate with its interval as text.

    >>> spread((35.5442, 22.2178, 56.579))
    '36 [22, 57]'
    """
    text = told(values)
    return f"{text[0]} [{text[1]}, {text[2]}]" if len(text) == 3 else "".join(text)


def _share(values: Iterable[float] | None) -> str:
    text = percent(values)
    return f"{text[0]} % [{text[1]}, {text[2]}]" if len(text) == 3 else "".join(f"{one} %" for one in text)


def _ranks(names: list[str]) -> list[int]:
    """The places of names in natural order, where 2 comes before 10."""
    order = {name: place for place, name in enumerate(sorted(set(names), key=natural))}
    return [order[name] for name in names]


def _regret(summary: Summary, index: int) -> tuple[float, float, float]:
    found = summary.cells[index].totals["regret"]
    return (math.nan, math.nan, math.nan) if found is None else (found.estimate, found.low, found.high)


def _cell(one: CellSummary) -> dict[str, Any]:
    audit = one.audit
    level = None if audit["promised"] is None else audit["promised"].level
    return {
        "panel": one.panel,
        "agent": one.agent,
        "seeds": len(one.seeds),
        "x": [int(x) for x in one.episodes],
        "curves": {name: _curve(curve) for name, curve in one.curves.items()},
        "regret": _triple(one.totals["regret"]),
        "iqm": _triple(one.totals["iqm"]),
        "realised": _triple(one.totals["realised_regret"]),
        "normalised": _triple(one.normalised or one.totals["regret"]),
        "audit": {
            name: _triple(value) if isinstance(value, Interval) else _number(value)
            for name, value in (audit | {"promised": level, "stages_always": None}).items()
        },
        "contradicted": contradicted(audit),
        "told": {
            "regret": spread(one.totals["regret"]),
            "iqm": spread(one.totals["iqm"]),
            "realised": spread(one.totals["realised_regret"]),
            "normalised": spread(one.normalised or one.totals["regret"]),
            "sigma_bar": spread(_one(audit["sigma_bar"])),
            "covered": _share(_one(audit["covered"])),
            "always_covered": _share(audit["always_covered"]),
            "stages_always": _stages(audit["stages_always"]),
            "promised": str(audit["promised"] or ("nothing" if audit["covered"] is not None else "")),
            "optimistic": _share(_one(audit["optimistic"])),
            "least_optimism": spread(_one(audit["least_optimism"])),
            "inner_gap": "".join(told(_one(audit["inner_gap"]), zero=0.0)),
        },
    }


def _stages(shares: FloatArray | None) -> str:
    """The share of runs in which the set of a stage never missed: the worst stage, and the best where it differs.

    >>> _stages(np.array([1.0, 0.85, 0.9])), _stages(np.array([1.0, 1.0]))
    ('85.0 % (stage 1) to 100.0 %', '100.0 %')
    """
    if shares is None:
        return ""
    worst, best = float(shares.min()), float(shares.max())
    return f"{_share([best])}" if worst == best else f"{_share([worst])} (stage {shares.argmin()}) to {_share([best])}"


def _one(value: float | None) -> list[float] | None:
    return None if value is None else [value]


def _curve(curve: Curve) -> dict[str, Any]:
    found: dict[str, Any] = {"mean": _numbers(curve.mean)}
    for name, one in (("pointwise", curve.pointwise), ("simultaneous", curve.simultaneous)):
        if one is not None:
            found[name] = [_numbers(one.low), _numbers(one.high)]
    return found


def _numbers(values: FloatArray) -> list[float | None]:
    return [_number(float(x)) for x in values]


def _triple(values: Any) -> list[float | None] | None:
    return None if values is None else [_number(x) for x in values]


def _number(value: float | None) -> float | None:
    """Rounded to a few digits; None for what is not finite: JSON has neither NaN nor infinity."""
    if value is None or not math.isfinite(value):
        return None
    return float(np.format_float_scientific(value, DIGITS - 1))


def _json(value: Any) -> str:
    """JSON that cannot end the block it stands in, nor open a comment."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _script_text(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "</script" in text.lower() or "<!--" in text:
        raise bad("plotly", "its script cannot stand inside a page", cure="install another version of plotly")
    return text


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _intro(summary: Summary) -> str:
    runs = summary.runs
    parts = [
        counted(runs.n_runs, "run"),
        counted(len(summary.agents), "agent"),
        counted(len(summary.panels), "environment"),
        *([f"{len(runs.failures)} failed"] if runs.failures else []),
        *([f"{counted(len(runs.damaged), 'damaged file')} left out"] if runs.damaged else []),
    ]
    unknown = sorted({one.cell.environment for one in summary.cells if one.scales is None})
    units = f" Not registered here, so that regret is normalised: {', '.join(unknown)[:300]}." if unknown else ""
    return html.escape(f"{', '.join(parts)}. livarot {version('livarot')}.{units}")


def _left_out(summary: Summary) -> str:
    if not summary.comparisons_left_out:
        return ""
    pairs = counted(summary.comparisons_left_out, "pair is", "pairs are")
    return f"{pairs} left out (of all environments): too few seeds in common, or too many pairs."


def _provenance(summary: Summary) -> str:
    parts = []
    for found, count in summary.runs.provenances():
        rows = "".join(
            f"<tr><td>{html.escape(str(name))}</td><td>{html.escape(str(value))}</td></tr>"
            for name, value in found.items()
        )
        parts.append(f"<details><summary>{counted(count, 'run')} made by</summary><table>{rows}</table></details>")
    for experiment in summary.runs.experiments:
        text = experiment.to_toml()
        more = "\n# ..." if len(text) > MAX_SPEC else ""
        body = html.escape(text[:MAX_SPEC] + more)
        head = html.escape(f"experiment {experiment.name[:200]}, key {experiment.key[:12]}")
        parts.append(f"<details><summary>{head}</summary><pre>{body}</pre></details>")
    for key, note in list(summary.runs.failures.items())[:MAX_FAILURES]:
        last = str(note.get("traceback", "")).strip().splitlines()
        words = html.escape(f"run {key[:12]} failed: {last[-1][:300] if last else 'no message'}")
        parts.append(f"<p>{words}</p>")
    parts += [f"<p>{html.escape(text[:500])}</p>" for text in summary.runs.damaged[:MAX_FAILURES]]
    return "\n".join(parts)


PAGE = (ASSETS / "report.html").read_text(encoding="utf-8")

__all__ = ["data_of", "files", "page", "report"]
