"""Estimators of a policy's value from n logged episodes, each with an influence function per episode.

With ratios rho_t = pi_t(a_t|s_t)/b_t(a_t|s_t), w_t = rho_0 ... rho_t (w_{-1} = 1) and sums over steps t of an episode:

    importance sampling    mean over episodes of   w_{T-1} sum_t r_t
    per-decision           mean over episodes of   sum_t w_t r_t
    weighted per-decision  sum_t of   (sum over episodes of w_t r_t) / (sum over episodes of w_t)
    doubly robust          mean over episodes of   sum_t w_{t-1} V_t(s_t) + w_t (r_t - Q_t(s_t, a_t))

Q and V are the policy's values in a fitted model.  The first two are unbiased if b is known and positive wherever pi
is; the third is biased by O(1/n) and varies less; the last is right if b or the model is, and varies least if both are.

With a discount, r_t is the discounted reward, and V_t and Q_t are multiplied by discount^t.

A value is a mean of influences x_i, so its standard error is sd(x)/sqrt(n).  The influence of a ratio R_t is what the
ratio loses without episode i (the jackknife): with l_{i,t} = w_{i,t} / sum_j w_{j,t},

    x_i = sum_t { R_t + (n - 1) l_{i,t} (r_{i,t} - R_t)/(1 - l_{i,t}) },

centred, so that their mean is the estimate.  If b was estimated, x is replaced by its residual e on the scores
(:mod:`livarot.data.evaluation.behaviour`), and the variance is sum_i e_i^2/(1 - h_i)^2 / n^2, h_i the leverage of the
regression: e_i/(1 - h_i) is, to first order, the residual of an episode that took no part in it (HC3).  The factors
1/(1 - l) and 1/(1 - h) are 1 + O(1/n); without them an episode of large weight fits itself, and intervals are too
short.  Intervals are normal ones with Student's quantiles: for large n, and only as good as the tails of the weights
are light (the effective sample size says so).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from livarot.core.arrays import FloatArray
from livarot.data.evaluation.logged import LoggedEpisodes
from livarot.model.probabilities import Kernel
from livarot.model.problem import Problem
from livarot.model.terms.after import outcome_kinds, worths
from livarot.planning.exact import evaluate_kernel


class Interval(NamedTuple):
    """An estimate, its standard error and its interval."""

    value: float
    standard_error: float
    lower: float
    upper: float


def ratios(log: LoggedEpisodes, policy: FloatArray, probability: FloatArray) -> FloatArray:
    """w_t, (n, T): constant after the end of an episode."""
    chosen = policy[np.arange(log.n_steps), log.state, log.action]
    return np.asarray(np.where(log.live, chosen / probability, 1.0).cumprod(axis=1))


def effective_sizes(weight: FloatArray) -> FloatArray:
    """(sum w)^2 / sum w^2 of every step, (T,); 0 where all weights are."""
    square = (weight**2).sum(axis=0)
    return np.asarray(np.divide(weight.sum(axis=0) ** 2, square, out=np.zeros(len(square)), where=square > 0.0))


def trajectory_wise(log: LoggedEpisodes, weight: FloatArray) -> FloatArray:
    """(n,) w_{T-1} sum_t r_t."""
    return np.asarray(weight[:, -1] * log.total)


def per_decision(log: LoggedEpisodes, weight: FloatArray) -> FloatArray:
    """(n,) sum_t w_t r_t."""
    return np.asarray((weight * log.reward).sum(axis=1))


def weighted_per_decision(log: LoggedEpisodes, weight: FloatArray) -> FloatArray:
    """(n,) influences whose mean is the estimate; where no weight is positive a step counts as 0."""
    total = weight.sum(axis=0)
    share = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0.0)
    ratio = (share * log.reward).sum(axis=0)
    rest = 1.0 - share
    lost = np.divide(share * (log.reward - ratio), rest, out=np.zeros_like(share), where=rest > 0.0).sum(axis=1)
    return np.asarray(ratio.sum() + (len(log) - 1) * (lost - lost.mean()))


def doubly_robust(
    log: LoggedEpisodes, weight: FloatArray, value: FloatArray, q: FloatArray, discount: float = 1.0
) -> FloatArray:
    """(n,) from the values (H + 1, S) and (H, S, A) of the policy in a model; rewards of the log are discounted."""
    at = np.arange(log.n_steps)
    faded = np.power(discount, at)
    before = np.concatenate((np.ones((len(log), 1)), weight[:, :-1]), axis=1)
    terms = before * faded * value[at, log.state] + weight * (log.reward - faded * q[at, log.state, log.action])
    return np.asarray(np.where(log.live, terms, 0.0).sum(axis=1))


def values_in(problem: Problem, kernel: Kernel, policy: FloatArray) -> tuple[FloatArray, FloatArray]:
    """V (H + 1, S) and Q (H, S, A) of a policy (H, S, A), in the units of the rewards that were given."""
    value, n_pairs = evaluate_kernel(problem, kernel, policy), problem.n_states * problem.n_actions
    q, rows, kinds, ahead = problem.reward.copy(), problem.rows, outcome_kinds(problem), worths(problem, value)
    for h in range(problem.horizon):
        first = problem.stage_table[h] * n_pairs
        starts = rows.row_start[first : first + n_pairs + 1]
        pair = np.repeat(np.arange(n_pairs), np.diff(starts))
        weights = kernel.prob[kernel.base[h] + starts[0] : kernel.base[h] + starts[-1]]
        terms = weights * ahead[h][kinds[starts[0] : starts[-1]]]
        q[h] += np.bincount(pair, weights=terms, minlength=n_pairs).reshape(q[h].shape)
    return problem.units.values(value, problem.horizon), problem.units.values(q, problem.horizon)


def interval(influence: FloatArray, level: float, scores: FloatArray | None = None) -> Interval:
    """Mean, standard error and interval; with scores, of the residuals on them."""
    n, value = len(influence), float(influence.mean())
    off, free = influence - value, n - 1
    square = float(off @ off) / free / n
    if scores is not None and scores.shape[1] > 0:
        basis, size, _ = np.linalg.svd(scores, full_matrices=False)
        basis = basis[:, size > 1e-10 * size[0]]
        rank = basis.shape[1]
        if 2 * rank < n:  # else too few episodes to tell: without the correction the error is too large, not too small
            rest = 1.0 - 1.0 / n - (basis**2).sum(axis=1)
            alone = np.divide(off - basis @ (basis.T @ off), rest, out=np.zeros(n), where=rest > 1e-10)
            square, free = float(alone @ alone) / n**2, n - 1 - rank
    error = math.sqrt(square)
    reach = float(student.ppf(0.5 + level / 2.0, free)) * error
    return Interval(value, error, value - reach, value + reach)
