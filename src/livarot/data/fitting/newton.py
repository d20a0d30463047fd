"""Maximum likelihood by damped Newton steps, with a proof that the maximum exists.

    minimise  F(theta) = -log-likelihood + reg/2 |theta|^2

``theta - H^-1 g`` with backtracking; each trial point costs one pass over the data (value, gradient and Hessian
together), and a trial is nearly always accepted.  Large data begin with Newton steps on every k-th block.

Certificate.  Let ``decrement = |g|_{H^-1}``, and D bound the ranges of ``phi . v`` within sets over |v|_H = 1.  Along
such a v the second derivative is at least ``exp(-D t)``, so the slope at distance t is at least
``-decrement + (1 - exp(-D t))/D``.  If ``decrement D < 1`` the slope becomes positive in every direction: a minimiser
exists, at distance at most ``-log(1 - decrement D)/D`` in the norm of H (derived here; certain).  On separable data
this can never hold, although the gradient goes to zero and a plain test would call it converged.  Where the
certificate is not reached, :func:`livarot.data.fitting.separation.separation` decides.

This is not the Newton method of :mod:`livarot.estimation.mle`, though both minimise the same function.  That one is
compiled as a whole and runs for every (replica, stage) of every episode on a few pairs with packed block Hessians, on
a ball; a call from Python per step would cost more than its arithmetic.  This one streams ragged tables of any length
through BLAS, 4096 rows at a time, from Python, and must prove that a maximum exists.  They share the likelihood's
formulas, not a line of code that either could give up: the passes over the data, which are all of the cost, differ.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from livarot.core.arrays import BoolArray, FloatArray
from livarot.data.fitting.likelihood import Derivatives, block_starts, derivatives
from livarot.data.fitting.separation import NotIdentified, check_identified, separation
from livarot.data.reading.choices import Choices
from livarot.data.reading.table import warn
from livarot.errors import bad

log = logging.getLogger(__name__)
Follow = Callable[[FloatArray, int], None]  # called with theta and the number of steps just made

SAMPLE_BLOCKS = 24  # blocks of the first steps on large data
PATIENCE = 12  # steps without a certificate before separation is looked for
SUFFICIENT = 1e-4  # share of the promised decrease that a step must deliver
UNSEEN = 1e-13  # relative decrease of the objective below which rounding decides
NEGLIGIBLE = 1e-5  # decrement (in standard errors) at which rounding may stop the search


class Maximum(NamedTuple):
    """The estimate; derivatives are those of minus the log-likelihood, without the ridge."""

    theta: FloatArray  # (d,)
    log_likelihood: float
    null_log_likelihood: float  # at theta = 0: equal odds, or the offset alone
    gradient: FloatArray  # (d,)
    hessian: FloatArray  # (d, d)
    decrement: float  # |gradient of F| in the norm of its inverse Hessian: error in standard errors
    certificate: float  # decrement times a bound on D: below 1 the maximum exists (0 with a ridge)
    n_iter: int  # Newton steps on all of the data
    converged: bool


class _Point(NamedTuple):
    theta: FloatArray
    objective: float
    gradient: FloatArray
    hessian: FloatArray
    at: Derivatives


class _Search(NamedTuple):
    reg: float
    scale: FloatArray  # units of the columns
    tol: float
    max_iter: int
    stride: int = 1  # only every stride-th block of the data is read
    tell: Follow | None = None


def maximise(
    choices: Choices,
    *,
    reg: float = 0.0,
    tol: float = 1e-8,
    max_iter: int = 100,
    where: str = "",
    at_zero: Derivatives | None = None,
    free: BoolArray | None = None,
    follow: Follow | None = None,
) -> Maximum:
    """The maximum of the (ridge) likelihood; ``where`` is added to messages, to say which stage.

    ``at_zero`` are the derivatives at theta = 0, if they are known already.  Coefficients that are not ``free`` are
    held at 0; the gradient and the Hessian are 0 there too.  ``follow`` is told where each step on the data leads."""
    if free is not None and not free.all():
        kept = np.flatnonzero(free)
        own = choices.keep_columns(kept.tolist())
        tell = None if follow is None else lambda theta, steps: follow(_spread(theta, free), steps)
        few = maximise(own, reg=reg, tol=tol, max_iter=max_iter, where=where, follow=tell)
        whole, hessian = np.zeros((2, choices.dim)), np.zeros((choices.dim, choices.dim))
        whole[:, kept], hessian[np.ix_(kept, kept)] = (few.theta, few.gradient), few.hessian
        return few._replace(theta=whole[0], gradient=whole[1], hessian=hessian)
    zero = _point(choices, np.zeros(choices.dim), reg, at=at_zero)
    _remarks(choices, reg, where)
    check_identified(choices, zero.at, ridge=reg > 0.0, where=where)
    scale = np.sqrt(np.where(np.diag(zero.hessian) > 0.0, np.diag(zero.hessian), 1.0))
    stride = (len(block_starts(choices.start)) - 1) // SAMPLE_BLOCKS
    point = zero
    if stride > 3:
        theta = _sample_start(choices, reg, scale, stride)
        trial = _point(choices, theta, reg) if theta is not None else zero
        point = trial if trial.objective < zero.objective else zero
        if follow is not None:
            follow(point.theta, 0)
    search = _Search(reg, scale, tol, max_iter, tell=follow)
    point, decrement, certificate, n_iter, converged = _descend(choices, point, search, zero.at.spread, where)
    if not converged:
        warn(
            f"no convergence in {n_iter} steps{where}: the last step was {decrement:.2g} standard errors; raise "
            f"max_iter{',' if reg == 0.0 else ' or'} rescale the columns{', or set reg > 0' if reg == 0.0 else ''}"
        )
    log.debug("maximum likelihood%s: %d steps, decrement %.2g", where, n_iter, decrement)
    at = point.at
    return Maximum(
        point.theta, at.log_likelihood, zero.at.log_likelihood, at.gradient, at.hessian, decrement, certificate, n_iter,
        converged,
    )  # fmt: skip


def _spread(theta: FloatArray, free: BoolArray) -> FloatArray:
    """The coefficients that are not free are 0."""
    whole = np.zeros(len(free))
    whole[free] = theta
    return whole


def _remarks(choices: Choices, reg: float, where: str) -> None:
    """Refuse data without choices, and warn of what makes estimates from the data doubtful."""
    if choices.n_choices == 0:
        raise bad("data", f"no choice was observed{where}")
    if choices.dim > choices.n_observations:
        warn(
            f"more parameters than choices{where}: {choices.dim} columns, {choices.n_observations:g} choices; "
            + ("the ridge decides" if reg > 0.0 else "drop columns, collect more, or set reg > 0")
        )
    if choices.next_state is not None and choices.labels is not None:
        wide = choices.sizes[choices.set_of_row] > 1
        seen = np.unique(choices.next_state[(choices.count > 0) & wide])
        if len(seen) == 1:
            label = choices.labels.states[int(seen[0])]
            told = "" if reg > 0.0 else "; the data may be separable"
            warn(f"one observed class{where}: every choice led to {label!r}{told}")


def _point(
    choices: Choices, theta: FloatArray, reg: float, stride: int = 1, *, at: Derivatives | None = None
) -> _Point:
    at = derivatives(choices, theta, stride) if at is None else at
    objective = -at.log_likelihood + 0.5 * reg * float(theta @ theta)
    return _Point(theta, objective, at.gradient + reg * theta, at.hessian + reg * np.eye(len(theta)), at)


def _newton_step(point: _Point, scale: FloatArray) -> FloatArray:
    """-H^-1 g in the columns' own units; where H has lost its rank to rounding, in the directions that remain."""
    unit, slope = point.hessian / scale / scale[:, None], point.gradient / scale
    try:
        return np.asarray(-cho_solve(cho_factor(unit, lower=True), slope) / scale)
    except LinAlgError:
        values, vectors = eigh(unit)
        safe = np.maximum(values, 1e-14 * values[-1])
        return np.asarray(-(vectors @ ((vectors.T @ slope) / safe)) / scale)


