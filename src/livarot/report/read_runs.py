"""The runs of a store, reduced while they are read: curves at a few episodes, totals, and what an audit needs.

Nothing in the store is written or moved, not even its index: a report can be made of a folder that is read-only or that
a sweep is filling.  Files are verified; a damaged one is counted and left out (``livarot status`` sets it aside).
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import FloatArray
from livarot.core.tolerances import ROUNDING
from livarot.errors import LivarotError, bad
from livarot.sweeps.experiment.keys import (
    Cell,
    canonical,
)
from livarot.sweeps.experiment.names import counted, left_out, natural
from livarot.sweeps.experiment.spec import Experiment
from livarot.sweeps.store.reading import read_in_threads
from livarot.sweeps.store.records import decode, read_file
from livarot.sweeps.store.store import Store
from livarot.system.sizes import require_memory

POINTS = 100  # of a curve
CURVES = ("regret", "realised_regret", "optimism_gap")  # the first two summed up over the episodes


@dataclass(frozen=True, eq=False, slots=True)
class Reduced:
    """One run: curves (3, points), NaN where the agent has none, and totals by name (None: the agent has none)."""

    cell: str
    seed: int
    curves: FloatArray = field(repr=False)
    totals: dict[str, float | None]
    provenance: str
    inside: NDArray[np.bool_] | None = field(default=None, repr=False)  # per set: was theta* never outside?


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


def reduce_columns(columns: Mapping[str, FloatArray]) -> tuple[FloatArray, dict[str, Any]]:
    """Curves and totals of one run's columns (T,)."""
    kept = kept_episodes(len(columns["regret"]))
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
        "optimistic": float((gap >= -ROUNDING).mean()) if gap.size else None,
        "optimism_gap": float(gap.min()) if gap.size else None,
        "inner_gap": float(inner.max()) if inner.size else None,
    }
    return curves, totals


def never_missed(covered: FloatArray, bits: NDArray[np.int32]) -> NDArray[np.bool_] | None:
    """Per confidence set (stage): did it hold theta* in every episode that had sets?  None: the run has none.

    Bits (T, words) beyond the number of sets are 0; there are as many sets as bits in an episode with all of them.

    >>> never_missed(np.array([np.nan, 1.0, 0.0]), np.array([[0], [3], [2]], dtype=np.int32)).tolist()
    [False, True]
    """
    seen = ~np.isnan(covered)
    if not seen.any() or not bits.size:
        return None
    always = np.bitwise_and.reduce(bits[seen], axis=0)
    ever = np.bitwise_or.reduce(bits[seen], axis=0)
    flags, used = (np.unpackbits(x.view(np.uint8), bitorder="little").astype(np.bool_) for x in (always, ever))
    return flags[: int(np.flatnonzero(used).max(initial=-1)) + 1]


def read_runs(path: str | Path | Store, *, known: dict[str, tuple[Cell, Reduced]] | None = None) -> Runs:
    """Read a store; ``known`` keeps what was read (files never change), for callers that read again and again."""
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
    except (OSError, LivarotError) as error:  # damaged, of a later version, or unreadable
        return str(error)
    if record.run.key != key:
        return f"{key}: it holds another run than its name says"
    cell, inside = record.run.cell, never_missed(record.columns["covered"], record.bits)
    # equal texts are one: most runs of a store were made by the same code
    return cell, Reduced(cell.key, record.run.seed, *reduce_columns(record.columns), _text(record.provenance), inside)


def _text(provenance: dict[str, Any]) -> str:
    return sys.intern(canonical(provenance))


def _order(cell: Cell) -> tuple[Any, ...]:
    horizon = horizon_of(cell)
    world = (
        cell.environment,
        natural(canonical(left_out(cell.environment_settings, "horizon"))),
        -1 if horizon is None else horizon,
    )
    return (*world, cell.episodes, cell.agent, natural(canonical(cell.agent_settings)))


def require_runs(runs: Runs) -> None:
    if runs.cells:
        return
    found = [f"holds no {'undamaged ' if runs.damaged else ''}run"]
    if runs.damaged:
        found.append(f"{counted(len(runs.damaged), 'file is', 'files are')} damaged")
    if runs.failures:
        found.append(f"{counted(len(runs.failures), 'run')} failed")
    cure = (
        "livarot status STORE --failures shows why"
        if runs.failures
        else "run an experiment first: livarot run FILE.toml"
    )
    raise bad("store", ", ".join(found), cure=cure)


def horizon_of(cell: Cell) -> int | None:
    """H if it is a setting of the environment; environments whose H follows from other settings have none here."""
    found = cell.environment_settings.get("horizon")
    return found if type(found) is int and found > 0 else None
