"""Average reward without an end, planned exactly: gain and bias, the diameter.  Every answer carries its proof.

The gain g of a policy is its long-run reward per step, the bias h(s) what starting in s is worth beyond that:
g + h = r + P h (one recurrent class, h = 0 at its first state).  For any vector v, with L v = max_a (r + P v),

    min_s (L v - v)(s)  <=  g*(s)  <=  max_s (L v - v)(s),

so an interval is certified whatever v is, up to the rounding of L v, by which it is widened.  Relative value iteration
(on the aperiodic kernel (I + P)/2) finds a v; the linear systems of its greedy policy then give the gain to rounding,
and the interval of its bias is what is returned.

*Ties*: the first action within 1e-9 (1 + |Q|) of the best.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, eye_array, hstack
from scipy.sparse.csgraph import connected_components

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.core.compiling.jit import jit
from livarot.core.tolerances import TIE
from livarot.errors import bad
from livarot.infinite.planning.discounted import accuracy_of
from livarot.infinite.planning.sparse import DIRECT, Chain, back_up, chain_of, largest, rounding, rows_of, solve_system
from livarot.infinite.problem import InfiniteMDP, check_stationary
from livarot.infinite.solution import Policy, Stationary
from livarot.model.shown import compact

MIXING = 0.5  # weight of the kernel beside the identity, against periodicity
RESIDUAL = 1e-9  # the largest residual accepted from the linear system of a large class


@compact
class Gain(NamedTuple):
    """Gain and bias of a policy, per state (with several recurrent classes the gain may depend on the state)."""

    gain: FloatArray  # (S,)
    bias: FloatArray  # (S,)


@dataclass(frozen=True, eq=False, repr=False)
class AverageSolution(Stationary):
    """The optimal gain, with ``lower`` <= g* <= ``upper``, and a policy that has the gain ``gain``."""

    gain: float
    bias: FloatArray  # (S,)
    policy: Policy  # (S,), -1 in terminal states
    lower: float
    upper: float
    n_iter: int
    method: str
    mdp: InfiniteMDP = field(repr=False)

    def _measures(self) -> dict[str, FloatArray]:
        return {"bias": self.bias}

    def _proof(self) -> str:
        average = f"average cost {-self.gain:.9g}" if self.mdp.problem.terms.costs else f"gain {self.gain:.9g}"
        return f"{average} per step, proved to within {self.upper - self.lower:.3g}; {self.method}"


@checked
def policy_gain(mdp: InfiniteMDP, policy: ArrayLike) -> Gain:
    """Gain and bias of a stationary policy, actions (S,) or probabilities (S, A), by linear solves.

    Each recurrent class has a gain of its own; a transient state has the mean gain of the classes it may end in.  The
    bias is 0 at the first state of each class.

    >>> from livarot.envs import park_two_state
    >>> mdp = InfiniteMDP.from_mdp(park_two_state())
    >>> policy_gain(mdp, [7, 0]).gain.round(12).tolist()     # p/(p + delta) = .28/.53
    [0.528301886792, 0.528301886792]
    """
    found = _gain(mdp, check_stationary(mdp.problem, policy))
    unit = mdp.problem.terms.unit
    return Gain(unit * found.gain, unit * found.bias)


def _gain(mdp: InfiniteMDP, policy: NDArray[Any]) -> Gain:
    """The same in units of the model's rewards."""
    return gain_of(chain_of(mdp, policy, mdp.scaled_pay(1.0)))


