"""The bootstrap: the same fit on resampled choices, and models with the resampled parameters.

``"observed"`` resamples the observed choices, n out of n with replacement: counts are multinomial with the observed
shares (also over choice sets, so it stays valid if the model is wrong).  ``"model"`` keeps how often every choice
set was met and draws its choices from the fitted probabilities: right if the model is, and it never loses a pair.
``"cluster"`` (the default of a fit with clusters) draws whole clusters, G out of G with replacement, each with all of
its observations at all stages: whatever makes the observations of one person depend on each other is resampled with it.
Sampling weights go with their observations.

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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from livarot.core.arguments import checked, several
from livarot.core.arrays import FloatArray
from livarot.data.fitting.likelihood import log_probabilities
from livarot.data.fitting.newton import maximise
from livarot.data.fitting.sandwich import observation_weights, with_clusters
from livarot.data.reading.choices import Choices
from livarot.data.reading.table import DataWarning
from livarot.errors import LivarotError, bad
from livarot.model.probabilities import Kernel, transition_kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.model.shown import compact
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition

log = logging.getLogger(__name__)

MOST_FAILED = 0.05  # share of resamples without a maximum that is tolerated
TOLERANCE = 1e-6  # Newton decrement of a refit: the noise of the bootstrap is of order one


@compact
class Bootstrap(NamedTuple):
    """Refitted parameters in the units of the columns; ``n_failed`` resamples had no maximum."""

    theta: FloatArray  # (resamples, parameters, d)
    n_failed: int


@checked(n_resamples=several)
def bootstrap(
    fit: MNLTransition, n_resamples: int = 200, seed: int = 0, *, resample: str = "auto", cluster: Any = None
) -> Bootstrap:
    """Parameters of ``n_resamples`` refits; draw b does not depend on how many there are.

    ``resample`` "auto" is "cluster" where there are clusters, else "observed".  ``cluster`` is the fit's own column of
    clusters (also by default), or one label for each observation, in the order of the log.

    >>> from livarot.data import MNLTransition
    >>> log = {"state": ["ok"] * 40, "action": ["run"] * 40, "next_state": ["ok"] * 30 + ["worn"] * 10,
    ...        "wear": [0.0] * 30 + [1.0] * 10}
    >>> fit = MNLTransition(features=["wear"], reachable="all").fit(log)
    >>> draws = bootstrap(fit, 400).theta[:, 0, 0]
    >>> round(float(draws.std()), 2), round(float(fit.covariance_[0, 0]) ** 0.5, 2)
    (0.38, 0.37)
    """
    choices = with_clusters(fit, cluster)
    resample = _resampling(resample, choices)
    groups = [part for _, part in fit._groups(choices)]
    thetas = np.atleast_2d(fit.theta_)
    require_memory("n_resamples", "the refitted parameters", n_resamples * thetas.size)
    draws = _Draws(choices, groups, thetas, resample)
    found = np.empty((n_resamples, *thetas.shape))
    settings: dict[str, Any] = {"reg": float(fit.reg), "tol": TOLERANCE, "max_iter": int(fit.max_iter)}
    n_failed, kept = 0, 0
    for b in range(n_resamples):
        rng = stream(seed, f"bootstrap {b}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # the fit has already warned about the data
                for k, count in enumerate(draws.counts(rng)):
                    drawn = groups[k].with_counts(count)
                    own = maximise(drawn, free=~fit.held_[k], **settings)
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


def _resampling(asked: str, choices: Choices) -> str:
    known = ("auto", "observed", "model", "cluster")
    if asked not in known:
        raise bad("resample", f"{asked!r} is not known", cure=f"use one of {', '.join(map(repr, known))}")
    if asked == "auto":
        return "observed" if choices.cluster is None else "cluster"
    if asked == "cluster" and choices.cluster is None:
        raise bad("resample", "is by clusters, and the fit has none", cure="fit with cluster='person'")
    return asked


class _Draws:
    """New counts of the choices of every parameter, with as many choices as before."""

    def __init__(self, choices: Choices, groups: list[Choices], thetas: FloatArray, resample: str) -> None:
        self.groups, self.resample = groups, resample
        if resample == "model":
            self.shares = [np.exp(log_probabilities(part, theta)) for part, theta in zip(groups, thetas, strict=True)]
        elif resample == "observed":
            self.shares = [part.count / part.count.sum() for part in groups]
        else:
            assert choices.cluster is not None  # noqa: S101 (it was checked)
            self.n_clusters = int(choices.cluster.max()) + 1

    def counts(self, rng: np.random.Generator) -> Iterator[FloatArray]:
        if self.resample == "cluster":
            often = np.bincount(rng.integers(self.n_clusters, size=self.n_clusters), minlength=self.n_clusters)
            for part in self.groups:
                assert part.cluster is not None  # noqa: S101
                weight = often[part.cluster] * observation_weights(part)
                yield np.bincount(part.log_row, weights=weight, minlength=part.n_rows).astype(np.float64)
            return
        for part, shares in zip(self.groups, self.shares, strict=True):
            if self.resample == "observed":
                yield _redrawn(part, shares, rng)
                continue
            count = np.empty(part.n_rows)
            for g in range(part.n_sets):
                rows = slice(part.start[g], part.start[g + 1])
                p = shares[rows]
                count[rows] = rng.multinomial(round(float(part.weight[g])), p / p.sum())
            yield count


def _redrawn(part: Choices, shares: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Observations n out of n (if counts are not whole numbers, their total is rounded)."""
    if part.log_weight is None:
        total = max(round(part.n_choices), 1)
        return np.asarray(rng.multinomial(total, shares) * (part.n_choices / total), dtype=np.float64)
    often = np.ones(len(part.log_row)) if part.log_count is None else part.log_count
    drawn = rng.multinomial(max(round(float(often.sum())), 1), often / often.sum())
    weight = drawn * part.log_weight
    return np.bincount(part.log_row, weights=weight, minlength=part.n_rows).astype(np.float64)


def kernels(problem: Problem, theta: FloatArray) -> Iterator[Kernel]:
    """Transition probabilities of parameters (draws, parameters, d) in the units of the columns."""
    for own in drawn(problem, theta):
        yield transition_kernel(own)


def drawn(problem: Problem, theta: FloatArray) -> Iterator[MNLMDP]:
    """Models of parameters (draws, parameters, d) in the units of the columns.

    The bound B of the problem is not a constraint here: it was chosen with the estimate, not with its resamples.
    """
    free = replace(problem, param_bound=math.inf)
    for own in theta * problem.feature_scale:
        yield MNLMDP(free, own)


def check_own(fit: MNLTransition, mdp: MNLMDP) -> None:
    """Refuse a model that was not made from this fit."""
    own = np.atleast_2d(fit.theta_) * mdp.problem.feature_scale
    if mdp.theta.shape != own.shape or not np.allclose(mdp.theta, own, rtol=1e-9, atol=1e-12):
        raise bad("mdp", "was not made from this fit", cure="pass fit.to_mdp(...)")
