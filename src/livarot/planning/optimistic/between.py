"""Optimistic backward induction where every pair has at most two outcomes and logits lie between bounds.

    Q_h(s, a) = r_h(s, a) + max over p in [sigma(lower), sigma(upper)] of  p v_0 + (1 - p) v_1,

lower and upper the bounds of the difference of the two logits, v_0 and v_1 what the outcomes are worth
(:mod:`livarot.model.terms.after`).  The maximum is at ``upper`` where v_0 >= v_1 and at ``lower`` elsewhere.  If the
bounds are those of a set (:mod:`livarot.estimation.level_support`), Q is the maximum over that set: E_theta[V] is
monotone in the difference of the logits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livarot.core.arrays import FloatArray, Int32Array
from livarot.core.tolerances import TIE
from livarot.model.derived import derived
from livarot.model.episodes import Plan
from livarot.model.problem import Problem
from livarot.model.terms.after import after, blank_policy, blank_values, gains, outcome_kinds


class Outcomes(NamedTuple):
    """The two outcomes of every pair; the same one twice where there is one."""

    kind: Int32Array  # (pairs, 2)
    offset: FloatArray  # (pairs,) of outcome 0 minus that of outcome 1


@derived
def two_outcomes(problem: Problem) -> Outcomes:
    """The outcomes of a problem whose pairs have at most two."""
    rows, kinds = problem.rows, outcome_kinds(problem)
    first = np.minimum(rows.row_start[:-1], len(kinds) - 1)  # pairs that do not exist have no rows
    last = np.maximum(rows.row_start[1:] - 1, first)
    kind = np.stack((kinds[first], kinds[last]), axis=1).astype(np.int32)
    return Outcomes(kind, rows.offset[first] - rows.offset[last])


def plan_between(problem: Problem, lower: FloatArray, upper: FloatArray) -> Plan:
    """Plan with bounds (R, K, pairs) of phi_0 . theta - phi_1 . theta."""
    found, replicas = two_outcomes(problem), len(lower)
    value, policy = blank_values(problem, replicas), blank_policy(problem, replicas)
    size, gain, follow = problem.n_states * problem.n_actions, gains(problem), after(problem)
    for h in range(problem.horizon - 1, -1, -1):
        k, first = problem.stage_parameter[h], int(problem.stage_table[h]) * size
        here = slice(first, first + size)
        ahead = value[:, h + 1]
        if len(follow.state):
            ahead = follow.discount * ahead[:, follow.state] + follow.gain
        v = ahead[:, found.kind[here]]
        likely = v[:, :, 0] >= v[:, :, 1]
        logit = found.offset[here] + np.where(likely, upper[:, k, here], lower[:, k, here])
        p = 1.0 / (1.0 + np.exp(-np.clip(logit, -700.0, 700.0)))
        q = (v[:, :, 1] + p * (v[:, :, 0] - v[:, :, 1])).reshape(replicas, problem.n_states, -1) + gain[h]
        best = q.max(axis=2)
        reachable = problem.reachable[h]
        value[:, h, reachable] = best[:, reachable]
        tied = q >= (best - TIE * (1.0 + np.abs(best)))[:, :, None]
        policy[:, h, reachable] = tied.argmax(axis=2)[:, reachable]
    start = value[:, 0, :] @ problem.start
    return Plan(policy, value, start, start, engine="two outcomes")
