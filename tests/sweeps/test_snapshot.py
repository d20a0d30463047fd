"""A sweep without an observer shows a progress bar in a terminal or notebook."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from livarot.sweeps import snapshot
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.snapshot import FinishedRun, News, Report, Snapshot, shown


def test_an_observer_of_one_s_own_comes_first():
    seen = []
    with shown(seen.append) as observer:
        observer(Snapshot(4, 1, 0, 10, 40, 0.5))
    assert seen[0].episodes == 10


def test_nobody_watches_a_test():
    with shown(None) as observer:
        assert observer is None


def test_who_watches_sees_the_episodes(monkeypatch):
    bars = []

    class Bar:
        def __init__(self, total, what):
            self.total, self.at, self.closed = total, [], False
            bars.append(self)

        def reach(self, done):
            self.at.append((done, self.total))

        def close(self):
            self.closed = True

    monkeypatch.setattr(snapshot, "watched", lambda: True)
    monkeypatch.setattr(snapshot, "Bar", Bar)
    with shown(None) as observer:
        observer(Snapshot(4, 1, 0, 10, 40, 0.5))
        assert not bars[0].closed
    assert bars[0].at == [(10, 40)] and bars[0].closed


def test_a_sweep_is_complete_when_all_is_stored():
    assert Report(3, before=1, done=2).complete and not Report(3, done=2).complete


def test_a_finished_run_has_its_settings_and_its_regret_in_units():
    cell = Cell.of("hard-chain", {"horizon": 3, "gap": 0.1}, "livarot", {"reg": 2.0}, 50)
    news = News()
    news.add(
        [(cell.run(seed), SimpleNamespace(summary={"regret": 3.0 + seed, "realised_regret": 1.0})) for seed in (4, 5)]
    )
    first, second = news.take()
    assert (first.environment, first.agent, first.episodes, first.seed) == ("hard-chain", "livarot", 50, 4)
    assert first.settings["reg"] == 2.0 and first.environment_settings["horizon"] == 3
    assert (first.regret, second.regret, first.realised_regret) == (7.0, 8.0, 1.0)
    assert "seed=4" in repr(first) and news.take() == ()


def test_regret_is_in_the_units_of_the_rewards(monkeypatch):
    monkeypatch.setattr(snapshot, "unit_scales", lambda cell, seeds: np.array([10.0]))
    run = Cell.of("hard-chain", {}, "livarot", {}, 50).run(0)
    assert FinishedRun.of(run, {"regret": 3.0}).regret == 30.0


def test_a_number_that_a_run_does_not_have_is_no_zero():
    run = FinishedRun.of(Cell.of("hard-chain", {}, "livarot", {}, 50).run(1), {"regret": 0.0, "realised_regret": None})
    assert run.regret == 0.0 and run.realised_regret is None
