"""What a user's rule costs beside a built-in one that does the same work: ``python -m benchmarks.rule [--json]``.

``steep`` adds the slope at the centre to p.V, as ``VarianceBonus`` does before its last terms; it is not in the
package.  Both plan the same dense model, by turns, in CPU seconds, best of the rounds.  ``compile_seconds`` is what the
first plan by a short rule costs when the loops, and the functions that it calls, are compiled already.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import livarot
from benchmarks.measure import Row
from livarot.lanes import dot, expectation, solver_room, sqrt, value_at_centre

MUST = 1.5
ROUNDS, PLANS = 20, 20


@livarot.rule
def steep(choice: Any, v: Any, settings: Any) -> Any:
    """p.V + beta |g0|."""
    room = solver_room(choice)
    f = value_at_centre(choice, v, room.weight, room.g)
    return f + choice.beta * sqrt(dot(room.g, room.g))


def fresh_rule() -> Any:
    """A rule that was not compiled before: its constant is a new one each time."""
    more = time.time_ns() * 1e-30

    @livarot.rule
    def lifted(choice: Any, v: Any, settings: Any) -> Any:
        return expectation(choice.p, v) + more

    return lifted


def cpu_seconds(problem: Any, estimate: Any, rule: Any, plans: int = PLANS) -> float:
    """CPU seconds of one plan."""
    began = time.process_time()
    for _ in range(plans):
        livarot.optimistic_plan(problem, estimate, 0.5, rule)
    return (time.process_time() - began) / plans


def measure() -> Row:
    problem = livarot.envs.random_mdp(20, 4, n_reachable=6, dim=8, horizon=10).problem
    estimate = livarot.agents.Livarot().init(problem).estimate
    rules = {"own": steep, "built_in": livarot.VarianceBonus()}
    for rule in rules.values():
        cpu_seconds(problem, estimate, rule, 1)  # compiles it
    best = dict.fromkeys(rules, float("inf"))
    for _ in range(ROUNDS):
        for name, rule in rules.items():
            best[name] = min(best[name], cpu_seconds(problem, estimate, rule))
    row = Row("rule")
    row.set("over_built_in", best["own"] / best["built_in"], most=MUST)
    row.set("own_us", 1e6 * best["own"])
    row.set("built_in_us", 1e6 * best["built_in"])
    row.set("compile_seconds", cpu_seconds(problem, estimate, fresh_rule(), 1), most=1.0)
    return row


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="JSON on stdout, the table on stderr")
    options = parser.parse_args(arguments)
    row = measure()
    print("\n".join(row.lines()), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps({row.name: row.as_json()}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
