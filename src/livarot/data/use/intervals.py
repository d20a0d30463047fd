"""How certain is the value of a policy?  Delta method and bootstrap.

With occupancies d_h(s) of the policy pi, ``w = d_h(s) pi_h(a|s)`` and ``f = sum_i p_i V_{h+1}(s_i)`` (all certain):

    V(theta)       = sum_s start(s) V^pi_0(s)
    d V/d theta_k  = sum_{h,s,a} w sum_i p_i (V_{h+1}(s_i) - f) phi_i
    interval       = V +- z sqrt(sum_k g_k' Cov_k g_k)

with g_k = d V/d theta_k, where h runs over the stages of the parameter k: the delta method, for large samples; Cov is
the fit's own covariance.  One pass backward for V, one forward for d and the gradient: the cost of an evaluation.  The
bootstrap evaluates the same policy under refitted parameters and takes quantiles.

The policy is held fixed.  If it was chosen with the same data its value is biased upward (the winner's curse), and
neither interval corrects that: judge it with data that did not choose it, or plan robustly.  Rewards, the start and
the reachable sets are taken as known.

Without an end the value is that of :mod:`livarot.infinite`, with the gradient of :mod:`livarot.infinite.interval`.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from livarot import infinite
from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.core.compiling.jit import jit
from livarot.data.fitting.bootstrap import bootstrap, check_own, drawn
from livarot.data.fitting.sandwich import variance_along
from livarot.errors import bad, require_finite
from livarot.infinite.interval import value_gradient
from livarot.infinite.problem import InfiniteMDP, check_stationary
from livarot.infinite.solution import worth_at_start
from livarot.model.episodes import check_policy
from livarot.model.probabilities import Kernel, transition_kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.model.shown import html_of, text_of
from livarot.model.terms.after import outcome_kinds, worths
from livarot.planning.exact import evaluate_kernel, solve

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition


@dataclass(frozen=True, eq=False, repr=False)
class ValueInterval:
    """The value of a policy under the fit, and an interval for its true value."""

    value: float
    lower: float
    upper: float
    standard_error: float
    level: float
    kind: str  # "delta" or "bootstrap"
    n_failed: int = 0  # resamples without a fit
    costs: bool = False  # costs were given: values are negative costs
    statistic: dict[str, FloatArray] | None = None  # of the user's function: estimate, lower, upper

    def __repr__(self) -> str:
        return text_of(f"ValueInterval: {self}", self._lines())

    def _repr_html_(self) -> str:
        return html_of(f"ValueInterval: {self}", self._lines())

    def _lines(self) -> dict[str, str]:
        if self.statistic is None:
            return {}
        ends = (np.array2string(self.statistic[name], precision=6, threshold=6) for name in ("lower", "upper"))
        return {"statistic": " to ".join(ends)}

    def __str__(self) -> str:
        ends, name = [self.lower, self.upper], "value"
        if self.costs:
            ends, name = [0.0 - self.upper, 0.0 - self.lower], "cost"
        value = 0.0 - self.value if self.costs else self.value
        width = f"{100 * self.level:g} % interval [{ends[0]:.4f}, {ends[1]:.4f}] ({self.kind})"
        return f"{name} {value:.4f}, s.e. {self.standard_error:.4f}, {width}"


@checked
def value_interval(
    fit: MNLTransition,
    mdp: MNLMDP | InfiniteMDP,
    policy: NDArray[Any] | None = None,
    *,
    level: float = 0.95,
    kind: str = "delta",
    n_resamples: int = 200,
    seed: int = 0,
    resample: str = "auto",
    cluster: Any = None,
    statistic: Callable[[Any], ArrayLike] | None = None,
) -> ValueInterval:
    """An interval for the expected reward of a policy: (H, S) actions or (H, S, A) probabilities; None is the optimum.

    ``mdp`` is ``fit.to_mdp(...)``; policies of a model without an end are (S,) or (S, A), and their value is that at
    the start, or the average reward.  ``kind="bootstrap"`` uses ``n_resamples`` refits
    (:mod:`livarot.data.fitting.bootstrap`, which says what ``resample`` and ``cluster`` are).  A fit with clusters has
    an interval that allows for them; ``cluster`` asks for others.  Both ends are kept within what H steps can be worth.

    ``statistic`` is a function of a solution that gives a number or an array, such as the first state in
    which something is replaced: the bootstrap plans anew in every refit and gives its quantiles in ``statistic``.
    """
    if kind not in ("delta", "bootstrap"):
        raise bad("kind", f"{kind!r} is not known", cure="use 'delta' or 'bootstrap'")
    if statistic is not None and kind == "delta":
        raise bad("statistic", "needs refits", cure="give kind='bootstrap'")
    judge = Stationary(mdp) if isinstance(mdp, InfiniteMDP) else Episodic(mdp)
    check_own(fit, judge.stage)
    table = judge.policy(policy)
    tail, n_failed, quantiles = (1.0 - level) / 2.0, 0, None
    if kind == "delta":
        value, slope = judge.gradient(table)
        error = math.sqrt(max(variance_along(fit, slope, cluster), 0.0))
        reach = float(norm.isf(tail)) * error
        lower, upper = value - reach, value + reach
    else:
        value = judge.value(judge.stage, table)
        draws, n_failed = bootstrap(fit, n_resamples, seed, resample=resample, cluster=cluster)
        models = list(drawn(judge.stage.problem, draws))
        values = np.array([judge.value(own, table) for own in models])
        error = float(values.std(ddof=1))
        lower, upper = (float(x) for x in np.quantile(values, (tail, 1.0 - tail)))
        if statistic is not None:
            quantiles = _quantiles([statistic(judge.solve(own)) for own in (judge.stage, *models)], tail)
    lower, upper = judge.clipped(lower, upper)
    return ValueInterval(value, lower, upper, error, level, kind, n_failed, judge.costs, quantiles)


def _quantiles(found: list[Any], tail: float) -> dict[str, FloatArray]:
    numbers = require_finite("statistic", found)
    lower, upper = np.quantile(numbers[1:], (tail, 1.0 - tail), axis=0)
    return {"estimate": np.asarray(numbers[0]), "lower": np.asarray(lower), "upper": np.asarray(upper)}


class Episodic:
    """Values of policies (H, S, A) of a model with stages."""

    def __init__(self, mdp: MNLMDP) -> None:
        self.stage, self.problem = mdp, mdp.problem
        self.costs = mdp.problem.units.cost

    def policy(self, given: NDArray[Any] | None) -> FloatArray:
        return as_probabilities(self.problem, solve(self.stage).policy if given is None else given)

    def gradient(self, policy: FloatArray) -> tuple[float, FloatArray]:
        """The value and its gradient (K, d) in the units of the columns."""
        value, gradient = value_and_gradient(self.problem, transition_kernel(self.stage), policy)[:2]
        return value, gradient * self.problem.feature_scale

    def value(self, model: MNLMDP, policy: FloatArray) -> float:
        return start_value(self.problem, transition_kernel(model), policy)

    def solve(self, model: MNLMDP) -> Any:
        return solve(model)

    def clipped(self, *ends: float) -> tuple[float, ...]:
        units, horizon = self.problem.units, self.problem.horizon
        least, most = (float(units.value(x, horizon)) for x in (0.0, float(horizon)))
        return tuple(min(max(x, least), most) for x in ends)


class Stationary:
    """Values of policies (S,) or (S, A) of a model without an end, at the start; average rewards without a discount."""

    def __init__(self, mdp: InfiniteMDP) -> None:
        self.mdp, self.stage, self.problem = mdp, mdp.stage, mdp.problem
        self.costs = mdp.problem.terms.costs
        self.discount = 1.0 if mdp.discount is None else mdp.discount

    def policy(self, given: NDArray[Any] | None) -> NDArray[Any]:
        return check_stationary(self.problem, infinite.solve(self.mdp).policy if given is None else given)

    def gradient(self, policy: NDArray[Any]) -> tuple[float, FloatArray]:
        value, slope, _ = value_gradient(self.mdp, policy, self.discount)
        return value, slope[None] * self.stage.problem.feature_scale

    def value(self, model: MNLMDP, policy: NDArray[Any]) -> float:
        found = infinite.evaluate(InfiniteMDP(model, self.mdp.terms), policy, self.discount)
        if isinstance(found, infinite.Gain):
            return float(self.problem.start @ found.gain)
        return worth_at_start(self.problem, np.asarray(found))

    def solve(self, model: MNLMDP) -> Any:
        return infinite.solve(InfiniteMDP(model, self.mdp.terms))

    def clipped(self, *ends: float) -> tuple[float, ...]:
        return ends


def as_probabilities(problem: Problem, policy: NDArray[Any]) -> FloatArray:
    """A policy as probabilities (H, S, A)."""
    table = check_policy(problem, policy)
    if table.ndim == 3:
        return np.asarray(table, dtype=np.float64)
    sure = np.zeros((*table.shape, problem.n_actions))
    np.put_along_axis(sure, table[..., None].astype(np.int64), 1.0, axis=2)
    return sure


def start_value(problem: Problem, kernel: Kernel, policy: FloatArray) -> float:
    """The value of a policy (H, S, A) at the start, in the units of the rewards that were given."""
    plain = float(problem.start @ evaluate_kernel(problem, kernel, policy)[0])
    return float(problem.units.value(plain, problem.horizon))


def value_and_gradient(problem: Problem, kernel: Kernel, policy: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """The value at the start, its gradient (K, d) in theta (of the problem's features), and the expected visits
    (H, S, A); V_{h+1} is what follows, r' + discount V_{h+1}, and stage h counts discount^h."""
    value, units, horizon = evaluate_kernel(problem, kernel, policy), problem.units, problem.horizon
    gradient = np.zeros((problem.n_parameters, problem.dim))
    visits = np.zeros(policy.shape)
    flow = np.zeros(value.shape)
    flow[0] = problem.start
    ahead = worths(problem, value) * np.power(problem.discount, np.arange(horizon))[:, None]
    stages = (problem.stage_table, problem.stage_parameter)
    _forward(problem.rows.graph, outcome_kinds(problem), *stages, *kernel, policy, ahead, (flow, gradient, visits))
    return float(units.value(problem.start @ value[0], horizon)), units.regret(gradient), visits


@jit
def _forward(graph, kinds, stage_table, stage_parameter, prob, base, policy, ahead, found):
    flow, gradient, visits = found
    row_start, next_state, pair_block = graph.row_start, graph.next_state, graph.pair_block
    feat, feat_start, cols, col_start = graph.feat, graph.feat_start, graph.cols, graph.col_start
    col_count, block_start, coords = graph.col_count, graph.block_start, graph.block_coords
    horizon, n_states, n_actions = policy.shape
    for h in range(horizon):
        own = gradient[stage_parameter[h]]
        for s in range(n_states):
            if flow[h, s] == 0.0:
                continue
            for a in range(n_actions):
                weight = flow[h, s] * policy[h, s, a]
                if weight == 0.0:
                    continue
                visits[h, s, a] = weight
                pair = (stage_table[h] * n_states + s) * n_actions + a
                first, last = row_start[pair], row_start[pair + 1]
                mean = 0.0
                for row in range(first, last):
                    p = prob[base[h] + row]
                    mean += p * ahead[h, kinds[row]]
                    flow[h + 1, next_state[row]] += weight * p
                block = pair_block[pair]
                if block < 0:  # one outcome, or no features: nothing to learn from it
                    continue
                m = col_count[pair]
                for row in range(first, last):
                    push = weight * prob[base[h] + row] * (ahead[h, kinds[row]] - mean)
                    at = feat_start[pair] + (row - first) * m
                    for j in range(m):
                        own[coords[block_start[block] + cols[col_start[pair] + j]]] += push * feat[at + j]
