"""The uncertainty of an estimate: covariance, confidence sets, likelihood-ratio tests.

Wald set (asymptotic; certain): ``(theta - theta_hat)' Cov^-1 (theta - theta_hat) <= chi2_d(level)``.

With a ridge, (H + reg I)^-1 is the covariance of the Gaussian posterior of a prior N(0, I/reg) (Laplace), and standard
errors and Wald sets are Bayesian: they hold theta with the stated probability if theta was drawn from that prior, not
for every theta.  The estimate is shifted towards 0 by about reg (H + reg I)^-1 theta, which no standard error contains
(:func:`overruled`).

Finite-sample set (derived here; every step certain).  L is minus the log-likelihood, theta* the truth; the data may
have been collected adaptively (each choice drawn from the model given the past), and n may be any stopping time.

1. For a prior pi that does not depend on the data, ``M_n = int exp(L_n(theta*) - L_n(theta)) d pi(theta)`` is a
   non-negative martingale with mean one.  By Ville's inequality, with probability at least ``level`` for all n:
   ``L(theta*) <= log(1/(1 - level)) - log int exp(-L) d pi``.
2. For any q, even one that depends on the data, ``-log int exp(-L) d pi <= E_q L + KL(q | pi)`` (Jensen).  Take
   pi = N(0, s^2 I) and q = N(theta_hat, Sigma), Sigma = k (H + I/s^2)^-1, k <= 1 the best of SHRINK.
3. ``E_q L <= L(theta_hat) + sum_g N_g log sum_i p_i exp(|phi_i - mu_g|^2_Sigma / 2)`` (Jensen inside the logarithm,
   and the moment generating function of a normal law), which is at most ``c/2 tr(Sigma H)``, c = (e^m - 1)/m with
   m = k/2 times the largest |phi_i - mu_g|^2_{H^-1}.
4. So ``L(theta*) - L(theta_hat) <= b``: a likelihood-ratio set.  Along v with |v|_H = 1 the second derivative of L is
   at least exp(-D t), D the average :func:`livarot.data.fitting.likelihood.reach`, hence ``L(theta_hat + t v) -
   L(theta_hat) >= -|g|_{H^-1} t + (exp(-D t) + D t - 1)/D^2``, and the set lies in the ellipsoid
   |theta - theta_hat|_H <= t, t the largest root of that bound = b.

Pairwise radius (asymptotic; certain).  A plan's bound for a (state, action) p depends on theta* - theta_hat only
through the differences A_p of its features.  It holds if ``T_p = |projection of z on the rows of A_p Cov^(1/2)|^2 <=
c^2``, where z is N(0, I) in large samples and T_p is chi-square with rank A_p degrees of freedom; the image of the
ellipsoid of radius c under A_p is exactly that set.  So the bounds of all pairs hold together, with probability
``level``, over the ellipsoid of radius c with ``sum over different projections of P(chi2_rank > c^2) = 1 - level``
(union bound).  The Wald radius serves *all* directions (Scheffe), and is larger where the pairs need few of them: with
eight actions of one coefficient each, 3.94 against 2.73.  :func:`pairwise_radius` is the smaller of the two; both
depend on features and Cov only.

s is not chosen from the data: the prior is a mixture of SCALES with equal weights, which adds log(number of scales)
to b.  The likelihood-ratio set is a relative of that of Lee, Yun and Jun (2024); its price over the Wald set is about
(d/2) log n in b.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import brentq
from scipy.stats import chi2

from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.core.ellipsoid import Ellipsoid
from livarot.data.fitting.likelihood import reach
from livarot.data.fitting.newton import Maximum
from livarot.data.fitting.sandwich import covariance_kind, inverse, middle
from livarot.data.reading.choices import Choices
from livarot.data.reading.table import warn
from livarot.errors import bad, require_probability
from livarot.model.probabilities import kernel_layout
from livarot.model.problem import Problem

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition

MOST_PAIRS = 20_000  # with more, a union bound over them is not worth its time
SHRINK = tuple(4.0**-k for k in range(16))  # of q: small samples need a narrower one
SCALES = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3)  # of the prior, in units of the coefficients


def covariance(choices: Choices, found: Maximum, reg: float, kind: str) -> FloatArray:
    """The covariance of an estimate: kinds and formulas in :mod:`livarot.data.fitting.sandwich`."""
    kind = covariance_kind(kind, choices)
    free = np.diag(found.hessian) > 0.0
    if reg == 0.0 and free.any() and not free.all():
        kept, whole = np.flatnonzero(free), np.zeros_like(found.hessian)
        whole[np.ix_(kept, kept)] = covariance(choices.keep_columns(kept.tolist()), _at(found, kept), reg, kind)
        return whole
    bread = inverse(found.hessian + reg * np.eye(choices.dim))
    if kind == "hessian":
        return bread
    return np.asarray(bread @ middle(choices, found.theta, kind) @ bread)


def overruled(found: Maximum, reg: float) -> BoolArray:
    """Which coefficients a ridge decides more than the data do, (d,).

    Those it shifts by more than their standard error, |reg (H + reg I)^-1 theta_hat|_j > se_j, and those whose prior
    has more than half of the weight, reg ((H + reg I)^-1)_jj > 1/2: there theta_hat is near 0 and hides the shift.
    """
    if reg == 0.0:
        return np.zeros(len(found.theta), dtype=np.bool_)
    posterior = inverse(found.hessian + reg * np.eye(len(found.theta)))
    variance = np.diag(posterior)
    return np.asarray((np.abs(reg * posterior @ found.theta) > np.sqrt(variance)) | (reg * variance > 0.5))


def warn_of_bias(fit: MNLTransition) -> None:
    """Say where a ridge decides more than the data."""
    wrong = [overruled(found, float(fit.reg)) for found in fit.maxima_]
    if any(one.any() for one in wrong):
        names = [name for name, one in zip(fit.columns_, np.any(wrong, axis=0), strict=True) if one]
        number = sum(int(one.sum()) for one in wrong)
        warn(
            f"the ridge decides {number} of {fit.theta_.size} coefficients more than "
            f"the data do ({', '.join(names[:3])}): their intervals are around a shifted estimate; lower reg"
        )


def confidence_sets(fit: MNLTransition, level: float, kind: str) -> list[Ellipsoid]:
    """One set per parameter, which hold together; see :meth:`livarot.data.MNLTransition.confidence_set`."""
    level = require_probability("level", level)
    if kind not in ("wald", "finite-sample"):
        raise bad("kind", f"{kind!r} is not known", cure="use 'wald' or 'finite-sample'")
    if kind == "finite-sample" and (fit.choices_.cluster is not None or fit.choices_.log_weight is not None):
        raise bad("kind", "'finite-sample' does not allow for clusters or weights", cure="use 'wald'")
    each = 1.0 - (1.0 - level) / len(fit.maxima_)
    if kind == "wald":
        if fit.reg > 0:
            warn_of_bias(fit)
        both = zip(fit.maxima_, fit._covariances(), strict=True)
        return [wald_set(found.theta, cov, each) for found, cov in both]
    parts = zip(fit.maxima_, fit._groups(fit.choices_), strict=True)
    return [finite_sample_set(part, found, each) for found, (_, part) in parts]


def wald_set(theta: FloatArray, cov: FloatArray, level: float) -> Ellipsoid:
    """The Wald ellipsoid of the module's first line."""
    level = require_probability("level", level)
    n_free = int((np.diag(cov) > 0.0).sum())
    return Ellipsoid(theta, _filled(inverse(cov, "covariance")), math.sqrt(chi2.ppf(level, n_free)))


