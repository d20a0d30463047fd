"""What an audit gives back: lines of measured against promised numbers, and their verdicts."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

HOLDS, FAILS, NOTHING = "holds", "fails", "-"


class Line(NamedTuple):
    """One line of the table: what was measured, what it is compared with, the verdict."""

    section: str
    quantity: str
    measured: str
    promised: str = ""
    verdict: str = NOTHING


@dataclass(frozen=True, eq=False)
class Audit:
    """The findings, one mapping per section (see the module); prints as a table."""

    agent: str
    settings: str
    n_seeds: int
    n_episodes: int
    facts: dict[str, Any] = field(repr=False)
    coverage: dict[str, Any] = field(repr=False)
    optimism: dict[str, Any] = field(repr=False)
    inner: dict[str, Any] = field(repr=False)
    sigma_bar: dict[str, Any] = field(repr=False)
    regret: dict[str, Any] = field(repr=False)
    lines: tuple[Line, ...] = field(repr=False)

    @property
    def failures(self) -> tuple[Line, ...]:
        """The lines whose promise was not kept."""
        return tuple(line for line in self.lines if line.verdict == FAILS)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what an agent does not have is None."""
        return {
            "agent": self.agent,
            "settings": self.settings,
            "n_seeds": self.n_seeds,
            "n_episodes": self.n_episodes,
            "facts": self.facts,
            "coverage": self.coverage,
            "optimism": self.optimism,
            "inner": self.inner,
            "sigma_bar": self.sigma_bar,
            "regret": self.regret,
            "table": [line._asdict() for line in self.lines],
        }

    def __str__(self) -> str:
        head = f"audit of {self.agent}: {self.n_seeds} seeds, {self.n_episodes} episodes"
        body = [("quantity", "measured", "promised", "verdict")]
        body += [(f"{line.section}: {line.quantity}", *line[2:]) for line in self.lines]
        widths = [max(len(row[k]) for row in body) for k in range(4)]
        text = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in body]
        return "\n".join([head, text[0], "-" * len(text[0]), *text[1:]])

    def _repr_html_(self) -> str:
        rows = [
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in self.lines
        ]  # fmt: skip
        head = "<tr><th>section</th><th>quantity</th><th>measured</th><th>promised</th><th>verdict</th></tr>"
        title = html.escape(f"audit of {self.agent}: {self.n_seeds} seeds, {self.n_episodes} episodes")
        return f"<table><caption>{title}</caption>{head}{''.join(rows)}</table>"


Lines = list[tuple[str, ...]]


def shown(value: float | None, log: float | None) -> str:
    """A number, or a power of ten where no float is large enough."""
    if value is not None:
        return f"{value:.4g}"
    return "infinite" if log is None else f"10^{log / math.log(10.0):.4g}"
