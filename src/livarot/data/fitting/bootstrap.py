"""The bootstrap: the same fit on resampled choices, and models with the resampled parameters.

``"observed"`` resamples the observed choices, n out of n with replacement: counts are multinomial with the observed
shares (also over choice sets, so it is honest about a model that is wrong).  ``"model"`` keeps how often every choice
set was met and draws its choices from the fitted probabilities: right if the model is, and it never loses a pair.

Only counts change, so a refit costs a few Newton steps on the choice sets, however long the log was.  A resample may
have no maximum (it may be separable though the data are not): those are left out and counted, and more than
MOST_FAILED of them is an error, since the rest would look better than the data are.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from livarot.core.arguments import checked, several
from livarot.core.arrays import FloatArray
from livarot.data.fitting.likelihood import log_probabilities
from livarot.data.fitting.newton import maximise
from livarot.data.reading.choices import Choices
from livarot.data.reading.table import DataWarning
from livarot.errors import LivarotError, bad
from livarot.model.probabilities import Kernel, transition_kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition

log = logging.getLogger(__name__)

MOST_FAILED = 0.05  # share of resamples without a maximum that is tolerated
TOLERANCE = 1e-6  # Newton decrement of a refit: the noise of the bootstrap is of order one


class Bootstrap(NamedTuple):
    """Refitted parameters in the units of the columns; ``n_failed`` resamples had no maximum."""

    theta: FloatArray  # (resamples, parameters, d)
    n_failed: int


@checked(n_resamples=several)
def bootstrap(fit: MNLTransition, n_resamples: int = 200, seed: int = 0, *, resample: str = "observed") -> Bootstrap:
    """Parameters of ``n_resamples`` refits; draw b does not depend on how many there are.

    >>> from livarot.data import MNLTransition
    >>> log = {"state": ["ok"] * 40, "action": ["run"] * 40, "next_state": ["ok"] * 30 + ["worn"] * 10,
    ...        "wear": [0.0] * 30 + [1.0] * 10}
    >>> fit = MNLTransition(features=["wear"], reachable="all").fit(log)
    >>> draws = bootstrap(fit, 400).theta[:, 0, 0]
    >>> round(float(draws.std()), 2), round(float(fit.covariance_[0, 0]) ** 0.5, 2)
    (0.38, 0.37)
    """
    if resample not in ("observed", "model"):
        raise bad("resample", f"{resample!r} is not known", cure="use 'observed' or 'model'")
    groups = [part for _, part in fit._groups(fit.choices_)]
    thetas = np.atleast_2d(fit.theta_)
    require_memory("n_resamples", "the refitted parameters", n_resamples * thetas.size)
    shares = [_shares(part, theta, resample) for part, theta in zip(groups, thetas, strict=True)]
    found = np.empty((n_resamples, *thetas.shape))
    n_failed, kept = 0, 0
    for b in range(n_resamples):
        rng = stream(seed, f"bootstrap {b}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # the fit has already warned about the data
                for k, part in enumerate(groups):
                    drawn = part.with_counts(_resampled(part, shares[k], resample, rng))
                    own = maximise(drawn, reg=float(fit.reg), tol=TOLERANCE, max_iter=int(fit.max_iter))
                    if not own.converged:
                        raise bad("data", "no convergence")
                    found[kept, k] = own.theta
        except LivarotError as error:  # NotIdentified among them
            log.debug("resample %d has no fit: %s", b, error)
            n_failed += 1
            continue
        kept += 1
    if n_failed > MOST_FAILED * n_resamples:
        problem = f"{n_failed} of {n_resamples} resamples have no maximum of the likelihood"
        raise bad("resample", problem, cure="fit with reg > 0, merge rare columns, or use resample='model'")
    return Bootstrap(found[:kept], n_failed)


def _shares(part: Choices, theta: FloatArray, resample: str) -> FloatArray:
    """Probabilities to draw the counts from: of all rows, or of the rows within each set."""
    if resample == "observed":
        return np.asarray(part.count / part.count.sum())
    return np.exp(log_probabilities(part, theta))


def _resampled(part: Choices, shares: FloatArray, resample: str, rng: np.random.Generator) -> FloatArray:
    """New counts with as many choices as before (if weights are not whole numbers, their total is rounded)."""
    if resample == "observed":
        total = max(round(part.n_choices), 1)
        return np.asarray(rng.multinomial(total, shares) * (part.n_choices / total), dtype=np.float64)
    count = np.empty(part.n_rows)
    for g in range(part.n_sets):
        rows = slice(part.start[g], part.start[g + 1])
        p = shares[rows]
        count[rows] = rng.multinomial(round(float(part.weight[g])), p / p.sum())
    return count


def kernels(problem: Problem, theta: FloatArray) -> Iterator[Kernel]:
    """Transition probabilities of parameters (draws, parameters, d) in the units of the columns.

    The bound B of the problem is not a constraint here: it was chosen with the estimate, not with its resamples.
    """
    free = replace(problem, param_bound=math.inf)
    for own in theta * problem.feature_scale:
        yield transition_kernel(MNLMDP(free, own))


def check_own(fit: MNLTransition, mdp: MNLMDP) -> None:
    """Refuse a model that was not made from this fit."""
    own = np.atleast_2d(fit.theta_) * mdp.problem.feature_scale
    if mdp.theta.shape != own.shape or not np.allclose(mdp.theta, own, rtol=1e-9, atol=1e-12):
        raise bad("mdp", "was not made from this fit", cure="pass fit.to_mdp(...)")
