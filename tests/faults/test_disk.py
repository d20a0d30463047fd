"""Disks that are full or cannot be written: an error of one line, nothing half-written, and afterwards all is well."""

import errno
import os
import shutil
import subprocess

import pytest

from livarot import LivarotError
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.spec import Experiment
from livarot.sweeps.store import housekeeping
from livarot.sweeps.store.store import Store
from tests.faults.tools import LEARNING, hashes

EXPERIMENT = Experiment.from_toml(LEARNING)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    path = tmp_path_factory.mktemp("calm")
    assert sweep(EXPERIMENT, path, backend="sequential").complete
    return hashes(path)


def nothing_half_written(store, calm):
    assert hashes(store).items() <= calm.items()
    with Store(store) as opened:
        assert housekeeping.status(opened, verify=True).damaged == 0


@pytest.mark.parametrize("moment", [0, 1, 2, 5, 11, 23])
def test_no_space_at_any_file(calm, tmp_path, monkeypatch, moment):
    """The n-th write fails, and all after it."""
    sync, count = os.fsync, iter(range(10_000))
    Store(tmp_path, create=True).close()

    def full(descriptor):
        if next(count) >= 2 * moment + 3:  # file and folder each; the first are those of the spec
            raise OSError(errno.ENOSPC, "No space left on device")
        return sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LivarotError, match=r"cannot write \d+ bytes to .*No space left on device"):
        sweep(EXPERIMENT, tmp_path, backend="sequential", group=2)
    monkeypatch.undo()
    nothing_half_written(tmp_path, calm)
    assert sweep(EXPERIMENT, tmp_path, backend="sequential").complete
    assert hashes(tmp_path) == calm
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.fixture
def small_disk(tmp_path):
    """A separate small file system, where the system allows mounting one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if not made or made.returncode:
        pytest.skip("needs the right to mount a small tmpfs (root)")
    yield folder
    subprocess.run([shutil.which("umount"), "-l", str(folder)], check=False, capture_output=True)


def test_a_small_disk_fills_up(calm, small_disk):
    """Room is taken away step by step; each time a one-line error, never a damaged file."""
    store = small_disk / "store"
    refused = 0
    for left in (20_000, 60_000, 120_000, 200_000):
        free = shutil.disk_usage(small_disk).free
        (small_disk / "filler").write_bytes(bytes(max(0, free - left)))
        try:
            sweep(EXPERIMENT, store, backend="sequential", group=3)
        except (LivarotError, OSError) as error:
            refused += 1
            if isinstance(error, OSError):  # the folders themselves could not be made
                assert error.errno == errno.ENOSPC  # noqa: PT017
        (small_disk / "filler").unlink()
        if (store / "livarot-store.json").is_file():
            nothing_half_written(store, calm)
    assert refused >= 2
    assert sweep(EXPERIMENT, store, backend="sequential").complete
    assert hashes(store) == calm


def test_a_folder_that_cannot_be_written(calm, tmp_path):
    """Read-only: mounted so (as root), or by its mode."""
    store = tmp_path / "store"
    sweep(EXPERIMENT.model_copy(update={"seeds": 2}), store, backend="sequential")
    mounted = False
    if os.geteuid() == 0:
        mount = shutil.which("mount")
        commands = [[mount, "--bind", store, store], [mount, "-o", "remount,bind,ro", store]]
        done = mount and [subprocess.run(c, check=False, capture_output=True).returncode for c in commands]
        mounted = done == [0, 0]
        if not mounted:
            pytest.skip("root can write anywhere, and may not mount here")
    else:
        for folder in (store, *store.iterdir()):
            if folder.is_dir():
                folder.chmod(0o555)
    try:
        before = hashes(store)
        with pytest.raises(LivarotError, match=r"Read-only|Permission|cannot be written"):
            sweep(EXPERIMENT, store, backend="sequential")
        assert hashes(store) == before
    finally:
        if mounted:
            subprocess.run([shutil.which("umount"), "-l", str(store)], check=False, capture_output=True)
        else:
            for folder in (store, *store.iterdir()):
                if folder.is_dir():
                    folder.chmod(0o755)
    assert sweep(EXPERIMENT, store, backend="sequential").complete
    assert hashes(store) == calm
