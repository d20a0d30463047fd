"""How fast the library is: ``python -m benchmarks.core [--json] [--only A,B] [--quick]``.

Rows A, B, C, D compare three sides on one workload (workloads.py), backward compares with quantecon; growth,
cores and first do not need another side. README.md says what each side includes. Seconds are CPU seconds of one thread
unless called wall, best of REPEATS rounds, all sides in turn in one process. A target that is missed is printed as
UNMET and changes nothing else; results that disagree make the exit status 1.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import livarot
from benchmarks import workloads
from benchmarks.measure import Row, growth, interleaved, short
from benchmarks.processes import ask
from benchmarks.sides import CPP, Library, NaiveSample, compare_naive, compare_runs, make_problem
from benchmarks.workloads import Workload
from benchmarks.yardstick import library, plan_once
from livarot.estimation.omd import whitened
from livarot.model.probabilities import transition_kernel
from livarot.planning.exact import solve_kernel
from livarot.planning.optimistic.loops.blocks import pair_blocks

REPEATS = 5


def three_sides(
    row: Row,
    cases: Sequence[Workload],
    repeats: int,
    *,
    sample: int | None,
    naive_least: float,
    cpp_most: float,
    frank_wolfe: bool = False,
    enough: int | None = None,
) -> None:
    """Time the workloads together, all seeds and episodes; the naive side by its inner problems.

    ``enough`` iterations would have sufficed: a figure says what the naive ratio would be with them.
    """
    ours = [Library.of(case, frank_wolfe) for case in cases]
    theirs = [one.cpp(frank_wolfe) for one in ours]
    samples = []
    for one, cpp in zip(ours, theirs, strict=True):  # warm, checked, untimed
        found, case = cpp(), one.workload
        compare_runs(row, one.run(), found)
        samples.append(NaiveSample(case, found.theta[0], found.gram[0], case.radius(case.n_episodes), sample))
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: [one.run() for one in ours],
        "cpp": lambda: [cpp() for cpp in theirs],
    }
    for n, inner in enumerate(samples):
        calls |= {f"plain{n}": inner.solve, f"inverted{n}": inner.solve_inverted, f"hoisted{n}": inner.solve_hoisted}
        if enough is not None:
            calls[f"enough{n}"] = partial(inner.solve, enough)
    best = interleaved(calls, repeats)
    plans = [case.n_episodes * case.n_seeds for case in cases]
    naive = inverted = hoisted = cut = 0.0
    for n, inner in enumerate(samples):
        naive += plans[n] * inner.plan_seconds(best[f"plain{n}"])
        inverted += plans[n] * inner.plan_seconds(best[f"inverted{n}"])
        hoisted += plans[n] * inner.hoisted_seconds(best[f"inverted{n}"], best[f"hoisted{n}"])
        cut += plans[n] * inner.plan_seconds(best.get(f"enough{n}", 0.0))
    report(row, best["ours"], best["cpp"], (naive, inverted, hoisted), naive_least, cpp_most)
    row.set("episodes_per_second", sum(plans) / best["ours"])
    problems = sum(plan * inner.full for plan, inner in zip(plans, samples, strict=True))
    row.remarks.append(
        f"naive: {sum(s.count for s in samples)} of the {sum(s.full for s in samples)} inner problems of a plan timed, "
        f"{naive / problems * 1e6:.0f} us each on average, scaled to {sum(plans)} episodes"
    )
    if enough is not None:
        row.set("over_naive_enough", cut / best["ours"])
        row.remarks.append(
            f"with {enough} iterations, which suffice here, the naive ratio would be {short(cut / best['ours'])}"
        )


def report(
    row: Row, ours: float, cpp: float, plain: tuple[float, float, float], naive_least: float, cpp_most: float
) -> None:
    naive, inverted, hoisted = plain
    row.set("seconds", ours)
    row.set("over_naive", naive / ours, least=naive_least)
    row.set("over_cpp", ours / cpp, most=cpp_most)
    row.set("cpp_seconds", cpp)
    row.set("naive_seconds", naive)
    row.set("over_naive_inverted", inverted / ours)
    row.set("over_naive_hoisted", hoisted / ours)
    row.remarks.append(
        f"the naive side solves a linear system per step; with one inverse per inner problem the ratio would be "
        f"{short(inverted / ours)}, with one per stage {short(hoisted / ours)}"
    )


def row_a(quick: bool) -> Row:
    row = Row("A")
    three_sides(
        row,
        [workloads.hard_chain(horizon) for horizon in workloads.A_HORIZONS],
        2 if quick else REPEATS,
        sample=400 if quick else None,
        naive_least=10_000,
        cpp_most=1.0,
        enough=2,
    )
    row.remarks.append("the aim beyond the target is 40000 times naive; the C++ side is a generic scalar loop")
    for horizon, episodes in ((5, 20), (10, 6)):
        case = workloads.hard_chain(horizon, n_seeds=2).short(n_episodes=episodes)
        compare_naive(row, "A", case, frank_wolfe=False, believed=True)
    return row


def row_b(quick: bool) -> Row:
    row = Row("B")
    case = workloads.dense_medium(n_episodes=50 if quick else 200)
    three_sides(
        row,
        [case],
        2 if quick else REPEATS,
        sample=100 if quick else 400,
        naive_least=850,
        cpp_most=1.5,
    )
    compare_naive(row, "B_small", workloads.small_dense(n_episodes=20, n_seeds=2), frank_wolfe=False, believed=False)
    return row


def row_c(quick: bool) -> Row:
    row = Row("C")
    case = workloads.dense_large()
    problem, flat = make_problem(case.workload.problem), case.workload.flat

    def ours() -> livarot.Plan:
        estimate = whitened(problem, case.theta[None], case.gram[None])
        return livarot.optimistic_plan(problem, estimate, case.radius)

    options = {name: value for name, value in CPP.items() if name != "judge"}
    cpp = partial(plan_once, flat, case.theta, case.gram, case.radius, **options)
    plan, other = ours(), cpp()
    assert plan.value is not None
    row.check("value_difference", np.abs(plan.value[0] - other.value), 1e-7)
    row.check("policy_differs", np.sum(plan.policy[0] != other.policy), 0)
    sample = NaiveSample(case.workload, case.theta, case.gram, case.radius, 100 if quick else 400)

    def pack() -> None:
        problem.derived.clear()
        pair_blocks(problem)

    calls: dict[str, Callable[[], Any]] = {"pack": pack, "ours": ours, "cpp": cpp}
    calls |= {"plain": sample.solve, "inverted": sample.solve_inverted, "hoisted": sample.solve_hoisted}
    best = interleaved(calls, 2 if quick else REPEATS)
    plain = (
        sample.plan_seconds(best["plain"]),
        sample.plan_seconds(best["inverted"]),
        sample.hoisted_seconds(best["inverted"], best["hoisted"]),
    )
    report(row, best["ours"], best["cpp"], plain, 140, 1.0)
    row.set("pack_seconds", best["pack"])
    row.set("over_cpp_with_pack", (best["ours"] + best["pack"]) / best["cpp"])
    row.remarks += [
        f"naive: {sample.count} of {sample.full} inner problems timed and scaled to one plan",
        "packing, once per problem, is outside our seconds and inside C++'s",
    ]
    try:
        found = ask("memory")
    except RuntimeError as error:
        row.remarks.append(f"memory not measured: {str(error).splitlines()[-1]}")
    else:
        row.set("plan_memory", found["plan"], most=2.0)
        row.set("build_memory", found["all"], most=2.0)
        row.remarks.append(
            f"memory: peak beyond the process that holds the Problem (plan) or the caller's arrays (building it and "
            f"planning), in multiples of {found['feature_bytes'] / 1e6:.0f} MB of features"
        )
    return row


def row_d(quick: bool) -> Row:
    row = Row("D")
    case = workloads.river_swim(50, 20 if quick else 100)
    three_sides(row, [case], 2 if quick else REPEATS, sample=40 if quick else 200, naive_least=15_000, cpp_most=1.2)
    row.remarks.append("RiverSwim, S=50, d=198, H=100; the naive side uses the dense Gram matrix")
    return row


def row_backward(quick: bool) -> Row:
    """One table, one theta, so the kernel is stationary, as quantecon's must be."""
    from quantecon.markov import DiscreteDP, backward_induction
    from scipy.sparse import csr_array

    row = Row("backward")
    n_states, n_actions, n_next, horizon = 100_000, 4, 10, 20
    rng = np.random.default_rng(77)
    pairs = n_states * n_actions
    first = rng.integers(0, n_states, (pairs, 1))
    gaps = rng.integers(1, n_states // n_next, (pairs, n_next - 1))
    next_state = (np.concatenate((first, gaps), axis=1).cumsum(axis=1) % n_states).astype(np.int32)
    phi = rng.uniform(-1.0, 1.0, (pairs * n_next, 2)) / math.sqrt(2.0)
    reward = rng.random((n_states, n_actions))
    mdp = livarot.MNLMDP.from_arrays(
        horizon,
        n_states,
        n_actions,
        outcomes=np.full(pairs, n_next),
        next_state=next_state.ravel(),
        features=phi,
        reward=reward,
        theta=np.array([1.5, -1.0]),
    )
    logits = (phi @ mdp.theta[0]).reshape(pairs, n_next)
    prob = np.exp(logits - logits.max(axis=1, keepdims=True))
    prob /= prob.sum(axis=1, keepdims=True)
    indptr = np.arange(pairs + 1) * n_next
    kernel = csr_array((prob.ravel(), next_state.ravel(), indptr), shape=(pairs, n_states))
    kernel.sort_indices()
    s_index, a_index = np.repeat(np.arange(n_states), n_actions), np.tile(np.arange(n_actions), n_states)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # beta = 1 is for finite horizons only
        peer = DiscreteDP(reward.ravel(), kernel, 1.0, s_index, a_index)
    mine, (values, _) = livarot.solve(mdp), backward_induction(peer, horizon)
    row.check("value_difference", np.abs(mine.value - values), 1e-9)
    calls: dict[str, Callable[[], Any]] = {
        "ours": partial(solve_kernel, mdp.problem, transition_kernel(mdp)),
        "whole": partial(livarot.solve, mdp),
        "peer": partial(backward_induction, peer, horizon),
        "softmax": partial(transition_kernel, mdp),
    }
    best = interleaved(calls, 2 if quick else REPEATS)
    row.set("seconds", best["ours"])
    row.set("quantecon_seconds", best["peer"])
    row.set("over_quantecon", best["ours"] / best["peer"], most=1.0)
    row.set("softmax_seconds", best["softmax"])
    row.set("solve_over_quantecon", best["whole"] / best["peer"], most=1.0)
    row.remarks.append(
        "both sides start from given probabilities; solve_over_quantecon is livarot.solve, softmax included"
    )
    return row


def planning_pass(**changes: int) -> Callable[[], Any]:
    """A plan for every state, B's sizes with changes, after some learning."""
    sizes = {"n_states": 100, "n_actions": 5, "n_next": 8, "dim": 10, "horizon": 20} | changes
    case = workloads.random_dense("growth", n_episodes=1, n_seeds=1, **sizes)  # type: ignore[arg-type]
    dense = case.problem
    start = np.full(dense.n_states, 1.0 / dense.n_states)
    problem = make_problem(replace(dense, start=start))
    rng = np.random.default_rng(404)
    theta = rng.standard_normal((1, dense.horizon, dense.dim)) / math.sqrt(dense.dim)
    gram = np.empty((1, dense.horizon, dense.dim, dense.dim))
    for h in range(dense.horizon):
        rows = dense.phi[rng.integers(0, len(dense.phi), 400)]
        difference = rows[:200] - rows[200:]
        gram[0, h] = case.reg * np.eye(dense.dim) + difference.T @ (rng.random((200, 1)) * difference)
    estimate = whitened(problem, theta, problem.rows.pack(gram))
    return partial(livarot.optimistic_plan, problem, estimate, case.radius(200))


def row_growth(quick: bool) -> Row:
    row = Row("growth")
    repeats = 2 if quick else REPEATS
    grids = {
        "S": ("n_states", (100, 200, 400, 800), 1.15),
        "A": ("n_actions", (4, 8, 16, 32), 1.15),
        "H": ("horizon", (10, 20, 40, 80), 1.15),
        "U": ("n_next", (4, 8, 16, 32, 64), 1.1),
        "d": ("dim", (4, 8, 16, 32, 64), 2.2),
    }
    for letter, (argument, sizes, most) in grids.items():
        slope, last, seconds = growth({size: planning_pass(**{argument: size}) for size in sizes}, repeats)
        note(row, letter, slope, last, seconds, most)
    episodes = (125, 250, 500, 1000) if quick else (250, 500, 1000, 2000)
    chain = workloads.hard_chain(10)
    runs = {t: Library.of(chain.short(n_episodes=t)).run for t in episodes}
    note(row, "T", *growth(runs, repeats), 1.15)
    dense = workloads.dense_medium(n_seeds=1)
    runs = {t: Library.of(dense.short(n_episodes=t)).run for t in (20, 40, 80, 160)}
    note(row, "T_dense", *growth(runs, repeats), 1.15)
    row.remarks.append(
        "one planning pass of B's sizes, every state reachable; T: a run of A(H=10), 40 seeds; T_dense: of B"
    )
    return row


def note(row: Row, letter: str, slope: float, last: float, seconds: dict[int, float], most: float) -> None:
    row.set(letter, slope, most=most)
    times = ", ".join(f"{size}: {value * 1e3:.3g}" for size, value in seconds.items())
    row.remarks.append(f"{letter}: ms at {times}; last step {last:.2f}")


def row_cores(quick: bool) -> Row:
    row = Row("cores")
    cases = {
        "B": [workloads.dense_medium(n_episodes=25 if quick else 50)],
        "A": [workloads.hard_chain(horizon) for horizon in workloads.A_HORIZONS],
    }
    for name, loads in cases.items():
        models = [Library.of(load) for load in loads]
        for model in models:
            one, two = model.run(), model.run(workers=2)
            row.check(f"{name}_differs", np.sum(one.regret != two.regret), 0)

        def run(workers: int, models: list[Library] = models) -> None:
            for model in models:
                model.run(workers=workers)

        calls: dict[str, Callable[[], Any]] = {"one": partial(run, 1), "two": partial(run, 2)}
        best = interleaved(calls, 2 if quick else REPEATS, time.perf_counter)
        row.set(f"{name}_wall_1", best["one"])
        row.set(f"{name}_wall_2", best["two"])
        row.set(f"{name}_speedup", best["one"] / best["two"], least=1.5)
    row.remarks.append("wall seconds of livarot.run with workers=1 and workers=2; needs two idle cores")
    return row


def row_first(quick: bool) -> Row:
    row = Row("first")
    for which in ("A", "B"):
        ask("first", which)  # fills the cache if it is cold
        found = [ask("first", which) for _ in range(1 if quick else 3)]
        row.set(f"{which}_wall", min(one["first_wall"] for one in found), most=0.6)
        row.set(f"{which}_cpu", min(one["first_cpu"] for one in found))
    row.remarks.append(
        "the first livarot.run of a fresh process (5 episodes), kernels in numba's cache, after the imports"
    )
    return row


ROWS: dict[str, Callable[[bool], Row]] = {
    "A": row_a,
    "B": row_b,
    "C": row_c,
    "D": row_d,
    "backward": row_backward,
    "growth": row_growth,
    "cores": row_cores,
    "first": row_first,
}
LEGEND = """\
over_naive  naive seconds / ours; over_cpp  ours / C++ seconds
ours        the whole of livarot.run: uniforms, packing, plans with certificate, rollout, updates, judge, recording;
            kernels compiled beforehand (C: one plan)
C++         the same with judge and certificate, g++ -O3 -march=native; its uniforms and layout are made beforehand
naive       planning alone: Frank-Wolfe with 30 iterations for all (h, s, a), one inverse of the dense Gram matrix each;
            timed on a sample and scaled, never run in full
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description="How fast the library is.")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, the table on stderr")
    parser.add_argument("--only", default=",".join(ROWS), help=f"some of {','.join(ROWS)}")
    parser.add_argument("--quick", action="store_true", help="fewer repeats and shorter runs")
    options = parser.parse_args(arguments)
    chosen = options.only.split(",")
    if unknown := [name for name in chosen if name not in ROWS]:
        parser.error(f"unknown row {unknown[0]!r}, choose from {', '.join(ROWS)}")
    out = sys.stderr if options.json else sys.stdout
    print(LEGEND + load(), file=out, flush=True)
    library()
    rows = []
    for name in chosen:
        rows.append(ROWS[name](options.quick))
        rows[-1].set("load_average", os.getloadavg()[0])
        print("\n".join(rows[-1].lines()) + "\n", file=out, flush=True)
    unmet = [f"{row.name} {t.figure} {short(row.figures[t.figure])} (not {t})" for row in rows for t in row.unmet()]
    wrong = [f"{row.name}: {reason}" for row in rows for reason in row.wrong]
    print(load(), file=out)
    print(f"{len(unmet)} targets unmet" + "".join(f"\n  {text}" for text in unmet), file=out)
    print("all results agree" if not wrong else "WRONG\n  " + "\n  ".join(wrong), file=out)
    if options.json:
        print(json.dumps({row.name: row.as_json() for row in rows}, indent=1))
    return 1 if wrong else 0


def load() -> str:
    one, five, _ = os.getloadavg()
    return f"load average {one:.2f} (1 min), {five:.2f} (5 min), {os.cpu_count()} cores"


if __name__ == "__main__":
    sys.exit(main())
