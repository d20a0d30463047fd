"""What the files of all studies have in common: a text, all numbers as JSON, tables, and figures in two formats.

Every number in a text is computed from the study, and sentences are chosen by these numbers where they need not be
true.  Files hold what is determined by the seeds and nothing else: equal studies give equal bytes.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from livarot.core.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 78
# By the key of a contender: Okabe and Ito's palette, which colour-blind readers can tell apart, and styles for print.
COLOUR = {
    "livarot": "#0072B2",
    "adaptive-livarot": "#56B4E9",
    "sound-livarot": "#E69F00",
    "livarot-single-phase": "#009E73",
    "livarot-paper": "#009E73",
    "ucrl-mnl-ol": "#D55E00",
    "certainty-equivalent": "#CC79A7",
    "uniform": "#222222",
}
DASHES: dict[str, Any] = {
    "livarot": "-",
    "adaptive-livarot": (0, (8, 1.5)),
    "sound-livarot": (0, (3, 1, 1, 1, 1, 1)),
    "livarot-single-phase": (0, (5, 1, 1, 1)),
    "livarot-paper": (0, (5, 1, 1, 1)),
    "ucrl-mnl-ol": (0, (6, 1.5)),
    "certainty-equivalent": (0, (3, 1)),
    "uniform": (0, (1, 1)),
}
MARKER = dict(zip(COLOUR, "oPX^^svD", strict=True))


def filled(paragraphs: Iterable[str]) -> str:
    """Paragraphs as lines of a text file."""
    return "\n\n".join(textwrap.fill(p, WIDTH, break_on_hyphens=False) for p in paragraphs) + "\n"


def seeds_told(n_seeds: int) -> str:
    return f"{n_seeds} seeds" if n_seeds > 1 else "one seed"


def spread(x: FloatArray) -> float:
    """The standard deviation over seeds; 0 for a single one."""
    return float(x.std(ddof=1)) if len(x) > 1 else 0.0


def contents(
    text: str, summary: Mapping[str, Any], tables: Mapping[str, str], figures: Mapping[str, Figure]
) -> dict[str, bytes]:
    """The content of every file of a study by its name."""
    from livarot.report.drawing import render

    numbers = json.dumps(summary, indent=1, allow_nan=False) + "\n"
    found = {name: part.encode() for name, part in {"README.txt": text, "summary.json": numbers, **tables}.items()}
    for name, figure in figures.items():
        found |= {f"{name}.png": render(figure, "png"), f"{name}.pdf": render(figure, "pdf")}
    return found
