"""Optimistic planning over a confidence ellipsoid of the parameter: extended value iteration with certified bounds.

For theta in C = {theta : |theta - theta_hat|_{Sigma^-1} <= beta}, and x(s') = r(s, a, s') + gamma V(s'),

    Q(s, a) = r(s, a) + max over C of E_theta x,      V = max_a Q,

each pair by itself (*rectangular*).  The maximum is taken by a rule of :mod:`livarot.planning.optimistic.rules`: the
joint maximum, by a local solver, or the variance-aware bound.  A rule comes with a bound U that holds whatever the
solver did, and L_theta v <= U v for every theta in C.  L_theta is monotone and L_theta(v + c) = L_theta v + gamma c,
hence, for any v whatsoever and every theta in C,

    V*_theta  <=  v + max_s (U v - v)/(1 - gamma),          g*_theta  <=  max_s (U v - v)   (gamma = 1):

one backup of any v proves an upper bound.  The second run, on U itself, looks for a v that makes it small.

Policies are evaluated at the centre theta_hat with the optimism of the last round held fixed; that is a guess at the
next v, nothing more, and a round of value iteration follows where it did not help (:func:`fixed_point`).
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array
from livarot.core.compiling.basics import new_floats, new_integers
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.lanes import W, lane, put, take
from livarot.core.tolerances import TIE
from livarot.core.views import Bundle, opened, part, view
from livarot.errors import bad, require_finite, require_non_negative
from livarot.infinite.planning.average import gain_of, require_no_end
from livarot.infinite.planning.discounted import PROGRESS, Work, accuracy_of, fixed_point
from livarot.infinite.planning.sparse import DIRECT, Chain, chain_of, largest, rounding
from livarot.infinite.problem import InfiniteMDP
from livarot.infinite.solution import Policy, Stationary
from livarot.infinite.terms import stored_discount
from livarot.model.compiled import plan_model
from livarot.model.derived import derived
from livarot.model.problem import Problem
from livarot.planning.optimistic.choice import choice_size, two_outcomes
from livarot.planning.optimistic.loops.blocks import pair_blocks
from livarot.planning.optimistic.loops.loop_parts import PairTask
from livarot.planning.optimistic.loops.pairs import load_two, make_room, value_pairs
from livarot.planning.optimistic.rule import LaneRule
from livarot.planning.optimistic.rules import JointMaximum, Rule, check_rule

MORE = 200  # rounds of the run that looks for a smaller upper bound


@dataclass(frozen=True, eq=False, repr=False)
class OptimisticDiscounted(Stationary):
    """Optimistic values: V*_theta <= ``upper`` for every theta of the set, and ``lower`` <= the largest of them."""

    value: FloatArray  # (S,)
    policy: Policy  # (S,), -1 in terminal states
    lower: FloatArray  # (S,)
    upper: FloatArray  # (S,)
    radius: float
    n_iter: int
    discount: float
    method: str
    mdp: InfiniteMDP = field(repr=False)

    def _proof(self) -> str:
        above = float((self.upper - self.value).max())
        return f"no model of the set exceeds these values by more than {above:.3g}; {self.method}"


@dataclass(frozen=True, eq=False, repr=False)
class OptimisticAverage(Stationary):
    """An optimistic gain: g*_theta <= ``upper`` for every theta of the set, and ``lower`` <= the largest of them."""

    gain: float
    bias: FloatArray  # (S,)
    policy: Policy  # (S,), -1 in terminal states
    lower: float
    upper: float
    radius: float
    n_iter: int
    method: str
    mdp: InfiniteMDP = field(repr=False)

    def _measures(self) -> dict[str, FloatArray]:
        return {"bias": self.bias}

    def _proof(self) -> str:
        return f"gain {self.gain:.9g} per step, in [{self.lower:.9g}, {self.upper:.9g}]; {self.method}"


@checked(discount=stored_discount)
def solve_optimistic(
    mdp: InfiniteMDP,
    covariance: ArrayLike,
    discount: float | None = None,
    *,
    level: float = 0.95,
    radius: float | None = None,
    rule: Any = None,
    tol: float | None = None,
) -> OptimisticDiscounted | OptimisticAverage:
    """Values and policy of the best model in the set around ``mdp.theta``, with a certified upper bound.

    ``covariance`` (d, d) is that of the estimate, in the units of ``mdp.theta``; the set is |theta - mdp.theta| <=
    ``radius`` in the norm of its inverse, by default the ellipsoid that holds the truth with probability ``level``
    under a normal law.  Discounted at ``discount``, or at the model's own; without either, or at 1, for the average
    reward.  ``rule`` is JointMaximum() unless given; it needs a certified bound.

    >>> from livarot.envs import park_two_state
    >>> from livarot.infinite import InfiniteMDP, solve_discounted
    >>> mdp = InfiniteMDP.from_mdp(park_two_state())
    >>> found = solve_optimistic(mdp, 0.01 * np.eye(mdp.problem.dim), 0.9)
    >>> bool((found.upper >= solve_discounted(mdp, 0.9).value).all()), bool((found.lower <= found.upper).all())
    (True, True)
    """
    gamma = mdp.discount if discount is None else discount
    gamma = 1.0 if gamma is None else gamma
    whiten = whitener(mdp, covariance)
    beta = radius_of(mdp, level, radius)
    made = _certified(rule)
    optimist = Optimist(mdp, gamma, whiten, beta, made)
    width, unit = max(accuracy_of(mdp, tol), 1e-9), mdp.problem.terms.unit
    own = replace_bound(optimist) if made.bound is not None else optimist
    told = f"extended value iteration, {type(rule if rule is not None else JointMaximum()).__name__}"
    if gamma == 1.0:
        require_no_end(mdp)
        gain = _relative(optimist, width)
        top = _relative(own, width).high if own is not optimist else gain.high
        bias, policy = unit * (gain.v - gain.v[0]), Policy.of(mdp.problem, gain.policy)
        middle = 0.5 * (gain.low + gain.high)
        numbers = unit * middle, bias, policy, unit * gain.own, unit * top
        return OptimisticAverage(*numbers, beta, gain.n_iter, told, mdp)
    work = Work()
    found = fixed_point(optimist, gamma, width, 100_000, work)
    upper = found.upper
    if own is not optimist:
        upper = np.minimum(first_upper(own, found.value), fixed_point(own, gamma, width, MORE, work, found.value).upper)
    policy = Policy.of(mdp.problem, found.policy)
    parts = unit * found.value, policy, unit * found.lower, unit * upper
    return OptimisticDiscounted(*parts, beta, found.n_iter, gamma, f"{told}, {work}", mdp)


def first_upper(own: Optimist, v: FloatArray) -> FloatArray:
    """v + max (U v - v)/(1 - gamma), rounding included."""
    _, high, _ = own.back_up(v, np.empty(len(v)), np.zeros(len(v), dtype=np.int32), TIE)
    return np.asarray(v + (high + own.error(v)) / (1.0 - own.gamma))


def _certified(rule: Any) -> LaneRule:
    """A rule with a bound that does not assume values in [0, H]."""
    given: Rule = JointMaximum() if rule is None else rule
    check_rule(given)
    made = given.made
    if not made.bounded or made.clip != "nothing":
        raise bad("rule", f"{rule!r} has no certified bound", cure="use JointMaximum() or VarianceBonus()")
    return made


def radius_of(mdp: InfiniteMDP, level: float, radius: float | None) -> float:
    from scipy.stats import chi2

    if radius is not None:
        return require_non_negative("radius", radius)
    return math.sqrt(float(chi2.ppf(level, mdp.problem.dim)))


def checked_covariance(mdp: InfiniteMDP, covariance: ArrayLike) -> FloatArray:
    """A symmetric matrix (d, d)."""
    sigma, d = require_finite("covariance", covariance), mdp.problem.dim
    if sigma.shape != (d, d):
        raise bad("covariance", f"has shape {sigma.shape}", cure=f"give ({d}, {d}), in the units of mdp.theta")
    if np.abs(sigma - sigma.T).max() > 1e-8 * np.abs(sigma).max():
        raise bad("covariance", "is not symmetric")
    return np.asarray(0.5 * (sigma + sigma.T))


def whitener(mdp: InfiniteMDP, covariance: ArrayLike) -> FloatArray:
    """W, lower triangular with W'W = Sigma of each block, packed: a pair depends on its block's coordinates only."""
    sigma, rows = checked_covariance(mdp, covariance), mdp.problem.rows
    parts = []
    for b in range(rows.n_blocks):
        own = rows.block_coords[rows.block_start[b] : rows.block_start[b + 1]]
        try:
            low = np.linalg.cholesky(sigma[np.ix_(own, own)][::-1, ::-1])
        except np.linalg.LinAlgError as error:
            raise bad("covariance", "is not positive definite", cure="add a small multiple of the identity") from error
        parts.append(low.T[::-1, ::-1].reshape(-1))
    return np.ascontiguousarray(np.concatenate(parts))


@derived
def _everywhere(problem: Problem) -> Problem:
    """The same with every state as a possible start: then all pairs are laid out for the planner."""
    return replace(problem, start=np.full(problem.n_states, 1.0 / problem.n_states))


class Optimist:
    """L v = max_a (r + the rule's expectation of x); see :class:`livarot.infinite.planning.discounted.Operator`."""

    def __init__(self, mdp: InfiniteMDP, gamma: float, whiten: FloatArray, radius: float, rule: LaneRule) -> None:
        problem = mdp.problem
        self.mdp, self.gamma, self.radius, self.rule = mdp, gamma, radius, rule
        self.whiten, self.bound = whiten, False
        self.n_states, self.pay = problem.n_states, problem.scaled_pay(gamma)
        extra = problem.scaled_outcome_reward
        self.extra = np.zeros(0) if extra is None else extra
        self.top = largest(self.pay) + float(np.abs(self.extra).max(initial=0.0))
        self.miss = float(getattr(rule.settings, "tol", 0.0)) if rule.measured else 0.0  # of the local solver
        self.q, self.q_up = np.empty(self.pay.size), np.empty(self.pay.size)
        self.x, self.last = np.empty(problem.rows.n_rows), np.empty(0)
        stage = _everywhere(problem.stage)
        table = rule.table if problem.max_reachable > 2 else rule.table_for_two
        self.task = Bundle(PairTask(table.fields, plan_model(stage).fields, pair_blocks(stage).fields))

    def error(self, v: FloatArray) -> float:
        """Rounding, and what the local solver leaves."""
        miss = 0.0 if self.bound else self.miss * float(np.ptp(v))
        return miss + 4.0 * rounding(self.mdp.problem.max_reachable, self.top, v)

    def back_up(self, v: FloatArray, best: FloatArray, policy: Int32Array, tie: float) -> tuple[float, float, float]:
        rows = self.mdp.problem.rows
        self.x[:] = self.gamma * v[rows.next_state]
        if len(self.extra):
            self.x += self.extra
        scale = float(np.ptp(self.x)) if len(self.x) else 0.0
        centre = self.mdp.theta, self.whiten, self.radius, scale
        expected(self.task, *centre, self.mdp.prob, self.x, self.q, self.q_up)
        own = self.q_up if self.bound else self.q
        table = np.where(np.isfinite(self.pay), self.pay + own.reshape(self.pay.shape), -math.inf)
        best[:] = table.max(axis=1)
        policy[:] = (table >= (best - tie * (1.0 + np.abs(best)))[:, None]).argmax(axis=1)
        self.last = table[np.arange(len(v)), policy]
        return float((best - v).min()), float((best - v).max()), float((self.last - v).min())

    def chain(self, policy: Int32Array, v: FloatArray) -> Chain:
        """The chain at the centre, with rewards such that its backup of v is the optimistic one of the last round."""
        chain = chain_of(self.mdp, policy, self.pay)
        return chain._replace(reward=self.last - self.gamma * (chain.matrix @ v))


def replace_bound(optimist: Optimist) -> Optimist:
    """The same with the rule's bound in place of its value."""
    other = Optimist(optimist.mdp, optimist.gamma, optimist.whiten, optimist.radius, optimist.rule)
    other.bound = True
    return other


class Relative(NamedTuple):
    """Where relative iteration ended."""

    v: FloatArray
    policy: Int32Array
    low: float
    high: float  # rounding included, as in ``low`` and ``own``
    own: float
    n_iter: int


def _relative(optimist: Optimist, tol: float, max_iter: int = 100_000) -> Relative:
    """Rounds on the lazy kernel until the span of L v - v is below ``tol``; biases of the frozen chain in between."""
    n = optimist.n_states
    v, best, policy = np.zeros(n), np.empty(n), np.zeros(n, dtype=np.int32)
    before, trusted, kept = math.inf, True, None
    for done in range(1, max_iter + 1):
        low, high, own = optimist.back_up(v, best, policy, TIE)
        error = optimist.error(v)
        if kept is None or high < kept.high - error:
            kept = Relative(v.copy(), policy.copy(), low - error, high + error, own - error, done)
        if high - low <= max(tol, 8.0 * error) or (optimist.bound and done > MORE):
            return kept._replace(n_iter=done)
        trusted = n <= DIRECT and (not trusted or high - low <= PROGRESS * before)
        before = high - low
        if trusted:
            bias = gain_of(optimist.chain(policy, v)).bias
            v = bias if np.isfinite(bias).all() else v
        else:
            v = v + 0.5 * (best - v)
            v -= v[0]
    raise bad("mdp", f"the gain is known to lie in [{low:.6g}, {high:.6g}] only", cure="raise tol, or give a discount")


@jit
def expected(task, theta, whiten, radius, scale, prob, x, q, q_up):
    """The rule's expectation of x, one number per row, and its bound, of every pair; means where the law is known."""
    what = opened(task)
    n, m = what.model.most_out, what.model.most_cols
    memory = new_floats(choice_size(n, m) + 2 * n + 2 * m + m * m, W)
    n_pairs = what.model.reward.shape[1] * what.model.reward.shape[2]
    floats, whole = new_floats(m + m * m + 2 * n_pairs), new_integers(W)
    room = make_room(memory, floats, whole, n, m, n_pairs, 0)
    own = (view(theta), view(whiten), lane(radius), lane(scale))
    _known(what.model.graph, what.blocks, view(prob), view(x), view(q), view(q_up))
    for b in range(what.blocks.start[0], what.blocks.start[1]):
        _uncertain(what, b, own, view(x), view(q), view(q_up), room)


@inner
def _known(graph, blocks, prob, x, q, q_up):
    """Means of the pairs that theta does not touch; 0 for those that have no rows."""
    for item in range(blocks.plain_start[0], blocks.plain_start[1]):
        pair, total = blocks.plain[item], 0.0
        for row in range(graph.row_start[pair], graph.row_start[pair + 1]):
            total += prob[row] * x[row]
        q[pair], q_up[pair] = total, total


@inner
def _uncertain(what, b, own, x, q, q_up, room):
    """The rule's values of W pairs."""
    rule, model, blocks = what.rule, what.model, what.blocks
    n = blocks.shape[b, 0]
    v, v_up = part(room.v, 0, n), part(room.v_up, 0, n)
    for k in range(W):
        room.at[k] = model.graph.row_start[blocks.pair[b, k]]
    for i in range(n):
        v[i] = take(x, room.at, i)
        v_up[i] = v[i]
    if rule.exact_for_two and n == 2:
        apart, reach = load_two(model.graph, blocks, b, own[0], own[1], room)
        best, high = two_outcomes(apart, own[2] * reach, v, v_up, rule.certified)
    else:
        best, high, _ = value_pairs(rule, model, blocks, b, own, room)
    put(q, blocks.pair[b], 0, best)
    if rule.certified:
        put(q_up, blocks.pair[b], 0, high)
