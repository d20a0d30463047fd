"""``livarot fit``: a table in, the summary on the screen, the model in a file."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from livarot.data import DataWarning, MNLTransition, save_fit
from livarot.errors import bad, require_probability


def command(
    *,
    table: Path,
    features: list[str],
    state: str = "state",
    action: str = "action",
    next_state: str = "next_state",
    stage: str | None = None,
    count: str | None = None,
    nominal: str | None = None,
    reachable: str | None = None,
    states: Path | None = None,
    actions: Path | None = None,
    reg: float = 0.0,
    per_stage: bool = False,
    covariance: str = "hessian",
    level: float = 0.95,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """See ``livarot fit --help``."""
    require_probability("level", level)
    if out is not None and not out.parent.is_dir():
        raise bad("out", f"there is no folder {str(out.parent)!r}", cure="create it first")
    model = MNLTransition(
        features=parse_features(features),
        reg=reg,
        homogeneous=not per_stage,
        state=state,
        action=action,
        next_state=next_state,
        stage=stage,
        count=count,
        nominal=nominal,
        reachable=reachable if reachable in (None, "all") else Path(reachable),
        states=states,
        actions=actions,
        covariance=covariance,
    )
    with notes(Console(stderr=True)):
        model.fit(table)
    if out is not None:
        save_fit(out, model)
    console = Console()
    with notes(Console(stderr=True)):
        told = json.dumps(described(model, level), allow_nan=False) if as_json else str(model.summary(level))
    if as_json:
        console.print_json(told)
    else:
        console.print(told, highlight=False, markup=False, soft_wrap=True)
        if out is not None:
            console.print(f"model in {out}", highlight=False, markup=False, soft_wrap=True)


def parse_features(given: list[str]) -> list[str]:
    """Terms, separated by commas or given one by one.

    >>> parse_features(["wear,action:wear", "C(zone)"])
    ['wear', 'action:wear', 'C(zone)']
    """
    found = [term.strip() for text in given for term in text.split(",")]
    if not found or not all(found):
        raise bad("features", f"{','.join(given)!r} has an empty term", cure="write --features wear,action:wear")
    return found


def described(model: MNLTransition, level: float) -> dict[str, Any]:
    """The summary as plain numbers."""
    summary = model.summary(level)
    rows = summary.table.reset_index(names="column").to_dict("records")
    plain = [{str(name): _plain(value) for name, value in row.items()} for row in rows]
    return {
        "coefficients": plain,
        "level": level,
        "facts": {name: _plain(value) for name, value in summary.facts.items()},
        "states": [str(label) for label in model.states_],
        "actions": [str(label) for label in model.actions_],
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@contextmanager
def notes(aside: Console) -> Iterator[None]:
    """What should be known about the data, one line each on standard error."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", DataWarning)
        yield
    for one in heard:
        if issubclass(one.category, DataWarning):
            aside.print(f"note: {one.message}", highlight=False, markup=False, soft_wrap=True)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
