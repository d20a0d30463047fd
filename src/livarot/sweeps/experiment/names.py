"""Names of cells, agents and environments, and the wording of failures: the same in terminal, board and report.

A thing is called by its label in the experiment, or by its registered name.  If several have the same one, the settings
that differ are added; those of a preset are replaced by the name of the preset.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from livarot.agents.base import PRESETS
from livarot.errors import LivarotError
from livarot.sweeps.experiment.keys import EPISODES, Cell, agent_content, canonical, environment_content, resolved
from livarot.sweeps.experiment.spec import Experiment, variants

Cells = Mapping[str, Cell]  # by their keys
MAX_LABEL, MAX_VALUE = 200, 60  # characters of a part of a name
BREAKS = " ,(/"  # a name may be cut after these
DIED = "the worker died"  # how the reason begins if there was no exception


def cell_names(cells: Cells, experiments: Sequence[Experiment]) -> dict[str, str]:
    """The name of each cell, on one line, by its key.

    >>> experiment = Experiment(
    ...     episodes=10,
    ...     seeds=1,
    ...     environments=[{"name": "hard-chain", "label": "chain", "settings": {"horizon": [5, 6], "gap": 0.1}}],
    ...     agents=[{"name": "livarot", "preset": "paper", "settings": {"reg": 1.0}}],
    ... )
    >>> list(cell_names({cell.key: cell for cell in experiment.cells()}, [experiment]).values())
    ['chain (horizon=5) livarot (paper, reg=1) T=10', 'chain (horizon=6) livarot (paper, reg=1) T=10']
    """
    worlds, (learners, _) = environment_names(cells, experiments), agent_names(cells, experiments)
    return {key: printable(f"{worlds[key]} {learners[key]} T={cell.episodes}") for key, cell in cells.items()}


def planned_cells(experiments: Iterable[Experiment]) -> dict[str, Cell]:
    """The cells of experiments by their keys; an experiment that names what is not registered here is left out."""
    found: dict[str, Cell] = {}
    for experiment in experiments:
        with contextlib.suppress(LivarotError):
            found |= {cell.key: cell for cell in experiment.cells()} | found
    return found


def cell_name(cell: Cell) -> str:
    """A cell by itself: with the settings that differ from the defaults."""
    world, learner = (listed(settings) for settings in unusual_settings(cell))
    return printable(f"{Name(cell.environment, world)} {Name(cell.agent, learner)} T={cell.episodes}")


def unusual_settings(cell: Cell) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of environment and agent that differ from the defaults."""
    world = _unusual(lambda: environment_content(cell.environment, {}), cell.environment_settings)
    return world, _unusual(lambda: agent_content(cell.agent, {}, 1), cell.agent_settings)


