"""Stores that several processes use at once, and damage that hides."""

import os
import time

import pytest

from livarot import LivarotError
from livarot.storage import write_atomic
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.keys import canonical
from livarot.sweeps.store import housekeeping
from livarot.sweeps.store.index import GUARD, DriverLock, guarded
from livarot.sweeps.store.records import Damaged, encode
from tests.sweeps.conftest import EXPERIMENT


def test_what_a_killed_sweep_left_is_removed_by_the_next_one(store):
    left = [store.path / name / ".livarot-0123456789abcdef.tmp" for name in ("runs", "checkpoints", "specs", ".")]
    for path in left:
        path.write_bytes(b"half")
        os.utime(path, (time.time() - 100, time.time() - 100))
    young = store.path / "runs" / ".livarot-fedcba9876543210.tmp"  # of a driver that has just begun
    young.write_bytes(b"half")
    os.utime(young, (time.time() + 60, time.time() + 60))
    other = DriverLock(store.path / "drivers")
    sweep(EXPERIMENT, store.path, backend="sequential")
    assert all(path.exists() for path in left)  # another driver is at work, and they may be its files
    other.release()
    sweep(EXPERIMENT, store.path, backend="sequential")
    assert not any(path.exists() for path in left)
    assert young.exists()


def test_a_run_written_again_by_other_code_is_whole(store):
    """The index knows another SHA-256, but the file is as that code writes it."""
    store.sync()
    key = next(iter(store.stored()))
    record = store.read(key)
    other = canonical(record.provenance | {"commit": None, "source": "0" * 16})
    store.run_path(key).write_bytes(encode(record.run, record.columns, record.bits, made_by=other))
    assert store.sync(verify=True).damaged == 0


def test_a_file_that_was_replaced_meanwhile_is_not_set_aside(store):
    key = next(iter(store.stored()))
    path = store.run_path(key)
    whole = path.read_bytes()
    path.write_bytes(whole[:-50])
    with pytest.raises(Damaged) as found:
        store._verified(key, path)
    write_atomic(path, whole)  # another driver computed it again
    store.set_aside(key, found.value)
    assert path.read_bytes() == whole


def test_times_survive_a_new_look(store):
    store.sync()
    before = store.table()[["key", "seconds"]]
    for path in (store.path / "runs").iterdir():
        os.utime(path, ns=(0, 0))
    assert store.sync().added == 20
    assert store.table()[["key", "seconds"]].equals(before)


def test_gc_and_sweeps_keep_out_of_each_other_s_way(store):
    with guarded(store.path / GUARD, alone=True), pytest.raises(LivarotError, match="gc is at work"):
        sweep(EXPERIMENT, store.path, backend="sequential")
    with guarded(store.path / GUARD, alone=False):
        with pytest.raises(LivarotError, match="a sweep is running"):
            housekeeping.collect(store)
        assert sweep(EXPERIMENT, store.path, backend="sequential").complete  # sweeps side by side
