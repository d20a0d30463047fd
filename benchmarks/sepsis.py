"""What a plan over ICU-Sepsis costs: ``python -m benchmarks.sepsis [--json] [--dim 5]``.

716 states, 25 treatments, 1,528,600 transitions, 20 treatments, one parameter.  All sides start from the same model and
run in turn in one process; seconds are CPU seconds of one thread, best of REPEATS rounds.

plain    ``livarot.solve``: kernel, values, Q, policy, variances
bonus    ``optimistic_plan`` with ``VarianceBonus()``
joint    ``optimistic_plan`` with ``JointMaximum()``, upper recursion included

Both rules plan with the confidence set of ``Livarot()`` before the first patient (``_first``), where it is widest, and
after PATIENTS patients under the nominal optimum (``_later``).  ``joint`` is also measured without screening
(``_general``), and the two are checked against each other.  The memory is the peak of a fresh process that
loads the model, solves it and makes both plans.  A target that is missed is printed as UNMET; a failed check makes the
exit status 1.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is imported
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import livarot
from benchmarks.measure import Row, interleaved
from livarot.envs.problems.sepsis import icu_sepsis
from livarot.model.episodes import Estimate
from livarot.planning.optimistic import optimistic_plan, plan
from livarot.planning.optimistic.rules import JointMaximum, VarianceBonus

REPEATS, PATIENTS = 3, 64
BONUS_MOST, JOINT_MOST, MEGABYTES_MOST = 10.0, 10.0, 1500.0


def confidence_sets(mdp: livarot.MNLMDP) -> dict[str, tuple[Estimate, float]]:
    """The estimate and radius of the default LIVAROT, before the first patient and after some."""
    problem, agent = mdp.problem, livarot.agents.Livarot()
    nominal = livarot.solve(livarot.MNLMDP(problem, np.zeros_like(mdp.theta))).policy
    states = [agent.init(problem)]
    seen = livarot.simulate(mdp, nominal, PATIENTS, seed=0)
    state = states[0]
    for t in range(PATIENTS):
        state = agent.update(problem, state, type(seen)(*(part[t : t + 1] for part in seen)))
    states.append(state)
    return {
        name: (found.estimate, agent.radius(problem, found.episode))
        for name, found in zip(("first", "later"), states, strict=True)
    }


def general(problem: livarot.Problem, *arguments: Any) -> Any:
    """The plan that solves all pairs."""
    chosen, plan.engine_for = plan.engine_for, lambda *_: "pairs"
    try:
        return optimistic_plan(problem, *arguments)
    finally:
        plan.engine_for = chosen


def measure(dim: int, repeats: int) -> Row:
    row = Row(f"sepsis d={dim}")
    mdp = icu_sepsis(learn_nominal=dim == 5)
    problem = mdp.problem
    row.set("transitions", problem.rows.n_rows)
    sides: dict[str, Callable[[], Any]] = {"plain": partial(livarot.solve, mdp)}
    for name, (estimate, radius) in confidence_sets(mdp).items():
        for label, rule in (("bonus", VarianceBonus()), ("joint", JointMaximum())):
            arguments = (estimate, radius, rule)
            sides[f"{label}_{name}"] = partial(optimistic_plan, problem, *arguments)
            found, twin = sides[f"{label}_{name}"](), general(problem, *arguments)  # also warms the kernels
            row.check(f"{label}_{name}", np.abs(found.value - twin.value), 1e-12)
            row.check(f"{label}_{name} upper", np.abs(found.upper - twin.upper), 1e-12)
            row.check(f"{label}_{name} policy", np.mean(found.policy != twin.policy), 0.0)
        sides[f"joint_{name}_general"] = partial(general, problem, *arguments)
    seconds = interleaved(sides, repeats)
    for name, value in seconds.items():
        row.set(f"{name}_seconds", value)
    for name in sides:
        if name != "plain":
            most = None if name.endswith("general") else BONUS_MOST if name.startswith("bonus") else JOINT_MOST
            row.set(f"{name}_ratio", seconds[name] / seconds["plain"], most=most)
    command = [sys.executable, "-m", "benchmarks.sepsis", "--memory", "--dim", str(dim)]
    peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    row.set("peak_megabytes", float(peak), most=MEGABYTES_MOST)
    row.remarks.append(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return row


def peak_megabytes(dim: int) -> float:
    """Load, solve, plan with both rules; the peak memory of this process."""
    mdp = icu_sepsis(learn_nominal=dim == 5)
    livarot.solve(mdp)
    agent = livarot.agents.Livarot()
    estimate, radius = agent.init(mdp.problem).estimate, agent.radius(mdp.problem, 0)
    for rule in (VarianceBonus(), JointMaximum()):
        optimistic_plan(mdp.problem, estimate, radius, rule)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="JSON on stdout, the table on stderr")
    parser.add_argument("--dim", type=int, choices=(4, 5), default=4, help="5 learns the coefficient of log p0 too")
    parser.add_argument("--memory", action="store_true", help="print the peak memory in MB and nothing else")
    options = parser.parse_args(arguments)
    if options.memory:
        print(f"{peak_megabytes(options.dim):.1f}")
        return 0
    row = measure(options.dim, REPEATS)
    print("\n".join(row.lines()), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps({row.name: row.as_json()}, indent=2))
    return 1 if row.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
