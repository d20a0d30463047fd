"""The loops that :mod:`benchmarks.sweep` compares with, in a module that imports no more than they need."""

from __future__ import annotations

import os

import livarot
from livarot.running.result import RunResult


def computed(horizon: int, episodes: int, scale: float, seeds: tuple[int, ...]) -> RunResult:
    """One call of `livarot.run`: LIVAROT on the hard chain."""
    mdp = livarot.envs.hard_chain(horizon, gap=0.1)
    return livarot.run(mdp, livarot.agents.Livarot(beta_scale=scale), episodes, seed=seeds)


def total_regret(horizon: int, episodes: int, scale: float, seeds: tuple[int, ...]) -> float:
    """Nothing is stored."""
    return float(computed(horizon, episodes, scale, seeds).regret.sum())


def stored_regret(folder: str, horizon: int, episodes: int, scale: float, seeds: tuple[int, ...]) -> float:
    """A plain script that leaves one durable Parquet file per run: no key, provenance, digest, index, progress."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    result = computed(horizon, episodes, scale, seeds)
    for row, seed in enumerate(seeds):
        table = pa.table({name: column.data[row] for name, column in result.columns.items()})
        path = os.path.join(folder, f"{scale}-{seed}.parquet")
        with open(f"{path}.tmp", "wb") as file:
            pq.write_table(table, file, write_page_checksum=True)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.tmp", path)
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    return float(result.regret.sum())
