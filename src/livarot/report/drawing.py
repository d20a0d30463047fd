"""How all figures look, and a figure as the bytes of a file: no pyplot, no lasting change of matplotlib's settings."""

from __future__ import annotations

import io
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "pdf.fonttype": 42,  # text stays text
    "figure.dpi": 150,
    "figure.constrained_layout.use": True,
}


def render(figure: Figure, kind: Literal["png", "pdf"]) -> bytes:
    """The figure as the bytes of a file; equal figures give equal bytes."""
    buffer = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format=kind, dpi=150, metadata={"CreationDate": None} if kind == "pdf" else None)
    return buffer.getvalue()
