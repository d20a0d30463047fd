"""What robustness costs: ``python -m benchmarks.robust [--json] [--quick]``.

One sparse model, 10^5 states x 4 actions x 10 next states, H = 20 stages, logits in 3 features with one shared
parameter.  All sides start from the same MNLMDP and run in turn in one process; seconds are CPU seconds of one thread,
best of REPEATS rounds.

plain     ``livarot.solve``: kernel, values, Q, policy, variances
penalty   ``solve_robust(mdp, penalty=1)``: the same and the dual variables
ball      ``solve_robust(mdp, radius=r)`` for a small, a middle and a large radius
.. kernel the same with the worst-case kernel of all stages (H times the nominal one: 640 MB), computed on demand;
          how long the system takes to hand out that memory varies between 0.05 and 1 s, so there is a ratio
          of all CPU seconds and one, with the target, of those in user mode

Checked in the same run: the ball's duality gap, its worst-case kernel by plain backward induction (values to 1e-9),
and radius 0 against ``livarot.solve``.  A target that is missed is printed as UNMET; a failed check makes the exit
status 1.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import resource
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import livarot
from benchmarks.measure import Row, interleaved
from livarot.planning.exact import solve_kernel
from livarot.planning.robust.plan import solve_robust

REPEATS = 5
PENALTY_MOST, BALL_MOST = 5.0, 15.0
RADII = {"ball_0.001": 1e-3, "ball_0.1": 0.1, "ball_1": 1.0}


def model(n_states: int, n_actions: int, n_reachable: int, horizon: int, seed: int = 0) -> livarot.MNLMDP:
    """Random sparse successors (distinct within a pair), features in the unit ball, rewards in [0, 1]."""
    rng = np.random.default_rng(seed)
    n_pairs = n_states * n_actions
    step = n_states // n_reachable  # one next state per segment: distinct without a draw per pair
    next_state = rng.integers(step, size=(n_pairs, n_reachable)) + step * np.arange(n_reachable)
    features = rng.uniform(-0.5, 0.5, size=(n_pairs * n_reachable, 3))
    return livarot.MNLMDP.from_arrays(
        horizon,
        n_states,
        n_actions,
        outcomes=np.full(n_pairs, n_reachable),
        next_state=next_state.reshape(-1),
        features=features,
        reward=rng.random((n_states, n_actions)),
        theta=[1.0, -1.0, 0.5],
        stage_table=np.zeros(horizon, dtype=np.int32),
    )


def with_kernel(**options: float) -> Callable[[livarot.MNLMDP], Any]:
    return lambda mdp: solve_robust(mdp, **options).kernel


def user_seconds() -> float:
    """CPU seconds in user mode: without the system's share, which is the first touch of fresh memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def measure(mdp: livarot.MNLMDP, repeats: int) -> Row:
    row = Row("robust")
    sides: dict[str, Callable[[], Any]] = {
        "plain": partial(livarot.solve, mdp),
        "penalty": partial(solve_robust, mdp, penalty=1.0),
        **{name: partial(solve_robust, mdp, radius=radius) for name, radius in RADII.items()},
        "penalty_kernel": partial(with_kernel(penalty=1.0), mdp),
        "ball_0.1_kernel": partial(with_kernel(radius=0.1), mdp),
    }
    for name, radius in RADII.items():  # also warms the kernels
        found = solve_robust(mdp, radius=radius)
        row.check(f"{name} gap", found.gap, 1e-12)
        if name == "ball_0.1":
            plain = solve_kernel(mdp.problem, found.kernel)
            row.check(f"{name} kernel", np.abs(plain.value - found.value), 1e-9)
    exact = livarot.solve(mdp)
    row.check("radius 0", np.abs(solve_robust(mdp, radius=0.0).value - exact.value), 0.0)
    robust = solve_robust(mdp, penalty=1.0)
    row.check("penalty above nominal", np.max(robust.value - exact.value), 1e-9)
    del found, plain, exact, robust
    seconds = interleaved(sides, repeats)
    fetched = {name: call for name, call in sides.items() if name == "plain" or name.endswith("kernel")}
    user = interleaved(fetched, repeats, clock=user_seconds)
    for name, value in seconds.items():
        row.set(f"{name}_seconds", value)
    for name in sides:
        most = PENALTY_MOST if name.startswith("penalty") else BALL_MOST
        if name.endswith("kernel"):
            row.set(f"{name}_ratio", seconds[name] / seconds["plain"])
            row.set(f"{name}_user_ratio", user[name] / user["plain"], most=most)
        elif name != "plain":
            row.set(f"{name}_ratio", seconds[name] / seconds["plain"], most=most)
    row.remarks.append(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return row


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="JSON on stdout, the table on stderr")
    parser.add_argument("--quick", action="store_true", help="10^4 states, three rounds")
    options = parser.parse_args(arguments)
    mdp = model(10_000 if options.quick else 100_000, 4, 10, 20)
    row = measure(mdp, 3 if options.quick else REPEATS)
    print("\n".join(row.lines()), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps({"robust": row.as_json()}, indent=2))
    return 1 if row.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
