"""What differs on Windows, with stand-ins for it: no SIGKILL or SIGHUP, parents that stay, no locks, no synced folders.

Nobody has run livarot there; these tests say that the places that are known to differ are guarded.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
from types import SimpleNamespace

import pytest

import livarot.atomic
from livarot.sweeps import stopping
from livarot.sweeps.store import index


@pytest.fixture
def windows(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "fcntl", None)  # importing it fails


def test_processes_are_ended_without_sigkill(monkeypatch):
    monkeypatch.delattr(signal, "SIGKILL")
    monkeypatch.delattr(signal, "SIGHUP")
    try:
        again = importlib.reload(stopping)
        assert again.KILL == signal.SIGTERM
        before = signal.getsignal(signal.SIGTERM)
        with again.handling(signal.SIG_IGN):  # the signals that there are
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) == before
    finally:
        monkeypatch.undo()
        importlib.reload(stopping)
    assert stopping.KILL == signal.SIGKILL


def test_a_parent_that_has_ended_is_noticed(windows, monkeypatch):
    """A number alone would not tell: there a process keeps that of its parent for ever."""
    answers = [stopping.STILL_RUNNING, stopping.STILL_RUNNING, 0]
    opened = []

    def open_process(right, inherited, number):
        opened.append((right, number))
        return 77

    kernel = SimpleNamespace(OpenProcess=open_process, WaitForSingleObject=lambda held, wait: answers.pop(0))
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    lives = stopping.watch(os.getppid())
    assert [lives(), lives(), lives()] == [True, True, False]
    assert opened == [(stopping.SYNCHRONIZE, os.getppid())]


def test_a_parent_that_cannot_be_opened_is_gone(windows, monkeypatch):
    kernel = SimpleNamespace(OpenProcess=lambda *_: 0, WaitForSingleObject=lambda *_: stopping.STILL_RUNNING)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    assert not stopping.watch(os.getppid())()


def test_elsewhere_the_parent_s_number_tells(monkeypatch):
    lives = stopping.watch(os.getppid())
    assert lives()
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert not lives()


def test_there_are_no_locks(windows, tmp_path):
    path = tmp_path / "lock"
    with index.guarded(path, alone=True), index.guarded(path, alone=False):
        pass  # nobody is refused
    assert not index.lock_is_held(path)


def test_folders_are_not_synced(windows, tmp_path, monkeypatch):
    def refused(path, *_):
        raise PermissionError(path)

    livarot.atomic.write_atomic(tmp_path / "file", b"content")
    monkeypatch.setattr(os, "open", refused)  # a folder cannot be opened there
    livarot.atomic._sync_folder(str(tmp_path))
    assert (tmp_path / "file").read_bytes() == b"content"
