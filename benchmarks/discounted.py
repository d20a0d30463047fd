"""Discounted planning beside QuantEcon: ``python -m benchmarks.discounted [--states N] [--json]``.

Random sparse models, 4 actions, 10 successors, gamma = .95, .999, .9999, error 1e-6 on both sides; CPU seconds, best of
three rounds by turns, and the memory that the process needed beyond the model.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from livarot import MNLMDP
from livarot.infinite import InfiniteMDP, solve_discounted

ACTIONS, SUCCESSORS, ERROR = 4, 10, 1e-6


def random_laws(n_states: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Successors (pairs, 10), all different, their probabilities, and rewards (S, A)."""
    rng = np.random.default_rng(seed)
    nexts = np.sort(rng.integers(0, n_states, (n_states * ACTIONS, SUCCESSORS)), axis=1)
    while len(again := np.flatnonzero((np.diff(nexts, axis=1) == 0).any(axis=1))):
        nexts[again] = np.sort(rng.integers(0, n_states, (len(again), SUCCESSORS)), axis=1)
    return nexts, rng.dirichlet(np.ones(SUCCESSORS), len(nexts)), rng.random((n_states, ACTIONS))


def model(nexts: Any, law: Any, reward: Any) -> InfiniteMDP:
    """The laws as offsets of an MNL model whose parameter is zero."""
    n_states = len(reward)
    stage = MNLMDP.from_arrays(
        1,
        n_states,
        ACTIONS,
        outcomes=np.full(len(nexts), SUCCESSORS),
        next_state=nexts.ravel(),
        features=np.zeros((nexts.size, 1)),
        offset=np.log(law).ravel(),
        reward=reward,
        theta=[0.0],
        param_bound=1.0,
    )
    return InfiniteMDP.from_mdp(stage)


def seconds(solve: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = solve()
    return time.process_time() - began, found


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--alone", action="store_true", help="without QuantEcon, for the memory of livarot alone")
    options = parser.parse_args()
    nexts, law, reward = random_laws(options.states)
    mdp = model(nexts, law, reward)
    mdp.prob  # noqa: B018 (computed once)
    before = peak()
    rows = []
    for gamma in (0.95, 0.999, 0.9999):
        ours, theirs = float("inf"), float("nan")
        solve_discounted(mdp, gamma, tol=ERROR)  # compiles
        row: dict[str, Any] = {"states": options.states, "gamma": gamma}
        if not options.alone:
            from quantecon.markov import DiscreteDP

            starts = np.arange(0, nexts.size + 1, SUCCESSORS)
            kernel = csr_matrix((mdp.prob, nexts.ravel().astype(np.int32), starts), shape=(len(nexts), options.states))
            state, action = np.divmod(np.arange(len(nexts)), ACTIONS)
            other = DiscreteDP(reward.ravel(), kernel, gamma, state, action)
            other.solve(method="mpi", epsilon=ERROR)
            theirs = float("inf")
        for _ in range(3):
            spent, found = seconds(lambda gamma=gamma: solve_discounted(mdp, gamma, tol=ERROR))
            ours = min(ours, spent)
            if not options.alone:
                spent, answer = seconds(lambda other=other: other.solve(method="mpi", epsilon=ERROR))
                theirs = min(theirs, spent)
        row |= {"livarot_s": ours, "quantecon_s": theirs, "ratio": ours / theirs}
        row |= {"width": float((found.upper - found.lower).max()), "improvements": found.n_iter}
        if not options.alone:
            row["difference"] = float(np.abs(answer.v - found.value).max())
        row["megabytes"] = peak() - before
        rows.append(row)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print("| gamma | livarot, s | QuantEcon, s | ratio | upper - lower | difference | improvements | MB |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        numbers = (row["livarot_s"], row["quantecon_s"], row["ratio"])
        rest = (row["width"], row.get("difference", float("nan")))
        cells = [*(f"{x:.3f}" for x in numbers), *(f"{x:.1e}" for x in rest), str(row["improvements"])]
        print(f"| {row['gamma']} | {' | '.join(cells)} | {row['megabytes']:.0f} |")


if __name__ == "__main__":
    main()
