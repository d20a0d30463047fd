"""Means, interquartile means, bands, paired differences and slopes over seeds, with intervals that cover.

The plain percentile bootstrap and Student's interval cover too little on twenty skewed values (regret is skewed: most
seeds learn, a few do not).  Means and slopes have **bootstrap-t** intervals (Efron and Tibshirani 1993, ch. 12): with
resamples x* of the seeds, an estimate m and its standard error s,

    t* = (m(x*) - m(x)) / s(x*),      interval  [m - q_{1-a/2}(t*) s,  m - q_{a/2}(t*) s],

whose error in coverage is of second order, 1/n, also for skewed laws.  s(x*) is held above s/4: a resample that misses
the few values that differ would otherwise make the interval infinite; with smooth laws this never happens.
The interquartile mean has a **widened percentile** interval; :func:`iqm_interval` tells why.

The seed is the unit that is resampled, and the only one: episodes of a run depend on each other.  Everything is
a function of the data and ``seed=``.  Columns are scaled by a power of two, so that no square overflows or vanishes.
Coverage at 8, 20 and 40 seeds is measured by ``python -m benchmarks.coverage`` and told in ``docs/report.md``.

>>> import numpy as np
>>> regret = np.array([3.0, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 19.0])
>>> found = mean_interval(regret)
>>> found.estimate, found.low < found.estimate < found.high
(6.75, True)
>>> float(iqm(regret))
5.25
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.core.arrays import FloatArray
from livarot.errors import bad, require_finite, require_positive_int, require_probability
from livarot.simulation.streams import stream

MIN_SEEDS = 5  # below, quantiles of resamples say nothing
RESAMPLES = 4000
LEAST_ERROR = 0.25  # of s(x*), relative to s(x)
ROUNDING = 1e-14  # a standard error below this share of the largest value is none
FARTHEST = 4.0  # standard errors up to which an estimate is taken as normal
CHUNK = 1 << 22  # numbers of a work array

Statistic = Literal["mean", "iqm"]


class Interval(NamedTuple):
    """A number and its confidence interval."""

    estimate: float
    low: float
    high: float


class Band(NamedTuple):
    """A curve and its confidence band, (points,) each."""

    center: FloatArray
    low: FloatArray
    high: FloatArray


class Paired(NamedTuple):
    """The mean of first minus second over the seeds that both have."""

    estimate: float
    low: float
    high: float
    n_seeds: int


def mean_interval(values: ArrayLike, *, level: float = 0.95, n_resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """The mean over seeds, (n,), with its interval; for heavy tails it covers less than ``level`` (docs/report.md)."""
    return _interval(values, "mean", level, n_resamples, seed)


def iqm_interval(values: ArrayLike, *, level: float = 0.95, n_resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """The interquartile mean over seeds, (n,), with its interval: that of the law's mean between its quartiles.

    With the interquartile means m* of the resamples,

        [q_b(m*), q_{1-b}(m*)],      b = Phi(-t_{n-1, 1-a/2}),

    that is, Student's quantile in place of the normal one (Hesterberg 2015); for normal m* this is m -+ t s.  His
    factor sqrt(n/(n - 1)) is left out: resampling makes the variance of a mean too small, not that of a trimmed mean.

    A bootstrap-t fails here, since Yuen's (1974) standard error is near zero where one group has all places between
    the quartiles: with 30 % of the seeds failing it covered 56 % at twenty seeds.  An m* is an average of values, so
    the interval stays within their range.  The range of five values holds a median in 93.75 % of all samples only:
    coverage is 93 to 94 % at five seeds, 94 to 95 % at six; with groups or many ties 83 to 94 and 87 to 97 %.
    """
    return _interval(values, "iqm", level, n_resamples, seed)


def iqm(values: ArrayLike) -> Any:
    """The interquartile mean over the first axis: floor(n/4) values are left out at either end.

    >>> float(iqm([1.0, 2.0, 3.0, 100.0]))
    2.5
    """
    given = require_finite("values", values)
    if given.ndim == 0 or len(given) == 0:
        raise bad("values", "there is none")
    found, exponents = _scaled(given)
    cut = len(found) // 4
    return np.ldexp(np.sort(found, axis=0)[cut : len(found) - cut].mean(axis=0), exponents)


def band(
    curves: ArrayLike,
    *,
    statistic: Statistic = "mean",
    simultaneous: bool = False,
    level: float = 0.95,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> Band:
    """Mean (or IQM) of curves (n seeds, points) and a band around it.

    Pointwise, each point has an interval of its own.  ``simultaneous``: the whole curve is inside with this
    probability; the quantiles are those of the extremes along a resampled curve, and shared by all points:

        mean  [m - q_{1-a/2}(max t*) s,  m - q_{a/2}(min t*) s],
        IQM   [m - c f,  m + d r],   with [m - f, m + r] pointwise,  c = T(q_{1-a/2}(max (m - m*)/f)),  d alike,

    and T(x) = x t_{n-1}(Phi(u))/u, u = t_{n-1, 1-a/2} x: Student's quantile in place of the normal one once more.
    A tail probability shared by all points instead (balanced bands) needs quantiles of each point far out in its tail,
    which twenty seeds do not have: it covered 80 to 94 % in place of 95.

    >>> curves = np.random.Generator(np.random.Philox(1)).exponential(size=(20, 30)).cumsum(axis=1)
    >>> narrow, wide = band(curves), band(curves, simultaneous=True)
    >>> bool((wide.low < narrow.low).all() and (narrow.high < wide.high).all())
    True
    """
    return _bands(curves, statistic, level, n_resamples, seed, joint=simultaneous)[int(simultaneous)]


def bands(
    curves: ArrayLike,
    *,
    statistic: Statistic = "mean",
    level: float = 0.95,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Band, Band]:
    """The pointwise and the simultaneous :func:`band`, at the price of one."""
    return _bands(curves, statistic, level, n_resamples, seed, joint=True)


def paired_difference(
    first: ArrayLike,
    second: ArrayLike,
    *,
    first_seeds: Sequence[int] | None = None,
    second_seeds: Sequence[int] | None = None,
    level: float = 0.95,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> Paired:
    """Mean of first - second seed by seed; with lists of seeds, over those that both have.

    Both agents of a seed meet the same randomness of the environment, so the difference varies less than its parts.

    >>> paired_difference([1.0, 2, 3, 4, 5], [2.0, 3, 4, 5, 6]).estimate
    -1.0
    """
    one, other = _matched(first, second, first_seeds, second_seeds)
    both, exponent = _scaled(np.concatenate([one, other]))  # together, so that the difference does not overflow
    away = both[: len(one)] - both[len(one) :]
    found = mean_interval(away, level=level, n_resamples=n_resamples, seed=seed)
    center, low, high = _unscaled(Band(*map(np.asarray, found)), exponent)
    return Paired(float(center), float(low), float(high), len(one))


def probability_of_improvement(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> Interval:
    """P(X < Y) + P(X = Y)/2 for a run X of the first and an independent run Y of the second: lower is better.

    The estimate counts all pairs (Mann and Whitney).  The interval is Newcombe's (2006, method 5), the score interval
    with Hanley and McNeil's variance at the true value,

        V(p) = p (1 - p) / (m n) * [1 + ((m + n)/2 - 1) ((1 - p)/(2 - p) + p/(1 + p))];

    it does not collapse when one agent always wins.  Runs that share a seed depend on each other, mostly positively;
    the interval is then a little too wide.

    >>> probability_of_improvement([1.0, 2, 3, 4, 5], [6.0, 7, 8, 9, 10]).estimate
    1.0
    """
    from scipy.special import ndtri

    one, other = _sample("first", first, 1), _sample("second", second, 1)
    _check_level(level, RESAMPLES)
    below, up_to = (np.searchsorted(np.sort(other), one, side=side) for side in ("left", "right"))
    wins = float((len(other) - 0.5 * (below + up_to)).mean() / len(other))
    return Interval(*(float(x) for x in _newcombe(wins, len(one), len(other), ndtri(0.5 + level / 2.0))))


def log_log_slope(
    sizes: ArrayLike,
    values: ArrayLike | Sequence[ArrayLike],
    *,
    paired: bool = True,
    level: float = 0.95,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """The slope of log(mean value) on log(size), least squares, with its interval over seeds.

    ``values`` is (n seeds, K sizes), the same seeds at every size (for example cumulative regret at K episodes):
    seeds are resampled whole.  ``paired=False``: one sample per size, of any lengths, resampled apart.  The slope is an
    exponent only if the means follow a power of the size, which the interval does not tell.

    >>> regret = np.outer([0.9, 1.0, 1.1, 0.8, 1.2], np.array([10.0, 20.0, 40.0]) ** 1.5)
    >>> round(log_log_slope([10, 20, 40], regret).estimate, 12)
    1.5
    """
    x = require_finite("sizes", sizes)
    if x.ndim != 1 or len(x) < 2 or (x <= 0.0).any() or len(np.unique(x)) < 2:
        raise bad("sizes", "a slope needs at least two different positive sizes")
    _check_level(level, n_resamples)
    away = np.log(x) - np.log(x).mean()
    weights = away / (away @ away)
    if paired:
        _check_seeds_first(values, len(x))
        samples = list(_sample("values", values, 2).T)
    else:
        apart: Any = values if np.iterable(values) else [values]
        samples = [_sample(f"values[{k}]", one, 1) for k, one in enumerate(apart)]
    if len(samples) != len(x):
        raise bad("values", f"{len(samples)} samples for {len(x)} sizes", cure="give (seeds, sizes), or one per size")
    samples, exponents = map(list, zip(*map(_scaled, samples), strict=True))
    means = np.array([one.mean() for one in samples])
    if (wrong := means <= 0.0).any():
        raise bad("values", "the mean is not positive", index=int(wrong.argmax()), count=int(wrong.sum()))
    slopes, errors = _slopes(samples, weights, n_resamples, seed, paired)
    slopes += np.log(2.0) * (weights @ np.array(exponents))
    estimate, error = float(slopes[0]), float(errors[0])
    kept = np.isfinite(slopes[1:]) & np.isfinite(errors[1:])
    if kept.mean() < level:
        raise bad("values", "most values are zero", cure="leave out sizes without regret")
    t = _divided(slopes[1:][kept] - estimate, errors[1:][kept], error)
    below, above = np.quantile(t, ((1.0 - level) / 2.0, (1.0 + level) / 2.0))
    return Interval(estimate, estimate - max(float(above), 0.0) * error, estimate - min(float(below), 0.0) * error)


def _check_seeds_first(values: Any, n_sizes: int) -> None:
    """Refuse a list per size where a row per seed is meant."""
    try:
        shape = np.shape(values)
    except ValueError:  # lists of different lengths
        shape = (n_sizes, 0)
    if len(shape) == 2 and shape[0] == n_sizes != shape[1]:
        cure = "pass paired=False, or, if the seeds are the same at every size, (seeds, sizes)"
        raise bad("values", f"there is one row for each of the {n_sizes} sizes", cure=cure)


def proportion_interval(successes: int, trials: int, *, level: float = 0.95) -> Interval:
    """Wilson's interval of a proportion.

    >>> [round(x, 4) for x in proportion_interval(20, 20)]
    [1.0, 0.8389, 1.0]
    """
    from scipy.special import ndtri

    require_positive_int("trials", trials)
    if not 0 <= successes <= trials:
        raise bad("successes", f"{successes} of {trials}")
    _check_level(level, RESAMPLES)
    z2 = float(ndtri(0.5 + level / 2.0)) ** 2
    p = successes / trials
    middle = (p + z2 / (2 * trials)) / (1 + z2 / trials)
    half = np.sqrt(z2 * (p * (1 - p) / trials + z2 / (4 * trials**2))) / (1 + z2 / trials)
    return Interval(p, max(0.0, float(middle - half)), min(1.0, float(middle + half)))


# -------------------------------------------------------------------- the bootstrap
def _interval(values: ArrayLike, statistic: Statistic, level: float, n_resamples: int, seed: int) -> Interval:
    found, _ = _bands(_sample("values", values, 1)[:, None], statistic, level, n_resamples, seed, joint=False)
    return Interval(*(float(x[0]) for x in found))


@lru_cache(maxsize=16)
def _counts(n: int, n_resamples: int, seed: int, purpose: str = "bootstrap") -> FloatArray:
    """How often each seed is in each resample, (resamples, n); kept, since a report asks for the same ones often."""
    draws = stream(seed, purpose).integers(n, size=(n_resamples, n))
    flat = (draws + n * np.arange(n_resamples)[:, None]).reshape(-1)
    found = np.bincount(flat, minlength=n * n_resamples).reshape(n_resamples, n).astype(np.float64)
    found.setflags(write=False)
    return found


def _bands(
    curves: ArrayLike, statistic: Statistic, level: float, n_resamples: int, seed: int, *, joint: bool
) -> tuple[Band, Band]:
    """The pointwise and, if ``joint``, the simultaneous band; else the pointwise one twice, chunk by chunk."""
    found, exponents = _scaled(_sample("curves", curves, 2))
    _check_level(level, n_resamples)
    if statistic not in BANDS_OF:
        raise bad("statistic", f"{statistic!r} is unknown", cure="mean or iqm")
    counts, width = _counts(len(found), n_resamples, seed), found.shape[1] if joint else max(1, CHUNK // n_resamples)
    chunks = (found[:, k : k + width] for k in range(0, found.shape[1], width))
    parts = zip(*(BANDS_OF[statistic](chunk, counts, level, joint) for chunk in chunks), strict=True)
    near, whole = (Band(*(np.concatenate(x) for x in zip(*part, strict=True))) for part in parts)
    return _unscaled(near, exponents), _unscaled(whole, exponents)


def _scaled(values: FloatArray) -> tuple[FloatArray, NDArray[np.int32]]:
    """Values over a power of two, the largest of each column between 1/2 and 1, and the powers.  Exact."""
    exponents = np.frexp(np.abs(values).max(axis=0, initial=0.0))[1]
    return np.ldexp(values, -exponents), exponents


def _unscaled(found: Band, exponents: NDArray[np.int32]) -> Band:
    with np.errstate(over="ignore"):  # an end beyond the largest number is infinite
        return Band(*(np.ldexp(x, exponents) for x in found))


def _mean_bands(curves: FloatArray, counts: FloatArray, level: float, joint: bool) -> tuple[Band, Band]:
    """Bootstrap-t."""
    n, tail = len(curves), (1.0 - level) / 2.0
    center, error = curves.mean(axis=0), curves.std(axis=0, ddof=1) / np.sqrt(n)
    error = np.where(error > ROUNDING * np.abs(curves).max(axis=0), error, 0.0)
    away = curves - center  # about the estimate, so that the difference of the two moments does not cancel
    moved = counts @ away / n
    variance = counts @ away**2 / n - moved**2
    t = _divided(moved, np.sqrt(np.maximum(variance, 0.0) / (n - 1)), error)

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
    least = ROUNDING * np.maximum(np.abs(lowest), np.abs(highest))
    sides = np.quantile(moved, ndtr([-wide, wide]), axis=1) * [[-1.0], [1.0]]
    fall, rise = np.where(sides > least, sides, 0.0)  # few different values can have both quantiles of one sign

    def factor(towards: FloatArray, side: FloatArray) -> float:
        share = float(np.quantile(_divided(towards, side[:, None], 0.0).max(axis=0), 0.5 + level / 2.0))
        normal = np.clip(share * wide, 1.0, FARTHEST)
        return max(1.0, share * float(stdtrit(n - 1, ndtr(normal)) / normal))

    near = Band(center, np.maximum(center - fall, ordered[0]), np.minimum(center + rise, ordered[-1]))
    if not joint:
        return near, near
    return near, Band(center, center - factor(-moved, fall) * fall, center + factor(moved, rise) * rise)


BANDS_OF = {"mean": _mean_bands, "iqm": _iqm_bands}


def _divided(moved: FloatArray, errors: FloatArray, error: FloatArray | float) -> FloatArray:
    """moved / errors, with errors held above a share of ``error``; 0 where there is no spread at all."""
    least = np.maximum(errors, LEAST_ERROR * np.asarray(error))
    return np.where(least > 0.0, moved / np.where(least > 0.0, least, 1.0), 0.0)


def _slopes(
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
                counts = np.vstack([np.ones(n), _counts(n, n_resamples, seed, f"bootstrap {k}")])
                means = counts @ sample / n
                spread = counts @ (sample - sample.mean()) ** 2 / n - (means - sample.mean()) ** 2
                slopes += weight * np.log(means)
                variance += weight**2 * np.maximum(spread, 0.0) / (n - 1) / means**2
            return slopes, np.sqrt(variance)
        matrix = np.stack(samples, axis=1)
        n = len(matrix)
        counts = np.vstack([np.ones(n), _counts(n, n_resamples, seed)])
        means = counts @ matrix / n  # (1 + resamples, K)
        influence = (weights / means) @ matrix.T  # its mean over a resample is sum_k w_k = 0
        variance = (counts * influence**2).sum(axis=1) / n
        return np.log(means) @ weights, np.sqrt(variance / (n - 1))


def _newcombe(estimate: float, m: int, n: int, z: float) -> tuple[float, float, float]:
    """The two p with (estimate - p)^2 = z^2 V(p), by bisection; the sign changes once on either side."""

    def outside(p: float) -> bool:
        variance = p * (1 - p) / (m * n) * (1 + ((m + n) / 2 - 1) * ((1 - p) / (2 - p) + p / (1 + p)))
        return (estimate - p) ** 2 > z * z * variance

    ends = []
    for end in (0.0, 1.0):
        far, near = end, estimate
        for _ in range(60):
            middle = (far + near) / 2
            far, near = (middle, near) if outside(middle) else (far, middle)
        ends.append(end if estimate == end else (far + near) / 2)
    return estimate, ends[0], ends[1]


# -------------------------------------------------------------------- checks
def _sample(argument: str, values: Any, ndim: int) -> NDArray[np.float64]:
    found = require_finite(argument, values)
    if found.ndim != ndim:
        raise bad(argument, f"has shape {found.shape}", cure="give (seeds,)" if ndim == 1 else "give (seeds, points)")
    if len(found) < MIN_SEEDS:
        raise bad(argument, f"{len(found)} seeds", cure=f"an interval needs at least {MIN_SEEDS}")
    if found.size == 0:
        raise bad(argument, "there is no point")
    return found


def _check_level(level: float, n_resamples: int) -> None:
    require_probability("level", level)
    require_positive_int("n_resamples", n_resamples, 100)
    if n_resamples * (1.0 - level) < 10.0:
        raise bad("n_resamples", f"{n_resamples} cannot resolve level {level}", cure="take more resamples")


def _matched(
    first: ArrayLike, second: ArrayLike, first_seeds: Sequence[int] | None, second_seeds: Sequence[int] | None
) -> tuple[FloatArray, FloatArray]:
    one, other = require_finite("first", first), require_finite("second", second)
    if (first_seeds is None) != (second_seeds is None):
        raise bad("second_seeds" if second_seeds is None else "first_seeds", "is missing", cure="give both or none")
    if first_seeds is None or second_seeds is None:
        if one.shape != other.shape or one.ndim != 1:
            raise bad("second", f"has shape {other.shape}, first {one.shape}", cure="name the seeds of both")
        return one, other
    for argument, sample, seeds in (("first_seeds", one, first_seeds), ("second_seeds", other, second_seeds)):
        if sample.ndim != 1 or len(sample) != len(seeds):
            raise bad(argument, f"{len(seeds)} seeds for values of shape {sample.shape}")
        if len(set(seeds)) != len(seeds):
            raise bad(argument, "a seed is there twice")
    shared = sorted(set(first_seeds) & set(second_seeds))
    if len(shared) < MIN_SEEDS:
        raise bad("second_seeds", f"{len(shared)} seeds are in both", cure=f"at least {MIN_SEEDS} are needed")
    places = [{seed: k for k, seed in enumerate(seeds)} for seeds in (first_seeds, second_seeds)]
    return one[[places[0][s] for s in shared]], other[[places[1][s] for s in shared]]
