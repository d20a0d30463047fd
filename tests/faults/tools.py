"""Starting, killing and comparing sweeps."""

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
DRIVER = [sys.executable, "-m", "tests.faults.driver"]

LEARNING = """
name = "short"
episodes = 60
seeds = 6

[[environments]]
name = "hard-chain"
settings = { horizon = [3, 4], gap = 0.1 }

[[agents]]
name = "livarot"
settings = { beta_scale = [0.02, 0.05] }

[[agents]]
name = "uniform"
"""

SLOW = """
episodes = 40
seeds = 4

[[environments]]
name = "hard-chain"
settings = { horizon = 3, gap = 0.1 }

[[agents]]
name = "test-slow"
settings = { flavour = [0, 1, 2, 3, 4, 5, 6, 7], delay = 0.003 }
"""


def poison(how: str, seeds: int = 6) -> str:
    return f"""
episodes = 5
seeds = {seeds}

[[environments]]
name = "hard-chain"
settings = {{ horizon = 3, gap = 0.1 }}

[[agents]]
name = "test-poison"
settings = {{ victim = 3, how = "{how}" }}

[[agents]]
name = "uniform"
"""


def start(spec: Path, store: Path, *options: str) -> subprocess.Popen:
    """A sweep in a process group of its own."""
    command = [*DRIVER, "run", str(spec), "--store", str(store), "--import", "tests.faults.plugin", *options]
    return subprocess.Popen(
        command, cwd=ROOT, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(process: subprocess.Popen, timeout: float = 120) -> tuple[int, str]:
    out, _ = process.communicate(timeout=timeout)
    return process.returncode, out


def kill_group(process: subprocess.Popen, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended by itself just now
        os.killpg(process.pid, number)
    process.communicate()


def hashes(store: Path) -> dict[str, str]:
    """SHA-256 of every finished run."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted((store / "runs").glob("*.parquet"))}


def wait_for(condition, seconds: float = 60.0, step: float = 0.02) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(step)
    return False


def children(pid: int) -> list[int]:
    """All descendants of a process."""
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def alive(pid: int) -> bool:
    import psutil

    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
