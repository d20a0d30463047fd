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

from livarot.data import DataWarning, MNLTransition, load_fit, save_fit
from livarot.errors import bad, require_probability


def command(
    *,
    table: Path,
    features: list[str] | None = None,
    reference: list[str] | None = None,
    reachable: str | None = None,
    level: float = 0.95,
    out: Path | None = None,
    as_json: bool = False,
    per_stage: bool = False,
    **settings: Any,
) -> None:
    """See ``livarot fit --help``; ``settings`` are those of :class:`livarot.data.MNLTransition` by the same names."""
    require_probability("level", level)
    if out is not None and not out.parent.is_dir():
        raise bad("out", f"there is no folder {str(out.parent)!r}", cure="create it first")
    model = MNLTransition(
        features=None if features is None else parse_features(features),
        reference=parse_reference(reference),
        reachable=parse_reachable(reachable),
        homogeneous=not per_stage,
        **settings,
    )
    with notes(Console(stderr=True)):
        model.fit(table)
    if out is not None:
        save_fit(out, model)
    console = Console()
    with notes(Console(stderr=True)):
        text = json.dumps(described(model, level), allow_nan=False) if as_json else str(model.summary(level))
    if as_json:
        console.print_json(text)
    else:
        console.print(text, highlight=False, markup=False, soft_wrap=True)
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


def parse_reachable(given: str | None) -> Any:
    """The file of reachable next states, "all", or None."""
    return given if given in (None, "all") else Path(given)


def parse_reference(given: list[str] | None) -> dict[str, str] | None:
    """Reference levels from ``name=level``.

    >>> parse_reference(["zone=north"])
    {'zone': 'north'}
    """
    pairs = [text.partition("=") for text in given or ()]
    if not all(name and sign for name, sign, _ in pairs):
        raise bad("reference", f"{' '.join(given or ())!r} is not name=level", cure="write --reference zone=north")
    return {name: level for name, _, level in pairs} or None


def fitted_or_loaded(path: Path, features: list[str] | None, formula: str | None, **options: Any) -> MNLTransition:
    """A stored model; or, where features or a formula are given, a model fitted to the table at ``path``."""
    if features is None and formula is None:
        return load_fit(path)
    reachable = parse_reachable(options.pop("reachable"))
    terms = None if features is None else parse_features(features)
    return MNLTransition(features=terms, formula=formula, reachable=reachable, **options).fit(path)


def parse_profile(fit: MNLTransition, given: str | None) -> dict[str, Any] | None:
    """Covariates from ``age=60,sex=f``: numbers where the model has numbers."""
    if given is None:
        return None
    design, found = fit.choices_.design, {}
    for text in given.split(","):
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not name:
            raise bad("at", f"{text!r} is not name=value", cure="write --at age=60,sex=f")
        found[name] = value if design is not None and design.is_category(name) else number("at", value)
    return found


def number(argument: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise bad(argument, f"{text!r} is not a number") from None


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
    """Show warnings about the data, one line each, on standard error."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", DataWarning)
        yield
    for one in heard:
        if issubclass(one.category, DataWarning):
            aside.print(f"note: {one.message}", highlight=False, markup=False, soft_wrap=True)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
