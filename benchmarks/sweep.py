"""What a sweep costs beside the bare loops.

    python -m benchmarks.sweep [--runs 2000] [--episodes 200] [--workers 2] [--repeats 5] [--json FILE]

Overhead: a grid of hard chains (H = 5, T = 200) with LIVAROT, 40 seeds per cell, through `livarot.sweeps.driver`
into an empty store (files forced to disk), against the same runs as bare loops in as many new joblib processes:

    one by one     `livarot.run` with one seed per call: a loop per run
    grouped        `livarot.run` with the 40 seeds of a cell at once, as the sweep itself does it
    with files     the same, and a plain script's durable Parquet file per run

Both sides start their processes, which find bytecode and load kernels from numba's cache, within their clocks; the bare
ones do not end theirs, nor does the sweep wait for the end of its own.  `start` is the time for two cells only; what is
left after it is compared as well.  `processor time` is that of all processes.  `a file, pyarrow alone` and
`a file, disk alone` are the least that a durable Parquet file of such a run takes here.

The sides take turns, sweep and grouped loops twice as often, each first in half of them; each ratio is that of the
medians.  Files are deleted at the end only, and a benchmark that begins within minutes after many files were deleted is
slow: ext4 avoids inodes that were given back a short while ago.

How fast large stores answer: `benchmarks.many_runs`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from joblib.externals.loky import get_reusable_executor

import livarot
from benchmarks.bare import stored_regret, total_regret
from livarot.running.result import COLUMNS
from livarot.storage import write_together
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store.records import LAYOUT

Side = tuple[str, Callable[[], float]]
SEEDS, HORIZON = 40, 5


def grid(runs: int, episodes: int) -> Experiment:
    scales = [round(0.01 * (1 + i), 4) for i in range(runs // SEEDS)]
    return Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": HORIZON, "gap": 0.1})],
        agents=[AgentSpec(name="livarot", settings={"beta_scale": scales})],
        episodes=episodes,
        seeds=SEEDS,
    )


def timed_bare(experiment: Experiment, workers: int, grouped: bool, folder: Path | None = None) -> float:
    """The same engine as the sweep's; its processes are new ones, as there."""
    seeds = experiment.seed_list()
    jobs = [
        (HORIZON, cell.episodes, cell.agent_settings["beta_scale"], group)
        for cell in experiment.cells()
        for group in ([tuple(seeds)] if grouped else [(seed,) for seed in seeds])
    ]
    if folder is not None:
        folder.mkdir()
    task = joblib.delayed(total_regret if folder is None else partial(stored_regret, str(folder)))
    begin = time.perf_counter()
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        joblib.Parallel(n_jobs=workers)(task(*job) for job in jobs)
    seconds = time.perf_counter() - begin
    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)
    return seconds


def processor_time() -> float:
    """User and system seconds of this process and of the ended ones that it started."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def timed_sweep(experiment: Experiment, workers: int, folder: Path) -> float:
    begin = time.perf_counter()
    report = sweep(experiment, folder, workers=workers)
    seconds = time.perf_counter() - begin
    assert report.complete, report
    time.sleep(0.3)  # its workers were killed; what they spent counts when they are gone
    return seconds


def timed_file(folder: Path, episodes: int) -> tuple[float, float]:
    """Seconds per file, when 40 are made one after the other: in pyarrow, and to force its bytes to disk."""
    draw = np.random.default_rng(0)
    table = pa.table({name: draw.random(episodes) for name in COLUMNS} | {"episode": np.arange(episodes)})
    begin = time.perf_counter()
    for _ in range(SEEDS):
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="lz4", **LAYOUT)
    between = time.perf_counter()
    write_together({folder / f"{place}": bytes(sink.getvalue()) for place in range(SEEDS)})
    return (between - begin) / SEEDS, (time.perf_counter() - between) / SEEDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    experiment, small = grid(options.runs, options.episodes), grid(2 * SEEDS, options.episodes)
    livarot.run(livarot.envs.hard_chain(HORIZON, gap=0.1), livarot.agents.Livarot(), 3, seed=[0, 1])
    times: dict[str, list[float]] = {}
    spent: dict[str, list[float]] = {}
    folder = Path(tempfile.mkdtemp(prefix="livarot-bench-"))
    # new processes find the bytecode of all modules, as in an installed livarot
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    timed_sweep(small, options.workers, folder / "first")
    timed_bare(small, options.workers, grouped=True)
    try:
        for repeat in range(options.repeats):
            store, other, plain = (folder / f"{name}{repeat}" for name in ("store", "small", "plain"))
            pair: list[Side] = [
                ("sweep", partial(timed_sweep, experiment, options.workers, store)),
                ("bare, grouped", partial(timed_bare, experiment, options.workers, grouped=True)),
            ]
            again: Side = ("sweep", partial(timed_sweep, experiment, options.workers, folder / f"again{repeat}"))
            sides: list[Side] = [
                *(pair if repeat % 2 else reversed(pair)),
                ("bare, grouped, with files", partial(timed_bare, experiment, options.workers, True, plain)),
                ("sweep, start", partial(timed_sweep, small, options.workers, other)),
                ("bare, start", partial(timed_bare, small, options.workers, grouped=True)),
                *([pair[1], again] if repeat % 2 else [again, pair[1]]),
                ("sweep again, nothing to do", partial(timed_sweep, experiment, options.workers, store)),
                ("bare, one by one", partial(timed_bare, experiment, options.workers, grouped=False)),
            ]
            for name, side in sides:
                before = processor_time()
                times.setdefault(name, []).append(side())
                spent.setdefault(name, []).append(processor_time() - before)
            alone = timed_file(plain, options.episodes)
            times.setdefault("a file, pyarrow alone", []).append(alone[0])
            times.setdefault("a file, disk alone", []).append(alone[1])
    finally:
        shutil.rmtree(folder)
    found = {name: float(np.median(seconds)) for name, seconds in times.items()}
    for what, measured in (("by the clock", times), ("processor time", spent)):
        pairs = zip(measured["sweep"], measured["bare, grouped"], strict=True)
        print(f"sweep / bare, grouped, each turn, {what}:", *(f"{one / other:.2f}" for one, other in pairs))
    for side in ("one by one", "grouped", "grouped, with files"):
        found[f"sweep / bare, {side}"] = found["sweep"] / found[f"bare, {side}"]
    busy = [float(np.median(spent[side])) for side in ("sweep", "bare, grouped")]
    found["sweep / bare, grouped, processor time"] = busy[0] / busy[1]
    left = [found[side] - found[f"{name}, start"] for side, name in (("sweep", "sweep"), ("bare, grouped", "bare"))]
    found["sweep / bare, grouped, less start"] = left[0] / left[1]
    for name, value in found.items():
        amount = f"{value:8.2f}" if "/" in name else f"{1e3 * value:8.3f} ms" if "alone" in name else f"{value:8.2f} s"
        print(f"{name:38} {amount}")
    if options.json:
        options.json.write_text(json.dumps({"workers": options.workers, "runs": options.runs} | found, indent=1))


if __name__ == "__main__":
    main()
