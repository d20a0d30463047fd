"""Optimistic backward induction, Eq. (definition optimistic reward), for all replicas at once.

    Q_h(s, a) = r_h(s, a) + max over C_h of E_theta[V_{h+1}],   V_h = max_a Q_h   (the paper prints argmax, E16)

with C_h the confidence ellipsoid of the stage's parameter.  A maximum over true kernels never exceeds H - h, so
nothing is clipped for the joint maximum; bonuses are clipped as their papers say.

The **second recursion** does the same on certified upper bounds (the box relaxation or the variance-aware bound,
whichever is smaller): its start value is >= V* whenever the true parameters lie in the sets, even where the inner
solver found a local maximum only.  The difference of the two start values bounds the optimism lost.

There is one engine, and three ways to fill its lanes; ``Plan.engine`` says which one was taken.

"replicas"  W replicas side by side, pair after pair (:mod:`livarot.planning.optimistic.replicas`)
"pairs"     W (state, action) pairs of a replica side by side (:mod:`livarot.planning.optimistic.pairs`): the same bits
"screened"  pairs, but only those that can be best (:mod:`livarot.planning.optimistic.screened`)

A problem whose states have several actions with three or more outcomes is screened, whatever the number of replicas;
otherwise replicas are taken where they fill the lanes.

Only states that can be reached from the start are planned for.  Ties: the first action within 1e-9 (1 + |Q|).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from livarot.core.arrays import FloatArray
from livarot.core.lanes import W
from livarot.errors import bad, require_finite, require_non_negative
from livarot.model.compiled import plan_model
from livarot.model.derived import derived
from livarot.model.episodes import Estimate, Plan, check_estimate
from livarot.model.problem import Problem
from livarot.planning.optimistic.layout import pair_blocks
from livarot.planning.optimistic.pairs import plan_pairs
from livarot.planning.optimistic.replicas import plan_replicas
from livarot.planning.optimistic.result import Result
from livarot.planning.optimistic.rule import CompiledRule, LaneRule
from livarot.planning.optimistic.rules import JointMaximum, Rule, check_rule
from livarot.planning.optimistic.screened import plan_screened

_DEFAULT = JointMaximum()
SEVERAL = 3  # actions per state, for screening to pay


def optimistic_plan(problem: Problem, estimate: Estimate, radius: float | FloatArray, rule: Rule | None = None) -> Plan:
    """Plan for R replicas over the ellipsoids |theta - estimate.theta|_gram <= radius, (R,) or one for all."""
    check_estimate(problem, estimate)
    if rule is None:
        rule = _DEFAULT
    else:
        check_rule(rule)
    replicas = len(estimate.theta)
    radii = _radii(radius, replicas)
    compiled, settings = rule.compiled(problem.max_reachable)
    shape = (replicas, problem.horizon + 1, problem.n_states)
    value = np.zeros(shape)
    upper = np.zeros(shape) if compiled.certified else value
    policy = np.zeros((replicas, problem.horizon, problem.n_states), dtype=np.int32)
    result = Result(value, upper, policy, np.zeros((3, replicas)))
    engine = engine_for(problem, compiled, replicas)
    if isinstance(rule, LaneRule):
        _with_own_rule(_fill, engine, problem, compiled, settings, estimate, radii, result)
    else:
        _fill(engine, problem, compiled, settings, estimate, radii, result)
    return Plan(
        policy,
        value,
        result.report[0],
        result.report[1] if rule.bounded else None,
        result.report[2] if rule.measured else None,
        estimate.theta if rule.optimistic else None,
        estimate.gram if rule.optimistic else None,
        radii if rule.optimistic else None,
        engine,
    )


def _fill(
    engine: str, problem: Problem, rule: CompiledRule, settings: Any, estimate: Estimate, radii: Any, result: Result
) -> None:
    if engine == "replicas":
        plan_replicas(rule, settings, plan_model(problem), estimate, radii, result)
    else:
        loop = plan_screened if engine == "screened" else plan_pairs
        loop(rule, settings, plan_model(problem), pair_blocks(problem), estimate, radii, result)


def _with_own_rule(fill: Callable[..., None], *arguments: Any) -> None:
    """The same for a rule of the user's, which may not compile, or may give numbers that are none."""
    result = arguments[-1]
    try:
        fill(*arguments)
    except NumbaError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = next((line for line in lines if "Unknown attribute" in line or "No implementation" in line), lines[-1])
        raise bad("rule", f"does not compile: {said}", cure="write it with livarot.lanes") from error
    wrong = np.flatnonzero(~np.isfinite(result.report).all(axis=0))
    if len(wrong):
        cure = "look for a division by zero"
        raise bad("rule", "gave values that are not finite, replica", index=int(wrong[0]), count=len(wrong), cure=cure)


def engine_for(problem: Problem, rule: CompiledRule, replicas: int) -> str:
    """Which way to fill the lanes.  Screening changes the last bits, so it does not depend on the replicas."""
    if rule.screened and open_actions(problem) >= SEVERAL:
        return "screened"
    return "replicas" if replicas >= W else "pairs"


@derived
def open_actions(problem: Problem) -> float:
    """How many actions of a reachable state have three or more outcomes of unknown law, on average."""
    rows = problem.rows
    many = ((rows.outcomes > 2) & (rows.pair_block >= 0)).reshape(rows.n_tables, problem.n_states, -1).sum(axis=2)
    return float(many[problem.stage_table][problem.reachable[: problem.horizon]].mean())


def _radii(radius: Any, replicas: int) -> FloatArray:
    """One radius per replica, as kernels know them: float64, finite, >= 0."""
    if type(radius) is float and 0.0 <= radius < math.inf:  # as agents have it
        return np.full(replicas, radius)
    if isinstance(radius, float | int):
        return np.full(replicas, require_non_negative("radius", radius))
    radii = require_finite("radius", radius)
    radii = np.full(replicas, float(radii)) if radii.ndim == 0 else np.ascontiguousarray(radii)
    wrong = np.flatnonzero(radii < 0.0)
    if radii.shape != (replicas,) or len(wrong):
        first = int(wrong[0]) if len(wrong) else None
        raise bad("radius", f"{radii}", index=first, count=len(wrong), cure=f"give {replicas} numbers >= 0")
    return radii