def gain_of(chain: Chain) -> Gain:
    """Gain and bias of a chain."""
    move, pay = chain.matrix, chain.reward
    n_classes, label = connected_components(csr_array(move > 0.0), directed=True, connection="strong")
    come, go = label[np.repeat(np.arange(len(pay)), np.diff(move.indptr))], label[move.indices]
    left = np.zeros(n_classes, dtype=np.bool_)
    left[come[(come != go) & (move.data > 0.0)]] = True
    gain, bias = np.zeros(len(pay)), np.zeros(len(pay))
    for part in np.flatnonzero(~left):
        inside = np.flatnonzero(label == part)
        found = _in_a_class(csr_array(move[inside][:, inside]), pay[inside])
        gain[inside] = found[0]
        bias[inside[1:]] = found[1:]
    passing = np.flatnonzero(left[label])
    if len(passing):
        ended = np.flatnonzero(~left[label])
        stay = csr_array(eye_array(len(passing), format="csr") - move[passing][:, passing])
        leave = csr_array(move[passing][:, ended])
        gain[passing] = _solved(stay, leave @ gain[ended])
        bias[passing] = _solved(stay, pay[passing] - gain[passing] + leave @ bias[ended])
    return Gain(gain, bias)


def _in_a_class(move: csr_array, pay: FloatArray) -> FloatArray:
    """(g, h of all states but the first) of a recurrent class: g + h - P h = r."""
    n = len(pay)
    system = (eye_array(n, format="csc") - move).tocsc()
    ones = csr_array(np.ones((n, 1)))
    return _solved(csr_array(hstack([ones, system[:, 1:]], format="csr")), pay)


def _solved(system: csr_array, right: FloatArray) -> FloatArray:
    found = solve_system(system, right, np.zeros(len(right)), 1e-13)
    wrong = float(np.abs(system @ found - right).max())
    if len(right) > DIRECT and wrong > RESIDUAL * max(1.0, float(np.abs(right).max())):
        raise bad("policy", f"its gain has a residual of {wrong:.3g}, too large", cure="use solve_average's interval")
    return found


def require_no_end(mdp: InfiniteMDP) -> None:
    """Refuse terminal states: in the long run nothing is paid there, whatever the way to them and their reward."""
    ends = np.flatnonzero(mdp.problem.terms.terminal)
    if len(ends):
        told = "is not given, and there are terminal states: no average reward tells the ways to them apart"
        raise bad("discount", told, index=int(ends[0]), count=len(ends), cure="give a discount below 1, or a horizon")


@checked
def solve_average(mdp: InfiniteMDP, *, tol: float | None = None, max_iter: int = 1_000_000) -> AverageSolution:
    """The optimal gain of a weakly communicating model, to ``upper`` - ``lower`` <= ``tol``.

    ``tol`` is in the user's units, None is 1e-10 of the scale of the rewards.

    >>> from livarot.envs import park_two_state
    >>> found = solve_average(InfiniteMDP.from_mdp(park_two_state()))
    >>> round(found.gain, 9), found.policy[0], found.upper - found.lower <= 1e-10
    (0.528301887, np.int32(7), True)
    """
    require_no_end(mdp)
    rows, pay, unit = rows_of(mdp), mdp.scaled_pay(1.0), mdp.problem.terms.unit
    n, width = mdp.problem.n_states, accuracy_of(mdp, tol)
    v, best, policy = np.zeros(n), np.empty(n), np.zeros(n, dtype=np.int32)
    done, aim = 0, max(width, 1e-6)
    while done < max_iter:
        done += _relative(rows, pay, v, best, policy, aim, max_iter - done)
        bias, gain = v, Gain(np.zeros(0), v)
        if n <= DIRECT:
            gain = _gain(mdp, policy)
            bias = gain.bias
        lower, upper = _interval(mdp, pay, bias)
        if upper - lower <= width and (n > DIRECT or np.ptp(gain.gain) <= width):
            middle = float(gain.gain.mean()) if n <= DIRECT else 0.5 * (lower + upper)
            return AverageSolution(
                unit * middle,
                unit * (bias - bias[0] if n > DIRECT else bias),
                Policy.of(mdp.problem, policy),
                unit * lower,
                unit * upper,
                done,
                "relative value iteration" + (", then a linear solve" if n <= DIRECT else ""),
                mdp,
            )
        aim *= 0.1
        if aim < 1e-14:
            break
    lower, upper = _interval(mdp, pay, v)
    raise bad(
        "mdp",
        f"the gain is known to lie in [{unit * lower:.9g}, {unit * upper:.9g}] only, after {done} iterations",
        cure="raise max_iter or tol; a model that is not weakly communicating has no single optimal gain",
    )


