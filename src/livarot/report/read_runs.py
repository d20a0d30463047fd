"""The runs of a store, reduced while they are read: curves at a few episodes, totals, and what an audit asks.

Nothing in the store is written or moved, not even its index: a report can be made of a folder that is read-only or that
a sweep is filling.  Files are verified; a damaged one is counted and left out (``livarot status`` sets it aside).
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.agents.base import PRESETS
from livarot.core.arrays import FloatArray
from livarot.core.sizes import require_memory
from livarot.errors import LivarotError, bad
from livarot.sweeps.keys import (
    EPISODES,
    Cell,
    agent_content,
    canonical,
    environment_content,
    resolved,
)
from livarot.sweeps.names import counted
from livarot.sweeps.spec import Experiment, variants
from livarot.sweeps.store.reading import read_in_threads
from livarot.sweeps.store.records import decode, read_file
from livarot.sweeps.store.store import Store

POINTS = 100  # of a curve
CURVES = ("regret", "realised_regret", "optimism_gap")  # the first two summed up over the episodes
OPTIMISTIC = -1e-9  # a plan's value may be below V* by rounding
MAX_LABEL, MAX_VALUE = 200, 60  # signs of a part of a name
BREAKS = " ,(/"  # a name may be cut after these


@dataclass(frozen=True, eq=False, slots=True)
class Reduced:
    """One run: curves (3, points), NaN where the agent has none, and totals by name (None: the agent has none)."""

    cell: str
    seed: int
    curves: FloatArray = field(repr=False)
    totals: dict[str, float | None]
    provenance: str


@dataclass(frozen=True, eq=False)
class Runs:
    """All runs of a store by the key of their cell, in the order of their seeds."""

    cells: dict[str, Cell]
    runs: dict[str, list[Reduced]] = field(repr=False)
    damaged: list[str]
    failures: dict[str, dict[str, Any]] = field(repr=False)
    experiments: list[Experiment]

    @property
    def n_runs(self) -> int:
        return sum(len(found) for found in self.runs.values())

    def provenances(self) -> list[tuple[dict[str, Any], int]]:
        """Each provenance with its number of runs, the most frequent first."""
        counted = Counter(run.provenance for found in self.runs.values() for run in found)
        return [(json.loads(text), count) for text, count in counted.most_common()]


@lru_cache(maxsize=64)
def kept_episodes(n_episodes: int, points: int = POINTS) -> NDArray[np.int64]:
    """At most ``points`` episodes (0-based), evenly spread, the first and the last among them.

    >>> kept_episodes(10, 4).tolist()
    [0, 3, 6, 9]
    """
    return np.unique(np.linspace(0, n_episodes - 1, min(points, n_episodes)).round().astype(np.int64))


def reduce_columns(columns: Mapping[str, FloatArray], points: int = POINTS) -> tuple[FloatArray, dict[str, Any]]:
    """Curves and totals of one run's columns (T,)."""
    kept = kept_episodes(len(columns["regret"]), points)
    curves = np.stack(
        [
            np.cumsum(columns["regret"])[kept],
            np.cumsum(columns["realised_regret"])[kept],
            columns["optimism_gap"][kept],
        ]
    )
    covered, gap = columns["covered"], columns["optimism_gap"]
    covered, gap = covered[~np.isnan(covered)], gap[~np.isnan(gap)]
    inner = columns["inner_gap"][~np.isnan(columns["inner_gap"])]
    totals = {
        "regret": float(curves[0, -1]),
        "realised_regret": float(curves[1, -1]),
        "sigma_bar": float(np.sqrt(columns["variance"].mean())),
        "covered": float(covered.mean()) if covered.size else None,
        "always_covered": float(covered.min() > 0.5) if covered.size else None,
        "optimistic": float((gap >= OPTIMISTIC).mean()) if gap.size else None,
        "optimism_gap": float(gap.min()) if gap.size else None,
        "inner_gap": float(inner.max()) if inner.size else None,
    }
    return curves, totals


def read_runs(path: str | Path | Store, *, known: dict[str, tuple[Cell, Reduced]] | None = None) -> Runs:
    """Read a store; ``known`` keeps what was read (files never change), for those who look again and again."""
    store = path if isinstance(path, Store) else Store(path)
    cache = {} if known is None else known
    keys = sorted(store.stored())
    damaged: list[str] = []
    require_memory("store", f"the curves of {len(keys)} runs", (3 * POINTS + 200) * len(keys))
    new = [key for key in keys if key not in cache]
    for key, found in zip(new, read_in_threads(lambda key: _read(store, key), new), strict=True):
        if isinstance(found, str):
            damaged.append(found)
        elif found is not None:
            cache[key] = found
    cells: dict[str, Cell] = {}
    runs: dict[str, list[Reduced]] = {}
    for key in keys:
        if key in cache:
            cell, run = cache[key]
            cells.setdefault(run.cell, cell)
            runs.setdefault(run.cell, []).append(run)
    order = sorted(cells, key=lambda key: _order(cells[key]))
    return Runs(
        {key: cells[key] for key in order},
        {key: sorted(runs[key], key=lambda run: run.seed) for key in order},
        damaged,
        store.failures(),
        store.specs(),
    )


def _read(store: Store, key: str) -> tuple[Cell, Reduced] | str | None:
    path = store.run_path(key)
    try:
        record = decode(path, read_file(path)[0])
    except FileNotFoundError:
        return None  # removed in the meantime
    except (OSError, LivarotError) as error:  # damaged, a later version's, or not to be read
        return str(error)
    if record.run.key != key:
        return f"{key}: it holds another run than its name says"
    cell = record.run.cell
    # equal texts are one: most runs of a store were made by the same code
    return cell, Reduced(cell.key, record.run.seed, *reduce_columns(record.columns), _text(record.provenance))


def _text(provenance: dict[str, Any]) -> str:
    return sys.intern(canonical(provenance))


def _order(cell: Cell) -> tuple[Any, ...]:
    horizon = horizon_of(cell)
    world = (cell.environment, natural(canonical(without_horizon(cell))), -1 if horizon is None else horizon)
    return (*world, cell.episodes, cell.agent, natural(canonical(cell.agent_settings)))


def horizon_of(cell: Cell) -> int | None:
    """H if it is a setting of the environment; environments whose H follows from other settings have none here."""
    found = cell.environment_settings.get("horizon")
    return found if type(found) is int and found > 0 else None


def without_horizon(cell: Cell) -> dict[str, Any]:
    """The other settings of the environment."""
    return {name: value for name, value in cell.environment_settings.items() if name != "horizon"}


def natural(text: str) -> tuple[Any, ...]:
    """A key that sorts numbers in texts by their value.

    >>> sorted(["x=10", "x=5", "x=0.5"], key=natural)
    ['x=0.5', 'x=5', 'x=10']
    """
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", text)
    return tuple(float(part) if place % 2 else part for place, part in enumerate(parts))


# -------------------------------------------------------------------- names
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


def require_runs(runs: Runs) -> None:
    if runs.cells:
        return
    found = [f"holds no {'whole ' if runs.damaged else ''}run"]
    if runs.damaged:
        found.append(f"{counted(len(runs.damaged), 'file is', 'files are')} damaged")
    if runs.failures:
        found.append(f"{counted(len(runs.failures), 'run')} failed")
    cure = (
        "livarot status STORE --failures tells why"
        if runs.failures
        else "run an experiment first: livarot run FILE.toml"
    )
    raise bad("store", ", ".join(found), cure=cure)
