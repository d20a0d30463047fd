"""Discounted planning against an adversary who moves each transition within a KL distance.

The kernel p0(.|s, a) is trusted only roughly.  For every (s, a) anew, and at every visit (*rectangular* uncertainty),
an adversary picks p on the same next states.  With x(s') = r(s, a, s') + gamma V(s'), what the law decides about:

    radius eps    Q(s, a) = r(s, a) + min { E_p x : KL(p | p0) <= eps }
    penalty eta   Q(s, a) = r(s, a) + min_p { E_p x + KL(p | p0)/eta } = r(s, a) - (1/eta) log E_p0 exp(-eta x)

(one such choice: :mod:`livarot.planning.robust.kl`).  Both operators are monotone and L(v + c) = L v + gamma c, so the
interval of :mod:`livarot.infinite.planning.discounted` holds here too, widened by the largest duality gap of a choice.

A round costs little more than a plain one.  p0 itself is in the ball, so the nominal backup bounds every Q from above:
the adversary is asked about the policy's own actions first, and then only about actions whose nominal Q exceeds what
these have.  A policy is evaluated on the chain that its adversary left it at the last v; its rewards are such that one
backup of that v is the robust one.  A ball's dual variable is looked for from its last value.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array, IntArray
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.lanes import W, lanes, number_in, where
from livarot.core.views import Bundle, flat, opened, part
from livarot.errors import bad, require_finite
from livarot.infinite.planning.discounted import Found, Work, accuracy_of, discount_of, fixed_point
from livarot.infinite.planning.sparse import Chain, all_q, chain_of, largest, rounding
from livarot.infinite.problem import InfiniteMDP, check_stationary
from livarot.infinite.solution import Policy, Stationary, worth_at_start
from livarot.infinite.terms import below_one
from livarot.model.terms.units import PLAIN
from livarot.planning.robust.curve import RobustnessCurve
from livarot.planning.robust.kl import BALL, INFINITE, PENALTY, answer, exp_and_change, look, one_of


@dataclass(frozen=True, eq=False, repr=False)
class RobustDiscounted(Stationary):
    """Robust values: ``lower`` <= worst-case value of ``policy`` <= the best worst-case value <= ``upper``."""

    value: FloatArray  # (S,)
    policy: Policy  # (S,), -1 in terminal states
    lower: FloatArray  # (S,)
    upper: FloatArray  # (S,)
    dual: FloatArray  # (S,) eta of the tilt at the policy's action, per unit of value; 0 where p = p0
    n_iter: int
    discount: float
    method: str
    mdp: InfiniteMDP = field(repr=False)
    levels: FloatArray = field(repr=False)
    ball: bool = field(repr=False)

    @cached_property
    def q(self) -> FloatArray:
        """The robust Q of ``value``, (S, A); -inf where there is no action."""
        unit, adversary = self.mdp.problem.terms.unit, Adversary(self.mdp, self.discount, self.levels, self.ball)
        q = adversary.all_q(self.value / unit) * unit
        q[self.mdp.problem.terms.terminal] = -math.inf
        return q


@checked(discount=below_one)
def solve_robust(
    mdp: InfiniteMDP,
    discount: float | None = None,
    *,
    radius: ArrayLike | None = None,
    penalty: ArrayLike | None = None,
    tol: float | None = None,
    max_iter: int = 10_000,
) -> RobustDiscounted:
    """The policy with the best worst case, its values and their bounds.

    Exactly one of ``radius`` (of the KL ball) and ``penalty`` (eta, in units of one over the user's) is given: a number
    >= 0, or an array (S, A).  0 is :func:`solve_discounted`.

    >>> from livarot.envs import park_two_state
    >>> from livarot.infinite import InfiniteMDP
    >>> mdp = InfiniteMDP.from_mdp(park_two_state())
    >>> for radius in (0.0, 0.01, 0.1):
    ...     print(solve_robust(mdp, 0.9, radius=radius).value.round(4))
    [4.3674 6.1005]
    [3.3972 5.1279]
    [1.4759 3.144 ]
    """
    gamma = discount_of(mdp, discount)
    levels, ball = _levels(mdp, radius, penalty)
    adversary, work = Adversary(mdp, gamma, levels, ball), Work()
    found = fixed_point(adversary, gamma, accuracy_of(mdp, tol), max_iter, work)
    return _solution(mdp, adversary, found, work)


@checked(discount=below_one)
def evaluate_robust(
    mdp: InfiniteMDP,
    policy: ArrayLike,
    discount: float | None = None,
    *,
    radius: ArrayLike | None = None,
    penalty: ArrayLike | None = None,
    tol: float | None = None,
) -> RobustDiscounted:
    """The worst case of a policy, actions (S,): values with their bounds."""
    gamma = discount_of(mdp, discount)
    levels, ball = _levels(mdp, radius, penalty)
    fixed = check_stationary(mdp.problem, policy)
    if fixed.ndim != 1:
        raise bad("policy", "is stochastic", cure="give one action per state")
    adversary, work = Adversary(mdp, gamma, levels, ball, fixed), Work()
    found = fixed_point(adversary, gamma, accuracy_of(mdp, tol), 10_000, work)
    return _solution(mdp, adversary, found, work)


def _solution(mdp: InfiniteMDP, adversary: Adversary, found: Found, work: Work) -> RobustDiscounted:
    unit = mdp.problem.terms.unit
    own = np.arange(mdp.problem.n_states) * mdp.problem.n_actions + found.policy
    return RobustDiscounted(
        unit * found.value,
        Policy.of(mdp.problem, found.policy),
        unit * found.lower,
        unit * found.upper,
        adversary.dual[own] / unit,
        found.n_iter,
        adversary.gamma,
        f"modified policy iteration against a KL {'ball' if adversary.ball else 'penalty'}, {work}",
        mdp,
        adversary.levels,
        adversary.ball,
    )


def _levels(mdp: InfiniteMDP, radius: ArrayLike | None, penalty: ArrayLike | None) -> tuple[FloatArray, bool]:
    """The radius or penalty of every pair, (1,) or (S A,), in the model's units; is it a radius?"""
    given, ball = one_of(radius, penalty)
    name, shape = "radius" if ball else "penalty", (mdp.problem.n_states, mdp.problem.n_actions)
    level = require_finite(name, given)
    if level.shape not in ((), shape):
        raise bad(name, f"has shape {level.shape}", cure=f"give a number, or an array {shape}")
    wrong = np.argwhere(level < 0.0)
    if len(wrong):
        first = tuple(int(i) for i in wrong[0]) or None
        raise bad(name, "is negative", index=first, count=len(wrong), cure="give numbers >= 0; 0 is the nominal model")
    return np.ascontiguousarray(level.reshape(-1) * (1.0 if ball else mdp.problem.terms.unit)), ball


class _Task(NamedTuple):
    """The arrays that the adversary reads and fills."""

    row_start: Any
    next_state: Any
    prob: Any
    extra: Any  # (rows,) r(s, a, s'), or (0,)
    levels: Any  # (1,) or (S A,)
    v: Any  # (S,)
    future: Any  # (S A,) what is left of x
    dual: Any  # (S A,)
    memory: Any  # (2 U + 2, W)
    gamma: float


class Adversary:
    """L v = max_a (r + what the adversary leaves of x); see :class:`livarot.infinite.planning.discounted.Operator`."""

    def __init__(
        self, mdp: InfiniteMDP, gamma: float, levels: FloatArray, ball: bool, fixed: Int32Array | None = None
    ) -> None:
        problem = mdp.problem
        self.mdp, self.gamma, self.levels, self.ball, self.fixed = mdp, gamma, levels, ball, fixed
        self.n_states, self.n_actions = problem.n_states, problem.n_actions
        self.pay, self.nominal = problem.scaled_pay(gamma), mdp.scaled_pay(gamma)
        extra = problem.scaled_outcome_reward
        self.extra = np.zeros(0) if extra is None else extra
        self.top = max(largest(self.pay), largest(self.nominal), float(np.abs(self.extra).max(initial=0.0)))
        self.gap = 0.0  # the largest duality gap so far
        self.future, self.dual = np.zeros(self.pay.size), np.zeros(self.pay.size)
        self.memory = np.empty((2 * problem.max_reachable + 2, W))

    def error(self, v: FloatArray) -> float:
        """Rounding is a few times that of a mean, see planning/robust/kl.py; plus the duality gap."""
        return self.gap + 4.0 * rounding(self.mdp.problem.max_reachable, self.top, v)

    def _task(self, v: FloatArray) -> Bundle:
        rows = self.mdp.problem.rows
        arrays = rows.row_start, rows.next_state, self.mdp.prob, self.extra, self.levels, v, self.future, self.dual
        return Bundle(_Task(*arrays, self.memory, self.gamma))

    def _ask(self, v: FloatArray, pairs: IntArray) -> FloatArray:
        """Q of these pairs, and their duals."""
        self.gap = max(self.gap, float(answer_pairs(self._task(v), pairs, BALL if self.ball else PENALTY)))
        return np.asarray(self.pay.reshape(-1)[pairs] + self.future[pairs])

    def back_up(self, v: FloatArray, best: FloatArray, policy: Int32Array, tie: float) -> tuple[float, float, float]:
        self.gap = 0.0
        if self.fixed is not None:
            policy[:] = self.fixed
        elif (self.future == 0.0).all():  # the first round: no policy yet
            policy[:] = np.isfinite(self.pay).argmax(axis=1)
        first = np.arange(self.n_states) * self.n_actions
        q = np.full(self.pay.size, -math.inf)
        q[first + policy] = self._ask(v, first + policy)
        best[:] = q[first + policy]
        if self.fixed is None:
            hope = all_q(self.mdp, self.nominal, self.gamma, v)
            slack = self.error(v) + 2.0 * tie * (1.0 + np.abs(best))
            open_ = hope >= (best - slack)[:, None]
            open_[np.arange(self.n_states), policy] = False
            pairs = np.flatnonzero(open_.reshape(-1))
            if len(pairs):
                q[pairs] = self._ask(v, pairs)
            table = q.reshape(self.pay.shape)
            best[:] = table.max(axis=1)
            policy[:] = (table >= (best - tie * (1.0 + np.abs(best)))[:, None]).argmax(axis=1)
        rise, own = best - v, q[first + policy] - v
        return float(rise.min()), float(rise.max()), float(own.min())

    def chain(self, policy: Int32Array, v: FloatArray) -> Chain:
        """The kernel that the adversary left at v, with rewards such that its backup of v is the robust one."""
        chain = chain_of(self.mdp, policy, self.pay)
        pairs = np.arange(self.n_states) * self.n_actions + policy
        tilt(self._task(v), pairs, chain.start, chain.prob)
        reward = self.pay.reshape(-1)[pairs] + self.future[pairs] - self.gamma * (chain.matrix @ v)
        return chain._replace(reward=reward)

    def all_q(self, v: FloatArray) -> FloatArray:
        """The robust Q of v, (S, A)."""
        q = np.full(self.pay.size, -math.inf)
        pairs = np.flatnonzero(np.isfinite(self.pay.reshape(-1)))
        q[pairs] = self._ask(v, pairs)
        return q.reshape(self.pay.shape)


@inner
def _gathered(t, pairs, begin):
    """What W pairs are worth, their probabilities (0 for missing outcomes), their levels and their last duals."""
    numbers, longest = flat(t.memory), 1
    for k in range(W):
        pair = pairs[min(begin + k, len(pairs) - 1)]
        numbers[k], numbers[W + k] = t.levels[pair if len(t.levels) > 1 else 0], t.dual[pair]
        longest = max(longest, t.row_start[pair + 1] - t.row_start[pair])
    for k in range(W):
        pair = pairs[min(begin + k, len(pairs) - 1)]
        row, n = t.row_start[pair], t.row_start[pair + 1] - t.row_start[pair]
        for i in range(longest):
            x, p = 0.0, 0.0
            if i < n:
                x, p = t.gamma * t.v[t.next_state[row + i]], t.prob[row + i]
                if len(t.extra) > 0:
                    x += t.extra[row + i]
            numbers[(2 + i) * W + k] = x
            numbers[(2 + longest + i) * W + k] = p
    space = lanes(t.memory)
    return part(space, 2, longest), part(space, 2 + longest, longest), space[0], space[1]


@jit
def answer_pairs(task, pairs, kind):
    """What the adversary leaves these pairs, and the duals; gives the largest duality gap."""
    t, gap = opened(task), 0.0
    for begin in range(0, len(pairs), W):
        x, p, level, last = _gathered(t, pairs, begin)
        found = answer(look(x, p), level, kind, last)
        for k in range(min(W, len(pairs) - begin)):
            t.future[pairs[begin + k]] = number_in(found.value, k)
            t.dual[pairs[begin + k]] = number_in(found.dual, k)
            gap = max(gap, number_in(found.gap, k))
    return gap


@jit
def tilt(task, pairs, start, prob):
    """The worst laws of one pair per state, p0 exp(-eta x) normalised; on the minimisers where the dual is infinite."""
    t = opened(task)
    for begin in range(0, len(pairs), W):
        x, p, _, eta = _gathered(t, pairs, begin)
        choice, count = look(x, p), min(W, len(pairs) - begin)
        sure, total = eta == INFINITE, eta * 0.0
        pivot = where(eta * choice.mean <= 30.0, choice.mean, 0.0)
        for i in range(len(x)):
            grown, _ = exp_and_change(-where(sure, 0.0, eta) * (x[i] - pivot))
            p[i] *= where(sure, where(x[i] <= choice.tie, 1.0, 0.0), grown)
            total = p[i] if i == 0 else total + p[i]
        for i in range(len(x)):
            p[i] /= total
        for k in range(count):
            s = begin + k
            for i in range(start[s + 1] - start[s]):
                prob[start[s] + i] = number_in(p[i], k)


@checked(discount=below_one)
def robustness_curve(
    mdp: InfiniteMDP, radii: ArrayLike, discount: float | None = None, *, tol: float | None = None
) -> RobustnessCurve:
    """Worst-case values at the start for several radii of the KL ball, in the order given.

    >>> from livarot.envs import park_two_state
    >>> from livarot.infinite import InfiniteMDP
    >>> robustness_curve(InfiniteMDP.from_mdp(park_two_state()), [0.0, 0.01, 0.1], 0.9)
    RobustnessCurve
      radius  robust value, value of the nominal policy, changed decisions
      0       4.36742, 4.36742, 0
      0.01    3.39718, 3.39718, 0
      0.1     1.47592, 1.47592, 0
    """
    listed, problem = require_finite("radii", radii), mdp.problem
    if listed.ndim != 1 or len(listed) == 0:
        raise bad("radii", f"has shape {listed.shape}", cure="list the radii, numbers >= 0")
    nominal = np.asarray(solve_robust(mdp, discount, radius=0.0, tol=tol).policy)
    plans = [solve_robust(mdp, discount, radius=float(radius), tol=tol) for radius in listed]
    kept = [evaluate_robust(mdp, nominal, discount, radius=float(radius), tol=tol) for radius in listed]
    return RobustnessCurve(
        listed,
        np.array([worth_at_start(problem, plan.value) for plan in plans]),
        np.array([worth_at_start(problem, one.value) for one in kept]),
        np.stack([np.asarray(plan.policy) for plan in plans])[:, None],
        np.array([int((np.asarray(plan.policy) != nominal).sum()) for plan in plans]),
        replace(problem.stage, units=PLAIN._replace(cost=problem.terms.costs)),
    )
