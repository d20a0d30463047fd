"""``livarot list envs|agents``: what is registered, the environments with numbers that say how hard they are.

An environment is built with its defaults.  V* is the optimal value of the start, in the model's units (rewards in
[0, 1]); kappa* = 1 / min p(s') p(s'') at theta*, over what the start can reach; and
sigma_bar^2 = 1/H sum_h E[Var V*_{h+1}] / H^2 along the optimal policy.
"""

from __future__ import annotations

import json
from typing import Any

import typer

from livarot import agents, envs
from livarot.errors import LivarotError
from livarot.model.problem import MNLMDP
from livarot.planning.exact import solve
from livarot.theory.constants import kappa_star
from livarot.theory.variance import sigma_bar_star

COLUMNS = ("S", "A", "U", "d", "H", "B", "V*", "kappa*", "sigma_bar")


def command(kind: str, *, as_json: bool = False) -> None:
    """See ``livarot list --help``."""
    rows = environments() if kind == "envs" else listed_agents()
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for line in lines(rows, COLUMNS if kind == "envs" else ()):
        typer.echo(line)


def listed_agents() -> list[dict[str, Any]]:
    """The registered agents by name."""
    return [{"name": name, "summary": agents.registry.summary(name)} for name in agents.registry]


def environments() -> list[dict[str, Any]]:
    """The registered environments by name, with their sizes and constants."""
    return [{"name": name, **_numbers(name), "summary": envs.registry.summary(name)} for name in envs.registry]


def _numbers(name: str) -> dict[str, Any]:
    """Sizes and constants of an environment; None where its data are not installed."""
    try:
        return numbers(envs.make(name))
    except LivarotError:
        if name not in envs.LARGE:
            raise
        return dict.fromkeys(COLUMNS)


def numbers(mdp: MNLMDP) -> dict[str, Any]:
    """S, A, U, d, H, B, V*, kappa* and sigma_bar of a model."""
    problem = mdp.problem
    solution = solve(mdp)
    return {
        "S": problem.n_states,
        "A": problem.n_actions,
        "U": problem.max_reachable,
        "d": problem.dim,
        "H": problem.horizon,
        "B": problem.param_bound,
        "V*": float(problem.start @ solution.value[0]),
        "kappa*": kappa_star(mdp),
        "sigma_bar": sigma_bar_star(mdp, solution=solution),
    }


def lines(rows: list[dict[str, Any]], columns: tuple[str, ...] = ()) -> list[str]:
    """One line per row: name, numbers, summary; a header if there are numbers.

    >>> lines([{"name": "a", "H": 5, "V*": 1.23456, "summary": "small"}], ("H", "V*"))
    ['name  H      V*', 'a     5  1.2346  small']
    """
    cells = [[row["name"], *(shown(column, row[column]) for column in columns)] for row in rows]
    if columns:
        cells.insert(0, ["name", *columns])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    texts = [
        "  ".join([f"{name:{widths[0]}}", *(f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True))])
        for name, *rest in cells
    ]
    summaries = [*([""] if columns else []), *(row["summary"] for row in rows)]
    return [f"{text}  {summary}".rstrip() for text, summary in zip(texts, summaries, strict=True)]


def shown(column: str, value: float | None) -> str:
    """A number as the table shows it.

    >>> shown("V*", 3.39726), shown("kappa*", 12345.6), shown("S", 6)
    ('3.3973', '1.23e+04', '6')
    """
    if value is None:
        return "-"
    if isinstance(value, int):
        return str(value)
    return f"{value:.4f}" if column in ("V*", "sigma_bar") else f"{value:.3g}"
