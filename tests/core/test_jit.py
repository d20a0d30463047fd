"""A damaged file in numba's cache costs a compilation, not the run."""

import os
import subprocess
import sys

import pytest

CODE = """
import logging, sys
logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(message)s")
import livarot
print("reachable", livarot.envs.hard_chain(3).problem.reachable.sum())
"""


def run(folder):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "reachable 7"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("cache")
    assert "cannot be read" not in run(made)
    return made


DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "noise": lambda data: b"\x80\x04garbage" + data[9:],
    "text": lambda data: b"not a pickle",
    "one bit": lambda data: data[:-999] + bytes([data[-999] ^ 16]) + data[-998:],  # in machine code
}


@pytest.mark.parametrize(
    ("kind", "how"),
    [("nbi", "cut"), ("nbi", "empty"), ("nbi", "text"), ("nbc", "cut"), ("nbc", "noise"), ("nbc", "one bit")],
)
def test_damage_is_mended_and_told(folder, how, kind):
    files = list(folder.rglob(f"*.{kind}"))
    assert files
    for path in files:
        path.write_bytes(DAMAGE[how](path.read_bytes()))
    told = run(folder)
    assert "compiling again" in told and str(folder) in told
    assert "cannot be read" not in run(folder)  # mended


def test_a_folder_that_cannot_be_written_is_no_obstacle(folder):
    for path in folder.rglob("*.nbi"):
        path.unlink()
        path.mkdir()  # also for root, who may write anywhere
    told = run(folder)
    assert "cannot be read" in told and "cannot be written" in told
