"""Stationary planning on large sparse models, beside QuantEcon (and mdpsolver where it is installed).

    python -m benchmarks.infinite [--states N] [--quick] [--json]

Random sparse models, 4 actions, 10 successors, error 1e-6 on both sides; CPU seconds, best of three alternating rounds.
The robust plans are ratios to the plain one.  The bus engine is compared number by number.  Memory is that of fresh
processes without QuantEcon: the peak while building and solving beyond what the built model takes, and the peak of all
for 10^6 states.  A missed target is printed as UNMET.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from livarot.infinite import InfiniteMDP, bus_engine, solve, solve_discounted, solve_robust

ACTIONS, SUCCESSORS, ERROR, ROUNDS = 4, 10, 1e-6, 3
ADVERSARIES: dict[str, dict[str, float]] = {
    "ball, radius .05": {"radius": 0.05},
    "ball, radius .5": {"radius": 0.5},
    "penalty .5": {"penalty": 0.5},
    "penalty 5": {"penalty": 5.0},
}


def random_laws(n_states: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Successors (pairs, 10), all different, their probabilities, and rewards (S, A)."""
    rng = np.random.default_rng(seed)
    nexts = np.sort(rng.integers(0, n_states, (n_states * ACTIONS, SUCCESSORS), dtype=np.int32), axis=1)
    while len(again := np.flatnonzero((np.diff(nexts, axis=1) == 0).any(axis=1))):
        nexts[again] = np.sort(rng.integers(0, n_states, (len(again), SUCCESSORS), dtype=np.int32), axis=1)
    return nexts, rng.dirichlet(np.ones(SUCCESSORS), len(nexts)), rng.random((n_states, ACTIONS))


def model(nexts: Any, law: Any, reward: Any) -> InfiniteMDP:
    """The laws as a stationary model."""
    starts = np.arange(0, nexts.size + 1, SUCCESSORS, dtype=np.int32)
    return InfiniteMDP.from_transitions(
        csr_array((law.ravel(), nexts.ravel(), starts), shape=(len(nexts), len(reward))), reward=reward
    )


def by_turns(sides: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], dict[str, Any]]:
    """CPU seconds of each side, the best of some rounds, and its last answer; a first call compiles."""
    answers = {name: solve() for name, solve in sides.items()}
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(ROUNDS):
        for name, run in sides.items():
            began = time.process_time()
            answers[name] = run()
            best[name] = min(best[name], time.process_time() - began)
    return best, answers


def row(what: str, figure: float, target: float, remark: str) -> dict[str, Any]:
    return {"what": what, "figure": figure, "target": target, "met": bool(figure <= target), "remark": remark}


def plain(n_states: int) -> tuple[InfiniteMDP, list[dict[str, Any]]]:
    """Ratios to QuantEcon's modified policy iteration."""
    from quantecon.markov import DiscreteDP

    nexts, law, reward = random_laws(n_states)
    mdp = model(nexts, law, reward)
    starts = np.arange(0, nexts.size + 1, SUCCESSORS)
    kernel = csr_matrix((mdp.prob, nexts.ravel(), starts), shape=(len(nexts), n_states))
    state, action = np.divmod(np.arange(len(nexts)), ACTIONS)
    rows = []
    for gamma in (0.95, 0.999, 0.9999):
        other = DiscreteDP(reward.ravel(), kernel, gamma, state, action)
        sides = {
            "ours": lambda gamma=gamma: solve_discounted(mdp, gamma, tol=ERROR),
            "theirs": lambda other=other: other.solve(method="mpi", epsilon=ERROR),
        }
        seconds, found = by_turns(sides)
        far, width = np.abs(found["theirs"].v - found["ours"].value).max(), found["ours"].upper - found["ours"].lower
        told = f"{seconds['ours']:.3f} s, QuantEcon {seconds['theirs']:.3f} s; {found['ours'].method}"
        rows.append(
            row(
                f"discount {gamma} / QuantEcon",
                seconds["ours"] / seconds["theirs"],
                1.0,
                f"{told}; values differ by {far:.1e}, proved to {width.max():.1e}",
            )
        )
    return mdp, rows