@checked
def diameter(mdp: InfiniteMDP, *, tol: float = 1e-9, max_iter: int = 1_000_000) -> float:
    """D: the largest, over pairs of states, of the least expected time from one to the other; it may be infinite.

    For each target, value iteration from 0 bounds the times from below, and its greedy policy, by a linear solve, from
    above; the upper bounds are used once the two agree to a relative ``tol``.

    >>> from livarot.envs import park_two_state
    >>> round(diameter(InfiniteMDP.from_mdp(park_two_state())), 9)     # 1/delta from state 1 to state 0
    4.0
    """
    problem = mdp.problem
    n = problem.n_states
    rows, exists = problem.rows, (problem.rows.outcomes > 0).reshape(n, -1)
    come = np.repeat(np.repeat(np.arange(n), problem.n_actions), rows.outcomes)
    edges = csr_array(((mdp.prob > 0.0).astype(np.int8), (come, rows.next_state)), shape=(n, n))
    if connected_components(edges, directed=True, connection="strong")[0] > 1:
        return math.inf
    worst = 0.0
    for target in range(n):
        cost = np.where(exists, -1.0, -math.inf)
        cost[target, exists[target]] = 0.0
        v, best, policy = np.zeros(n), np.empty(n), np.zeros(n, dtype=np.int32)
        others = np.delete(np.arange(n), target)
        done, batch = 0, 64
        while True:
            done += _reach(rows_of(mdp), cost, target, v, best, policy, batch)
            times = _times(chain_of(mdp, policy, cost).matrix[others][:, others])
            if n == 1 or (times is not None and times.min() > 0 and (times + v[others]).max() <= tol * times.max()):
                break
            batch *= 2
            if done > max_iter:
                raise bad("max_iter", f"{max_iter} iterations were not enough", cure="raise max_iter or tol")
        worst = max(worst, 0.0 if times is None else float(times.max()))
    return worst


def _times(within: csr_array) -> FloatArray | None:
    """Expected times to leave a set of states, by its kernel; None if they are not finite."""
    n = within.shape[0]
    system = csr_array(eye_array(n, format="csr") - within)
    try:
        times = solve_system(system, np.ones(n), np.zeros(n), 1e-13) if n else None
    except RuntimeError:  # singular: the policy never leaves
        return None
    sound = times is not None and np.isfinite(times).all() and np.abs(system @ times - 1.0).max() < RESIDUAL
    return times if sound else None


def _interval(mdp: InfiniteMDP, pay: FloatArray, v: FloatArray) -> tuple[float, float]:
    """An interval that holds the optimal gain, by one backup of v, rounding included."""
    low, high, _ = back_up(rows_of(mdp), pay, 1.0, v, np.empty(len(v)), np.zeros(len(v), dtype=np.int32), TIE)
    error = rounding(mdp.problem.max_reachable, largest(pay), v)
    return low - error, high + error


@jit
def _relative(rows, reward, v, best, policy, aim, max_iter):
    """Relative value iteration on the lazy kernel until the span of L v - v is below ``aim``; the rounds it took."""
    for done in range(max_iter):
        low, high, _ = back_up(rows, reward, 1.0, v, best, policy, TIE)
        if high - low <= aim:
            return done + 1
        first = v[0] + MIXING * (best[0] - v[0])
        for s in range(len(v)):
            v[s] += MIXING * (best[s] - v[s]) - first
    return max_iter


@jit
def _reach(rows, cost, target, v, best, policy, rounds):
    """Lower bounds of the time to the target, as -v: value iteration with a target that costs nothing."""
    for _ in range(rounds):
        back_up(rows, cost, 1.0, v, best, policy, TIE)
        for s in range(len(v)):
            v[s] = best[s] if s != target else 0.0
    return rounds
