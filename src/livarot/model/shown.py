"""How objects are shown at a prompt and in a notebook: a title and a few lines, never more than twelve.

What only holds arrays is shown by :func:`compact`: shapes and ranges, in two lines.
"""

from __future__ import annotations

import dataclasses
import html
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from livarot.core.arrays import FloatArray

if TYPE_CHECKING:
    from livarot.model.problem import Problem

T = TypeVar("T")
WIDEST = 110
MOST = 12


def text_of(title: str, lines: Mapping[str, str]) -> str:
    """``title`` and one line for each entry.

    >>> print(text_of("Box", {"size": "3", "content": "nothing"}))
    Box
      size     3
      content  nothing
    """
    kept = list(lines.items())[: MOST - 1]
    width = max((len(name) for name, _ in kept), default=0)
    return "\n".join([cut(title), *(cut(f"  {name:<{width}}  {text}") for name, text in kept)])


def html_of(title: str, lines: Mapping[str, str]) -> str:
    """The same as a small table."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(cut(text))}</td></tr>"
        for name, text in list(lines.items())[: MOST - 1]
    )
    return f"<table><caption style='text-align:left'><b>{html.escape(cut(title))}</b></caption>{rows}</table>"


def compact(cls: type[T]) -> type[T]:
    """Class decorator: a named tuple or dataclass of arrays is shown by their shapes, not by their numbers.

    >>> from typing import NamedTuple
    >>> @compact
    ... class Box(NamedTuple):
    ...     sides: object
    ...     weight: float
    ...     label: str | None = None
    >>> Box(np.ones((2, 3)), 0.5)
    Box: sides (2, 3) 1 to 1, weight 0.5
    """

    def lines(self: Any) -> dict[str, str]:
        names = getattr(self, "_fields", None) or [each.name for each in dataclasses.fields(self)]
        return {name: size_of(value) for name in names if (value := getattr(self, name)) is not None}

    def show(self: Any) -> str:
        text = f"{cls.__name__}: " + ", ".join(f"{name} {size}" for name, size in lines(self).items())
        return textwrap.fill(text, WIDEST, subsequent_indent="  ", max_lines=2, placeholder=" ...")

    cls.__repr__ = show  # type: ignore[method-assign]
    cls._repr_html_ = lambda self: html_of(cls.__name__, lines(self))  # type: ignore[attr-defined]
    return cls


def size_of(value: Any) -> str:
    """A number or text as it is; of an array the shape and, of floats, the range; of all else the type.

    >>> size_of(np.array([0.25, 2.0])), size_of(np.zeros((2, 0))), size_of([[1, 2]]), size_of(0.1 + 0.2), size_of({})
    ('(2,) 0.25 to 2', '(2, 0)', '(1, 2)', '0.3', 'dict')
    """
    if isinstance(value, bool | int | str):
        return str(value)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # a ragged list
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        return type(value).__name__
    known = array[np.isfinite(array)]
    if array.ndim == 0:
        return f"{array:.6g}"
    extent = f" {known.min():.6g} to {known.max():.6g}" if array.dtype.kind == "f" and known.size else ""
    return f"{array.shape}{extent}"


def problem_lines(problem: Problem, theta: FloatArray | None = None) -> dict[str, str]:
    """The sizes of a problem, its names, what is paid, which actions exist, and the parameter if it is known."""
    units, shape = problem.units, (problem.horizon, problem.n_states, problem.n_actions)
    lines = {"sizes": f"{shape[0]} stages, {shape[1]} states, {shape[2]} actions, {problem.rows.n_rows} transitions"}
    for name, labels in (("states", problem.states), ("actions", problem.actions), ("stages", problem.stages)):
        if labels is not None:
            lines[name] = ", ".join(map(str, labels[:12])) + (", ..." if len(labels) > 12 else "")
    low, high = _range(problem)
    paid = f"{0.0 - high:.6g} to {0.0 - low:.6g} a step" if units.cost else f"{low:.6g} to {high:.6g} a step"
    extras = [
        "" if problem.next_reward is None else ", depending on the next state",
        "" if problem.terminal_reward is None and units.end == 0.0 else ", others at the end",
        "" if problem.discount == 1.0 else f", discounted by {problem.discount:g}",
    ]
    lines["costs" if units.cost else "rewards"] = paid + "".join(extras)
    if not problem.available.all():
        lines["available"] = f"{problem.available.mean():.0%} of all (stage, state, action)"
    if problem.terminal is not None:
        ends = [problem.states[i] if problem.states else int(i) for i in np.flatnonzero(problem.terminal)[:8]]
        lines["terminal"] = f"{int(problem.terminal.sum())} states: " + ", ".join(map(str, ends))
    kind = "one for all stages" if problem.shared_parameter else "one per stage"
    lines["parameter"] = f"{problem.dim} numbers, {kind}, |theta| <= {problem.param_bound:.6g}"
    if theta is not None:
        lines["parameter"] += f", at most {np.linalg.norm(theta, axis=1).max():.6g} in truth"
    return lines


def _range(problem: Problem) -> tuple[float, float]:
    """The least and the most that a step of an episode which is not over pays, as it was given."""
    there, units = problem.available, problem.units
    if not there.any():
        return 0.0, 0.0
    low, high = float(problem.reward[there].min()), float(problem.reward[there].max())
    if problem.next_reward is not None:
        starts, per_table = problem.rows.row_start, problem.n_states * problem.n_actions
        for h, table in enumerate(problem.stage_table.tolist()):
            rows = slice(starts[table * per_table], starts[(table + 1) * per_table])
            counts = problem.rows.outcomes[table * per_table : (table + 1) * per_table]
            base = np.where(there[h], problem.reward[h], -np.inf).reshape(-1)
            high = max(high, float((np.repeat(base, counts) + problem.next_reward[rows]).max()))
    return float(units.reward(low)), float(units.reward(high))


def cut(line: str) -> str:
    """One line of a bounded width."""
    line = " ".join(line.split("\n"))
    return line if len(line) <= WIDEST else line[: WIDEST - 3] + "..."
