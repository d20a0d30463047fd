"""A file is complete or absent, whenever its writer dies."""

import errno
import os
import random
import signal
import stat
import subprocess
import sys
import time

import pytest

from livarot import atomic
from livarot.atomic import write_atomic, write_together
from livarot.errors import LivarotError
from livarot.storage import load_tensors


def test_writing_replaces_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "x"
    for data in (b"first", b"", b"second" * 10**5):
        write_atomic(path, data)
        assert path.read_bytes() == data
        assert os.listdir(tmp_path) == ["x"]


def test_the_longest_name_a_folder_takes_is_fine(tmp_path):
    write_atomic(tmp_path / ("n" * 255), b"x")
    assert (tmp_path / ("n" * 255)).read_bytes() == b"x"


def test_the_file_is_synced_before_the_rename_and_the_folder_after(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor):
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def watched_replace(source, target):
        assert os.path.getsize(source) == 5
        calls.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    write_atomic(tmp_path / "x", b"12345")
    assert calls == ["file", "rename", "folder"]


def test_files_written_together(tmp_path, monkeypatch):
    """All are on disk before the first gets its name; each folder is synced once; never more open than allowed."""
    calls, opened = [], []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor):
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        opened.append(len([name for name in os.listdir(tmp_path) if name.endswith(".tmp")]))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", lambda source, target: (calls.append("rename"), replace(source, target)))
    monkeypatch.setattr(atomic, "MAX_TOGETHER", 3)
    contents = {tmp_path / f"{i}": bytes([i]) * i for i in range(5)}
    write_together(contents)
    assert calls == ["file"] * 3 + ["rename"] * 3 + ["folder"] + ["file"] * 2 + ["rename"] * 2 + ["folder"]
    assert max(opened) == 3
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == contents
    write_together({})


def test_a_system_that_takes_a_part_at_a_time_gets_all(tmp_path, monkeypatch):
    write, data = os.write, bytes(range(256))
    monkeypatch.setattr(os, "write", lambda descriptor, rest: write(descriptor, rest[:7]))
    write_together({tmp_path / "x": data, tmp_path / "y": b""})
    assert [(tmp_path / name).read_bytes() for name in "xy"] == [data, b""]


@pytest.mark.parametrize("failing", ["fsync", "open", "posix_fadvise", "close"])
@pytest.mark.parametrize("at", range(4))
def test_one_of_several_fails_before_any_is_renamed(tmp_path, monkeypatch, failing, at):
    old = {tmp_path / f"{i}": b"old" for i in range(4)}
    for path, data in old.items():
        path.write_bytes(data)
    call, count = getattr(os, failing), iter(range(100))

    def fail(*args):
        if next(count) == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return call(*args)

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        with pytest.raises(LivarotError, match=f"cannot write {at} bytes to .*{at}': No space left on device"):
            write_together({path: b"x" * i for i, path in enumerate(old)})
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == old


@pytest.mark.parametrize("failing", ["fsync", "replace", "write", "close"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_keeps_the_old_file_and_removes_the_temporary(tmp_path, monkeypatch, failing, error):
    path = tmp_path / "x"
    path.write_bytes(b"old")

    close, before = os.close, len(os.listdir("/dev/fd"))

    def fail(*args, **kwargs):
        if failing == "close":
            close(args[0])
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        with pytest.raises((LivarotError, KeyboardInterrupt)) as caught:
            write_atomic(path, b"new!")
    assert len(os.listdir("/dev/fd")) == before
    if isinstance(error, OSError):
        assert str(caught.value) == f"path: cannot write 4 bytes to {str(path)!r}: No space left on device"
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_places_that_cannot_be_written_are_named(tmp_path):
    with pytest.raises(LivarotError, match="create its folder first"):
        write_atomic(tmp_path / "no" / "x", b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(LivarotError, match="cannot write"):
        write_atomic(tmp_path / "folder", b"")
    assert os.listdir(tmp_path) == ["folder"]


def test_a_killed_writer_leaves_a_complete_file(tmp_path):
    """Kill a process that rewrites one file without pause: at each moment one complete version is there."""
    path = tmp_path / "x"
    code = (
        "import sys, itertools; import numpy as np; from livarot.storage import save_tensors\n"
        "for i in itertools.count():\n"
        "    save_tensors(sys.argv[1], {'a': np.full(20_000, float(i))}, kind='k', header={'i': i})\n"
    )
    draw = random.Random(23)
    for _ in range(8):
        path.unlink(missing_ok=True)
        writer = subprocess.Popen([sys.executable, "-c", code, str(path)])
        try:
            deadline = time.monotonic() + 60
            while not path.exists() and time.monotonic() < deadline:
                time.sleep(0.002)
            reads = 0
            end = time.monotonic() + draw.uniform(0.0, 0.1)
            while reads == 0 or time.monotonic() < end:
                tensors, header = load_tensors(path, kind="k")  # a reader never sees a part
                assert (tensors["a"] == header["i"]).all()
                reads += 1
        finally:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        tensors, header = load_tensors(path, kind="k")
        assert (tensors["a"] == header["i"]).all()
        others = [name for name in os.listdir(tmp_path) if name != "x"]
        assert all(name.startswith(".livarot-") and name.endswith(".tmp") for name in others)
        assert len(others) <= 1
        for name in others:
            os.unlink(tmp_path / name)
