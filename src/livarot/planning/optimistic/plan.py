"""Optimistic backward induction, Eq. (definition optimistic reward), for all replicas at once.

    Q_h(s, a) = r_h(s, a) + max over C_h of E_theta[V_{h+1}],   V_h = max_a Q_h   (the paper prints argmax, E16)

with C_h the confidence ellipsoid of the stage's parameter (rewards of the next state and a discount: the maximum is of
E_theta[r' + discount V_{h+1}], :mod:`livarot.model.terms.after`).  A maximum over true kernels never exceeds H - h, so
nothing is clipped for the joint maximum; bonuses are clipped as their papers say.

The **second recursion** does the same on certified upper bounds (the box relaxation or the variance-aware bound,
whichever is smaller): its start value is >= V* whenever the true parameters lie in the sets, even where the inner
solver found a local maximum only.  The difference of the two start values bounds the optimism lost.

There is one engine, with three ways to fill its lanes; ``Plan.engine`` says which one was taken.

"replicas"  W replicas side by side, pair after pair (:mod:`livarot.planning.optimistic.loops.replicas`)
"pairs"     W (state, action) pairs of one replica, likewise (:mod:`livarot.planning.optimistic.loops.pairs`): same bits
"screened"  pairs, but only those that can be best (:mod:`livarot.planning.optimistic.loops.screened`)

A problem whose states have several actions with three or more outcomes is screened, whatever the number of replicas
(with the variance bonus, which costs little, only if the problem is large; never if it has a discount, rewards of next
states or terminal rewards); otherwise the lanes are replicas if there are enough to fill them, and pairs if not.

Only states that can be reached from the start are planned for.  Ties: the first action within 1e-9 (1 + |Q|).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.core.errors import NumbaError

from livarot.core.arrays import FloatArray
from livarot.core.lanes import W
from livarot.core.views import Bundle
from livarot.errors import bad, require_finite, require_non_negative
from livarot.model.compiled import plan_model
from livarot.model.derived import derived
from livarot.model.episodes import Estimate, Plan, check_estimate
from livarot.model.problem import Problem
from livarot.model.terms.after import after, blank_policy, blank_values
from livarot.planning.optimistic.loops.blocks import pair_blocks
from livarot.planning.optimistic.loops.loop_parts import PairTask, Task
from livarot.planning.optimistic.loops.pairs import plan_pairs
from livarot.planning.optimistic.loops.replicas import plan_replicas
from livarot.planning.optimistic.loops.screened import plan_screened
from livarot.planning.optimistic.rule import LaneRule
from livarot.planning.optimistic.rules import JointMaximum, Rule, check_rule

_DEFAULT = JointMaximum()
LOOPS = {"replicas": plan_replicas, "pairs": plan_pairs, "screened": plan_screened}
SEVERAL = 3  # from this many actions per state on, screening pays
LARGE = 20_000  # from this many rows on, it pays even where a value costs no more than its bounds


def optimistic_plan(problem: Problem, estimate: Estimate, radius: float | FloatArray, rule: Rule | None = None) -> Plan:
    """Plan for R replicas over the ellipsoids |theta - estimate.theta|_gram <= radius, (R,) or one for all."""
    check_estimate(problem, estimate)
    made: Any = getattr(_DEFAULT if rule is None else rule, "made", None)
    if type(made) is not LaneRule:
        check_rule(rule)
    theta, gram, whiten = estimate
    replicas = len(theta)
    radii = _radii(radius, replicas)
    value = blank_values(problem, replicas)
    policy = blank_policy(problem, replicas)
    report = np.zeros((3, replicas))  # start value, its bound, largest first-order gap relative to the value range
    engine = engine_for(problem, made, replicas)
    upper = value if made.bound is None or engine == "replicas" else blank_values(problem, 1)
    arguments = (theta, whiten, radii, value, upper, policy, report)
    if isinstance(rule, LaneRule):
        _by_own_rule(engine, problem, made, arguments)
    else:
        LOOPS[engine](prepared(engine, problem, made), *arguments)
    bounds, gaps = report[1] if made.bounded else None, report[2] if made.measured else None
    if not made.optimistic:
        return Plan(policy, value, report[0], bounds, gaps, engine=engine)
    return Plan(policy, value, report[0], bounds, gaps, theta, gram, radii, engine)


class Prepared(NamedTuple):
    """What a loop was handed last, and the rule's table that it was made from."""

    table: Bundle
    task: Bundle


