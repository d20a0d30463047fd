"""Closed-form optimism for problems with one informative stage: bandits, and one decision among certain moves.

If only one stage has anything to learn, the values of its outcomes are known exactly, and a plan needs one upper bound
per (s, a) of that stage and no recursion over uncertain values.  With W the whitener of the Gram matrix, y_i = W phi_i,
p = p(theta_hat), v the values of the outcomes and vbar = p . v:

``gradient_bound``  p.v + beta |sum_i p_i (v_i - vbar) y_i| + c R beta^2 lambda_max(Y Y'),  R = |v|_2    (OFUL-MLogB)
``utility_box``     max over |z_i - phi_i . theta_hat| <= beta |y_i| of softmax(z) . v                   (OFU-MNL++)
``raised_utility``  softmax(z) . v at z_i = phi_i . theta_hat + beta |y_i|: not a bound in general       (as printed)

All three are at most max_i v_i.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livarot.agents.online import MirrorDescent, OnlineState
from livarot.core.arguments import checked
from livarot.core.arrays import IntArray
from livarot.core.compiling.basics import new_floats
from livarot.core.compiling.inner import inner
from livarot.core.lanes import W, absolute, maximum, minimum, number_in, sqrt, with_number
from livarot.core.law import expectation, softmax
from livarot.errors import bad
from livarot.model.derived import derived
from livarot.model.episodes import Plan
from livarot.model.problem import Problem
from livarot.planning.optimistic.bonuses import box_bound, box_weights, rounding
from livarot.planning.optimistic.choice import dot, extremes, gradient, solver_room
from livarot.planning.optimistic.rule import LaneRule, rule
from livarot.simulation.streams import AgentRandom


def informative_stage(problem: Problem, agent: str) -> int:
    """The one stage where a reachable state has something to learn; a LivarotError if there are more, or none."""
    found = _informative_stages(problem)
    if len(found) != 1:
        several = f"{len(found)} stages have something to learn"
        raise bad(
            "problem",
            f"{several if len(found) else 'no stage has anything to learn'}, {agent} is defined for one",
            index=int(found[1]) if len(found) else None,
            cure="use livarot.envs.mnl_bandit, or an agent for MDPs such as Livarot()",
        )
    return int(found[0])


@derived
def _informative_stages(problem: Problem) -> IntArray:
    rows, per_table = problem.rows, problem.n_states * problem.n_actions
    teaches = np.zeros(problem.horizon, dtype=np.bool_)
    for h in range(problem.horizon):
        first = int(problem.stage_table[h]) * per_table
        blocks = rows.pair_block[first : first + per_table].reshape(problem.n_states, -1)
        teaches[h] = (blocks[problem.reachable[h]] >= 0).any()
    return np.flatnonzero(teaches)


@checked
class OneStageAgent(MirrorDescent):
    """OMD and closed-form optimism; ``upper`` is certified unless the rule is ``raised_utility``."""

    made_for = "mnl-bandit"

    def optimism(self) -> LaneRule:
        raise NotImplementedError

    def init(self, problem: Problem, n_replicas: int = 1) -> OnlineState:
        informative_stage(problem, self.name)
        return super().init(problem, n_replicas)

    def plan(self, problem: Problem, state: OnlineState, rng: AgentRandom) -> Plan:
        informative_stage(problem, self.name)
        plan = super().plan(problem, state, rng)
        return plan._replace(upper=None if self.optimism() is raised_utility else plan.start_value)


class Constant(NamedTuple):
    """c of the second-order term."""

    constant: float = 1.0


@rule(settings=Constant())
def gradient_bound(choice, v, settings):
    """p.v + beta |sum p_i (v_i - vbar) y_i| + c |v|_2 beta^2 lambda_max(Y Y'), at most max v."""
    room = solver_room(choice)
    mean = expectation(choice.p, v)
    for i in range(len(v)):
        room.weight[i] = choice.p[i] * (v[i] - mean)
    gradient(choice.y, room.weight, room.g)
    slope = choice.beta * sqrt(dot(room.g, room.g))
    second = settings.constant * sqrt(dot(v, v)) * choice.beta * choice.beta * largest_eigenvalue(choice.y)
    _, high = extremes(v)
    return minimum(mean + slope + second, high)


@inner
def largest_eigenvalue(y):
    """lambda_max(Y Y')."""
    n, m = y.shape
    found, square = y[0, 0] * 0.0, new_floats(n, n)
    for k in range(W):
        for i in range(n):
            for j in range(i + 1):
                total = 0.0
                for c in range(m):
                    total += number_in(y[i, c], k) * number_in(y[j, c], k)
                square[i, j], square[j, i] = total, total
        found = with_number(found, k, max(np.linalg.eigvalsh(square)[n - 1], 0.0))
    return found


@inner
def raise_logits(choice, logits, width):
    """width_i = beta |y_i|, and the logits raised by them."""
    n, m = choice.y.shape
    for i in range(n):
        square = choice.y[i, 0] * choice.y[i, 0]
        for k in range(1, m):
            square += choice.y[i, k] * choice.y[i, k]
        width[i] = choice.beta * sqrt(square)
        logits[i] = choice.z0[i] + width[i]


@rule
def raised_utility(choice, v, settings):
    """softmax(z) . v with every logit raised by beta |y_i|."""
    room = solver_room(choice)
    raise_logits(choice, room.weight, room.other)
    softmax(room.weight, room.weight)
    return expectation(room.weight, v)


@rule
def utility_box(choice, v, settings):
    """The maximum over the box of half-widths beta |y_i|, rounded up
    (:func:`livarot.planning.optimistic.bonuses.box_bound`)."""
    n, m = choice.y.shape
    room, width, logit = solver_room(choice), choice.width, absolute(choice.z0[0])
    raise_logits(choice, room.weight, width)  # the half-widths about the mean are not needed any more
    for i in range(1, n):
        logit = maximum(logit, absolute(choice.z0[i]))
    slip = rounding(n, m, logit, choice.beta * sqrt(choice.longest))
    low, high = extremes(v)
    box_weights(choice.z0, width, slip, m, room.weight, room.other)
    return box_bound(v, room.weight, room.other, low, high)
