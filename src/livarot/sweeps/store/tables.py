"""All runs of a store as one table, Parquet or CSV, a row per run and episode.

Regret, realised regret, optimism gap and loss are in the units of the environment's rewards, and ``unit_scale`` is what
the normalised ones (rewards in [0, 1]) were multiplied by; 1 where the environment is not registered here, and its
units are not known.

The *tidy* table is ready for pandas, R or a spreadsheet: the names of the report beside the registered ones, a column
for every setting (``env.horizon``, ``agent.beta_scale``, ``agent.rule``; empty where a run has no such setting), and
cumulative regret.  The other one has the settings as JSON.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from livarot.errors import bad
from livarot.extras import extras_explained
from livarot.running.result import COLUMNS, SCALED
from livarot.storage import replacing, spreadsheet_safe
from livarot.sweeps.experiment.keys import Cell, canonical, unit_scales
from livarot.sweeps.experiment.names import agent_names, environment_names, flat_settings
from livarot.sweeps.store.folders import names_in
from livarot.sweeps.store.index import CELL_COLUMNS, RUN_COLUMNS
from livarot.sweeps.store.records import Damaged, is_key
from livarot.sweeps.store.store import SUFFIX, Store

if TYPE_CHECKING:
    import pandas as pd

MAX_EXPORT_ROWS = 50_000_000
IN_UNITS = ("regret", "realised_regret", "optimism_gap")  # of the totals of a run
Fixed = dict[str, tuple[Any, pa.DataType]]  # what all rows of a run have, by column


class Exported(NamedTuple):
    """What ``livarot export`` wrote, and the keys of damaged runs, which are not in it."""

    rows: int
    damaged: list[str]


def export(store: Store, path: Path, *, tidy: bool = False) -> Exported:
    """All runs as one table, Parquet or CSV by the name's ending, a row per run and episode."""
    ending = path.suffix.lower()
    if ending not in (SUFFIX, ".csv"):
        raise bad("out", f"{path.name!r} is neither .parquet nor .csv")
    cells = store.cells()
    expected = sum(cell.episodes * len(store.seeds(cell)) for cell in cells)
    if expected > MAX_EXPORT_ROWS:
        raise bad("store", f"{expected} rows", cure="read the files in runs/ with DuckDB or Polars instead")
    text = spreadsheet_safe if ending == ".csv" else str
    columns = _settings_as_columns(store, cells, text) if tidy else {cell.key: _as_json(cell, text) for cell in cells}
    rows = 0
    try:
        with replacing(path) as file, pa.PythonFile(file, mode="w") as sink, contextlib.ExitStack() as stack:
            writer: Any = None
            for cell in cells:
                table = _long_table(store, cell, columns[cell.key], tidy=tidy)
                if table is None:
                    continue
                rows += table.num_rows
                if writer is None:
                    made = (
                        pa.csv.CSVWriter(sink, table.schema)
                        if ending == ".csv"
                        else pq.ParquetWriter(sink, table.schema, compression="zstd", write_page_checksum=True)
                    )
                    writer = stack.enter_context(made)
                writer.write_table(table)
            if writer is None:
                raise bad("store", f"{str(store.path)!r} holds no run", cure="run an experiment first")
    except OSError as error:
        raise bad("out", f"cannot write {str(path)!r}: {error.strerror or error}") from error
    return Exported(rows, damaged_runs(store))


def totals(
    rows: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]], cells: Sequence[Cell]
) -> pd.DataFrame:
    """:meth:`Store.table` from the rows of the index for runs and cells, in the units of the environments."""
    with extras_explained():
        import pandas as pd

    runs = pd.DataFrame(rows, columns=list(RUN_COLUMNS))
    joined = runs.merge(pd.DataFrame(known, columns=list(CELL_COLUMNS)), on="cell", how="left")
    table = joined.sort_values([*CELL_COLUMNS[1:], "seed"], ignore_index=True)
    scale = np.ones(len(table))
    asked: dict[str, float | None] = {}
    places = table.groupby("cell").indices
    for cell in cells:
        here = places.get(cell.key, np.empty(0, dtype=np.int64))
        found = unit_scales(cell, table["seed"].iloc[here].tolist(), asked)
        scale[here] = 1.0 if found is None else found
    changed = {name: table[name] * scale for name in IN_UNITS} if (scale != 1.0).any() else {}
    return table.assign(**changed, unit_scale=scale)