def _at(found: Maximum, kept: IntArray) -> Maximum:
    """The coefficients that were estimated."""
    inner = found.hessian[np.ix_(kept, kept)]
    return found._replace(theta=found.theta[kept], gradient=found.gradient[kept], hessian=inner)


def _filled(matrix: FloatArray) -> FloatArray:
    """An axis for the coefficients that are held at 0: any will do, since no choice depends on them."""
    size = np.diag(matrix)
    if (size > 0.0).all() or not (size > 0.0).any():
        return matrix
    return np.asarray(matrix + np.diag(np.where(size > 0.0, 0.0, size[size > 0.0].mean())))


def pairwise_radius(problem: Problem, sets: Sequence[Ellipsoid], level: float) -> float:
    """Radius of Wald sets, in the units of the problem, over which the bounds of all (state, action) hold together."""
    widest = max(own.radius for own in sets)
    ranks: list[int] = []
    for table, parameter, _ in kernel_layout(problem).jobs:
        half = cholesky(sets[parameter].matrix, lower=True)
        found = _projections(problem, int(table), half)
        if found is None:
            return widest
        ranks += found
    if not ranks:
        return widest

    def excess(c: float) -> float:
        return float(np.sum(chi2.sf(c**2, np.array(ranks)))) - (1.0 - level)

    return widest if excess(widest) >= 0.0 else float(brentq(excess, 0.0, widest))


def _projections(problem: Problem, table: int, half: FloatArray) -> list[int] | None:
    """Ranks of the different projections of a table's pairs; None where one has full rank, or there are too many."""
    rows, per_table = problem.rows, problem.n_states * problem.n_actions
    met: set[bytes] = set()
    ranks: dict[bytes, int] = {}
    for pair in range(table * per_table, (table + 1) * per_table):
        phi = rows.features(pair)
        apart = phi[1:] - phi[:1]
        key = apart.tobytes()
        if key in met or not apart.any():
            continue
        met.add(key)
        if len(met) > MOST_PAIRS:
            return None
        left, size, _ = np.linalg.svd(solve_triangular(half, apart.T, lower=True), full_matrices=False)
        basis = left[:, size > 1e-10 * size[0]]
        if basis.shape[1] == problem.dim:
            return None
        ranks[(np.round(basis @ basis.T, 8) + 0.0).tobytes()] = basis.shape[1]
    return list(ranks.values())


