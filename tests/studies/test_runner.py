"""How studies run: order, counts, one way to stop."""

import threading
import time

import pytest

import livarot
from livarot.agents import Livarot, Uniform
from livarot.studies.runner import REPORTS, Runner
from livarot.system.threads import Stopped


@pytest.mark.parametrize("workers", [1, 3])
def test_cells_come_in_order_and_everything_is_counted(workers):
    seen = []
    runner = Runner(5 * 70, workers, lambda done, total: seen.append((done, total)))

    def work(cell, count):
        for _ in range(10):
            count(7)
            time.sleep(0.0005)
        return cell * cell

    assert runner.all(work, range(5)) == [0, 1, 4, 9, 16]
    done = [now for now, _ in seen]
    assert done[0] == 0 and done[-1] == 350 and done == sorted(done) and {total for _, total in seen} == {350}


def test_a_long_study_reports_about_a_thousand_times():
    seen = []
    runner = Runner(4 * 50_000, 2, lambda done, total: seen.append(done))
    runner.all(lambda cell, count: [count(1) for _ in range(50_000)], range(4))
    assert seen[-1] == 200_000 and REPORTS / 2 < len(seen) < 2 * REPORTS


def test_several_rounds_share_one_count():
    seen = []
    runner = Runner(4, 1, lambda done, total: seen.append(done))
    for _ in range(2):
        runner.all(lambda cell, count: count(1), range(2))
    assert seen == [0, 1, 2, 3, 4]


def test_what_progress_raises_ends_the_other_cells_at_their_next_count():
    stopped = threading.Event()

    def progress(done, total):
        if done:
            raise KeyboardInterrupt

    def work(cell, count):
        if cell == 0:
            time.sleep(0.05)
            count(1)
        try:
            while True:
                time.sleep(0.001)
                count(0)  # no unit is done, but the study may have to end here
        except Stopped:
            stopped.set()
            raise

    with pytest.raises(KeyboardInterrupt):
        Runner(2, 2, progress).all(work, range(2))
    assert stopped.wait(5)


def test_kernels_are_compiled_by_runs_that_reach_past_the_burn_in(monkeypatch):
    played = []
    monkeypatch.setattr("livarot.studies.runner.run", lambda model, agent, n: played.append((agent.name, n)))
    runner = Runner(1, 1, None)
    runner.compile(livarot.envs.hard_chain(3, gap=0.1), (Livarot.paper(), Uniform()))
    assert played == [("livarot", 81), ("uniform", 1)]


def test_workers_are_checked_before_anything_is_reported():
    seen = []
    with pytest.raises(livarot.LivarotError, match="workers"):
        Runner(1, 0, lambda *now: seen.append(now))
    assert seen == []
