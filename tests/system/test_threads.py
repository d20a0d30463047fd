"""Threads that end when they are asked to."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from livarot.system.threads import Stopped, in_threads


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order_and_no_more_threads_run_than_asked_for(workers):
    lock, running, most = threading.Lock(), 0, 0

    def work(item, look):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02 / (1 + item))
        with lock:
            running -= 1
        return item * item

    assert in_threads(work, range(7), workers) == [i * i for i in range(7)]
    assert most <= workers


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_the_first_error_stops_the_others(error):
    stopped, begun = threading.Event(), []

    def work(item, look):
        begun.append(item)
        if item == 1:
            time.sleep(0.05)
            raise error
        try:
            while True:
                time.sleep(0.001)
                look()
        except Stopped:
            stopped.set()
            raise

    with pytest.raises(error):
        in_threads(work, range(10), 2)
    assert stopped.wait(5)
    assert sorted(begun) == [0, 1]


def test_nobody_waits_long_for_a_thread_that_does_not_look():
    over = threading.Event()

    def work(item, look):
        if item:
            raise ZeroDivisionError
        over.wait(30)

    begin = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        in_threads(work, [0, 1], 2)
    over.set()
    assert time.monotonic() - begin < 2.0


RUN = """
import livarot
mdp = livarot.envs.random_mdp(n_states=40, n_actions=4, horizon=10, seed=0)
agent = livarot.agents.Livarot()
livarot.run(mdp, agent, 2, seed=range(4))
def progress(n):
    if progress.first:
        progress.first = False
        print("playing", flush=True)
progress.first = True
livarot.run(mdp, agent, 10**5, seed=range(4), workers=2, progress=progress)
"""
STUDY = """
from livarot.studies.sepsis import experiment
experiment.RADII = ()
def progress(done, total):
    if done:
        print("playing", flush=True)
experiment.sepsis_study(n_seeds=2, n_patients=20000, workers=2, progress=progress)
"""
SLOW = """
import threading, time
from livarot.system.threads import in_threads
def work(item, look):
    print("playing", flush=True)
    time.sleep(60)
in_threads(work, [1, 2], 2)
"""


def seconds_until_heard(code: str) -> float:
    """Seconds from Ctrl-C in the middle of a program's threads to the KeyboardInterrupt in its main thread."""
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # ignored in the background
    lines = ["import signal, time", heard, "try:", *(f"    {line}" for line in code.splitlines())]
    lines += ["except KeyboardInterrupt:", "    print(time.monotonic(), flush=True)"]  # all processes share this clock
    program = subprocess.Popen([sys.executable, "-c", "\n".join(lines)], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        assert "playing" in program.stdout.readline()
        time.sleep(0.2)
        begin = time.monotonic()
        program.send_signal(signal.SIGINT)
        told = program.communicate(timeout=60)[0].split()  # lines of different threads may be mixed up
        assert program.returncode == 0
        return float(told[-1]) - begin
    finally:
        program.kill()
        program.wait()


@pytest.mark.skipif(not Path("/proc").exists(), reason="signals as on Linux")
@pytest.mark.parametrize("code", [RUN, SLOW], ids=["run", "threads that do not look"])
def test_ctrl_c_is_heard(code):
    assert seconds_until_heard(code) < 2.0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="signals as on Linux")
def test_ctrl_c_is_heard_in_the_hospital():
    assert seconds_until_heard(STUDY) < 2.0
