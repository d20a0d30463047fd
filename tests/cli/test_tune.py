"""The command that tunes an agent."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import livarot
from livarot.cli import tune as cli_tune
from livarot.cli.app import app
from livarot.running import tune as searching

COMMAND = ["tune", "hard-chain-fixed", "livarot", "--set", "horizon=4", "--grid", "reg=1,2,3"]


def test_the_command(capsys):
    options = {"env": "hard-chain-fixed", "agent": "livarot", "n_episodes": 5, "settings": ["horizon=4"]}
    cli_tune.command(grid=["beta_scale=0.01,0.1", "reg=null,3"], as_json=True, **options)
    found = json.loads(capsys.readouterr().out)
    assert found["env"] == "hard-chain-fixed" and not found["interrupted"]
    assert len(found["points"]) == 4 and found["points"][0]["reg"] is None
    cli_tune.command(grid=["reg=1,3"], **options)
    printed = capsys.readouterr().out
    assert "regret of livarot" in printed and "best: Livarot(" in printed
    for grid in (["reg"], ["reg="], ["=1"], ["reg=1", "reg=2"]):
        with pytest.raises(livarot.LivarotError) as error:
            cli_tune.command(grid=grid, **options)
        assert error.value.argument == "grid"


def interrupt_at(monkeypatch, number):
    """Ctrl-C during the run of this number."""
    begun, run = [], searching.run

    def interrupted(*given, **options):
        begun.append(1)
        if len(begun) == number:
            raise KeyboardInterrupt
        return run(*given, **options)

    monkeypatch.setattr(searching, "run", interrupted)


def test_an_interrupted_search_shows_what_was_finished(monkeypatch):
    whole = CliRunner().invoke(app, [*COMMAND, "--episodes", "5"])
    interrupt_at(monkeypatch, 3)
    part = CliRunner().invoke(app, [*COMMAND, "--episodes", "5"])
    assert whole.exit_code == 0 and part.exit_code == 130
    assert part.stderr == "livarot: interrupted after 2 of 3 points; those that were finished are shown\n"
    rows, all_rows = (re.findall(r"^\W*[123]\W.*$", found.stdout, re.MULTILINE) for found in (part, whole))
    assert len(all_rows) == 3 and rows == all_rows[:2] and "best: Livarot(" in part.stdout
    interrupt_at(monkeypatch, 2)
    found = CliRunner().invoke(app, [*COMMAND, "--episodes", "5", "--json"])
    table = json.loads(found.stdout)
    assert found.exit_code == 130 and table["interrupted"] and [point["reg"] for point in table["points"]] == [1]


def test_nothing_is_shown_if_no_point_was_finished(monkeypatch):
    interrupt_at(monkeypatch, 1)
    found = CliRunner().invoke(app, [*COMMAND, "--episodes", "5"])
    assert found.exit_code == 130 and found.stdout == ""
    assert found.stderr == "livarot: interrupted, nothing half-written is left\n"


def test_a_short_search_writes_no_progress_to_a_file():
    found = CliRunner().invoke(app, [*COMMAND, "--episodes", "5"])
    assert found.exit_code == 0 and found.stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_real_interrupt_shows_what_was_finished():
    """The third point is so long that the signal comes while it is played."""
    code = """
import sys
from livarot.cli import main
from livarot.running import tune
short, begun = tune.run, []

def run(mdp, agent, n_episodes, **options):
    begun.append(1)
    if len(begun) == 3:
        print("third", file=sys.stderr, flush=True)
    return short(mdp, agent, n_episodes if len(begun) < 3 else 2_000_000, **options)

tune.run = run
main()
"""
    command = [sys.executable, "-c", code, *COMMAND, "--episodes", "5", "--seeds", "2", "--workers", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while "third" not in (line := process.stderr.readline()):
        assert line, "it ended"
    process.send_signal(signal.SIGINT)
    shown, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted after 2 of 3 points" in said and "Traceback" not in said
    assert "best: Livarot(" in shown