def _diameter_bound(point: _Point, scale: FloatArray) -> float:
    """D <= 2 |spread|_scale / sqrt(smallest eigenvalue of the scaled Hessian): without another pass."""
    if len(scale) == 0:  # every coefficient is held at 0
        return 0.0
    smallest = float(eigh(point.at.hessian / scale / scale[:, None], eigvals_only=True)[0])
    return math.inf if smallest <= 0.0 else 2.0 * float(np.linalg.norm(point.at.spread / scale)) / math.sqrt(smallest)


def _descend(
    choices: Choices, point: _Point, search: _Search, spread: FloatArray | None = None, where: str = ""
) -> tuple[_Point, float, float, int, bool]:
    """Newton steps until the certificate holds; without ``spread`` separation is not looked for."""
    reg, scale, tol, max_iter, stride, tell = search
    asked, last = False, math.inf
    for n_iter in range(max_iter + 1):
        step = _newton_step(point, scale)
        slope = float(step @ point.gradient)
        decrement = math.sqrt(max(-slope, 0.0))
        invisible = -slope <= UNSEEN * (1.0 + abs(point.objective))
        stalled = invisible and decrement > 0.5 * last and decrement <= NEGLIGIBLE
        arrived = decrement <= tol or stalled
        certificate = 0.0
        if reg == 0.0 and (arrived or n_iter == PATIENCE):
            widest = _diameter_bound(point, scale)
            certificate = decrement * widest if math.isfinite(widest) else math.inf
            if certificate >= 0.5 and spread is not None and not asked:
                asked = True
                _refuse_separable(choices, point.theta, spread, where)
        if arrived:
            return point, decrement, certificate, n_iter, certificate < 0.5
        if n_iter == max_iter:
            break
        length = 1.0
        for _ in range(50):
            trial = _point(choices, point.theta + length * step, reg, stride)
            # a decrease below the rounding of the objective cannot be seen: trust the Newton step
            if trial.objective <= point.objective + SUFFICIENT * length * slope or invisible:
                break
            length *= 0.5
        last, point = decrement, trial
        if tell is not None:
            tell(point.theta, 1)
    return point, decrement, certificate, max_iter, False


def _refuse_separable(choices: Choices, theta: FloatArray, spread: FloatArray, where: str) -> None:
    found = separation(choices, theta, np.where(spread > 0.0, spread, 1.0))
    if found is None:
        return
    text = ", ".join(map(repr, found.columns))
    problem = (
        f"separable{where}: a combination of {text} is never smaller for the chosen alternative than for the others, "
        "so the likelihood has no maximum"
    )
    cure = "set reg > 0, drop or merge these columns, or collect choices that contradict them"
    error = bad(f"column {found.columns[0]!r}", problem, count=len(found.columns), cure=cure)
    refused = NotIdentified.of(error, "separable", found.columns, found.direction)
    refused.choices = choices
    raise refused


def _sample_start(choices: Choices, reg: float, scale: FloatArray, stride: int) -> FloatArray | None:
    """A first guess from every k-th block, if its own certificate holds."""
    share = reg / stride
    zero = _point(choices, np.zeros(choices.dim), share, stride)
    small = scale / math.sqrt(stride)
    search = _Search(share, small, 0.05, 10, stride)  # 0.05 standard errors of the sample
    point, _, certificate, _, converged = _descend(choices, zero, search)
    return point.theta if converged and certificate < 0.5 else None
