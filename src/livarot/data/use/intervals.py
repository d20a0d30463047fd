"""How certain is the value of a policy?  Delta method and bootstrap.

With occupancies d_h(s) of the policy pi, ``w = d_h(s) pi_h(a|s)`` and ``f = sum_i p_i V_{h+1}(s_i)`` (all certain):

    V(theta)         = sum_s start(s) V^pi_0(s)
    dV / d theta_k   = sum over the stages h of k, s, a of   w sum_i p_i (V_{h+1}(s_i) - f) phi_i
    delta method     V +- z sqrt(sum_k g_k' Cov_k g_k)        large samples; Cov is the fit's own covariance

One pass backward for V, one forward for d and the gradient: the cost of an evaluation.  The bootstrap evaluates the
same policy under refitted parameters and takes quantiles.

The policy is held fixed.  If it was chosen with the same data its value is biased upward (the winner's curse), and
neither interval corrects that: judge it with data that did not choose it, or plan robustly.  Rewards, the start and
the reachable sets are taken as known.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.core.jit import jit
from livarot.data.fitting.bootstrap import bootstrap, check_own, kernels
from livarot.data.fitting.sandwich import variance_along
from livarot.errors import bad
from livarot.model.after import outcome_kinds, worths
from livarot.model.episodes import check_policy
from livarot.model.probabilities import Kernel, transition_kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.planning.exact import evaluate_kernel, solve

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition


@dataclass(frozen=True, eq=False)
class ValueInterval:
    """The value of a policy under the fit, and an interval for its true value."""

    value: float
    lower: float
    upper: float
    standard_error: float
    level: float
    kind: str  # "delta" or "bootstrap"
    n_failed: int = 0  # resamples without a fit

    def __str__(self) -> str:
        width = f"{100 * self.level:g} % interval [{self.lower:.4f}, {self.upper:.4f}] ({self.kind})"
        return f"value {self.value:.4f}, s.e. {self.standard_error:.4f}, {width}"


@checked
def value_interval(
    fit: MNLTransition,
    mdp: MNLMDP,
    policy: NDArray[Any] | None = None,
    *,
    level: float = 0.95,
    kind: str = "delta",
    n_resamples: int = 200,
    seed: int = 0,
    resample: str = "auto",
    cluster: Any = None,
) -> ValueInterval:
    """An interval for the expected reward of a policy: (H, S) actions or (H, S, A) probabilities; None is the optimum.

    ``mdp`` is ``fit.to_mdp(...)``.  ``kind="bootstrap"`` uses ``n_resamples`` refits
    (:mod:`livarot.data.fitting.bootstrap`, which says what ``resample`` and ``cluster`` are).  A fit with clusters has
    an interval that allows for them; ``cluster`` asks for others.  Both ends are kept within what H steps can be worth.
    """
    if kind not in ("delta", "bootstrap"):
        raise bad("kind", f"{kind!r} is not known", cure="use 'delta' or 'bootstrap'")
    check_own(fit, mdp)
    problem = mdp.problem
    table = as_probabilities(problem, solve(mdp).policy if policy is None else policy)
    kernel = transition_kernel(mdp)
    tail, n_failed = (1.0 - level) / 2.0, 0
    if kind == "delta":
        value, gradient = value_and_gradient(problem, kernel, table)[:2]
        slope = gradient * problem.feature_scale
        error = math.sqrt(max(variance_along(fit, slope, cluster), 0.0))
        reach = float(norm.isf(tail)) * error
        lower, upper = value - reach, value + reach
    else:
        value = start_value(problem, kernel, table)
        draws, n_failed = bootstrap(fit, n_resamples, seed, resample=resample, cluster=cluster)
        values = np.array([start_value(problem, own, table) for own in kernels(problem, draws)])
        error = float(values.std(ddof=1))
        lower, upper = (float(x) for x in np.quantile(values, (tail, 1.0 - tail)))
    least, most = (float(problem.units.value(x, problem.horizon)) for x in (0.0, float(problem.horizon)))
    lower, upper = (min(max(x, least), most) for x in (lower, upper))
    return ValueInterval(value, lower, upper, error, level, kind, n_failed)


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
