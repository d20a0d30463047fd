"""The index: claims, locks, and what happens without it."""

import os
import random
import sqlite3
import subprocess
import sys

from livarot.sweeps.driver import sweep
from livarot.sweeps.store.index import RUN_COLUMNS, DriverLock, Index, lock_is_held
from tests.support.stores import harm
from tests.sweeps.conftest import EXPERIMENT


def test_claims_end_when_their_runs_are_noted(tmp_path):
    index = Index(tmp_path / "index.sqlite")
    row = ["a", "cell", 0, *[1.0] * (len(RUN_COLUMNS) - 3)]
    for owner, free in (("me", {"a"}), ("you", set()), (None, set())):
        assert index.claim(["a"], "me", lambda _: True) == {"a"}
        index.add([], [row], owner)
        assert index.claim(["a"], "another", lambda _: True) == free
        index.release("another")
    index.close()


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


def test_the_index_can_be_made_again(store):
    before = store.table().drop(columns=["seconds", "finished"])
    store.close()
    for path in store.path.glob("index.sqlite*"):
        path.unlink()
    assert store.sync().added == 20
    assert store.table().drop(columns=["seconds", "finished"]).equals(before)
    assert store.rebuild().added == 20


def test_a_damaged_index_is_made_again(store):
    """Whatever is flipped in it, the table is right."""
    wanted = store.table().drop(columns=["seconds", "finished"])
    store.index._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    path = store.path / "index.sqlite"
    whole = path.read_bytes()
    draw = random.Random(5)
    for trial in range(60):
        for extra in store.path.glob("index.sqlite-*"):
            extra.unlink()
        path.write_bytes(harm(whole, draw, trial % 5))
        found = store.table().drop(columns=["seconds", "finished"])
        assert found.equals(wanted)
        store.close()


def test_without_sqlite_the_files_answer(store, monkeypatch):
    """A folder where the index cannot be written: it is kept in memory."""
    from livarot.sweeps.store import index

    store.close()
    connect = sqlite3.connect

    def refuse(path, **options):
        if str(path) != ":memory:":
            raise sqlite3.OperationalError("unable to open database file")
        return connect(path, **options)

    monkeypatch.setattr(index.sqlite3, "connect", refuse)
    assert len(store.table()) == 20
    assert sweep(EXPERIMENT, store.path, backend="sequential").before == 20


def test_a_row_changed_by_hand_is_noticed(store):
    store.close()
    with sqlite3.connect(store.path / "index.sqlite") as connection:
        connection.execute("UPDATE runs SET regret = 0 WHERE seed = 1")
    connection.close()
    table = store.table()
    assert (table.regret > 0).all()
    assert table.seconds.isna().all()  # rebuilt from the files


def test_a_row_changed_by_hand_is_noticed_whoever_reads_it(store):
    """Also by readers of one cell, which do not look at the files."""
    cell = store.cells()[0]
    store.index._connection.execute("UPDATE runs SET seed = seed + 10 WHERE seed = 1")
    assert store.seeds(cell) == [0, 1, 2, 3, 4]
