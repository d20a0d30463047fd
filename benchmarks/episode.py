"""What an episode costs however many seeds there are: ``python -m benchmarks.episode [--json] [--quick]``.

``livarot.run(hard_chain(5), Livarot(), K)`` with R seeds, R = 8, 16, .., 40 (whole lanes).  The time of an episode is
a + b R: ``python_us`` is a, which is paid however many seeds there are (the interpreter, the calls of compiled code),
``seed_us`` is b, a seed's own share of the kernels; both by least squares.  ``one_us`` is the time with one seed.
Times are medians over the episodes of a run, the best of the rounds, so that a busy machine hurts little; they are
split into the agent's ``plan`` and ``update`` and the rest: checks, rollout, judge, recording.  The clock itself costs
about .2 us of each part.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

import numpy as np

import livarot
from benchmarks.measure import Row
from livarot.agents import Livarot

SEEDS = (1, 8, 16, 24, 32, 40)
MUST = 20.0  # microseconds
PARTS = ("episode", "plan", "update", "rest")


class Timed:
    """An agent whose calls are timed, in nanoseconds."""

    name = "timed"

    def __init__(self, agent: Any) -> None:
        self.agent, self.init = agent, agent.init
        self.spent: dict[str, list[int]] = {"plan": [], "update": []}

    def plan(self, *args: Any) -> Any:
        return self._timed("plan", self.agent.plan, args)

    def update(self, *args: Any) -> Any:
        return self._timed("update", self.agent.update, args)

    def _timed(self, name: str, call: Any, args: Any) -> Any:
        began = time.perf_counter_ns()
        found = call(*args)
        self.spent[name].append(time.perf_counter_ns() - began)
        return found


def microseconds(n_seeds: int, n_episodes: int) -> dict[str, float]:
    """Medians over the episodes of one run."""
    ends: list[int] = []
    agent = Timed(Livarot())
    livarot.run(
        livarot.envs.hard_chain(5),
        agent,
        n_episodes,
        seed=range(n_seeds),
        progress=lambda _: ends.append(time.perf_counter_ns()),
    )
    plan, update = (np.array(spent[1:]) for spent in agent.spent.values())
    whole = np.diff(ends)
    parts = (whole, plan, update, whole - plan - update)
    return {name: float(np.median(part)) / 1e3 for name, part in zip(PARTS, parts, strict=True)}


def measure(n_episodes: int, rounds: int) -> list[Row]:
    microseconds(2, 20)  # compiles, or loads, the kernels
    best = {(part, n): np.inf for part in PARTS for n in SEEDS}
    for _ in range(rounds):
        for n in SEEDS:
            for part, value in microseconds(n, n_episodes).items():
                best[part, n] = min(best[part, n], value)
    rows = []
    for part in PARTS:
        slope, base = np.polyfit(SEEDS[1:], [best[part, n] for n in SEEDS[1:]], 1)
        row = Row(part)
        row.set("python_us", base, most=MUST if part == "episode" else None)
        row.set("seed_us", slope)
        row.set("one_us", best[part, 1])
        rows.append(row)
    rows[0].remarks.append(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="JSON on stdout, the table on stderr")
    parser.add_argument("--quick", action="store_true", help="shorter runs, two rounds instead of five")
    options = parser.parse_args(arguments)
    rows = measure(*((1000, 2) if options.quick else (4000, 5)))
    print("\n".join(line for row in rows for line in row.lines()), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps({row.name: row.as_json() for row in rows}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
