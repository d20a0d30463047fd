"""A sweep compares the hash of every file that it takes as done, in separate processes if there are many."""

import os
import random
import sys

import pytest

from livarot.sweeps.driver import sweep
from livarot.sweeps.store import hashing
from livarot.sweeps.store.store import Store
from tests.sweeps.conftest import EXPERIMENT


@pytest.fixture(params=["here", "in processes", "in processes that cannot begin", "in processes that die"])
def looked_at(request, tmp_path, monkeypatch):
    """Who hashes the files: all four have to give the same answer."""
    if request.param == "here":
        return
    monkeypatch.setattr(hashing, "MANY", 1)
    if request.param.endswith("cannot begin"):
        monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    if request.param.endswith("die"):
        dying = tmp_path / "dying"
        dying.write_text("#!/bin/sh\necho -\nprintf '123 45'\nkill -9 $$\n")
        dying.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(dying))


def contents(store):
    return {path.name: path.read_bytes() for path in (store.path / "runs").iterdir()}


def hurt_silently(path):
    """Change a byte; size and date stay."""
    stat, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_nothing_to_do_changes_nothing(store, looked_at):
    before = contents(store)
    report = sweep(EXPERIMENT, store.path, backend="sequential")
    assert (report.before, report.done) == (20, 0)
    assert contents(store) == before


def test_only_what_is_damaged_or_gone_is_computed_again(store, looked_at):
    before = contents(store)
    hurt, cut, gone = random.Random(1).sample(sorted(before), 3)
    runs = store.path / "runs"
    hurt_silently(runs / hurt)
    (runs / cut).write_bytes(before[cut][:-10])
    (runs / gone).unlink()
    report = sweep(EXPERIMENT, store.path, backend="sequential")
    assert (report.before, report.done) == (17, 3)
    assert contents(store) == before
    assert {path.name[:64] for path in (store.path / "corrupt").iterdir()} == {hurt[:64], cut[:64]}


def test_a_file_with_another_date_is_looked_at_and_kept(store, looked_at):
    path = next((store.path / "runs").iterdir())
    os.utime(path, ns=(1, 1))
    report = sweep(EXPERIMENT, store.path, backend="sequential")
    assert (report.before, report.done) == (20, 0)
    assert path.stat().st_mtime_ns == 1


def test_any_name_of_a_store(store, looked_at, monkeypatch):
    odd = store.path.with_name("a new\nline 猫")
    store.close()
    store.path.rename(odd)
    hurt_silently(min((odd / "runs").iterdir()))
    monkeypatch.chdir(odd.parent)
    report = sweep(EXPERIMENT, odd.name, backend="sequential")
    assert (report.before, report.done) == (19, 1)


def test_a_small_part_of_a_large_store_is_not_all_looked_at(store, monkeypatch):
    """Runs of other experiments are compared by their dates only."""
    asked = []
    look = hashing.look
    monkeypatch.setattr(hashing, "look", lambda path, limit: asked.append(path) or look(path, limit))
    one = EXPERIMENT.model_copy(update={"agents": EXPERIMENT.agents[:1]})
    assert sweep(one, store.path, backend="sequential").before == 10
    assert len(asked) == 10


def test_processes_end_with_the_look(store, monkeypatch):
    monkeypatch.setattr(hashing, "MANY", 1)
    begun = []
    popen = hashing.subprocess.Popen
    monkeypatch.setattr(hashing.subprocess, "Popen", lambda *a, **k: begun.append(popen(*a, **k)) or begun[-1])
    monkeypatch.setattr(Store, "_dates", lambda *_: 1 / 0)  # something happens meanwhile
    with pytest.raises(ZeroDivisionError):
        store.sync(verify=True)
    assert len(begun) == 2
    assert all(process.returncode is not None for process in begun)