def finite_sample_set(choices: Choices, found: Maximum, level: float) -> Ellipsoid:
    """The ellipsoid of the module's step 4."""
    level = require_probability("level", level)
    free = np.diag(found.hessian) > 0.0
    if free.any() and not free.all():
        kept, whole = np.flatnonzero(free), np.zeros_like(found.hessian)
        few = finite_sample_set(choices.keep_columns(kept.tolist()), _at(found, kept), level)
        whole[np.ix_(kept, kept)] = few.matrix
        return Ellipsoid(found.theta, _filled(whole), few.radius)
    d, hessian = choices.dim, found.hessian
    size = np.sqrt(np.diag(hessian))
    try:
        low = cholesky(hessian / size / size[:, None], lower=True) * size[:, None]
    except (LinAlgError, ValueError) as error:
        problem = "the likelihood has a flat direction: no bounded finite-sample set"
        raise bad("kind", problem, cure="drop the columns that cancel") from error
    far = reach(choices, found.theta, low)
    push = float(np.linalg.norm(solve_triangular(low, found.gradient, lower=True)))
    if not push * far.average < 1.0:  # NaN too
        raise bad("kind", "the estimate is too far from the maximum of the likelihood", cure="fit with a smaller reg")
    values = np.asarray(np.linalg.eigvalsh(hessian), dtype=np.float64)
    bound = math.log(1.0 / (1.0 - level)) + math.log(len(SCALES))
    bound += min(_evidence_cost(values, float(found.theta @ found.theta), far.farthest, s) for s in SCALES)
    if not math.isfinite(bound):
        raise bad(
            "kind", "the Hessian is too far from what floating-point numbers can hold", cure="rescale the columns"
        )
    return Ellipsoid(found.theta, hessian, likelihood_radius(bound, far.average, push) if d else 0.0)


def _evidence_cost(values: FloatArray, length: float, farthest: float, scale: float) -> float:
    """Bound on E_q L - L(theta_hat) + KL(q | pi), from the eigenvalues of H: steps 2 and 3."""
    prior = 1.0 / scale**2
    curved = np.maximum(values, 0.0)
    shares = curved / (curved + prior)
    log_volume = float(np.log1p(curved * scale**2).sum())
    best = math.inf
    for k in SHRINK:
        m = 0.5 * k * farthest**2
        growth = 1.0 if m < 1e-12 else math.expm1(m) / m if m < 700.0 else math.inf
        kl = 0.5 * (length * prior + k * float((1.0 - shares).sum()) - len(values) * (1.0 + math.log(k)) + log_volume)
        best = min(best, 0.5 * growth * k * float(shares.sum()) + kl)
    return best


def likelihood_radius(bound: float, wide: float, push: float = 0.0) -> float:
    """Largest t with ``-push t + (exp(-D t) + D t - 1)/D^2 <= bound``; sqrt(2 bound) where D and push vanish.

    >>> round(likelihood_radius(2.0, 0.0), 9), round(likelihood_radius(2.0, 0.5), 6)
    (2.0, 2.396581)
    """

    def excess(t: float) -> float:
        x = wide * t
        curve = 0.5 * t**2 * (1.0 - x / 3.0 + x**2 / 12.0) if x < 1e-4 else (math.exp(-x) + x - 1.0) / wide**2
        return curve - push * t - bound

    top = 2.0 * math.sqrt(2.0 * bound) + 1e-300
    while excess(top) < 0.0:
        top *= 2.0
    root = float(brentq(excess, 0.0, top, xtol=1e-300, rtol=1e-14))
    return root * (1.0 + 1e-12)  # rounding must not shrink a bound


@dataclass(frozen=True)
class LikelihoodRatio:
    """Twice the difference of two log-likelihoods, against the chi-square law of their difference in parameters."""

    statistic: float
    df: int
    p_value: float

    def __str__(self) -> str:
        return f"LR = {self.statistic:.4g} on {self.df} df, p = {self.p_value:.4g}"


def likelihood_ratio_test(small: float, large: float, df: int) -> LikelihoodRatio:
    """The test of two log-likelihoods (the smaller model first).

    >>> print(likelihood_ratio_test(-105.0, -100.0, 2))
    LR = 10 on 2 df, p = 0.006738
    """
    statistic = 2.0 * (large - small)
    return LikelihoodRatio(statistic, df, float(chi2.sf(max(statistic, 0.0), df)) if df else 1.0)
