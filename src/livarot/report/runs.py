"""The runs of a store, reduced while they are read: curves at a few episodes, totals, and what an audit asks.

Nothing in the store is written or moved, not even its index: a report can be made of a folder that is read-only or that
a sweep is filling.  Files are verified; a damaged one is counted and left out (``livarot status`` sets it aside).
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.ragged import FloatArray
from livarot.errors import LivarotError, bad
from livarot.experiments.keys import Cell, agent_content, canonical, environment_content, resolved
from livarot.experiments.records import Damaged, decode
from livarot.experiments.spec import Experiment, variants
from livarot.experiments.store import Store

logger = logging.getLogger(__name__)

POINTS = 100  # of a curve
CURVES = ("regret", "realised_regret", "optimism_gap")  # the first two summed up over the episodes
OPTIMISTIC = -1e-9  # a plan's value may be below V* by rounding
READERS = 4
MAX_LABEL = 120


@dataclass(frozen=True, eq=False)
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
    with ThreadPoolExecutor(READERS) as pool:
        for key, found in pool.map(lambda key: _read(store, key), [key for key in keys if key not in cache]):
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


def _read(store: Store, key: str) -> tuple[str, tuple[Cell, Reduced] | str | None]:
    try:
        record = decode(store.run_path(key))
    except Damaged as error:
        return key, str(error)
    except LivarotError as error:
        if store.has(key):  # a later version's file
            return key, str(error)
        return key, None  # removed in the meantime
    if record.run.key != key:
        return key, f"{key}: it holds another run than its name says"
    curves, totals = reduce_columns(record.columns)
    cell = record.run.cell
    return key, (cell, Reduced(cell.key, record.run.seed, curves, totals, canonical(record.provenance)))


def _order(cell: Cell) -> tuple[Any, ...]:
    horizon = horizon_of(cell)
    rest = {name: value for name, value in cell.environment_settings.items() if name != "horizon"}
    world = (cell.environment, canonical(rest), -1 if horizon is None else horizon)
    return (*world, cell.episodes, cell.agent, canonical(cell.agent_settings))


def horizon_of(cell: Cell) -> int | None:
    """H if it is a setting of the environment; environments whose H follows from other settings have none here."""
    found = cell.environment_settings.get("horizon")
    return found if type(found) is int and found > 0 else None


# -------------------------------------------------------------------- names
def environment_names(runs: Runs) -> dict[str, str]:
    """A name for the environment of each cell: the label of its experiment, or its name and the settings that vary."""
    wanted = {key: (cell.environment, cell.environment_settings) for key, cell in runs.cells.items()}
    return _names(wanted, _labels(runs.experiments, "environments"))


def agent_names(runs: Runs) -> dict[str, str]:
    """A name for the agent of each cell, likewise."""
    wanted = {key: (cell.agent, cell.agent_settings) for key, cell in runs.cells.items()}
    return _names(wanted, _labels(runs.experiments, "agents"))


def _names(wanted: Mapping[str, tuple[str, dict[str, Any]]], labels: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """Names by cell: equal things have equal names, different things different ones."""
    things = {(name, canonical(settings)): settings for name, settings in wanted.values()}
    groups: dict[str, list[tuple[str, str]]] = {}
    for thing in things:
        groups.setdefault(labels.get(thing, thing[0]), []).append(thing)
    named: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for base, members in sorted(groups.items()):
        varying = _varying([things[thing] for thing in members])
        for thing in members:
            flat = _flat(things[thing])
            told = ", ".join(f"{name}={_told(flat.get(name))}" for name in varying)
            name = f"{base} ({told})"[:MAX_LABEL] if told else base[:MAX_LABEL]
            count = 1
            while name in taken:
                count += 1
                name = f"{name[: MAX_LABEL - 6]} #{count}"
            taken.add(name)
            named[thing] = name
    return {key: named[(name, canonical(settings))] for key, (name, settings) in wanted.items()}


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


def _told(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _labels(experiments: Iterable[Experiment], part: str) -> dict[tuple[str, str], str]:
    """Label by name and settings in full, of everything that an experiment gives a label."""
    found: dict[tuple[str, str], str] = {}
    for experiment in experiments:
        episodes = [experiment.episodes] if isinstance(experiment.episodes, int) else experiment.episodes
        for spec in getattr(experiment, part):
            if not spec.label:
                continue
            for given in variants(spec.settings):
                for count in episodes:
                    with contextlib.suppress(LivarotError):  # not registered here
                        settings = {name: resolved(value, count) for name, value in given.items()}
                        full = (
                            environment_content(spec.name, settings)
                            if part == "environments"
                            else agent_content(spec.name, settings, count, spec.preset)
                        )
                        found.setdefault((spec.name, canonical(full)), spec.label)
    return found


def require_runs(runs: Runs) -> None:
    if not runs.cells:
        more = f" ({len(runs.damaged)} files are damaged)" if runs.damaged else ""
        raise bad("store", f"holds no run{more}", cure="run an experiment first: livarot run FILE.toml")
