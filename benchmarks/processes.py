"""Measurements that need a process of their own; each prints one JSON object.

``python -m benchmarks.processes memory``      peak memory of one planning pass of C
``python -m benchmarks.processes first A|B``   seconds of the first ``livarot.run`` of a process
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def ask(*arguments: str) -> dict[str, float]:
    """Run this module in a fresh process of the same interpreter."""
    command = [sys.executable, "-m", "benchmarks.processes", *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent.parent)
    if found.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{found.stderr}")
    answer: dict[str, float] = json.loads(found.stdout)
    return answer


def resident(key: str) -> float:
    """VmRSS (now) or VmHWM (the peak) in bytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(key):
            return 1024.0 * float(line.split()[1])
    raise OSError(f"no {key} in {STATUS}")


def settle() -> float:
    """Give freed memory back, start a new peak, return what is held."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    RESET.write_text("5")
    return resident("VmRSS")


def memory() -> dict[str, float]:
    """Kernels are loaded on a small instance before anything is counted."""
    import numpy as np

    from benchmarks import workloads
    from benchmarks.sides import make_problem
    from livarot.estimation.omd import whitened
    from livarot.planning.optimistic import optimistic_plan

    def plan(problem: Any, case: workloads.PlanningPass) -> None:
        optimistic_plan(problem, whitened(problem, case.theta[None], case.gram[None]), case.radius)

    small = workloads.dense_large(n_states=50, horizon=2)
    plan(make_problem(small.workload.problem), small)
    case = workloads.dense_large()
    object.__setattr__(case.workload, "flat", None)  # the yardstick's copy of the features
    arrays = settle()
    problem = make_problem(case.workload.problem)
    build_peak = resident("VmHWM") - arrays
    shared = np.shares_memory(problem.rows.feat, case.workload.problem.phi)
    held = settle()
    plan(problem, case)
    peak = resident("VmHWM")
    size = float(case.workload.problem.phi.nbytes)
    return {
        "feature_bytes": size,
        "held_bytes": held,
        "plan": (peak - held) / size,
        "build": build_peak / size,
        "all": max(build_peak, peak - arrays) / size,
        "features_shared": float(shared),
    }


def first(which: str) -> dict[str, float]:
    """The model is built and the library imported before; the second call shows what the work itself costs."""
    from benchmarks import workloads
    from benchmarks.sides import Library

    case = workloads.hard_chain(10, n_seeds=4) if which == "A" else workloads.small_dense(n_seeds=4)
    library = Library.of(case.short(n_episodes=5))
    found = {}
    for call in ("first", "second"):
        began, cpu = time.perf_counter(), time.process_time()
        library.run()
        found[f"{call}_wall"], found[f"{call}_cpu"] = time.perf_counter() - began, time.process_time() - cpu
    return found


if __name__ == "__main__":
    answer = memory() if sys.argv[1] == "memory" else first(sys.argv[2])
    sys.stdout.write(json.dumps(answer) + "\n")
