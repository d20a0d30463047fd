"""What one default can have on all problems at once: ``python -m benchmarks.frontier --store FILE [--table]``.

``AdaptiveLivarot`` with one setting changed at a time, on the problems that have a goal: exact regret after 1000
episodes over that goal, mean of the tuning seeds 0..199, lock-ins in brackets where there are any.  A row below 1 in
all columns would be a default that meets every goal.  The last row is the oracle that lacks only the signs, where there
are signs.  Results are lines of FILE, so the command goes on where it was interrupted.

``--held-out FILE`` prints the goals beside what ``benchmarks.agents`` wrote to FILE, on the held-out seeds.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.agents import FIELD, PROBLEMS, Store, number, oracle_of, played
from livarot import agents
from livarot.planning.optimistic.rules import JointMaximum

SEEDS = range(200)
GOALS = {
    "chain-5": 21.1,  # 1.35 x the sign oracle, as on the other chains with d = 2
    "chain-10": 102,
    "chain-20": 425,
    "chain-30": 918,
    "chain-5-d4": 80,  # .9 x the tuned rival, as with the other chains with d = 4
    "chain-10-d4": 340,
    "chain-20-d4": 1112,
    "jitter-.5": 125,
    "jitter-1": 95,
    "kl-robust": 45,
    "park": 80,
    "park-signs": 80,  # the same number, without published signs that a tie may guess
    "maintenance": 60,
    "six-arms": 10,
    "small-sigma": 0.35,
    "random": 2.3,
}
ADAPTIVE = agents.AdaptiveLivarot
SETTINGS: dict[str, Any] = {
    "default": ADAPTIVE(),
    "pooling": ADAPTIVE(pooling=True),
    **{f"beta_scale={scale:g}": ADAPTIVE(beta_scale=scale) for scale in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)},
    **{f"joint maximum, {scale:g}": ADAPTIVE(rule=JointMaximum(), beta_scale=scale) for scale in (0.05, 0.15, 0.5)},
    **{f"reg={reg:g}": ADAPTIVE(reg=reg) for reg in (0.3, 3.0)},
    "reg=1, not learned": ADAPTIVE(learn_reg=False),
    **{f"prior_fade={fade:g}": ADAPTIVE(prior_fade=fade) for fade in (0.1, 0.25, 0.5)},
}


def cell(row: dict[str, Any] | None, goal: float) -> str:
    if row is None:
        return "–"
    text = f"{row['mean'] / goal:.2f}"
    return text + (f" ({100 * row['locked_in']:.1f} %)" if row.get("locked_in", 0.0) > 0.0 else "")


def table(store: Store) -> str:
    """Markdown, a line per setting and a column per problem; the worst column last."""
    lines = ["| | " + " | ".join(GOALS) + " | worst |", "|---|" + "---:|" * (len(GOALS) + 1)]
    for name in (*SETTINGS, "sign oracle"):
        found = [store.rows.get(f"{problem}/{name}".replace("sign oracle", "sign-oracle")) for problem in GOALS]
        over = [row["mean"] / goal for row, goal in zip(found, GOALS.values(), strict=True) if row is not None]
        cells = [cell(row, goal) for row, goal in zip(found, GOALS.values(), strict=True)]
        lines.append("| " + " | ".join([name, *cells, f"{max(over):.2f}" if over else "–"]) + " |")
    return "\n".join(lines)


def verdict(row: dict[str, Any] | None, goal: float) -> tuple[str, str]:
    """A result, and whether it meets the goal."""
    if row is None:
        return "–", "–"
    near = row["mean"] - row["se"] <= goal
    return number(row["mean"], row["se"]), "met" if row["mean"] <= goal else f"not met{', within 1 s.e.' * near}"


def goals(store: Store) -> str:
    """Markdown: the goals, what the default has on held-out seeds, and the best tuned agent of the field there."""
    lines = [
        "| problem | goal | sign oracle | `AdaptiveLivarot()` | | with pooling | | best tuned agent |",
        "|---|---:|---:|---:|---|---:|---|---|",
    ]
    for problem, goal in GOALS.items():
        default, pooled, oracle = (
            store.rows.get(f"{problem}/{name}")
            for name in ("adaptive-livarot/default", "adaptive-livarot-pooled/default", "sign-oracle")
        )
        tuned = {name: store.rows.get(f"{problem}/{name}/tuned") for name in FIELD}
        best, row = min(((name, row) for name, row in tuned.items() if row), key=lambda pair: pair[1]["mean"])
        cells = [problem, f"{goal:g}", f"{oracle['mean']:.3g}" if oracle else "–"]
        cells += [*verdict(default, goal), *verdict(pooled, goal), f"{best}, {number(row['mean'], row['se'])}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", type=Path, help="the file of results, which grows")
    parser.add_argument("--table", action="store_true", help="print what is there as Markdown, and compute nothing")
    parser.add_argument("--held-out", type=Path, help="results of benchmarks.agents: print the goals beside them")
    options = parser.parse_args()
    if options.held_out is not None:
        print(goals(Store(options.held_out)))
        return 0
    if options.store is None:
        parser.error("--store or --held-out is needed")
    store = Store(options.store)
    if options.table:
        print(table(store))
        return 0
    for problem in GOALS:
        assert problem in PROBLEMS
        oracle_of(store, problem)
        for name, agent in SETTINGS.items():
            found = store.of(f"{problem}/{name}", partial(played, problem, agent, SEEDS))
            print(f"{problem:14} {name:24} {found['mean']:9.4g} ± {found['se']:.2g}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