def _unusual(defaults: Callable[[], dict[str, Any]], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Sorted by name; all of them if the thing is not registered here."""
    try:
        usual = defaults()
    except LivarotError:
        usual = {}
    return {key: value for key, value in sorted(settings.items()) if key not in usual or usual[key] != value}


class Name(NamedTuple):
    """What a thing is called: its label or registered name, and what distinguishes it from others of that name."""

    base: str
    told: str = ""

    def __str__(self) -> str:
        return f"{self.base} ({self.told})" if self.told else self.base


class Thing(NamedTuple):
    """An agent or an environment: its registered name and all of its settings."""

    name: str
    settings: dict[str, Any]
    episodes: int
    key: tuple[str, str]  # the name, and the settings as text


class Written(NamedTuple):
    """What an experiment says about a thing: its label, its preset, and its position among all that are asked for."""

    label: str | None
    preset: str | None
    place: int


def environment_names(cells: Cells, experiments: Sequence[Experiment], without: str | None = None) -> dict[str, Name]:
    """A name for the environment of each cell: the label of its experiment, or its name; and the settings that vary.

    A setting ``without`` is left out: names of what the cells that differ in it have in common.
    """
    wanted = _things(cells, "environment", lambda cell: left_out(cell.environment_settings, without))
    return _names(wanted, _written(experiments, "environments", without))


def agent_names(
    cells: Cells, experiments: Sequence[Experiment], without: str | None = None
) -> tuple[dict[str, Name], list[str]]:
    """A name for the agent of each cell, likewise, and all names in the order of the experiments.

    Settings of a preset are replaced by its name.  Agents of no experiment come last.
    """

    def told(cell: Cell) -> dict[str, Any]:
        return left_out(of_any_length(cell.agent_settings, cell.episodes), without)

    wanted, written = _things(cells, "agent", told), _written(experiments, "agents", without)
    named = _names(wanted, written, presets=True)
    places: dict[str, int] = {}
    for key, thing in wanted.items():
        place = written[thing.key].place if thing.key in written else len(written)
        places[str(named[key])] = min(place, places.get(str(named[key]), place))
    return named, sorted(places, key=lambda name: (places[name], natural(name)))


def left_out(settings: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    """Settings without one of them, which may be that of a component.

    >>> left_out({"reg": 1.0, "rule": {"name": "joint-maximum", "starts": 5}}, "rule.starts")
    {'reg': 1.0, 'rule': {'name': 'joint-maximum'}}
    """
    first, _, rest = (name or "").partition(".")
    found = dict(settings)
    if rest and isinstance(found.get(first), dict):
        found[first] = left_out(found[first], rest)
    elif not rest:
        found.pop(first, None)
    return found


def _things(cells: Cells, part: str, told: Callable[[Cell], dict[str, Any]]) -> dict[str, Thing]:
    """The environment or agent of each cell, with the settings that ``told`` gives."""
    made: dict[tuple[str, int, int], Thing] = {}  # by identity of the settings: a grid has few of them and many cells
    found = {}
    for key, cell in cells.items():
        name = getattr(cell, part)
        where = name, id(getattr(cell, f"{part}_settings")), cell.episodes
        if where not in made:
            settings = told(cell)
            made[where] = Thing(name, settings, cell.episodes, (name, canonical(settings)))
        found[key] = made[where]
    return found


def of_any_length(settings: Mapping[str, Any], episodes: int) -> dict[str, Any]:
    """Settings with the number of episodes replaced by ``EPISODES``: one agent in runs of different lengths."""
    return {
        name: EPISODES
        if name == "n_episodes" and value == episodes
        else of_any_length(value, episodes)
        if isinstance(value, dict)
        else value
        for name, value in settings.items()
    }


def _names(
    wanted: Mapping[str, Thing], written: Mapping[tuple[str, str], Written], *, presets: bool = False
) -> dict[str, Name]:
    """Names by cell: equal things have equal names, different things different ones."""
    groups: dict[str, dict[tuple[str, str], Thing]] = {}
    for thing in wanted.values():
        label = written[thing.key].label if thing.key in written else None
        groups.setdefault(label or thing.name, {})[thing.key] = thing
    named: dict[tuple[str, str], Name] = {}
    taken: set[str] = set()
    for base, members in sorted(groups.items()):
        kinds = {key: _kind(thing, written.get(key)) if presets else ("", []) for key, thing in members.items()}
        several = len({thing.name for thing in members.values()}) > 1
        alike: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for key, thing in members.items():
            alike.setdefault((thing.name, kinds[key][0]), []).append(thing.settings)
        differing = {kind: _varying(settings) for kind, settings in alike.items()}
        for key, thing in members.items():
            preset, own = kinds[key]
            flat, varying = flat_settings(thing.settings), dict.fromkeys(differing[thing.name, preset])
            parts = [thing.name] if several else []
            if preset and (len(members) > 1 or base == thing.name):
                parts.append(preset)
                varying |= dict.fromkeys(own)
            if told := listed({name: flat[name] for name in varying if name in flat}):
                parts.append(told)
            name = Name(shortened(base, MAX_LABEL), shortened(", ".join(parts), MAX_LABEL))
            count = 1
            while str(name) in taken:
                count += 1
                name = Name(name.base, f"{name.told.rpartition(' #')[0] if count > 2 else name.told} #{count}".strip())
            taken.add(str(name))
            named[key] = name
    return {key: named[thing.key] for key, thing in wanted.items()}


def _kind(thing: Thing, written: Written | None) -> tuple[str, list[str]]:
    """The preset that the settings are nearest to ("": the defaults), and the settings that are not its own."""
    flat = flat_settings(thing.settings)
    away: dict[str, list[str]] = {}
    for preset in ("", *PRESETS):
        known = _preset(thing.name, preset, thing.episodes)
        if known is not None:
            names = dict.fromkeys([*flat, *known])
            away[preset] = [name for name in names if flat.get(name) != known.get(name)]
    chosen = written.preset if written is not None and written.preset in away else None
    if chosen is None:
        chosen = min(away, key=lambda preset: len(away[preset]), default="")
    return chosen, away.get(chosen, [])


@lru_cache(maxsize=1000)
def _preset(name: str, preset: str, episodes: int) -> dict[str, Any] | None:
    """The settings of a preset, flat; None if the agent has none of this name or is not registered here."""
    try:
        return flat_settings(of_any_length(agent_content(name, {}, episodes, preset or None), episodes))
    except (LivarotError, TypeError):
        return None


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings of components as ``rule.name``, in alphabetical order."""
    found: dict[str, Any] = {}
    for name, value in sorted(settings.items()):
        if isinstance(value, dict):
            found |= flat_settings(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _varying(settings: Iterable[Mapping[str, Any]]) -> list[str]:
    flats = [flat_settings(one) for one in settings]
    names = dict.fromkeys(name for flat in flats for name in flat)
    return [name for name in names if len({canonical(flat.get(name)) for flat in flats}) > 1]


def listed(settings: Mapping[str, Any]) -> str:
    """Settings on one line.

    >>> listed({"gap": 0.1, "kappa": None, "rule": {"name": "joint-maximum", "solver": {"name": "frank-wolfe"}}})
    'gap=0.1, kappa=none, rule=joint-maximum, rule.solver=frank-wolfe'
    """
    return ", ".join(f"{name.removesuffix('.name')}={_value(value)}" for name, value in flat_settings(settings).items())


def _value(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return shortened(str(value), MAX_VALUE)


def shortened(text: str, width: int) -> str:
    """At most ``width`` characters: a longer text loses its middle, between words where there are any.

    >>> shortened("a long name (first=1, second=2, third=3)", 24)
    'a long…third=3)'
    """
    if len(text) <= width:
        return text
    head = 2 * (width - 1) // 5
    left, right = text[:head], text[len(text) - (width - 1 - head) :]
    if text[head] not in BREAKS:
        cut = max(left.rfind(sign) for sign in BREAKS)
        left = left[: cut + 1] if cut >= 0 else left
    if text[len(text) - len(right) - 1] not in BREAKS:
        cut = min((at for at in (right.find(sign) for sign in BREAKS) if at >= 0), default=-1)
        right = right[cut + 1 :] if 0 <= cut < 3 * len(right) // 4 else right
    return f"{left.rstrip(' ,')}…{right.lstrip(' ,')}"


def distinct(names: Sequence[str], width: int) -> list[str]:
    """Shortened names, different where the names are: those that would look alike lose what they have in common.

    >>> distinct(["the same long beginning, 1 and the same end", "the same long beginning, 2 and the same end"], 24)
    ['…1 and the same end', '…2 and the same end']
    """
    found = {name: shortened(name, width) for name in names}
    groups: dict[str, list[str]] = {}
    for name, short in found.items():
        groups.setdefault(short, []).append(name)
    for group in groups.values():
        if len(group) > 1:
            first, last = min(group), max(group)  # these two differ wherever any two of the group do
            same = next(at for at in range(len(last)) if first[at : at + 1] != last[at])
            start = max(first.rfind(sign, 0, same) for sign in BREAKS) + 1
            found |= {name: f"…{name[start:].lstrip()[: width - 1]}" for name in group}
    taken: set[str] = set()
    for name, short in found.items():
        count = 1
        while found[name] in taken:
            count += 1
            found[name] = f"{short} #{count}"
        taken.add(found[name])
    return [found[name] for name in names]


def _written(
    experiments: Iterable[Experiment], part: str, without: str | None = None
) -> dict[tuple[str, str], Written]:
    """What the experiments say about each thing they ask for, by name and full settings; the first mention counts."""
    found: dict[tuple[str, str], Written] = {}
    for experiment in experiments:
        episodes = [experiment.episodes] if isinstance(experiment.episodes, int) else experiment.episodes
        for spec in getattr(experiment, part):
            for given in variants(spec.settings):
                for count in episodes:
                    with contextlib.suppress(LivarotError):  # not registered here
                        settings = {name: resolved(value, count) for name, value in given.items()}
                        if part == "environments":
                            full, preset = environment_content(spec.name, settings), None
                        else:
                            preset = spec.preset
                            full = of_any_length(agent_content(spec.name, settings, count, preset), count)
                        full = left_out(full, without)
                        known = found.get((spec.name, canonical(full)))
                        if known is None or (known.label is None and spec.label):
                            place = len(found) if known is None else known.place
                            found[spec.name, canonical(full)] = Written(spec.label or None, preset, place)
    return found


def natural(text: str) -> tuple[Any, ...]:
    """A key that sorts numbers in texts by their value.

    >>> sorted(["x=10", "x=5", "x=0.5"], key=natural)
    ['x=0.5', 'x=5', 'x=10']
    """
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", text)
    return tuple(float(part) if place % 2 else part for place, part in enumerate(parts))


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
    """Text without the characters that control a terminal."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else " " for sign in text)


def escaped(text: str) -> str:
    """Text of several lines, in which the characters that control a terminal are spelt out.

    >>> print(escaped("one\\n\\ttwo \\x1b[2J"))
    one
        two \\x1b[2J
    """
    keep = "\n\t"
    return "".join(
        sign if sign.isprintable() or sign in keep else sign.encode("unicode_escape").decode() for sign in text
    )
