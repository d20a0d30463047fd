"""What agents and environments are called in a report: their labels, and the settings that tell them apart."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from livarot.errors import LivarotError
from livarot.report.read_runs import Runs, natural, without_horizon
from livarot.sweeps.keys import (
    EPISODES,
    PRESETS,
    Cell,
    agent_content,
    canonical,
    environment_content,
    resolved,
)
from livarot.sweeps.spec import Experiment, variants

MAX_LABEL, MAX_VALUE = 200, 60  # signs of a part of a name
BREAKS = " ,(/"  # a name may be cut after these


class Name(NamedTuple):
    """What a thing is called: its label or registered name, and what tells it from others that are called so."""

    base: str
    told: str = ""

    def __str__(self) -> str:
        return f"{self.base} ({self.told})" if self.told else self.base


class Thing(NamedTuple):
    """An agent or an environment: its registered name and all of its settings."""

    name: str
    settings: dict[str, Any]
    episodes: int

    @property
    def key(self) -> tuple[str, str]:
        return self.name, canonical(self.settings)


class Written(NamedTuple):
    """What an experiment says of a thing: the label, the preset, and the how manieth it is."""

    label: str | None
    preset: str | None
    place: int


def environment_names(runs: Runs) -> dict[str, Name]:
    """A name for the environment of each cell: the label of its experiment, or its name; and the settings that vary."""
    wanted = {key: _world(cell, cell.environment_settings) for key, cell in runs.cells.items()}
    return _names(wanted, _written(runs.experiments, "environments"))


def family_names(runs: Runs) -> dict[str, Name]:
    """The same without the horizon: what the cells of a family have in common."""
    wanted = {key: _world(cell, without_horizon(cell)) for key, cell in runs.cells.items()}
    return _names(wanted, _written(runs.experiments, "environments", without="horizon"))


def agent_names(runs: Runs) -> tuple[dict[str, Name], list[str]]:
    """A name for the agent of each cell, likewise, and all names in the order of the experiments.

    Settings that are a preset's are told by its name.  What no experiment of the store has comes last.
    """
    wanted = {
        key: Thing(cell.agent, _of_any_length(cell.agent_settings, cell.episodes), cell.episodes)
        for key, cell in runs.cells.items()
    }
    written = _written(runs.experiments, "agents")
    named = _names(wanted, written, presets=True)
    places: dict[str, int] = {}
    for key, thing in wanted.items():
        place = written[thing.key].place if thing.key in written else len(written)
        places[str(named[key])] = min(place, places.get(str(named[key]), place))
    return named, sorted(places, key=lambda name: (places[name], natural(name)))


def _world(cell: Cell, settings: dict[str, Any]) -> Thing:
    return Thing(cell.environment, settings, cell.episodes)


def _of_any_length(settings: Mapping[str, Any], episodes: int) -> dict[str, Any]:
    """Settings in which the number of episodes is told as such: one agent in runs of different lengths."""
    return {
        name: EPISODES
        if name == "n_episodes" and value == episodes
        else _of_any_length(value, episodes)
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
            flat, varying = _flat(thing.settings), dict.fromkeys(differing[thing.name, preset])
            parts = [thing.name] if several else []
            if preset and (len(members) > 1 or base == thing.name):
                parts.append(preset)
                varying |= dict.fromkeys(own)
            parts += [f"{_short_key(name)}={_told(flat[name])}" for name in varying if name in flat]
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
    flat = _flat(thing.settings)
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
        return _flat(_of_any_length(agent_content(name, {}, episodes, preset or None), episodes))
    except (LivarotError, TypeError):
        return None


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings of components as ``rule.name``."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _varying(settings: Iterable[Mapping[str, Any]]) -> list[str]:
    flats = [_flat(one) for one in settings]
    names = dict.fromkeys(name for flat in flats for name in flat)
    return [name for name in names if len({canonical(flat.get(name)) for flat in flats}) > 1]


def _short_key(name: str) -> str:
    return name.removesuffix(".name")


def _told(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return "none" if value is None else shortened(str(value), MAX_VALUE)


def shortened(text: str, width: int) -> str:
    """At most ``width`` signs: what is too long loses its middle, between words where there are any.

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
            first, last = min(group), max(group)  # they differ where any two do
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
    experiments: Iterable[Experiment], part: str, *, without: str | None = None
) -> dict[tuple[str, str], Written]:
    """What the experiments say of everything they ask for, by name and settings in full; the first that says it."""
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
                            full.pop(without, None) if without else None
                        else:
                            preset = spec.preset
                            full = _of_any_length(agent_content(spec.name, settings, count, preset), count)
                        known = found.get((spec.name, canonical(full)))
                        if known is None or (known.label is None and spec.label):
                            place = len(found) if known is None else known.place
                            found[spec.name, canonical(full)] = Written(spec.label or None, preset, place)
    return found
