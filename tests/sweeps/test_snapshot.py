"""A sweep without an observer shows a progress bar in a terminal or notebook."""

from __future__ import annotations

from livarot.sweeps import snapshot
from livarot.sweeps.snapshot import Report, Snapshot, shown


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
