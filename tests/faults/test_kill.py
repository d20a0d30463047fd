"""SIGKILL at any moment: the files are those of an undisturbed sweep, nothing finished is lost, little is repeated."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.faults.tools import LEARNING, SLOW, alive, children, finish, hashes, kill_group, poison, start, wait_for


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(SLOW)
    return path


def begun_and_unfinished(store):
    """Tasks that had begun when their driver was killed; with one seed each they are runs."""
    return len(list((store / "running").glob("*/[0-9]*.json")))


def marks(store):
    """The notes of the tasks under way."""
    for path in (store / "running").glob("*/[0-9]*.json"):
        with contextlib.suppress(OSError):
            yield path.read_text()


def wait_until(process, store, pattern):
    """Wait until there is such a file, or the sweep has ended."""
    assert wait_for(lambda: any(store.glob(pattern)) or process.poll() is not None)


def begun(process, store, older):
    """Wait until this sweep, and not an older one, has begun a task, or has ended."""

    def working():
        with contextlib.suppress(FileNotFoundError):  # folders of older ones are being removed
            return any(p.parent.name not in older for p in (store / "running").glob("*/[0-9]*.json"))

    assert wait_for(lambda: working() or process.poll() is not None, step=0.005)


def survive(spec, tmp_path, kills, options, seed, workers):
    """Kill a sweep again and again; compare with an undisturbed one."""
    draw = random.Random(seed)
    code, out = finish(start(spec, tmp_path / "calm", "--backend", "sequential"))
    assert code == 0, out
    calm = hashes(tmp_path / "calm")
    assert len(calm) == 32
    done, store, rest = 0, tmp_path / "store0", 0
    while done < kills:
        before = hashes(store) if store.exists() else {}
        inodes = {p.name: p.stat().st_ino for p in (store / "runs").glob("*.parquet")}
        older = {p.name for p in (store / "running").glob("*")}
        process = start(spec, store, *options)
        if draw.random() < 0.8:  # most kills come while it computes, some while it starts
            begun(process, store, older)
        time.sleep(draw.expovariate(1 / 0.3))
        if process.poll() is not None:  # finished before it was killed: the next sweep begins from scratch
            assert finish(process)[0] == 0
            assert hashes(store) == calm
            rest += 1
            store = tmp_path / f"store{rest}"
            continue
        kill_group(process)
        done += 1
        after = hashes(store)
        assert before.items() <= after.items()  # nothing that was finished is lost or changed
        assert after.items() <= calm.items()
        same = {p.name: p.stat().st_ino for p in (store / "runs").glob("*.parquet") if p.name in inodes}
        assert same == inodes  # nor written again
        assert begun_and_unfinished(store) <= workers
    code, out = finish(start(spec, store, *options))
    assert code == 0, out
    assert hashes(store) == calm
    assert not list(store.rglob("*.tmp"))
    assert not list((store / "running").iterdir())


def test_a_sweep_killed_again_and_again(spec, tmp_path):
    survive(spec, tmp_path, 5, ["--backend", "sequential", "--group", "2", "--checkpoint", "0.05"], 1, 1)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", ["1", "2", "128"])  # 128: tasks of several cells
def test_twenty_kills_with_workers(spec, tmp_path, group):
    survive(spec, tmp_path, 20, ["--workers", "2", "--group", group, "--checkpoint", "0.05"], 2, 2)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_two_hundred_kills_with_workers(spec, tmp_path):
    survive(spec, tmp_path, 200, ["--workers", "2", "--group", "2", "--checkpoint", "0.05"], 3, 2)


def test_workers_end_with_their_driver(spec, tmp_path):
    """Only the driver is killed: within five seconds no worker is left, and the next sweep is complete."""
    store = tmp_path / "store"
    process = start(spec, store, "--workers", "2", "--group", "1")
    assert wait_for(lambda: any((store / "running").glob("*/[0-9]*.json")))
    below = children(process.pid)
    assert len(below) >= 2
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert wait_for(lambda: not any(map(alive, below)), 5.0)


@pytest.mark.parametrize("how", [pytest.param("kill", marks=pytest.mark.slow), "segfault"])
def test_a_poison_run_is_failed_after_three_attempts(tmp_path, how):
    """All other runs are stored; the failure is noted, with what the worker could still write."""
    spec, store = tmp_path / "poison.toml", tmp_path / "store"
    spec.write_text(poison(how))
    code, out = finish(start(spec, store, "--workers", "2"))
    assert code == 1, out
    assert "11 of 12 runs" in out
    assert len(hashes(store)) == 11
    (note,) = (store / "failed").glob("*.json")
    failure = json.loads(note.read_text())
    assert failure["attempts"] == 3
    assert failure["content"]["seed"] == 3
    assert failure["content"]["agent"]["name"] == "test-poison"
    assert "died 3 times" in failure["traceback"]
    if how == "segfault":
        assert "plugin.py" in failure["traceback"]  # where it was
    assert note.stem + ".parquet" not in hashes(store)


def test_an_exception_is_noted_with_its_traceback(tmp_path):
    spec, store = tmp_path / "poison.toml", tmp_path / "store"
    spec.write_text(poison("raise"))
    code, out = finish(start(spec, store, "--backend", "sequential"))
    assert code == 1, out
    assert len(hashes(store)) == 11
    (note,) = (store / "failed").glob("*.json")
    failure = json.loads(note.read_text())
    assert "RuntimeError: this seed is poisoned" in failure["traceback"]
    assert str(tmp_path.anchor) + "root" not in failure["traceback"]
    assert failure["attempts"] == 1


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_ends_a_sweep_within_five_seconds(spec, tmp_path, number):
    store = tmp_path / "store"
    spec.write_text(SLOW.replace("episodes = 40", "episodes = 100000"))
    process = start(spec, store, "--workers", "2", "--group", "4")
    assert wait_for(lambda: any('"episodes": 0,' not in text for text in marks(store)))  # some work is done
    begin = time.monotonic()
    os.killpg(process.pid, number)  # as a terminal does: to everyone
    code, out = finish(process, 10)
    assert time.monotonic() - begin < 5.0
    assert code == 128 + number, out
    assert "resume with the same command: livarot run" in out
    assert "Traceback" not in out
    if number == signal.SIGINT:  # SIGTERM to the group ends the workers at once
        assert list((store / "checkpoints").glob("*.safetensors"))  # the work so far is kept


@pytest.mark.parametrize("signals", [1, 2])
def test_a_forced_stop_ends_its_own_workers_and_nobody_else(spec, tmp_path, signals):
    """Workers that do not react are ended, even if no file names them; other processes that a file names are not."""
    store = tmp_path / "store"
    spec.write_text(SLOW.replace("delay = 0.003", "delay = 60.0"))
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    process = start(spec, store, "--workers", "2", "--group", "4")
    try:
        assert wait_for(lambda: len(list((store / "running").glob("*/[0-9]*.json"))) >= 2)
        workers = children(process.pid)
        (place,) = (store / "running").iterdir()
        for note in place.glob("[0-9]*.json"):
            note.unlink()
        (place / "999.json").write_text(json.dumps({"episodes": 0, "pid": bystander.pid, "runs": 1}))
        begin = time.monotonic()
        for _ in range(signals):
            os.kill(process.pid, signal.SIGINT)
            time.sleep(0.2)
        code, out = finish(process, 20)
        assert time.monotonic() - begin < 5.0
        assert code == 128 + signal.SIGINT, out
        assert wait_for(lambda: not any(map(alive, workers)), 5.0)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
        kill_group(process)


@pytest.mark.slow
def test_ctrl_c_with_dask_is_quiet(spec, tmp_path):
    """The local workers of Dask are in the process group too, and ignore the signal."""
    pytest.importorskip("distributed")
    store = tmp_path / "store"
    spec.write_text(SLOW.replace("episodes = 40", "episodes = 100000"))
    process = start(spec, store, "--backend", "dask", "--workers", "2", "--group", "4")
    assert wait_for(lambda: any('"episodes": 0,' not in text for text in marks(store)))
    os.killpg(process.pid, signal.SIGINT)
    code, out = finish(process, 20)
    assert code == 128 + signal.SIGINT, out
    assert "Traceback" not in out
    assert "resume with the same command" in out
    assert list((store / "checkpoints").glob("*.safetensors"))


def test_learning_agents_survive_too(tmp_path):
    """Real agents, real checkpoints: a sweep that is killed between checkpoints equals an undisturbed one."""
    spec = tmp_path / "experiment.toml"
    spec.write_text(LEARNING.replace("episodes = 60", "episodes = 3000"))
    code, out = finish(start(spec, tmp_path / "calm", "--backend", "sequential"))
    assert code == 0, out
    store, kills = tmp_path / "store", 0
    for _ in range(3):
        process = start(spec, store, "--backend", "sequential", "--checkpoint", "0.02")
        wait_until(process, store, "checkpoints/*.safetensors")
        if process.poll() is None:
            kill_group(process)
            kills += any(store.glob("checkpoints/*.safetensors"))
        else:
            finish(process)
    assert kills  # at least once there was an unfinished run to go on with
    code, out = finish(start(spec, store, "--backend", "sequential", "--group", "3"))
    assert code == 0, out
    assert hashes(store) == hashes(tmp_path / "calm")
