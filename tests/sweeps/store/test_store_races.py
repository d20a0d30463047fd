"""Stores that several processes use at once, and damage that hides."""

import os
import subprocess
import sys
import time

import pytest

from livarot import LivarotError
from livarot.storage import write_atomic
from livarot.sweeps import worker
from livarot.sweeps.driver import sweep
from livarot.sweeps.keys import canonical, digest
from livarot.sweeps.store import housekeeping, records
from livarot.sweeps.store.index import GUARD, DriverLock, guarded, lock_is_held
from livarot.sweeps.store.records import Damaged, decode, encode
from livarot.sweeps.worker import notes_of
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


def test_export_names_damaged_runs(store, tmp_path):
    path = next((store.path / "runs").iterdir())
    path.write_bytes(path.read_bytes()[:-100])
    assert housekeeping.export(store, tmp_path / "all.parquet") == (570, [path.stem])
    assert housekeeping.status(store).damaged == 1


def test_other_bytes_than_the_index_knows_are_damage(store):
    """A flip in a place that no reader looks at: the numbers are right, but the file is not what was written."""
    store.sync()
    path = next((store.path / "runs").iterdir())
    whole, accepted = path.read_bytes(), 0
    for place in range(len(whole) - 40, len(whole) - 8):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            decode(path)
        except LivarotError:
            continue
        accepted += 1
        os.utime(path, ns=(0, 0))
        assert store.sync(verify=True).damaged == 1
        assert not path.exists()
        store.sync()
        path.write_bytes(whole)
        assert store.sync(verify=True).added == 1
    assert accepted  # there are such places


def test_a_run_written_again_by_other_code_is_whole(store):
    """The index knows another SHA-256, but the file is as that code writes it."""
    store.sync()
    key = next(iter(store.stored()))
    record = store.read(key)
    other = canonical(record.provenance | {"commit": None, "source": "0" * 16})
    store.run_path(key).write_bytes(encode(record.run, record.columns, record.bits, made_by=other))
    assert store.sync(verify=True).damaged == 0


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("summary", {}),
        ("summary", []),
        ("words", -1),
        ("words", "1"),
        ("content", {}),
        ("provenance", 3),
        ("file", "x"),
    ],
)
def test_forged_heads_are_damage(store, monkeypatch, part, value):
    """The digest is right, the content is not."""
    key = next(iter(store.stored()))
    record = store.read(key)

    def forged(run, columns, summary, words, made_by):
        head = {"columns": columns, "content": run.cell.content(run.seed), "file": 1, "words": words}
        head |= {"provenance": record.provenance, "summary": summary, part: value}
        return canonical(head | {"digest": digest(head)})

    monkeypatch.setattr(records, "_head_text", forged)
    store.run_path(key).write_bytes(encode(record.run, record.columns, record.bits))
    monkeypatch.undo()
    assert store.sync(verify=True).damaged == 1
    assert housekeeping.status(store).done == 19


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


def test_gc_does_not_guess_what_a_damaged_spec_asked_for(store):
    (spec,) = (store.path / "specs").iterdir()
    text = spec.read_text()
    for damage in (text.replace('"seeds":5', '"seeds":1'), text[:-3], "[]"):
        spec.write_text(damage)
        with pytest.raises(LivarotError, match="is damaged: what it asked for is not known"):
            housekeeping.collect(store, unplanned=True)
        housekeeping.collect(store)
        assert len(store.stored()) == 20
    spec.write_text(text)
    assert housekeeping.collect(store, unplanned=True).files == 0


def test_gc_and_sweeps_keep_out_of_each_other_s_way(store):
    with guarded(store.path / GUARD, alone=True), pytest.raises(LivarotError, match="gc is at work"):
        sweep(EXPERIMENT, store.path, backend="sequential")
    with guarded(store.path / GUARD, alone=False):
        with pytest.raises(LivarotError, match="a sweep is running"):
            housekeeping.collect(store)
        assert sweep(EXPERIMENT, store.path, backend="sequential").complete  # sweeps side by side


def test_notes_of_failures_that_are_none_are_left_out(store):
    for name, text in (("0" * 64, "[]"), ("1" * 64, "{}"), ("2" * 64, "{")):
        (store.path / "failed" / f"{name}.json").write_text(text)
    assert store.failures() == {}
    assert housekeeping.status(store).failed == 0


def test_a_lock_has_its_name_only_when_it_is_held(tmp_path, monkeypatch):
    """Nobody may find the lock of a living driver free, not even for a moment."""
    seen = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (seen.append(lock_is_held(a)), replace(a, b)))
    lock = DriverLock(tmp_path)
    assert seen == [True]
    assert lock_is_held(tmp_path / f"{lock.token}.lock")
    lock.release()
    assert list(tmp_path.iterdir()) == []


def test_many_open_a_new_index_at_once(tmp_path):
    code = "import sys; from livarot.sweeps.store.index import Index; Index(sys.argv[1]).close()"
    for trial in range(4):
        command = [sys.executable, "-c", code, str(tmp_path / f"{trial}.sqlite")]
        started = [subprocess.Popen(command) for _ in range(4)]
        assert [one.wait() for one in started] == [0] * 4


def test_notes_of_tasks_whose_driver_leaves_are_none(tmp_path, monkeypatch):
    assert notes_of(tmp_path / "gone") == []
    folder = tmp_path / "driver"
    folder.mkdir()
    (folder / "0.json").write_text('{"episodes": 5, "pid": 1, "seeds": 2}')
    for name, text in (("1.json", "{"), ("2.json", "[]"), ("3.json", "{}"), ("stop", "")):
        (folder / name).write_text(text)
    assert [note["episodes"] for note in notes_of(folder)] == [5]
    read = worker.read_regular
    monkeypatch.setattr(worker, "read_regular", lambda path, limit: (path.unlink(), read(path, limit))[1])
    assert notes_of(folder) == []
