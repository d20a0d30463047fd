"""What a sweep costs beside the bare loops, and how fast a large store answers.

    python -m benchmarks.sweep [--runs 2000] [--stored 10000] [--workers 2] [--json FILE]

Overhead: a grid of hard chains (H = 5, T = 200) with LIVAROT, 40 seeds per cell, through `livarot.experiments.sweep`
into an empty store (files forced to disk), against the same runs as bare loops in as many processes, nothing stored:

    one by one     `livarot.run` with one seed per call: a loop per run
    grouped        `livarot.run` with the 40 seeds of a cell at once, as the sweep itself does it

Both sides start their processes, which load kernels from numba's cache, within their clocks.  `start` is the time for
two cells only: what is left after it is printed as well, and there the files (about 0.5 ms of encoding and disk each)
weigh more, because a run of 200 episodes, computed with 39 others, takes about as long as its file.

Large stores: `status`, a rebuild of the index, the table, and `livarot report` in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import livarot
from livarot.experiments import housekeeping
from livarot.experiments.keys import Cell
from livarot.experiments.result import COLUMNS
from livarot.experiments.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.experiments.store import Store
from livarot.experiments.sweep import sweep

SEEDS, EPISODES, HORIZON = 40, 200, 5


def grid(runs: int) -> Experiment:
    scales = [round(0.01 * (1 + i), 4) for i in range(runs // SEEDS)]
    return Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": HORIZON, "gap": 0.1})],
        agents=[AgentSpec(name="livarot", settings={"beta_scale": scales})],
        episodes=EPISODES,
        seeds=SEEDS,
    )


def bare(job: tuple[float, tuple[int, ...]]) -> float:
    """One call of `livarot.run`."""
    scale, seeds = job
    mdp = livarot.envs.hard_chain(HORIZON, gap=0.1)
    result = livarot.run(mdp, livarot.agents.Livarot(beta_scale=scale), EPISODES, seed=seeds)
    return float(result.regret.sum())


def timed_bare(experiment: Experiment, workers: int, grouped: bool) -> float:
    scales = [cell.agent_settings["beta_scale"] for cell in experiment.cells()]
    seeds = experiment.seed_list()
    jobs = [(s, tuple(seeds)) for s in scales] if grouped else [(s, (seed,)) for s in scales for seed in seeds]
    begin = time.perf_counter()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        list(pool.map(bare, jobs, chunksize=max(1, len(jobs) // (8 * workers))))
    return time.perf_counter() - begin


def timed_report(store: Path, out: Path) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "livarot", "report", str(store), "--out", str(out)], check=True)
    return time.perf_counter() - begin


def timed_sweep(experiment: Experiment, workers: int, folder: Path) -> float:
    begin = time.perf_counter()
    report = sweep(experiment, folder, workers=workers)
    assert report.complete, report
    return time.perf_counter() - begin


def fill(folder: Path, count: int) -> None:
    """A store of many runs with made-up numbers: only their shape matters here."""
    draw = np.random.default_rng(0)
    columns = {name: draw.random(EPISODES) for name in COLUMNS}
    bits = np.zeros((EPISODES, 1), dtype=np.int32)
    with Store(folder, create=True) as store:
        cells = [
            Cell.of("hard-chain", {"horizon": HORIZON}, "livarot", {"beta_scale": 0.001 * (1 + i)}, EPISODES)
            for i in range(count // 100)
        ]
        for cell in cells:
            store.put_all((cell.run(seed), columns, bits) for seed in range(100))
        scales = [cell.agent_settings["beta_scale"] for cell in cells]
        store.add_spec(
            Experiment(
                environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": HORIZON})],
                agents=[AgentSpec(name="livarot", settings={"beta_scale": scales})],
                episodes=EPISODES,
                seeds=100,
            )
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--stored", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    experiment, small = grid(options.runs), grid(2 * SEEDS)
    livarot.run(livarot.envs.hard_chain(HORIZON, gap=0.1), livarot.agents.Livarot(), 3, seed=[0, 1])
    found: dict[str, float] = {}
    folder = Path(tempfile.mkdtemp(prefix="livarot-bench-"))
    try:  # nothing is deleted before the end: deleting thousands of files keeps a disk busy for a while
        for repeat in range(options.repeats):  # alternately, the best of each
            store, other = folder / f"store{repeat}", folder / f"small{repeat}"
            sides = {
                "sweep": partial(timed_sweep, experiment, options.workers, store),
                "bare, one by one": partial(timed_bare, experiment, options.workers, grouped=False),
                "bare, grouped": partial(timed_bare, experiment, options.workers, grouped=True),
                "sweep, start": partial(timed_sweep, small, options.workers, other),
                "bare, start": partial(timed_bare, small, options.workers, grouped=True),
                "sweep again, nothing to do": partial(timed_sweep, experiment, options.workers, store),
            }
            for name, side in sides.items():
                found[name] = min(found.get(name, np.inf), side())
    finally:
        shutil.rmtree(folder)
    found["sweep / bare, one by one"] = found["sweep"] / found["bare, one by one"]
    found["sweep / bare, grouped"] = found["sweep"] / found["bare, grouped"]
    left = [found[side] - found[f"{name}, start"] for side, name in (("sweep", "sweep"), ("bare, grouped", "bare"))]
    found["the same less start"] = left[0] / left[1]
    folder = Path(tempfile.mkdtemp(prefix="livarot-bench-"))
    try:
        fill(folder / "store", options.stored)
        with Store(folder / "store") as store:
            begin = time.perf_counter()
            assert store.rebuild().added == options.stored
            found["index rebuild"] = time.perf_counter() - begin
            begin = time.perf_counter()
            assert housekeeping.status(store).done == options.stored
            found["status"] = time.perf_counter() - begin
            begin = time.perf_counter()
            store.table()
            found["table"] = time.perf_counter() - begin
        found["report"] = timed_report(folder / "store", folder / "report")
    finally:
        shutil.rmtree(folder)
    for name, value in found.items():
        print(f"{name:28} {value:8.2f}{'' if '/' in name or 'less' in name else ' s'}")
    if options.json:
        options.json.write_text(json.dumps({"workers": options.workers, "runs": options.runs} | found, indent=1))


if __name__ == "__main__":
    main()
