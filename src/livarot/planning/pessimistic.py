"""Pessimistic backward induction: the policy of the best *worst* value over confidence ellipsoids, for all replicas.

    Q_h(s, a) = r_h(s, a) + min over C_h of E_theta[V_{h+1}],     V_h = max_a Q_h,     V_H = 0

The minimum is a maximum, min E[V] = -max E[-V], and neither the solver of :mod:`livarot.planning.optimistic` nor its
bounds ask for V >= 0.  So this is a rule of that engine whose functions change the sign of v and of what they find.
Two recursions again, with changed roles:

``value``  runs on certified **lower** bounds of the inner minimum (:func:`lower_bound`), and the policy is greedy for
           it.  By induction V_h <= V^pi_h of every model whose parameters lie in the sets: E_theta[V_{h+1}] is at least
           the minimum, the minimum at least the bound, and V^pi_{h+1} at least V_{h+1}.
``upper``  runs on the minima that the local solver found.  They are values at points of the set, so never below the
           minimum: the best worst value lies between the two start values, whatever the solver missed.

The worst case is *rectangular*: every (h, s, a) has a minimiser of its own.  One parameter has to serve them all, so
the worst value of the policy over parameters is larger or equal, and ``lower`` bounds it too, less tightly.

The policy plays the first action within the tie tolerance of the best one; ``lower`` is smaller than the start value by
what that may cost, sum_h TIE (1 + max |V_h|), which also covers the rounding of the recursion.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import FloatArray
from livarot.core.compiling.inner import inner
from livarot.core.lanes import absolute, maximum, minimum, sqrt, where
from livarot.core.tolerances import TIE
from livarot.errors import bad
from livarot.model.episodes import Estimate
from livarot.model.problem import Problem, require_problem
from livarot.model.shown import compact
from livarot.planning.optimistic.ascent import joint_maximum, two_best
from livarot.planning.optimistic.bonuses import logit_rounding, upper_bound
from livarot.planning.optimistic.choice import between, extremes, weight_of_better
from livarot.planning.optimistic.plan import optimistic_plan
from livarot.planning.optimistic.rule import LaneRule, rule
from livarot.planning.optimistic.rules import ShiftedPower


@compact
@dataclass(frozen=True, eq=False)
class PessimisticPlan:
    """One policy per replica, with a lower bound of what it is worth in every model of the confidence sets.

    Values are in the units of the rewards that were given (of costs: negative costs).
    """

    policy: NDArray[np.int32]  # (R, H, S); states that the start cannot reach keep the first action
    value: FloatArray  # (R, H + 1, S) lower bounds of the worst value, up to the tie tolerance
    lower: FloatArray  # (R,) <= the policy's value at the start, in every model of the sets
    upper: FloatArray  # (R,) >= the best worst value that any policy has
    center: FloatArray  # (R, K, d) the sets {theta : |theta - center|_gram <= radius}
    gram: FloatArray  # (R, K, G) packed
    radius: FloatArray  # (R,)

    @property
    def loss(self) -> FloatArray:
        """(R,) at most this much was given away by bounding inner minima instead of finding them."""
        return np.asarray(np.maximum(self.upper - self.lower, 0.0))


def pessimistic_plan(
    problem: Problem, estimate: Estimate, radius: float | FloatArray, solver: ShiftedPower | None = None
) -> PessimisticPlan:
    """Plan for R replicas over the ellipsoids |theta - estimate.theta|_gram <= radius, (R,) or one for all.

    >>> import livarot
    >>> mdp = livarot.envs.river_swim(4, 8)
    >>> state = livarot.agents.Livarot().init(mdp.problem)
    >>> plan = livarot.pessimistic_plan(mdp.problem, state.estimate, 0.5)
    >>> truth = livarot.evaluate(livarot.MNLMDP(mdp.problem, state.estimate.theta[0]), plan.policy[0])
    >>> bool(plan.lower[0] <= truth[0] @ mdp.problem.start)
    True
    """
    require_problem(problem)
    plan: Any = optimistic_plan(problem, estimate, radius, worst_rule(solver))  # it has a bound: no part is None
    given = TIE * (1.0 + np.abs(plan.value[:, :-1]).max(axis=2)).sum(axis=1)
    policy, units, horizon = np.asarray(plan.policy, dtype=np.int32), problem.units, problem.horizon
    value = units.values(plan.value.swapaxes(0, 1), horizon).swapaxes(0, 1)
    lower, upper = (np.asarray(units.value(x, horizon)) for x in (plan.start_value - given, plan.upper))
    return PessimisticPlan(policy, value, lower, upper, plan.center, plan.gram, plan.radius)


def worst_rule(solver: ShiftedPower | None) -> LaneRule:
    """The rule whose value is a certified lower bound of the minimum, and whose bound is a minimum that was found."""
    if solver is not None and not isinstance(solver, ShiftedPower):
        raise bad("solver", f"{solver!r} is not ShiftedPower", cure="pass livarot.ShiftedPower(...)")
    return WORST if solver is None else replace(WORST, settings=solver.settings())


@inner
def change_sign(v):
    """v = -v, in place and exactly: a rule has no room for a copy."""
    for i in range(len(v)):
        v[i] = -v[i]


@inner
def lower_bound(choice, v, settings):
    """A certified lower bound of min E[V] over the set, and min V at least."""
    change_sign(v)
    high = upper_bound(choice, v, settings)
    if len(v) > 2:  # for two outcomes the box relaxation is exact
        best, gap = joint_maximum(choice, v, settings)
        high = minimum(high, proved_bound(choice, v, best, gap))
    change_sign(v)
    return -high


@inner
def proved_bound(choice, v, best, gap):
    """An upper bound of max E[V] from a stationary point with value t = ``best`` above the second largest value.

    As in :func:`livarot.planning.optimistic.ascent.global_or_idle`: there f(x) - t = p_top(x) (V_top - t - h(x)) with h
    convex, so f grows by at most gap/p_top at the point, and p_top >= (t - V_second)/(V_top - V_second).  What rounding
    may have taken from t and from the gap is added.  max V where t is smaller: then this proves nothing.

    Wide sets push nearly all mass onto one outcome.  There this bound is nearly the maximum, where the relaxations of
    :func:`livarot.planning.optimistic.bonuses.upper_bound` are far from it.
    """
    first, second = two_best(v)
    low, _ = extremes(v)
    slip = logit_rounding(choice) * maximum(absolute(low), absolute(first))
    above = best - second - slip
    proved = best + slip + (gap + slip) * (first - second) / where(above > 0.0, above, 1.0)
    return where((above > 0.0) & (proved < first), proved, first)


@inner
def found_minimum(choice, v, settings):
    """The smallest E[V] that the local solver finds; exact for two outcomes."""
    if len(v) == 2:
        square = 0.0
        for k in range(choice.y.shape[1]):
            apart = choice.y[0, k] - choice.y[1, k]
            square += apart * apart
        weight = weight_of_better(choice.z0[0] - choice.z0[1], -choice.beta * sqrt(square), v[0] >= v[1])
        return between(weight, v[0], v[1])
    change_sign(v)
    best, _ = joint_maximum(choice, v, settings)
    change_sign(v)
    return -best


WORST: LaneRule = rule(lower_bound, bound=found_minimum, settings=ShiftedPower().settings())
