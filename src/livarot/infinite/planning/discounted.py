"""Discounted reward, planned exactly: modified policy iteration on the sparse model, with a certificate.

With L v = max_a (r + gamma P v) and d = L v - v, for any v whatsoever and any policy pi,

    v + min_s (T_pi v - v)/(1 - gamma)  <=  V^pi  <=  V*  <=  v + max_s d/(1 - gamma),

so the interval that is returned, widened by what rounding can do to d, holds for the optimal value *and* for the value
of the policy returned with it.  It needs only that L is monotone and that L(v + c) = L v + gamma c, which is as true of
an adversary's L (:mod:`livarot.infinite.planning.robust`) and of an optimist's
(:mod:`livarot.infinite.planning.optimistic`): the three share :func:`fixed_point`.

Between improvements the policy is evaluated: by sweeps v <- T_pi v, each shifted by the midpoint of its rise times
gamma/(1 - gamma), so that their error falls as the chain mixes and not as gamma^k; and where the sweeps turn out to be
slow (discounts near 1, chains that mix slowly), by a linear solve with a Krylov method.  The choice is made after
WATCHED sweeps, by the number of further sweeps that their rate predicts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array
from livarot.core.tolerances import TIE
from livarot.errors import bad, require_positive
from livarot.infinite.planning.sparse import (
    DIRECT,
    EPS,
    Chain,
    all_q,
    back_up,
    chain_of,
    discounted_system,
    largest,
    rounding,
    rows_of,
    solve_system,
    sweep,
)
from livarot.infinite.problem import InfiniteMDP, check_stationary
from livarot.infinite.solution import Policy, Stationary
from livarot.infinite.terms import below_one

LESS = 0.005  # an evaluation reduces the span that the improvement found to this share of it
PATIENCE = 60  # sweeps: an evaluation that would take more is done by a linear solve
WATCHED = 5  # sweeps from whose progress the number that will be needed is predicted
ACCURATE = 1e-10  # the width of the interval, in units of the model's rewards, unless another one is asked for
PROGRESS = 0.9  # an evaluation that leaves more than this share of the width is not trusted: a plain round follows


@dataclass(frozen=True, eq=False, repr=False)
class DiscountedSolution(Stationary):
    """Discounted values, with ``lower`` <= V^policy <= V* <= ``upper`` in every state, and ``value`` between them."""

    value: FloatArray  # (S,)
    policy: Policy  # (S,), -1 in terminal states
    lower: FloatArray  # (S,)
    upper: FloatArray  # (S,)
    n_iter: int  # improvements
    discount: float
    method: str
    mdp: InfiniteMDP = field(repr=False)

    @cached_property
    def q(self) -> FloatArray:
        """r + gamma P value, (S, A); -inf where there is no action."""
        unit = self.mdp.problem.terms.unit
        pay = self.mdp.scaled_pay(self.discount)
        q = unit * all_q(self.mdp, pay, self.discount, self.value / unit)
        q[self.mdp.problem.terms.terminal] = -math.inf
        return q


def discount_of(mdp: InfiniteMDP, discount: float | None) -> float:
    """The discount of a call, or the model's own: below 1."""
    found = mdp.discount if discount is None else discount
    if found is None:
        raise bad("discount", "is not given, and the model has none", cure="give discount=, or use solve_average")
    number = below_one("discount", found)
    return 0.0 if number is None else number


@checked(discount=below_one)
def policy_value(mdp: InfiniteMDP, policy: ArrayLike, discount: float | None = None) -> FloatArray:
    """V^pi = (I - gamma P)^-1 r, (S,), to rounding, in the user's units; ``discount`` None is the model's."""
    gamma = discount_of(mdp, discount)
    chain = chain_of(mdp, check_stationary(mdp.problem, policy), mdp.scaled_pay(gamma))
    v, low, high, span = np.zeros(len(chain.reward)), 0.0, 0.0, math.inf
    top, work = float(np.abs(chain.reward).max()), Work()
    while True:
        aim = 4.0 * rounding(mdp.problem.max_reachable, top, v)
        if span <= aim or (len(v) <= DIRECT and span < math.inf):
            return v * mdp.problem.terms.unit
        before = span
        v, low, high = evaluated(chain, gamma, v, max(aim, LESS * span if span < math.inf else LESS), work)
        span = high - low
        if span >= before:  # neither sweeps nor a linear solve make progress
            known = span / (1.0 - gamma)
            raise bad("policy", f"an error of up to {known:.3g} in its value remains", cure="lower the discount")


@checked(discount=below_one)
def solve_discounted(
    mdp: InfiniteMDP, discount: float | None = None, *, tol: float | None = None, max_iter: int = 1_000_000
) -> DiscountedSolution:
    """The optimal discounted values to ``upper`` - ``lower`` <= ``tol`` in every state, unless rounding allows no less.

    ``discount`` None is the model's; ``tol`` is in the user's units, None is 1e-10 of the scale of the rewards.

    >>> from livarot.envs import park_two_state
    >>> found = solve_discounted(InfiniteMDP.from_mdp(park_two_state()), 0.9)
    >>> found.value.round(6).tolist(), bool((found.upper - found.lower).max() <= 1e-10)
    ([4.367418, 6.10052], True)
    """
    gamma = discount_of(mdp, discount)
    operator, work = Bellman(mdp, gamma), Work()
    found = fixed_point(operator, gamma, accuracy_of(mdp, tol), max_iter, work)
    unit = mdp.problem.terms.unit
    return DiscountedSolution(
        unit * found.value,
        Policy.of(mdp.problem, found.policy),
        unit * found.lower,
        unit * found.upper,
        found.n_iter,
        gamma,
        f"modified policy iteration, {work}",
        mdp,
    )


