"""Many drivers on one store, and a Dask cluster that loses a worker."""

import json
import os
import signal
import subprocess
import sys

import pytest

from livarot.sweeps.store import housekeeping
from livarot.sweeps.store.store import Store
from tests.faults.tools import ROOT, SLOW, finish, hashes, poison, start, wait_for


def share(tmp_path, drivers, text, runs):
    spec, store = tmp_path / "experiment.toml", tmp_path / "store"
    spec.write_text(text)
    processes = [start(spec, store, "--backend", "sequential", "--group", "4") for _ in range(drivers)]
    for code, out in [finish(process, 280) for process in processes]:
        assert code == 0, out
        assert f"{runs} of {runs} runs" in out
    assert len(hashes(store)) == runs
    with Store(store) as opened:
        assert housekeeping.status(opened, verify=True).damaged == 0
        table = opened.table()
        assert len(table) == runs
        claims = opened.index._connection.execute("SELECT count(*) FROM claims").fetchone()
        assert claims == (0,)
    assert not list((store / "drivers").glob("*.lock"))
    return store


def test_three_drivers_share_the_work(tmp_path):
    shared = share(tmp_path, 3, SLOW, 32)
    spec = tmp_path / "experiment.toml"
    assert finish(start(spec, tmp_path / "calm", "--backend", "sequential"))[0] == 0
    assert hashes(shared) == hashes(tmp_path / "calm")


@pytest.mark.parametrize("backend", [["--backend", "sequential"], ["--workers", "2"]])
def test_linear_algebra_has_one_thread(tmp_path, monkeypatch, backend):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    spec = tmp_path / "experiment.toml"
    spec.write_text(poison("").replace("test-poison", "test-threads").replace('victim = 3, how = ""', ""))
    code, out = finish(start(spec, tmp_path / "store", *backend))
    assert code == 0, out


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_eight_drivers_and_five_hundred_runs(tmp_path):
    text = SLOW.replace("seeds = 4", "seeds = 63").replace("delay = 0.003", "delay = 0.0005") + "\n"
    text = text.replace("episodes = 40", "episodes = 20")
    share(tmp_path, 8, text, 504)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_dask_cluster_that_loses_a_worker(tmp_path):
    """A real scheduler and two workers on this machine; one is killed in the middle, the sweep is complete."""
    pytest.importorskip("distributed")
    spec, store, place = tmp_path / "experiment.toml", tmp_path / "store", tmp_path / "scheduler.json"
    spec.write_text(SLOW.replace("episodes = 40", "episodes = 150"))
    dask = [sys.executable, "-m", "dask"]
    options = {"cwd": ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    network = ["--host", "127.0.0.1", "--no-dashboard"]
    cluster = [
        subprocess.Popen([*dask, "scheduler", *network, "--port", "0", "--scheduler-file", str(place)], **options)
    ]
    try:
        assert wait_for(lambda: place.is_file() and place.stat().st_size > 0)
        address = json.loads(place.read_text())["address"]
        for number in range(2):
            local = ["--local-directory", str(tmp_path / f"worker{number}")]
            command = [*dask, "worker", address, *network, "--nthreads", "1", "--no-nanny", *local]
            cluster.append(subprocess.Popen(command, **options))
        process = start(spec, store, "--backend", "dask", "--address", address, "--group", "1")
        assert wait_for(lambda: len(hashes(store)) >= 2 or process.poll() is not None, 120)
        assert process.poll() is None
        os.kill(cluster[1].pid, signal.SIGKILL)
        code, out = finish(process, 200)
        assert code == 0, out
        assert "32 of 32 runs" in out
    finally:
        for one in cluster:
            one.kill()
            one.wait()
    assert finish(start(spec, tmp_path / "calm", "--workers", "2"))[0] == 0
    assert hashes(store) == hashes(tmp_path / "calm")
