"""Progress on a terminal and in lines."""

import io

import pytest
from rich.console import Console

from livarot.cli import progress
from livarot.cli.progress import progress_shown
from livarot.sweeps.driver import Snapshot

END = "tune: 100 % of 100 episodes"


def test_a_bar_on_a_terminal():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with progress_shown(console, "reproduce") as show:
        show(0, 10)
        show(5, 10)
    assert "running" in console.file.getvalue() and "50 %" in console.file.getvalue()


def test_progress_in_lines():
    said = []
    show = progress.progress_lines(said.append)
    for second in range(75):
        show(Snapshot(100, second, 0, 40 * second, 3000, float(second)))
    show(Snapshot(100, 99, 1, 3000, 3000, 75.0))
    assert said[0] == "0 of 100 runs"
    assert said[1] == "30 of 100 runs, 40 episodes/s, 0:00:45 left"
    show(Snapshot(100, 99, 1, 3000, 3000, 75.1))  # a sweep reports its end more than once
    assert said[-1] == "99 of 100 runs, 1 failed, 40 episodes/s"
    assert len(said) == 4


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (3, []),
        (29, []),
        (100, ["tune: 30 % of 100 episodes", "tune: 60 % of 100 episodes", "tune: 90 % of 100 episodes", END]),
        (60, ["tune: 50 % of 60 episodes", "tune: 100 % of 60 episodes"]),
    ],
)
def test_a_file_gets_a_line_every_half_minute(seconds, expected, monkeypatch):
    """A short job writes none; the end is told once, and only if something was told before."""
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    console = Console(file=io.StringIO(), width=80)
    with progress_shown(console, "tune") as show:
        for clock[0] in map(float, range(seconds + 1)):
            show(int(clock[0]), seconds)
        show(seconds, seconds)
    assert console.file.getvalue().splitlines() == expected


def test_compiling_for_long_is_told(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    console = Console(file=io.StringIO(), width=80)
    with progress_shown(console, "tune") as show:
        show(0, 10)
        clock[0] = 31.0
        show(0, 10)
    assert console.file.getvalue() == "tune: compiling what is not compiled yet\n"


def test_restored_episodes_do_not_count_for_the_pace():
    """Two workers of three begin where a checkpoint was; then 100 episodes a second."""
    pace, episodes = progress.Pace(), 0
    for second in range(12):
        episodes += 100 + {1: 500_000, 2: 400_000}.get(second, 0)
        found = pace.of(Snapshot(3, 0, 0, episodes, 2_000_000, float(second)))
    assert found == 100.0
    assert (
        progress.progress_text(Snapshot(3, 0, 0, 1000, 2000, 12.0), found)
        == "0 of 3 runs, 100 episodes/s, 0:00:10 left"
    )
    assert progress.progress_text(Snapshot(1, 1, 0, 2000, 2000, 12.0), found) == "1 of 1 run, 100 episodes/s"


def test_the_pace_of_rare_episodes():
    pace = progress.Pace()
    for second in range(31):
        found = pace.of(Snapshot(3, 0, 0, 60 * (second // 3), 2000, float(second)))
    assert found == 20.0
