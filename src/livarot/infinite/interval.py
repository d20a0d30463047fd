"""How far the values of a fitted model may be off: intervals from the covariance of its parameter.

For a policy pi, x(s') = r(s, a, s') + gamma V^pi(s') and f = E x, the value depends on theta through

    grad V^pi = (I - gamma P)^-1 G,      G(s) = sum_a pi(a|s) sum_{s'} p(s'|s, a) (x(s') - f) phi(s'|s, a)    (certain)

(for the gain: the stationary distribution times G, with the bias in place of gamma V).  The *delta method* takes the
normal law of variance g' Sigma g for g = grad V^pi.  At the optimum the same holds with the optimal policy held fixed
(the envelope theorem), as long as that policy stays optimal nearby.  The *bootstrap* draws theta from N(theta_hat,
Sigma), evaluates the policy, or solves anew if none is given, and takes quantiles: it also sees policies change, and
gives an interval for any number that is computed from a solution, such as a threshold.

Neither corrects the optimism of a policy that was chosen with the same data, nor a wrong model.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, eye_array, hstack
from scipy.sparse.linalg import splu
from scipy.special import ndtri

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.core.compiling.jit import jit
from livarot.core.tolerances import TIE
from livarot.errors import bad, require_finite, require_positive_int
from livarot.infinite.paths import evaluate, solve
from livarot.infinite.planning.average import Gain, gain_of
from livarot.infinite.planning.optimistic import checked_covariance
from livarot.infinite.planning.sparse import Chain, chain_of, discounted_system, solve_system
from livarot.infinite.problem import InfiniteMDP, check_stationary
from livarot.infinite.solution import worth_at_start
from livarot.infinite.terms import stored_discount
from livarot.model.problem import MNLMDP
from livarot.model.shown import html_of, text_of
from livarot.system.sizes import require_memory

DENSE = 2000  # states: up to here every state has an interval of its own by the delta method


@dataclass(frozen=True, eq=False)
class ValueInterval:
    """The value at the start and its interval; the same for every state (S,), or None where there are too many."""

    value: float
    lower: float
    upper: float
    standard_error: float
    level: float
    kind: str  # "delta" or "bootstrap"
    states: dict[str, FloatArray] | None = field(default=None, repr=False)  # value, lower, upper
    statistic: dict[str, FloatArray] | None = None  # of the user's function: estimate, lower, upper

    def __repr__(self) -> str:
        return text_of(self._title(), self._lines())

    def _repr_html_(self) -> str:
        return html_of(self._title(), self._lines())

    def _title(self) -> str:
        width = f"{100 * self.level:g} % interval [{self.lower:.6g}, {self.upper:.6g}] ({self.kind})"
        return f"ValueInterval: {self.value:.6g}, {width}"

    def _lines(self) -> dict[str, str]:
        if self.statistic is None:
            return {}
        ends = (np.array2string(self.statistic[name], precision=6, threshold=6) for name in ("lower", "upper"))
        return {"statistic": " to ".join(ends)}


@checked(discount=stored_discount, n_draws=partial(require_positive_int, minimum=2, maximum=10**6))
def value_interval(
    mdp: InfiniteMDP,
    covariance: ArrayLike,
    policy: ArrayLike | None = None,
    discount: float | None = None,
    *,
    level: float = 0.95,
    method: Literal["delta", "bootstrap"] = "delta",
    n_draws: int = 500,
    seed: int = 0,
    statistic: Callable[[Any], ArrayLike] | None = None,
) -> ValueInterval:
    """An interval for the value at the start (or the gain) of a policy under a model whose parameter was estimated.

    ``covariance`` (d, d) is that of the estimate ``mdp.theta``, in its units.  ``policy`` None is the optimal one, held
    fixed by the delta method, found anew for each draw of the bootstrap.  ``statistic`` is a function of a solution
    (:func:`solve`) that gives a number or an array: the bootstrap gives its quantiles too.

    >>> from livarot.envs import park_two_state
    >>> from livarot.infinite import InfiniteMDP
    >>> mdp = InfiniteMDP.from_mdp(park_two_state())
    >>> value_interval(mdp, 1e-4 * np.eye(mdp.problem.dim), discount=0.9)
    ValueInterval: 4.36742, 95 % interval [4.3526, 4.38224] (delta)
    """
    sigma = checked_covariance(mdp, covariance)
    gamma = mdp.discount if discount is None else discount
    gamma = 1.0 if gamma is None else gamma
    if statistic is not None and method == "delta":
        raise bad("statistic", "needs draws of the parameter", cure='give method="bootstrap"')
    own = None if policy is None else check_stationary(mdp.problem, policy)
    if method == "delta":
        return _delta(mdp, sigma, solve(mdp, gamma).policy if own is None else own, gamma, level)
    return _bootstrap(mdp, sigma, own, gamma, (level, n_draws, seed), statistic)


def value_gradient(mdp: InfiniteMDP, policy: NDArray[Any], gamma: float) -> tuple[float, FloatArray, FloatArray | None]:
    """The value at the start of a checked policy, or its gain; its gradient (d,); that of every state (S, d) or None.

    In the user's units.
    """
    problem, pay = mdp.problem, mdp.scaled_pay(gamma)
    chain = chain_of(mdp, policy, pay)
    unit, n = problem.terms.unit, problem.n_states
    weights = np.zeros(pay.shape)
    if policy.ndim == 1:
        weights[np.arange(n), policy] = 1.0
    else:
        weights[:] = policy
    if gamma == 1.0:
        found = gain_of(chain)
        if np.ptp(found.gain) > TIE * (1.0 + float(np.abs(found.gain).max())):
            raise bad("policy", "its gain depends on the state", cure="give a discount")
        v, visits, value = found.bias, _stationary(chain), float(found.gain.mean())
    else:
        v = np.asarray(evaluate(mdp, policy, gamma)) / unit
        system = discounted_system(chain, gamma)
        visits = solve_system(csr_array(system.T), problem.start, np.zeros(n), 1e-13)
        value = worth_at_start(problem, v)
    x = gamma * v[problem.rows.next_state]
    if problem.scaled_outcome_reward is not None:
        x += problem.scaled_outcome_reward
    at_start = np.zeros((1, problem.dim))
    gradient(problem.rows.graph, mdp.prob, x, (visits[:, None] * weights).reshape(-1), problem.n_actions, at_start)
    every = None
    if gamma < 1.0 and n <= DENSE:
        every = np.zeros((n, problem.dim))
        gradient(problem.rows.graph, mdp.prob, x, weights.reshape(-1), problem.n_actions, every)
        every = unit * splu(discounted_system(chain, gamma).tocsc()).solve(every)
    return unit * value, unit * at_start[0], every


def _stationary(chain: Chain) -> FloatArray:
    """The stationary distribution of a chain with one recurrent class."""
    n = len(chain.reward)
    system = (eye_array(n, format="csc") - chain.matrix).tocsc()
    bordered = csr_array(hstack([csr_array(np.ones((n, 1))), system[:, 1:]], format="csr"))
    return solve_system(csr_array(bordered.T), np.eye(1, n)[0], np.full(n, 1.0 / n), 1e-13)


def _delta(mdp: InfiniteMDP, sigma: FloatArray, policy: NDArray[Any], gamma: float, level: float) -> ValueInterval:
    table = check_stationary(mdp.problem, policy)
    value, slope, every = value_gradient(mdp, table, gamma)
    wide = float(ndtri(0.5 + 0.5 * level))
    error = math.sqrt(max(float(slope @ sigma @ slope), 0.0))
    states = None
    if every is not None:
        errors = np.sqrt(np.maximum(np.einsum("sd,de,se->s", every, sigma, every), 0.0))
        values = np.asarray(evaluate(mdp, table, gamma))
        states = {"value": values, "lower": values - wide * errors, "upper": values + wide * errors}
    return ValueInterval(value, value - wide * error, value + wide * error, error, level, "delta", states)


def _bootstrap(
    mdp: InfiniteMDP,
    sigma: FloatArray,
    policy: NDArray[Any] | None,
    gamma: float,
    draws: tuple[float, int, int],
    statistic: Callable[[Any], ArrayLike] | None,
) -> ValueInterval:
    from livarot.simulation.streams import stream

    level, n_draws, seed = draws
    scales, axes = np.linalg.eigh(sigma)
    if scales.min() < -1e-9 * max(float(scales.max()), 0.0):
        raise bad("covariance", "has a negative eigenvalue", cure="give a covariance")
    require_memory("n_draws", "the values of all draws", n_draws * (len(sigma) + mdp.problem.n_states))
    moves = stream(seed, "infinite bootstrap").standard_normal((n_draws, len(sigma)))
    thetas = mdp.theta + (moves * np.sqrt(np.maximum(scales, 0.0))) @ axes.T
    bound = max(mdp.problem.param_bound, float(np.linalg.norm(thetas, axis=1).max()))
    stage = replace(mdp.stage.problem, param_bound=bound)
    values, numbers = [], []
    for theta in [mdp.theta, *thetas]:
        drawn = InfiniteMDP(MNLMDP(stage, theta[None]), mdp.terms)
        value, number = _one(drawn, policy, gamma, statistic)
        values.append(value)
        numbers.append(number)
    ends = [0.5 - 0.5 * level, 0.5 + 0.5 * level]
    table = np.array([np.append(one, worth_at_start(mdp.problem, one) if len(one) > 1 else one) for one in values])
    lower, upper = np.quantile(table[1:], ends, axis=0)
    states = None
    if gamma < 1.0:
        states = {"value": table[0, :-1], "lower": lower[:-1], "upper": upper[:-1]}
    quantiles = None
    if statistic is not None:
        found = require_finite("statistic", np.array(numbers))
        ranges = np.quantile(found[1:], ends, axis=0)
        quantiles = {"estimate": found[0], "lower": np.asarray(ranges[0]), "upper": np.asarray(ranges[1])}
    own = table[:, -1]
    ends_at_start, error = (float(lower[-1]), float(upper[-1])), float(own[1:].std())
    kind = f"bootstrap, {n_draws} draws"
    return ValueInterval(float(own[0]), *ends_at_start, error, level, kind, states, quantiles)


def _one(
    mdp: InfiniteMDP, policy: NDArray[Any] | None, gamma: float, statistic: Callable[[Any], ArrayLike] | None
) -> tuple[FloatArray, Any]:
    """Values (S,), or the gain (1,), of one draw; and what the user's function makes of its solution."""
    solution = solve(mdp, gamma) if policy is None or statistic is not None else None
    number = None if statistic is None else np.asarray(statistic(solution), dtype=np.float64)
    if policy is not None:
        found = evaluate(mdp, policy, gamma)
        return (found.gain[:1] if isinstance(found, Gain) else found), number
    gain = getattr(solution, "gain", None)
    return (np.array([gain]) if gain is not None else np.asarray(solution.value)), number  # type: ignore[union-attr]


@jit
def gradient(graph, prob, x, weights, n_actions, out):
    """out += weight sum_i p_i (x_i - f) phi_i of every pair, (S, d), or added up, (1, d)."""
    for pair in range(len(weights)):
        block, weight = graph.pair_block[pair], weights[pair]
        if block < 0 or weight == 0.0:
            continue
        row, end, m = graph.row_start[pair], graph.row_start[pair + 1], graph.col_count[pair]
        to = pair // n_actions if len(out) > 1 else 0
        mean = 0.0
        for i in range(row, end):
            mean += prob[i] * x[i]
        for i in range(row, end):
            share = weight * prob[i] * (x[i] - mean)
            for j in range(m):
                col = graph.block_coords[graph.block_start[block] + graph.cols[graph.col_start[pair] + j]]
                out[to, col] += share * graph.feat[graph.feat_start[pair] + (i - row) * m + j]
