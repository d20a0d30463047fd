"""How fast a store of many runs answers, and how much memory a report of it takes.

    python -m benchmarks.many_runs [--runs 100000] [--seeds 100] [--episodes 200] [--repeats 3]
                                   [--leave-out NAME ...] [--store DIR] [--json FILE]

The store is filled with invented numbers through the store's own encoder; only their shape matters here.  A store in
``--store`` is used again if it is there, and kept.  Measured are commands as a user gives them, each in a process of
its own, start and imports included: `livarot status`, `livarot run` with nothing to do, `livarot status` after the
index was lost, and `livarot report`.  Wall seconds, processor seconds and peak memory, each the median of the repeats;
what takes more than ten seconds is measured once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from livarot.running.result import COLUMNS
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store.folders import INDEX_FILES
from livarot.sweeps.store.store import Store
from livarot.sweeps.tasks import GROUP

HORIZON = 5
LONG = 10.0  # seconds
Cost: TypeAlias = tuple[float, float, float]  # seconds, seconds of processors, GB
# new processes find the bytecode of all modules, as in an installed livarot
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
# seconds and GB, by number of runs
GOALS = {
    100_000: {"status": "2 s", "resume": "3 s", "report": "60 s, 1.5 GB"},
    10_000: {"index made again": "5 s"},
}


def grid(runs: int, seeds: int, episodes: int) -> Experiment:
    """LIVAROT with many values of one setting on one chain."""
    scales = [round(0.001 * (1 + place), 6) for place in range(runs // seeds)]
    return Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": HORIZON, "gap": 0.1})],
        agents=[AgentSpec(name="livarot", settings={"beta_scale": scales})],
        episodes=episodes,
        seeds=seeds,
    )


def fill(folder: Path, experiment: Experiment) -> None:
    """All runs of the experiment, which has one number of episodes, with invented numbers, and the index of them."""
    draw = np.random.default_rng(0)
    seeds, cells = experiment.seed_list(), experiment.cells()
    columns = {name: draw.random((len(seeds), cells[0].episodes)) for name in COLUMNS}
    columns["covered"] = np.ones((len(seeds), cells[0].episodes))
    bits = np.ones((len(seeds), cells[0].episodes, 1), dtype=np.int32)
    with Store(folder, create=True) as store:
        store.add_spec(experiment)
        for cell in cells:
            runs = [cell.run(seed) for seed in seeds]
            for first in range(0, len(runs), GROUP):
                part = slice(first, first + GROUP)
                block = {name: column[part] for name, column in columns.items()}
                store.note(zip(runs[part], store.put_all([(runs[part], block, bits[part])]), strict=True))


def measured(*arguments: str) -> Cost:
    """Seconds, seconds of processors, and the most GB that a command of livarot's had in memory at a time."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "livarot", *arguments], stdout=subprocess.DEVNULL, env=ENVIRONMENT
    )
    _, code, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(code)
    assert process.returncode == 0, arguments
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e9


def repeated(repeats: int, measure: Callable[[], Cost]) -> list[float]:
    """The median of each number; what takes long is not repeated: noise is small then."""
    found = [measure()]
    while len(found) < repeats and found[0][0] < LONG:
        found.append(measure())
    return [float(number) for number in np.median(found, axis=0)]


def after_the_index_was_lost(store: Path) -> Cost:
    for name in INDEX_FILES:
        (store / name).unlink(missing_ok=True)
    return measured("status", str(store))


def measures(store: Path, experiment: Experiment, out: Path) -> dict[str, Callable[[], Cost]]:
    """What is measured, by name."""
    spec = out / "experiment.toml"
    spec.write_text(experiment.to_toml())
    return {
        "status": partial(measured, "status", str(store)),
        "resume": partial(measured, "run", str(spec), "--store", str(store), "--workers", "2"),
        "report": partial(measured, "report", str(store), "--out", str(out / "report")),
        "index made again": partial(after_the_index_was_lost, store),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--leave-out", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    experiment = grid(options.runs, options.seeds, options.episodes)
    folder = Path(tempfile.mkdtemp(prefix="livarot-bench-"))
    store = options.store or folder / "store"
    try:
        if not store.exists():
            fill(store, experiment)
        measured("status", str(store))  # writes bytecode, and warms the file system's cache
        chosen = measures(store, experiment, folder).items()
        found = {name: repeated(options.repeats, one) for name, one in chosen if name not in options.leave_out}
    finally:
        shutil.rmtree(folder)
    for name, (seconds, busy, memory) in found.items():
        goal = GOALS.get(options.runs, {}).get(name)
        told = "" if goal is None else f"   goal {goal}"
        print(f"{options.runs} runs, {name:18}{seconds:8.2f} s{busy:8.2f} s of processors{memory:7.2f} GB{told}")
    if options.json:
        options.json.write_text(json.dumps({"runs": options.runs} | found, indent=1))


if __name__ == "__main__":
    main()
