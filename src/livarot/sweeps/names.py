"""Cells and failures in a line of words, for whoever reads a terminal or the board.

A cell is told as its experiment tells it: by the labels where there are some, otherwise by the name, the preset and
the settings that were written, in the order in which they were written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from livarot.errors import LivarotError
from livarot.sweeps.keys import Cell, agent_content, environment_content
from livarot.sweeps.spec import AgentSpec, Combination, EnvironmentSpec, Experiment

LONGEST = 80  # characters of one value
DIED = "the worker died"  # how the reason begins if there was no exception


def cell_names(experiments: Iterable[Experiment]) -> dict[str, str]:
    """A line by the key of each cell, in the order of the experiments; unknown ones are left out.

    >>> experiment = Experiment(
    ...     episodes=10,
    ...     seeds=1,
    ...     environments=[{"name": "hard-chain", "label": "chain", "settings": {"horizon": [5, 6], "gap": 0.1}}],
    ...     agents=[{"name": "livarot", "preset": "paper", "settings": {"reg": 1.0}}],
    ... )
    >>> list(cell_names([experiment]).values())
    ['chain(horizon=5) livarot:paper(reg=1.0) T=10', 'chain(horizon=6) livarot:paper(reg=1.0) T=10']
    """
    found: dict[str, str] = {}
    for experiment in experiments:
        with contextlib.suppress(LivarotError):  # of things that are not registered here
            found |= names_of(experiment.combinations()) | found  # the first one's words
    return found


def names_of(combinations: Sequence[Combination]) -> dict[str, str]:
    """The same for the cells of one experiment."""
    told: dict[int, str] = {}  # by the place of the settings in memory: a grid has few of them and many cells
    for one in combinations:
        for spec, chosen in ((one.world, one.given), (one.learner, one.wished)):
            if id(chosen) not in told:
                told[id(chosen)] = _written(spec, chosen)
    return {one.cell.key: f"{told[id(one.given)]} {told[id(one.wished)]} T={one.cell.episodes}" for one in combinations}


def cell_name(cell: Cell) -> str:
    """A cell of which no experiment is known: the settings that differ from the defaults."""
    world, learner = unusual_settings(cell)
    return f"{_called(cell.environment, world)} {_called(cell.agent, learner)} T={cell.episodes}"


def unusual_settings(cell: Cell) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of environment and agent that differ from the defaults."""
    world = _unusual("environment", cell.environment, cell.environment_settings)
    return world, _unusual("agent", cell.agent, cell.agent_settings)


def listed(settings: Mapping[str, Any]) -> str:
    """Settings on one line.

    >>> listed({"horizon": 5, "rule": {"name": "plug-in"}, "kappa": None})
    'horizon=5, rule=plug-in, kappa=none'
    """
    return ", ".join(f"{printable(str(key))}={_value(value)}" for key, value in settings.items())


def reason(traceback: str) -> str:
    """Why a run failed, on one line: what the exception says, or that its worker died.

    >>> reason("Traceback (most recent call last):\\n  File ...\\nValueError: no\\n")
    'ValueError: no'
    >>> reason("the worker died 3 times; it was killed\\nFatal Python error: ...\\n  File ...")
    'the worker died 3 times; it was killed'
    """
    lines = [line for line in traceback.splitlines() if line.strip()]
    if not lines:
        return "no message"
    return printable(lines[0] if lines[0].startswith(DIED) else lines[-1]).strip()


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "run"), counted(0, "run"), counted(2, "file is", "files are")
    ('1 run', '0 runs', '2 files are')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def printable(text: str) -> str:
    """Text without what would steer a terminal."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else " " for sign in text)


def escaped(text: str) -> str:
    """Text of several lines; what would steer a terminal is spelt out.

    >>> print(escaped("one\\n\\ttwo \\x1b[2J"))
    one
        two \\x1b[2J
    """
    keep = "\n\t"
    return "".join(
        sign if sign.isprintable() or sign in keep else sign.encode("unicode_escape").decode() for sign in text
    )


def _written(spec: EnvironmentSpec | AgentSpec, chosen: Mapping[str, Any]) -> str:
    if spec.label:
        varying = {key: value for key, value in chosen.items() if _makes_grid(spec.settings[key])}
        return _called(spec.label, varying)
    preset = getattr(spec, "preset", None)
    return _called(spec.name if preset is None else f"{spec.name}:{preset}", chosen)


def _makes_grid(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_makes_grid, value.values()))
    return isinstance(value, list) and (len(value) > 1 or any(map(_makes_grid, value)))


def _called(name: str, settings: Mapping[str, Any]) -> str:
    return f"{printable(name)}({listed(settings)})" if settings else printable(name)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        rest = {key: inner for key, inner in value.items() if key != "name"}
        return _called(str(value.get("name", "")), rest)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    text = printable(str(value))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _unusual(kind: str, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that differ from the defaults, sorted by name; all of them if the thing is not registered here."""
    try:
        usual = environment_content(name, {}) if kind == "environment" else agent_content(name, {}, 1)
    except LivarotError:
        usual = {}
    return {key: value for key, value in sorted(settings.items()) if key not in usual or usual[key] != value}
