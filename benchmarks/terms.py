"""What costs, discount, missing actions and rewards of the next state cost: ``python -m benchmarks.terms [--quick]``.

One random model (60 states, 6 actions, 5 next states, 20 stages), planned exactly, robustly and optimistically; then
the same with each of them and with all.  Times are CPU times of one thread, best of several rounds, all variants in
turn in one process; what is printed are ratios to the plain model.  With a discount or rewards of the next state the
optimistic plan of the joint maximum is not screened (``Plan.engine``), which is most of the extra cost.

``--against DIR`` compares with the sources in another folder (a worktree of an older commit: ``git worktree add DIR
f90ff14`` has none of these terms) what a model pays that uses none of them: small models are built by processes that
take turns, one for each folder; printed is the median of the ratios of their CPU times.  At most 1.1 is wanted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import livarot
from livarot.estimation.omd import whitened
from livarot.model.episodes import Estimate

STATES, ACTIONS, OUTCOMES, DIM, HORIZON = 60, 6, 5, 6, 20


def models() -> dict[str, livarot.MNLMDP]:
    """The plain model and its variants."""
    rng = np.random.default_rng(1)
    pairs = STATES * ACTIONS
    reward = rng.random((STATES, ACTIONS))
    rows: dict[str, Any] = {
        "outcomes": np.full((STATES, ACTIONS), OUTCOMES),
        "next_state": np.concatenate([rng.permutation(STATES)[:OUTCOMES] for _ in range(pairs)]),
        "features": rng.standard_normal((pairs * OUTCOMES, DIM)),
        "theta": rng.standard_normal((HORIZON, DIM)) / DIM,
        "normalise": True,
    }
    mask = rng.random((STATES, ACTIONS)) < 0.8
    mask[:, 0] |= ~mask.any(axis=1)
    kept = mask & (np.arange(STATES) < STATES - 1)[:, None]
    terms: dict[str, dict[str, Any]] = {
        "plain": {"reward": reward},
        "cost": {"cost": 500.0 * reward},
        "mask and terminal": {"reward": reward * kept, "available": mask, "terminal": [STATES - 1]},
        "discount": {"reward": reward, "discount": 0.95},
        "next reward": {"reward": reward[:, :, None] + rng.random((STATES, ACTIONS, STATES))},
    }
    terms["all"] = {
        "cost": 500.0 * rng.random((STATES, ACTIONS, STATES)),
        "available": mask,
        "terminal": [STATES - 1],
        "terminal_cost": 100.0 * rng.random(STATES),
        "discount": 0.95,
    }
    return {name: livarot.MNLMDP.from_arrays(HORIZON, STATES, ACTIONS, **rows, **own) for name, own in terms.items()}


def estimate(mdp: livarot.MNLMDP, replicas: int) -> Estimate:
    problem = mdp.problem
    gram = np.broadcast_to(problem.rows.pack_identity(4.0), (replicas, *problem.gram_shape)).copy()
    return whitened(problem, np.broadcast_to(mdp.theta, (replicas, *mdp.theta.shape)).copy(), gram)


def tasks(mdp: livarot.MNLMDP) -> dict[str, Callable[[], Any]]:
    one, many, problem = estimate(mdp, 1), estimate(mdp, 8), mdp.problem
    return {
        "solve": lambda: livarot.solve(mdp),
        "robust": lambda: livarot.solve_robust(mdp, radius=0.1),
        "variance bonus": lambda: livarot.optimistic_plan(problem, one, 0.5, livarot.VarianceBonus()),
        "variance bonus, 8 replicas": lambda: livarot.optimistic_plan(problem, many, 0.5, livarot.VarianceBonus()),
        "joint maximum": lambda: livarot.optimistic_plan(problem, one, 0.5),
    }


BUILDING = """
import time
import numpy as np
import livarot
rng, best = np.random.default_rng(0), {}
nexts, phi = [rng.permutation(6)[:3] for _ in range(12)], rng.standard_normal((36, 4))
pays = {"reward": rng.random((6, 2)), "param_bound": 1.0, "normalise": True}
arrays = {"outcomes": np.full((6, 2), 3), "next_state": np.concatenate(nexts), "features": phi}
ask = lambda h, s, a: (nexts[2 * s + a], phi[3 * (2 * s + a):][:3])
tasks = {
    "from_arrays": lambda: livarot.Problem.from_arrays(5, 6, 2, **arrays, **pays),
    "from_function": lambda: livarot.Problem.from_function(5, 6, 2, features=ask, **pays),
    "river_swim": lambda: livarot.envs.river_swim(6, 20),
}
for turn in range(ROUNDS):
    for name, call in tasks.items():
        before = time.process_time()
        for _ in range(40):
            call()
        best[name] = min(best.get(name, 1.0), (time.process_time() - before) / 40)
print(*best, *best.values())
"""


def building(sources: Path, rounds: int) -> dict[str, float]:
    """Seconds to build small models, in a process with these sources."""
    settings = {"PYTHONPATH": str(sources), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    code = BUILDING.replace("ROUNDS", str(rounds))
    told = subprocess.run([sys.executable, "-c", code], env=os.environ | settings, check=True, capture_output=True)
    words = told.stdout.decode().split()
    half = len(words) // 2
    return dict(zip(words[:half], map(float, words[half:]), strict=True))


def compare(other: Path, rounds: int) -> None:
    """Ratios of building models with our sources and with those of another folder."""
    ours = Path(livarot.__file__).parent.parent
    pairs = [(building(other / "src", rounds), building(ours, rounds)) for _ in range(5)]
    for name in pairs[0][0]:
        ratio = statistics.median(new[name] / old[name] for old, new in pairs)
        least = [1e6 * min(one[name] for one in side) for side in zip(*pairs, strict=True)]
        print(f"building by {name:14s} {ratio:5.2f}   {least[1]:.0f} us against {least[0]:.0f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--against", type=Path, metavar="DIR", help="compare building models with these sources")
    given = parser.parse_args()
    rounds = 5 if given.quick else 25
    if given.against is not None:
        compare(given.against, rounds)
        return
    jobs = {name: tasks(mdp) for name, mdp in models().items()}
    best: dict[tuple[str, str], float] = {}
    for turn in range(rounds + 1):  # the first one compiles
        for name, own in jobs.items():
            for task, call in own.items():
                before = time.process_time()
                for _ in range(3):
                    call()
                spent = (time.process_time() - before) / 3
                if turn:
                    best[task, name] = min(spent, best.get((task, name), spent))
    print(f"{'':28s}" + "".join(f"{name:>20s}" for name in jobs))
    for task in next(iter(jobs.values())):
        plain = best[task, "plain"]
        ratios = "".join(f"{best[task, name] / plain:20.2f}" for name in jobs)
        print(f"{task:28s}{ratios}   plain: {1e3 * plain:.2f} ms")


if __name__ == "__main__":
    main()
