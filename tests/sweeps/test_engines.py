"""Engines: workers that end with their sweep, clusters that cannot be reached."""

import subprocess
import sys

import joblib
import psutil
import pytest

from livarot import LivarotError
from livarot.sweeps import driver as module
from livarot.sweeps.driver import sweep
from livarot.sweeps.engines import Engine, WorkersDied
from tests.support.stores import experiment, files


def told(process):
    try:
        return process.cmdline()
    except psutil.Error:  # it has ended
        return []


def test_workers_end_with_their_sweep_and_joblib_goes_on(tmp_path):
    assert sweep(experiment(), tmp_path / "first", workers=2).complete
    workers = [c for c in psutil.Process().children(recursive=True) if any("popen_loky" in word for word in told(c))]
    assert psutil.wait_procs(workers, timeout=5)[1] == []
    assert joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(abs)(-i) for i in range(4)) == [0, 1, 2, 3]
    assert sweep(experiment(), tmp_path / "second", workers=2).complete


def test_workers_import_what_they_need_only():
    """Each worker is a new process: a tenth of a second per library counts."""
    code = (
        "import sys; import livarot.sweeps.worker\n"
        "slow = {'pandas', 'pydantic', 'scipy.sparse', 'scipy.spatial', 'matplotlib'} & sys.modules.keys()\n"
        "sys.exit(', '.join(slow))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tls://127.0.0.1:1", "nowhere://x"])
def test_a_dask_cluster_that_cannot_be_reached_is_said(tmp_path, address):
    """TLS without certificates is a TypeError of Dask's.  No store is left behind."""
    pytest.importorskip("distributed")
    with pytest.raises(LivarotError, match=f"^address: no Dask scheduler at '{address}'"):
        sweep(experiment(), tmp_path / "store", backend="dask", address=address)
    assert not list(tmp_path.iterdir())


class NeverBegins(Engine):
    """Workers that die before they take a task."""

    workers = 2

    def run(self, tasks, *, alone=False):
        list(tasks)
        raise WorkersDied("no Python here")
        yield


def test_workers_that_never_begin_are_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "engine", lambda *_: NeverBegins())
    with pytest.raises(LivarotError, match=r"workers die before they begin \(no Python here\); see livarot doctor"):
        sweep(experiment(), tmp_path)
    assert files(tmp_path) == {}
    monkeypatch.undo()
    assert sweep(experiment(), tmp_path, backend="sequential").complete
