"""The runs of a store, reduced while they are read."""

import tracemalloc

from livarot.report.read_runs import read_runs
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from tests.support.stores import store_of


def test_a_run_takes_little_more_memory_than_its_curves(tmp_path):
    """What runs have in common is kept once: with 10^5 of them it would be most of the memory."""
    experiment = Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": 4, "gap": 0.1})],
        agents=[AgentSpec(name="livarot")],
        episodes=100,
        seeds=200,
    )
    store_of(tmp_path / "store", experiment)
    read_runs(tmp_path / "store")  # imports and caches
    taken = []
    for _ in range(3):  # other threads of the process, and imports on first use, take memory too
        tracemalloc.start()
        runs = read_runs(tmp_path / "store")
        taken.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    curves = sum(run.curves.nbytes for found in runs.runs.values() for run in found)
    assert curves == 200 * 3 * 100 * 8
    assert min(taken) < 1.6 * curves