def prepared(engine: str, problem: Problem, rule: LaneRule) -> Bundle:
    """What the loop of that name is handed; making it compiles or loads the functions that the loop calls."""
    table = rule.table if problem.max_reachable > 2 else rule.table_for_two
    last = _last(problem).get(engine)
    if last is None or last.table is not table:
        parts = (table.fields, plan_model(problem).fields)
        task = Task(*parts) if engine == "replicas" else PairTask(*parts, pair_blocks(problem).fields)
        last = _last(problem)[engine] = Prepared(table, Bundle(task))
    return last.task


@derived
def _last(problem: Problem) -> dict[str, Prepared]:
    """What each loop was handed last, by the loop's name."""
    return {}


def _by_own_rule(engine: str, problem: Problem, rule: LaneRule, arguments: tuple[Any, ...]) -> None:
    """Plan with a user's rule, which may not compile, or may give numbers that are not finite."""
    try:
        LOOPS[engine](prepared(engine, problem, rule), *arguments)
    except NumbaError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = next((line for line in lines if "Unknown attribute" in line or "No implementation" in line), lines[-1])
        raise bad("rule", f"does not compile: {said}", cure="write it with livarot.lanes") from error
    wrong = np.flatnonzero(~np.isfinite(arguments[-1]).all(axis=0))
    if len(wrong):
        cure = "look for a division by zero"
        raise bad("rule", "gave values that are not finite, replica", index=int(wrong[0]), count=len(wrong), cure=cure)


def engine_for(problem: Problem, rule: LaneRule, replicas: int) -> str:
    """Which way to fill the lanes.  Screening changes the last bits, so the number of replicas must not decide it."""
    if rule.screened and _screening_pays(problem) and (rule.bound is not None or problem.rows.n_rows >= LARGE):
        return "screened"
    return "replicas" if replicas >= W else "pairs"


@derived
def _screening_pays(problem: Problem) -> bool:
    """Are there many choices to leave out?  Bounds of the next stage's values have to be kept from stage to stage."""
    follow = after(problem)
    return bool(follow.idle) and len(follow.state) == 0 and open_actions(problem) >= SEVERAL


def open_actions(problem: Problem) -> float:
    """How many actions of a reachable state have three or more outcomes of unknown law, on average."""
    rows = problem.rows
    many = ((rows.outcomes > 2) & (rows.pair_block >= 0)).reshape(rows.n_tables, problem.n_states, -1).sum(axis=2)
    return float(many[problem.stage_table][problem.reachable[: problem.horizon]].mean())


def _radii(radius: Any, replicas: int) -> FloatArray:
    """One radius per replica, as kernels take them: float64, finite, >= 0."""
    if type(radius) is float and 0.0 <= radius < math.inf:  # the usual case
        equal = np.empty(replicas)
        equal.fill(radius)
        return equal
    if isinstance(radius, float | int):
        return np.full(replicas, require_non_negative("radius", radius))
    radii = require_finite("radius", radius)
    radii = np.full(replicas, float(radii)) if radii.ndim == 0 else np.ascontiguousarray(radii)
    wrong = np.flatnonzero(radii < 0.0)
    if radii.shape != (replicas,) or len(wrong):
        first = int(wrong[0]) if len(wrong) else None
        raise bad("radius", f"{radii}", index=first, count=len(wrong), cure=f"give {replicas} numbers >= 0")
    return radii