def damaged_runs(store: Store) -> list[str]:
    """Keys of runs whose files were set aside and that have not been computed again."""
    keys = {name[:64] for name in names_in(store.path / "corrupt")}
    return sorted(key for key in keys - store.stored().keys() if is_key(key))


def _as_json(cell: Cell, text: Callable[[str], str]) -> Fixed:
    told = {
        "environment": cell.environment,
        "environment_settings": canonical(cell.environment_settings),
        "agent": cell.agent,
        "agent_settings": canonical(cell.agent_settings),
    }
    return {name: (text(value), pa.string()) for name, value in told.items()}


def _settings_as_columns(store: Store, cells: Sequence[Cell], text: Callable[[str], str]) -> dict[str, Fixed]:
    """Labels and settings of each cell by its key, the same columns for all."""
    known, experiments = {cell.key: cell for cell in cells}, store.specs()
    worlds, (learners, _) = environment_names(known, experiments), agent_names(known, experiments)
    flat = {
        cell.key: {f"env.{name}": value for name, value in flat_settings(cell.environment_settings).items()}
        | {f"agent.{name.removesuffix('.name')}": value for name, value in flat_settings(cell.agent_settings).items()}
        for cell in cells
    }
    names = sorted({name for own in flat.values() for name in own}, key=lambda name: (name.startswith("agent."), name))
    kinds = {name: _kind([own.get(name) for own in flat.values()]) for name in names}
    found: dict[str, Fixed] = {}
    for cell in cells:
        told = (str(worlds[cell.key]), cell.environment, str(learners[cell.key]), cell.agent)
        labels = ("environment", "environment_name", "agent", "agent_name")
        fixed: Fixed = {name: (text(value), pa.string()) for name, value in zip(labels, told, strict=True)}
        for name in names:
            value = flat[cell.key].get(name)
            if kinds[name] == pa.string() and value is not None:
                value = text(value if isinstance(value, str) else canonical(value))
            fixed[name] = (value, kinds[name])
        found[cell.key] = fixed
    return found


def _kind(values: Sequence[Any]) -> pa.DataType:
    """The type of a column of settings: truth values, whole numbers, numbers, or text."""
    types = {type(value) for value in values if value is not None}
    for plain, kind in (({bool}, pa.bool_()), ({int}, pa.int64()), ({int, float}, pa.float64())):
        if types and types <= plain:
            return kind
    return pa.string()


def _long_table(store: Store, cell: Cell, fixed: Fixed, *, tidy: bool) -> pa.Table | None:
    """The runs of a cell below each other, what they have in common in front; damaged ones left out."""
    tables, seeds = [], store.seeds(cell)
    scales = unit_scales(cell, seeds)
    for seed, scale in zip(seeds, np.ones(len(seeds)) if scales is None else scales, strict=True):
        try:
            record = store.read(cell.run(seed).key)
        except Damaged:
            continue
        own = {"episodes": (cell.episodes, pa.int64()), "seed": (seed, pa.int64())}
        data: dict[str, Any] = {
            name: pa.repeat(pa.scalar(value, kind), cell.episodes) for name, (value, kind) in (fixed | own).items()
        }
        data["episode"] = pa.array(np.arange(1, cell.episodes + 1, dtype=np.int32))
        for name in COLUMNS:
            column = record.columns[name] * scale if name in SCALED else record.columns[name]
            data[name] = pa.array(column, mask=np.isnan(column))
            if tidy and name.endswith("regret"):
                data[f"cumulative_{name}"] = pa.array(np.cumsum(column))
        data["unit_scale"] = pa.repeat(pa.scalar(float(scale)), cell.episodes)
        tables.append(pa.table(data))
    return pa.concat_tables(tables) if tables else None


__all__ = ["Exported", "damaged_runs", "export", "totals"]