def mdpsolver_is_there() -> str:
    try:
        import mdpsolver  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        return "mdpsolver is not installed"
    return "mdpsolver is installed, but not compared yet"


def robust(mdp: InfiniteMDP) -> list[dict[str, Any]]:
    """Ratios of robust plans to the plain one."""
    rows = []
    for gamma in (0.95, 0.999):
        sides: dict[str, Callable[[], Any]] = {"plain": lambda gamma=gamma: solve_discounted(mdp, gamma, tol=ERROR)}
        for name, level in ADVERSARIES.items():
            sides[name] = lambda gamma=gamma, level=level: solve_robust(mdp, gamma, tol=ERROR, **level)
        seconds, found = by_turns(sides)
        for name in ADVERSARIES:
            width = float((found[name].upper - found[name].lower).max())
            told = f"{seconds[name]:.3f} s, plain {seconds['plain']:.3f} s; proved to {width:.1e}"
            rows.append(row(f"robust, {name}, discount {gamma} / plain", seconds[name] / seconds["plain"], 6.0, told))
    return rows


def bus() -> list[dict[str, Any]]:
    """Rust's bus engines at .9999: the same policy as QuantEcon, and values."""
    from quantecon.markov import DiscreteDP

    mdp = bus_engine()
    found = solve(mdp)
    other = DiscreteDP(mdp.problem.reward, mdp.table, 0.9999).solve(method="policy_iteration")
    far = float(np.abs(other.v / found.value - 1.0).max())
    differ = int((np.asarray(found.policy) != other.sigma).sum())
    return [row("bus engine, relative difference", far, 1e-8, f"{differ} actions differ")]


def peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def now() -> float:
    """Megabytes that the process holds at the moment."""
    with open("/proc/self/statm", encoding="ascii") as told:
        return int(told.read().split()[1]) * resource.getpagesize() / 1e6


def memory(n_states: int) -> None:
    """In a process of its own: what building and solving take."""
    small = model(*random_laws(50))
    solve_discounted(small, 0.9)
    solve_robust(small, 0.9, radius=0.1)
    before = now()
    mdp = model(*random_laws(n_states))
    mdp.prob  # noqa: B018 (computed once)
    held, most = now(), peak()
    began = time.process_time()
    for gamma in (0.95, 0.999):
        solve_discounted(mdp, gamma, tol=ERROR)
    spent = time.process_time() - began
    plain_most = peak()
    told = {"model": held - before, "built": most - before, "solved": plain_most - held, "seconds": spent}
    print(json.dumps(told | {"all": plain_most}))


def fresh(n_states: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.infinite", "--memory", str(n_states)]
    told: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return told


def memories(n_states: int, many: int) -> list[dict[str, Any]]:
    own, large = fresh(n_states), fresh(many)
    building = own["built"] - own["model"]
    return [
        row(
            f"MB above the model, {n_states} states",
            max(own["solved"], building),
            400.0,
            f"model {own['model']:.0f} MB; building takes {building:.0f} MB above it, solving {own['solved']:.0f}",
        ),
        row(
            f"GB in all, {many} states",
            large["all"] / 1e3,
            16.0,
            f"model {large['model']:.0f} MB; discounts .95 and .999 in {large['seconds']:.1f} CPU s",
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="10 000 states, and 20 000 for 10^6")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory is not None:
        memory(options.memory)
        return
    n_states, many = (10_000, 20_000) if options.quick else (options.states, 1_000_000)
    rows = memories(n_states, many)
    mdp, found = plain(n_states)
    rows = found + robust(mdp) + bus() + rows
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{n_states} states, {ACTIONS} actions, {SUCCESSORS} successors, error {ERROR:.0e}; {mdpsolver_is_there()}\n")
    print("| what | figure | target | | remark |")
    print("|---|---|---|---|---|")
    for one in rows:
        verdict = "met" if one["met"] else "UNMET"
        print(f"| {one['what']} | {one['figure']:.3g} | {one['target']:.3g} | {verdict} | {one['remark']} |")


if __name__ == "__main__":
    main()