def accuracy_of(mdp: InfiniteMDP, tol: float | None) -> float:
    """The width asked for, in units of the model's rewards."""
    return ACCURATE if tol is None else require_positive("tol", tol) / mdp.problem.terms.unit


class Work:
    """How policies were evaluated."""

    def __init__(self) -> None:
        self.sweeps, self.systems = 0, 0

    def __str__(self) -> str:
        return f"{self.sweeps} sweeps, {self.systems} linear solves"


class Operator(Protocol):
    """A monotone L with L(v + c) = L v + gamma c, as a maximum over actions."""

    n_states: int

    def back_up(self, v: FloatArray, best: FloatArray, policy: Int32Array, tie: float) -> tuple[float, float, float]:
        """best = L v, its policy, the smallest and largest rise, and the smallest rise under the policy."""
        ...

    def error(self, v: FloatArray) -> float:
        """What rounding, or an answer that is not exact, can do to L v."""
        ...

    def chain(self, policy: Int32Array, v: FloatArray) -> Chain:
        """A chain whose backup of v is the policy's."""
        ...


class Bellman:
    """L v = max_a (r + gamma P v)."""

    def __init__(self, mdp: InfiniteMDP, gamma: float) -> None:
        self.mdp, self.gamma, self.pay = mdp, gamma, mdp.scaled_pay(gamma)
        self.n_states, self.top, self.rows = mdp.problem.n_states, largest(self.pay), rows_of(mdp)

    def back_up(self, v: FloatArray, best: FloatArray, policy: Int32Array, tie: float) -> tuple[float, float, float]:
        low, high, own = back_up(self.rows, self.pay, self.gamma, v, best, policy, tie)
        return low, high, own

    def error(self, v: FloatArray) -> float:
        return rounding(self.mdp.problem.max_reachable, self.top, v)

    def chain(self, policy: Int32Array, v: FloatArray) -> Chain:
        return chain_of(self.mdp, policy, self.pay)


class Found(NamedTuple):
    """A fixed point with its interval, in units of the model's rewards."""

    value: FloatArray
    policy: Int32Array
    lower: FloatArray
    upper: FloatArray
    n_iter: int


def fixed_point(
    operator: Operator, gamma: float, tol: float, max_iter: int, work: Work, guess: FloatArray | None = None
) -> Found:
    """Modified policy iteration until the interval is no wider than ``tol``, or than 8 times what rounding allows.

    An evaluation that hardly shrinks the interval (its chain was made for another v) is followed by a round of value
    iteration alone, which always shrinks it.  With a ``guess`` the interval after ``max_iter`` rounds is given back,
    however wide it is.
    """
    far, n = 1.0 - gamma, operator.n_states
    v = np.zeros(n) if guess is None else guess
    best, policy, before, trusted = np.empty(n), np.zeros(n, dtype=np.int32), math.inf, True
    for done in range(1, max_iter + 1):
        error = operator.error(v)
        accuracy = max(tol, 8.0 * error / far)
        tie = min(TIE, accuracy * far / (4.0 * (1.0 + float(np.abs(v).max()))))
        low, high, own = operator.back_up(v, best, policy, tie)
        error = max(error, operator.error(v))
        narrow = (high - own + 2.0 * error) / far <= max(accuracy, 8.0 * error / far)
        if narrow or (done == max_iter and guess is not None):
            lower, upper = v + (own - error) / far, v + (high + error) / far
            value = np.clip(v if n <= DIRECT else v + 0.5 * (own + high) / far, lower, upper)
            return Found(value, policy, lower, upper, done)
        trusted = not trusted or high - low <= PROGRESS * before
        before = high - low
        chain = operator.chain(policy, v) if trusted else None
        v = best + 0.5 * gamma * (low + high) / far
        if chain is not None:
            v, _, _ = evaluated(chain, gamma, v, max(LESS * (high - low), error), work)
    known = f"values are known to {(high - own + 2.0 * error) / far:.3g} only, after {max_iter} iterations"
    raise bad("max_iter", known, cure="raise max_iter or tol")


def evaluated(chain: Chain, gamma: float, v: FloatArray, aim: float, work: Work) -> tuple[FloatArray, float, float]:
    """Improve v as the value of a policy until the rise T_pi v - v has a span below ``aim``; v, and the rise's ends.

    Sweeps come first; after a few of them their rate is known, and if it is slow a linear solve does the rest.
    """
    if len(v) <= DIRECT:
        work.systems += 1
        v = solve_system(discounted_system(chain, gamma), chain.reward, v, 0.0)
        return v, *sweep(*chain, gamma, v, np.empty(len(v)))
    far, out, spans = 1.0 - gamma, np.empty(len(v)), [math.inf]
    while len(spans) <= PATIENCE:
        low, high = sweep(*chain, gamma, v, out)
        work.sweeps += 1
        v, out = out + 0.5 * gamma * (low + high) / far, v
        spans.append(high - low)
        if spans[-1] <= aim:
            return v, low, high
        if len(spans) > WATCHED and math.log(aim / spans[-1]) < (PATIENCE - len(spans)) * _rate(spans):
            work.systems += 1
            share = max(0.1 * aim / spans[-1], EPS)
            v = solve_system(discounted_system(chain, gamma), chain.reward, v, share)
            break
    low, high = sweep(*chain, gamma, v, out)
    return out + 0.5 * gamma * (low + high) / far, low, high


def _rate(spans: list[float]) -> float:
    """The logarithm of the share of the span that a sweep leaves, averaged over the last few; kept below 0."""
    return min(math.log(spans[-1] / spans[-WATCHED]) / (WATCHED - 1), -1e-9)
