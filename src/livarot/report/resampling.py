"""The bootstrap behind :mod:`livarot.report.statistics`: resamples of the seeds, bands and slopes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.core.arrays import FloatArray
from livarot.errors import bad, require_finite, require_positive_int, require_probability
from livarot.simulation.streams import stream

MIN_SEEDS = 5  # with fewer, quantiles of resamples say nothing
LEAST_ERROR = 0.25  # the least s(x*), relative to s(x)
NO_SPREAD = 1e-14  # a standard error below this share of the largest value counts as zero
FARTHEST = 4.0  # standard errors up to which an estimate is taken as normal
CHUNK = 1 << 22  # numbers of a work array
Statistic = Literal["mean", "iqm"]


class Band(NamedTuple):
    """A curve and its confidence band, (points,) each."""

    center: FloatArray
    low: FloatArray
    high: FloatArray


@lru_cache(maxsize=16)
def resample_counts(n: int, n_resamples: int, seed: int, purpose: str = "bootstrap") -> FloatArray:
    """How often each seed is in each resample, (resamples, n); kept, since a report asks for the same ones often."""
    draws = stream(seed, purpose).integers(n, size=(n_resamples, n))
    flat = (draws + n * np.arange(n_resamples)[:, None]).reshape(-1)
    found = np.bincount(flat, minlength=n * n_resamples).reshape(n_resamples, n).astype(np.float64)
    found.setflags(write=False)
    return found


def bands_of(
    curves: ArrayLike, statistic: Statistic, level: float, n_resamples: int, seed: int, *, joint: bool
) -> tuple[Band, Band]:
    """The pointwise and, if ``joint``, the simultaneous band; else the pointwise one twice, chunk by chunk."""
    found, exponents = scaled(checked_sample("curves", curves, 2))
    check_level(level, n_resamples)
    if statistic not in STATISTICS:
        raise bad("statistic", f"{statistic!r} is unknown", cure="mean or iqm")
    counts, width = (
        resample_counts(len(found), n_resamples, seed),
        found.shape[1] if joint else max(1, CHUNK // n_resamples),
    )
    chunks = (found[:, k : k + width] for k in range(0, found.shape[1], width))
    parts = zip(*(STATISTICS[statistic](chunk, counts, level, joint) for chunk in chunks), strict=True)
    near, whole = (Band(*(np.concatenate(x) for x in zip(*part, strict=True))) for part in parts)
    return unscaled(near, exponents), unscaled(whole, exponents)


def scaled(values: FloatArray) -> tuple[FloatArray, NDArray[np.int32]]:
    """Values over a power of two, the largest of each column between 1/2 and 1, and the powers.  Exact."""
    exponents = np.frexp(np.abs(values).max(axis=0, initial=0.0))[1]
    return np.ldexp(values, -exponents), exponents


def unscaled(found: Band, exponents: NDArray[np.int32]) -> Band:
    with np.errstate(over="ignore"):  # an end beyond the largest number is infinite
        return Band(*(np.ldexp(x, exponents) for x in found))


def _mean_bands(curves: FloatArray, counts: FloatArray, level: float, joint: bool) -> tuple[Band, Band]:
    """Bootstrap-t."""
    n, tail = len(curves), (1.0 - level) / 2.0
    center, error = curves.mean(axis=0), curves.std(axis=0, ddof=1) / np.sqrt(n)
    error = np.where(error > NO_SPREAD * np.abs(curves).max(axis=0), error, 0.0)
    away = curves - center  # about the estimate, so that the difference of the two moments does not cancel
    moved = counts @ away / n
    variance = counts @ away**2 / n - moved**2
    t = divided(moved, np.sqrt(np.maximum(variance, 0.0) / (n - 1)), error)

    def within(below: Any, above: Any) -> Band:  # the estimate is inside also where both quantiles have one sign
        return Band(center, center - np.maximum(above, 0.0) * error, center - np.minimum(below, 0.0) * error)

    near = within(*np.quantile(t, (tail, 1.0 - tail), axis=0))
    if not joint:
        return near, near
    return near, within(np.quantile(t.min(axis=1), tail), np.quantile(t.max(axis=1), 1.0 - tail))


def _iqm_bands(curves: FloatArray, counts: FloatArray, level: float, joint: bool) -> tuple[Band, Band]:
    """Widened percentiles, see :func:`iqm_interval`."""
    from scipy.special import ndtr, stdtrit

    n = len(curves)
    cut, wide = n // 4, float(stdtrit(n - 1, 0.5 + level / 2.0))
    order = np.argsort(curves, axis=0, kind="stable")
    ordered = np.take_along_axis(curves, order, axis=0)
    lowest, highest = ordered[cut], ordered[n - 1 - cut]
    center = np.clip(ordered[cut : n - cut].mean(axis=0), lowest, highest)
    moved = np.empty((curves.shape[1], len(counts)))
    draws = np.ascontiguousarray(counts.T)
    for column in range(curves.shape[1]):
        total = np.cumsum(draws[order[:, column]], axis=0)  # draws up to the j-th smallest value, (n, resamples)
        kept = np.diff(np.clip(total, cut, n - cut, out=total), axis=0, prepend=float(cut))
        moved[column] = (ordered[:, column] - center[column]) @ kept / (n - 2 * cut)
    least = NO_SPREAD * np.maximum(np.abs(lowest), np.abs(highest))
    sides = np.quantile(moved, ndtr([-wide, wide]), axis=1) * [[-1.0], [1.0]]
    fall, rise = np.where(sides > least, sides, 0.0)  # with few different values both quantiles can have one sign

    def factor(towards: FloatArray, side: FloatArray) -> float:
        share = float(np.quantile(divided(towards, side[:, None], 0.0).max(axis=0), 0.5 + level / 2.0))
        normal = np.clip(share * wide, 1.0, FARTHEST)
        return max(1.0, share * float(stdtrit(n - 1, ndtr(normal)) / normal))

    near = Band(center, np.maximum(center - fall, ordered[0]), np.minimum(center + rise, ordered[-1]))
    if not joint:
        return near, near
    return near, Band(center, center - factor(-moved, fall) * fall, center + factor(moved, rise) * rise)


STATISTICS = {"mean": _mean_bands, "iqm": _iqm_bands}


def divided(moved: FloatArray, errors: FloatArray, error: FloatArray | float) -> FloatArray:
    """moved / errors, with errors held above a share of ``error``; 0 where there is no spread at all."""
    least = np.maximum(errors, LEAST_ERROR * np.asarray(error))
    return np.where(least > 0.0, moved / np.where(least > 0.0, least, 1.0), 0.0)


def slopes_of(
    samples: list[FloatArray], weights: FloatArray, n_resamples: int, seed: int, paired: bool
) -> tuple[FloatArray, FloatArray]:
    """Slope and standard error of the data and of each resample, (1 + resamples,).

    The slope is sum_k w_k log m_k; a seed's influence on it is sum_k w_k (x_k - m_k)/m_k.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        if not paired:
            slopes, variance = np.zeros(1 + n_resamples), np.zeros(1 + n_resamples)
            for k, (sample, weight) in enumerate(zip(samples, weights, strict=True)):
                n = len(sample)
                counts = np.vstack([np.ones(n), resample_counts(n, n_resamples, seed, f"bootstrap {k}")])
                means = counts @ sample / n
                spread = counts @ (sample - sample.mean()) ** 2 / n - (means - sample.mean()) ** 2
                slopes += weight * np.log(means)
                variance += weight**2 * np.maximum(spread, 0.0) / (n - 1) / means**2
            return slopes, np.sqrt(variance)
        matrix = np.stack(samples, axis=1)
        n = len(matrix)
        counts = np.vstack([np.ones(n), resample_counts(n, n_resamples, seed)])
        means = counts @ matrix / n  # (1 + resamples, K)
        influence = (weights / means) @ matrix.T  # its mean over a resample is sum_k w_k = 0
        variance = (counts * influence**2).sum(axis=1) / n
        return np.log(means) @ weights, np.sqrt(variance / (n - 1))


def checked_sample(argument: str, values: Any, ndim: int) -> NDArray[np.float64]:
    found = require_finite(argument, values)
    if found.ndim != ndim:
        raise bad(argument, f"has shape {found.shape}", cure="give (seeds,)" if ndim == 1 else "give (seeds, points)")
    if len(found) < MIN_SEEDS:
        raise bad(argument, f"{len(found)} seeds", cure=f"an interval needs at least {MIN_SEEDS}")
    if found.size == 0:
        raise bad(argument, "there is no point")
    return found


def check_level(level: float, n_resamples: int) -> None:
    require_probability("level", level)
    require_positive_int("n_resamples", n_resamples, 100)
    if n_resamples * (1.0 - level) < 10.0:
        raise bad("n_resamples", f"{n_resamples} cannot resolve level {level}", cure="take more resamples")
