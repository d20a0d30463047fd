"""Optimistic backward induction, Eq. (definition optimistic reward), for all replicas at once.

    Q_h(s, a) = r_h(s, a) + max over C_h of E_theta[V_{h+1}],   V_h = max_a Q_h   (the paper prints argmax, E16)

with C_h the confidence ellipsoid of the stage's parameter.  A maximum over true kernels never exceeds H - h, so
nothing is clipped for the joint maximum; bonuses are clipped as their papers say.

The **second recursion** does the same on certified upper bounds (the box relaxation or the variance-aware bound,
whichever is smaller): its start value is >= V* whenever the true parameters lie in the sets, even where the inner
solver found a local maximum only.  The difference of the two start values bounds the optimism lost.

There is one engine with two ways to fill its lanes: with replicas (:mod:`replicas`), or with the (state, action) pairs
of one replica after the other (:mod:`pairs`).  Both give the same bits; the way that leaves fewer lanes idle is taken.

Only states that can be reached from the start are planned for.  Ties: the first action within 1e-9 (1 + |Q|).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from livarot.core.lanes import W
from livarot.core.plan import Estimate, Plan, check_estimate
from livarot.core.problem import Problem
from livarot.core.ragged import FloatArray
from livarot.errors import bad, require_finite, require_non_negative
from livarot.planning.optimistic.layout import pair_blocks
from livarot.planning.optimistic.model import Result, plan_model
from livarot.planning.optimistic.pairs import plan_pairs
from livarot.planning.optimistic.replicas import plan_replicas
from livarot.planning.optimistic.rules import JointMaximum, Rule, check_rule

_DEFAULT = JointMaximum()


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
    if replicas >= W:
        plan_replicas(compiled, settings, plan_model(problem), estimate, radii, result)
    else:
        plan_pairs(compiled, settings, plan_model(problem), pair_blocks(problem), estimate, radii, result)
    return Plan(
        policy,
        value,
        result.report[0],
        result.report[1] if rule.bounded else None,
        result.report[2] if rule.measured else None,
        estimate.theta if rule.optimistic else None,
        estimate.gram if rule.optimistic else None,
        radii if rule.optimistic else None,
    )


def _radii(radius: Any, replicas: int) -> FloatArray:
    """One radius per replica, as kernels know them: float64, finite, >= 0."""
    if isinstance(radius, float | int):
        return np.full(replicas, require_non_negative("radius", radius))
    radii = require_finite("radius", radius)
    radii = np.full(replicas, float(radii)) if radii.ndim == 0 else np.ascontiguousarray(radii)
    wrong = np.flatnonzero(radii < 0.0)
    if radii.shape != (replicas,) or len(wrong):
        first = int(wrong[0]) if len(wrong) else None
        raise bad("radius", f"{radii}", index=first, count=len(wrong), cure=f"give {replicas} numbers >= 0")
    return radii
