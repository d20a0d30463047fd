"""A signal asks the workers to stop, a second one or a while ends them, and a longer while ends the process."""

import os
import signal
import threading
import time

import pytest

from livarot.sweeps import stopping
from livarot.sweeps.stopping import Stopper


def waited_for(done):
    end = time.monotonic() + 10.0
    while not done() and time.monotonic() < end:
        time.sleep(0.005)
    assert done()


class Calls(list):
    def stopper(self):
        return Stopper(self.append, lambda: self.append("end workers"), lambda: self.append("give up"))


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_first_signal_asks_and_handlers_come_back(name):
    calls, number = Calls(), getattr(signal, name)
    stopper, before = calls.stopper(), signal.getsignal(number)
    with stopper.listening():
        os.kill(os.getpid(), number)
        waited_for(stopper.asked.is_set)
        stopper.ended.set()
    assert calls == [number] and signal.getsignal(number) is before


def test_a_second_signal_ends_the_workers():
    calls = Calls()
    stopper = calls.stopper()
    with stopper.listening():
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)
        waited_for(lambda: len(calls) == 3)
        stopper.ended.set()
    assert calls == [signal.SIGTERM, signal.SIGTERM, "end workers"]


def test_patience_ends(monkeypatch):
    monkeypatch.setattr(stopping, "PATIENCE", 0.02)
    monkeypatch.setattr(stopping, "LIMIT", 0.04)
    calls = Calls()
    with calls.stopper().listening():
        os.kill(os.getpid(), signal.SIGTERM)
        waited_for(lambda: len(calls) == 3)
    assert calls == [signal.SIGTERM, "end workers", "give up"]


def test_a_sweep_that_stops_in_time_is_left_alone(monkeypatch):
    monkeypatch.setattr(stopping, "PATIENCE", 0.05)
    monkeypatch.setattr(stopping, "LIMIT", 0.1)
    calls = Calls()
    stopper = calls.stopper()
    stopper.ended.set()
    with stopper.listening():
        os.kill(os.getpid(), signal.SIGTERM)
        waited_for(stopper.asked.is_set)
    time.sleep(0.2)
    assert calls == [signal.SIGTERM]


def test_other_threads_listen_to_nothing():
    before, seen = signal.getsignal(signal.SIGTERM), []

    def work():
        with Calls().stopper().listening():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
