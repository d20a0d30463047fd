"""Progress on a terminal and in lines."""

import io

from rich.console import Console

from livarot.cli import progress
from livarot.cli.progress import progress_shown
from livarot.sweeps.driver import Snapshot


def test_a_bar_on_a_terminal():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with progress_shown(console, "reproduce") as show:
        show(0, 10)
        show(5, 10)
    assert "running" in console.file.getvalue() and "50 %" in console.file.getvalue()


def test_progress_in_lines():
    said = []
    show = progress.progress_lines(said.append)
    for second in range(25):
        show(Snapshot(100, 4 * second, 0, 40 * second, 1000, float(second)))
    show(Snapshot(100, 99, 1, 1000, 1000, 25.0))
    assert said[0] == "0 of 100 runs"
    assert said[1] == "40 of 100 runs, 40 episodes/s, 0:00:15 left"
    show(Snapshot(100, 99, 1, 1000, 1000, 25.1))  # a sweep reports its end more than once
    assert said[-1] == "99 of 100 runs, 1 failed, 40 episodes/s"
    assert len(said) == 4


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
