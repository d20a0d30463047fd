"""Stored runs of plugins, compared with the sources here: were they made by these, by others, or by unknown ones?

The sources of a run by an earlier livarot, which did not note those of plugins, are unknown, and it is not stale.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from livarot.errors import LivarotError
from livarot.sweeps.experiment.keys import Cell, Run
from livarot.sweeps.experiment.names import cell_name, counted
from livarot.sweeps.experiment.sources import sources_of
from livarot.sweeps.store.reading import read_in_threads
from livarot.sweeps.store.records import PLUGIN, read_head
from livarot.sweeps.store.store import Store

STALE = {"keep": "kept; --stale recompute computes them again", "recompute": "computed again"}
logger = logging.getLogger(__name__)
MOST_LINES = 10  # about cells


class Made(NamedTuple):
    """Which stored runs of plugins (see :mod:`livarot.sweeps.experiment.sources`) were not made by the sources here."""

    others: dict[str, str]  # made by other sources: the key of the cell by the key of the run
    unknown: list[str]  # keys of runs by an earlier livarot, which did not note the sources


def made(store: Store, cells: Iterable[Cell]) -> Made:
    """What the files say, or the index where it has noted the sources of that very file."""
    here = sources_of(cells)
    found = Made({}, [])
    if not here:
        return found
    cells_of = {key: cell for cell in here for key in store.index.keys(cell)}
    hashes, known = store.index.hashes(), store.index.sources()
    new = [key for key in cells_of if known.get(key, ("", ""))[0] != hashes[key]]
    read = dict(zip(new, read_in_threads(lambda key: plugin_of(store, key), new), strict=True))
    with contextlib.suppress(sqlite3.Error):  # then it is read again next time
        store.index.add_sources([(key, hashes[key], plugin) for key, plugin in read.items()])
    for key, cell in cells_of.items():
        plugin = read[key] if key in read else known[key][1]
        if not plugin:
            found.unknown.append(key)
        elif plugin != here[cell]:
            found.others[key] = cell
    return found


def plugin_of(store: Store, key: str) -> str:
    """The hash of the sources besides livarot's own that made a stored run; empty if it is not known."""
    with contextlib.suppress(LivarotError):
        return str(read_head(store.run_path(key))["provenance"].get(PLUGIN, ""))
    return ""


def stale_files(store: Store, runs: Iterable[Run]) -> list[Run]:
    """The runs among these, all stored, that were made by other sources; reads the files alone and writes nothing."""
    listed = list(runs)
    here = sources_of({run.cell.key: run.cell for run in listed}.values())
    return [run for run in listed if run.cell.key in here and plugin_of(store, run.key) not in ("", here[run.cell.key])]


def stale_lines(cells: Iterable[Cell], then: str) -> list[str]:
    """How many stored runs of which cells were made by other sources; a cell stands here once for each of its runs.

    >>> stale_lines([Cell("chain", {}, "mine", {}, 10)] * 3, "kept")
    ['3 stored runs were made by other sources than those here: chain mine T=10', 'they are kept']
    """
    counts = Counter(map(cell_name, cells))
    lines = [
        f"{counted(count, 'stored run was', 'stored runs were')} made by other sources than those here: {name}"
        for name, count in counts.items()
    ]
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"and so were runs of {counted(len(lines) - MOST_LINES, 'cell')} more"]
    return [*lines, f"they are {then}"] if lines else []


def warn(cells: Iterable[Cell], choice: str) -> None:
    """Warn whoever runs a sweep of stale runs."""
    for line in stale_lines(cells, STALE[choice]):
        logger.warning("%s", line)


def status_lines(stale: int, unknown: int) -> list[str]:
    """The last lines of ``livarot status``."""
    lines = []
    if stale:
        cure = "livarot run FILE.toml --stale recompute computes them again"
        lines.append(f"{counted(stale, 'run was', 'runs were')} made by other sources than those here; {cure}")
    if unknown:
        lines.append(f"{counted(unknown, 'run')} by sources that an earlier livarot did not note")
    return lines
