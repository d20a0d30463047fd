"""CPU seconds of the two yardsticks on workloads A to D: ``python -m benchmarks.time_yardsticks [A B C D]``.

C++: best of ``REPEATS`` full runs, one thread, without and with the judge and the certificate, and with
Frank-Wolfe (30 iterations). NumPy: extrapolated, never run in full. A: one episode per horizon, times T and
the seeds. B, C, D: the mean of a sample of inner problems (uniform over stages, states and actions, the
values, centres and Gram matrices being those of a run), times H S A T and the seeds; everything but planning
is left out, which favours NumPy.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import workloads
from benchmarks.naive import naive_inner, run_naive
from benchmarks.workloads import Workload, dense_gram, flatten
from benchmarks.yardstick import CppRun, Stats, library, plan_once, run_cpp

REPEATS = 3
FULL: dict[str, Any] = {"judge": True, "certificate": True}


def best_time(call: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    best, result = np.inf, None
    for _ in range(repeats):
        began = time.process_time()
        result = call()
        best = min(best, time.process_time() - began)
    return float(best), result


def report(name: str, what: str, seconds: float, stats: Stats | None = None) -> None:
    extra = ""
    if stats is not None and stats.solves:
        extra += f"  {stats.evaluations / stats.solves:5.2f} evaluations / problem"
        extra += f", {stats.wide / stats.solves:4.0%} wide"
    if stats is not None and stats.updates:
        extra += f", {stats.projections / stats.updates:4.0%} of steps cut"
    print(f"{name:<10} {what:<28} {seconds:12.4f} s{extra}", flush=True)


def naive_episode(workload: Workload) -> float:
    """Seconds of the first episode of the first seed."""
    uniforms = workload.uniforms()[0]
    began = time.process_time()
    run_naive(
        workload.problem,
        workload.theta_star[0],
        uniforms,
        step_size=workload.step_size,
        reg=workload.reg,
        radius_fn=workload.radius,
        param_bound=workload.problem.param_bound,
        n_episodes=1,
    )
    return time.process_time() - began


def naive_problem(
    workload: Workload, theta: NDArray[np.float64], gram: NDArray[np.float64], radius: float, sample: int
) -> float:
    """Mean seconds of an inner problem drawn uniformly; theta (K, d), gram (K, G)."""
    problem = workload.problem
    everywhere = replace(problem, start=np.full(problem.n_states, 1.0 / problem.n_states))
    value = plan_once(flatten(everywhere), theta, gram, radius).value
    rng = np.random.default_rng(9)
    total = 0.0
    stages = rng.integers(0, problem.horizon, 10)
    for h in stages:
        dense = dense_gram(workload.flat, gram[h])
        inverse = np.asarray(np.linalg.inv(dense), np.float64)
        for _ in range(sample // len(stages)):
            s, a = int(rng.integers(problem.n_states)), int(rng.integers(problem.n_actions))
            following, offset, phi = problem.pair(int(h), s, a)
            values = value[h + 1, following]
            began = time.process_time()
            naive_inner(phi, values, theta[h], dense, radius, offset=offset, gram_inverse=inverse)
            total += time.process_time() - began
    return total / (sample // len(stages) * len(stages))


def bind(workload: Workload) -> Callable[..., CppRun]:
    """The workload's C++ run, its uniforms and radii drawn beforehand."""
    return partial(
        run_cpp,
        workload.flat,
        workload.theta_star,
        workload.uniforms(),
        workload.radii(),
        step_size=workload.step_size,
        reg=workload.reg,
    )


def time_runs(workload: Workload, sample: int, frank_wolfe: bool) -> None:
    run = bind(workload)
    seconds, plain = best_time(run)
    report(workload.name, "C++", seconds, plain.stats)
    seconds, result = best_time(partial(run, **FULL))
    report(workload.name, "C++ judge, certificate", seconds, result.stats)
    if frank_wolfe:
        seconds, result = best_time(partial(run, frank_wolfe=30))
        report(workload.name, "C++ Frank-Wolfe 30", seconds, result.stats)
    problem = workload.problem
    each = naive_problem(workload, plain.theta[0], plain.gram[0], workload.radius(workload.n_episodes), sample)
    count = problem.horizon * problem.n_states * problem.n_actions * workload.n_episodes * workload.n_seeds
    report(workload.name, f"NumPy ({each * 1e6:.0f} us / problem)", each * count)


def time_a() -> None:
    names = ("C++", "C++ judge, certificate", "NumPy")
    totals = np.zeros(3)
    for horizon in workloads.A_HORIZONS:
        workload = workloads.hard_chain(horizon)
        run = bind(workload)
        seconds = (
            best_time(run)[0],
            best_time(partial(run, **FULL))[0],
            naive_episode(workload) * workload.n_episodes * workload.n_seeds,
        )
        totals += seconds
        for what, value in zip(names, seconds, strict=True):
            report(workload.name, what, value)
    for what, value in zip(names, totals, strict=True):
        report("A", what, float(value))


def time_c() -> None:
    case = workloads.dense_large()
    flat = case.workload.flat
    plan = partial(plan_once, flat, case.theta, case.gram, case.radius)
    for what, call in (
        ("C++", plan),
        ("C++ certificate", partial(plan, certificate=True)),
        ("C++ Frank-Wolfe 30", partial(plan, frank_wolfe=30)),
    ):
        seconds, result = best_time(call)
        report("C", what, seconds, result.stats)
    each = naive_problem(case.workload, case.theta, case.gram, case.radius, 200)
    count = flat.horizon * flat.n_states * flat.n_actions
    report("C", f"NumPy ({each * 1e6:.0f} us / problem)", each * count)


def main(which: list[str]) -> None:
    library()
    chosen = which or ["A", "B", "C", "D"]
    if "A" in chosen:
        time_a()
    if "B" in chosen:
        time_runs(workloads.dense_medium(), 400, frank_wolfe=True)
    if "C" in chosen:
        time_c()
    if "D" in chosen:
        for n_states, n_episodes in workloads.D_SIZES:
            time_runs(workloads.river_swim(n_states, n_episodes), 100, frank_wolfe=False)


if __name__ == "__main__":
    main(sys.argv[1:])
