"""The commands ``report`` and ``board``."""

import importlib.util
import os
import signal
import subprocess

import pytest
import typer
from typer.testing import CliRunner

from livarot.cli import report as commands
from livarot.errors import LivarotError
from tests.support.stores import filled_store


@pytest.fixture
def app():
    found = typer.Typer()
    commands.register(found)
    return found


def test_a_report_goes_into_the_store_unless_told_otherwise(app, tmp_path):
    store = filled_store(tmp_path / "store", n_seeds=1)
    done = CliRunner().invoke(app, ["report", str(store)])
    assert done.exit_code == 0 and (store / "report" / "report.html").is_file()
    assert str(store / "report" / "report.html") in done.output.replace("\n", "")


def test_a_damaged_run_is_named(app, tmp_path):
    store = filled_store(tmp_path / "store", n_seeds=2)
    path = min((store / "runs").iterdir())
    path.write_bytes(path.read_bytes()[:-100])
    done = CliRunner().invoke(app, ["report", str(store)])
    assert done.exit_code == 0
    assert f"{path.name}' is damaged" in done.output


def test_what_is_not_a_store_is_refused_in_one_line(app, tmp_path):
    for line in (["report", str(tmp_path)], ["board", str(tmp_path)]):
        done = CliRunner().invoke(app, line)
        assert done.exit_code == 2 and "is not a store" in done.output


def test_the_board_is_started_as_a_process_of_its_own(monkeypatch, tmp_path):
    store, seen = filled_store(tmp_path / "store", n_seeds=1), []
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    class Started:
        def __init__(self, line):
            seen.append(line)
            self.code = len(seen) - 1

        def wait(self):
            return self.code

        poll = wait

    monkeypatch.setattr(subprocess, "Popen", Started)
    commands.board_command(store, 8600)
    assert seen[0][1:4] == ["-P", "-m", "livarot.board"] and seen[0][-2:] == ["8600", str(os.getpid())]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    with pytest.raises(LivarotError, match="port 8600 in use"):
        commands.board_command(store, 8600)
    with pytest.raises(LivarotError, match="port"):
        commands.board_command(store, 80)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LivarotError, match=r"livarot\[board\]"):
        commands.board_command(store, 8600)
