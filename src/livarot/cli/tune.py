"""``livarot tune``: a grid of an agent's settings on a registered environment.

Ctrl-C ends it with exit code 130, and what was finished is printed; if nothing was, as for every other command.
"""

from __future__ import annotations

import json
import math
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from livarot import agents, envs
from livarot.cli.progress import progress_shown
from livarot.cli.theory import parse_settings
from livarot.errors import Interrupted, bad, require_positive_int
from livarot.running.tune import RESERVED, TuneResult, tune

INTERRUPTED = 130  # exit code


def command(
    *,
    env: str,
    agent: str,
    grid: list[str],
    n_episodes: int = 1000,
    n_seeds: int = 5,
    settings: list[str] | None = None,
    budget: int = 12,
    as_json: bool = False,
    workers: int = 1,
) -> None:
    """See ``livarot tune --help``."""
    require_positive_int("seeds", n_seeds)
    mdp = envs.make(env, **parse_settings("set", settings))
    candidate = agents.make(agent)
    values = parse_grid(grid)
    seeds, interrupted = range(RESERVED.stop, RESERVED.stop + n_seeds), False
    try:
        with progress_shown(Console(stderr=True), "tune") as progress:
            found = tune(mdp, candidate, values, n_episodes, seeds, workers=workers, budget=budget, progress=progress)
    except Interrupted as stop:
        found, interrupted = stop.result, True
    console = Console()
    if as_json:
        console.print_json(json.dumps({"env": env, "interrupted": interrupted} | found.to_dict(), allow_nan=False))
    else:
        console.print(rich_table(found, env))
        console.print(f"best: {found.best!r}", highlight=False, markup=False, soft_wrap=True)
    if interrupted:
        points = math.prod(map(len, values.values()))
        said = f"interrupted after {len(found.points)} of {points} points; those that were finished are shown"
        typer.echo(f"livarot: {said}", err=True)
        raise typer.Exit(INTERRUPTED)


def parse_grid(given: list[str]) -> dict[str, list[Any]]:
    """``field=v1,v2`` each; values are read as JSON where they are JSON (numbers, true, null), otherwise as text.

    >>> parse_grid(["beta_scale=0.01,0.1", "reg=null,3"])
    {'beta_scale': [0.01, 0.1], 'reg': [None, 3]}
    """
    found: dict[str, list[Any]] = {}
    for index, text in enumerate(given):
        key, sign, values = text.partition("=")
        if not sign or not key or not values:
            raise bad("grid", f"{text!r} is not field=v1,v2", index=index, cure="write --grid beta_scale=0.01,0.1")
        if key in found:
            raise bad("grid", f"{key!r} is given twice", index=index)
        found[key] = [parse_settings("grid", [f"{key}={value}"])[key] for value in values.split(",")]
    return found


def rich_table(found: TuneResult, env: str) -> Table:
    """One line per point, the best one in bold."""
    title = f"{found.metric} of {found.agent} on {env}: {found.n_episodes} episodes, {len(found.seeds)} seeds"
    table = Table(title=title, title_justify="left", pad_edge=False)
    names = list(found.points[0])
    for name in (*names, "mean", "se", "worst seed"):
        table.add_column(name, justify="right")
    for index, point in enumerate(found.points):
        numbers = found.mean[index], found.se[index], found.scores[index].max()
        style = "bold" if index == found.best_index else None
        table.add_row(*(str(point[name]) for name in names), *(f"{x:.4g}" for x in numbers), style=style)
    return table
