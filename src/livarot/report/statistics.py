"""Means, interquartile means, bands, paired differences and slopes over seeds, with intervals that cover.

The plain percentile bootstrap and Student's interval cover too little on twenty skewed values (regret is skewed: most
seeds learn, a few do not).  Means and slopes have **bootstrap-t** intervals (Efron and Tibshirani 1993, ch. 12): with
resamples x* of the seeds, an estimate m and its standard error s,

    t* = (m(x*) - m(x)) / s(x*),      [m - q_{1-a/2}(t*) s,  m - q_{a/2}(t*) s],

the second the interval, whose error in coverage is of second order, 1/n, also for skewed laws.  s(x*) is held above
s/4: a resample that misses the few values that differ would otherwise make the interval infinite; with smooth laws this
never happens.  The interquartile mean has a **widened percentile** interval; :func:`iqm_interval` says why.

The seed is the unit that is resampled, and the only one: episodes of a run depend on each other.  Everything is
a function of the data and ``seed=``.  Columns are scaled by a power of two, so that no square overflows or vanishes.
Coverage at 8, 20 and 40 seeds is measured by ``python -m benchmarks.coverage``; the table is in ``docs/report.md``.

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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arrays import FloatArray
from livarot.errors import bad, require_finite, require_positive_int
from livarot.report.resampling import (
    MIN_SEEDS,
    Band,
    Statistic,
    bands_of,
    check_level,
    checked_sample,
    divided,
    scaled,
    slopes_of,
    unscaled,
)

RESAMPLES = 4000


class Interval(NamedTuple):
    """A number and its confidence interval."""

    estimate: float
    low: float
    high: float


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

    A bootstrap-t fails here, since Yuen's (1974) standard error is near zero where all values between the quartiles
    belong to one group: with 30 % of the seeds failing it covered 56 % at twenty seeds.  An m* is an average of values,
    so the interval stays within their range.  The range of five values holds a median in 93.75 % of all samples only:
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
    found, exponents = scaled(given)
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
    which twenty seeds cannot give: it covered 80 to 94 % in place of 95.

    >>> curves = np.random.Generator(np.random.Philox(1)).exponential(size=(20, 30)).cumsum(axis=1)
    >>> narrow, wide = band(curves), band(curves, simultaneous=True)
    >>> bool((wide.low < narrow.low).all() and (narrow.high < wide.high).all())
    True
    """
    return bands_of(curves, statistic, level, n_resamples, seed, joint=simultaneous)[int(simultaneous)]


def bands(
    curves: ArrayLike,
    *,
    statistic: Statistic = "mean",
    level: float = 0.95,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Band, Band]:
    """The pointwise and the simultaneous :func:`band`, at the price of one."""
    return bands_of(curves, statistic, level, n_resamples, seed, joint=True)


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

    Both agents of a seed face the same randomness of the environment, so the difference varies less than its parts.

    >>> paired_difference([1.0, 2, 3, 4, 5], [2.0, 3, 4, 5, 6]).estimate
    -1.0
    """
    one, other = _matched(first, second, first_seeds, second_seeds)
    both, exponent = scaled(np.concatenate([one, other]))  # together, so that the difference does not overflow
    away = both[: len(one)] - both[len(one) :]
    found = mean_interval(away, level=level, n_resamples=n_resamples, seed=seed)
    center, low, high = unscaled(Band(*map(np.asarray, found)), exponent)
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

    one, other = checked_sample("first", first, 1), checked_sample("second", second, 1)
    check_level(level, RESAMPLES)
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
    seeds are resampled whole.  ``paired=False``: one sample per size, of any lengths, resampled separately.  The
    slope is an exponent only if the means follow a power of the size, which the interval does not show.

    >>> regret = np.outer([0.9, 1.0, 1.1, 0.8, 1.2], np.array([10.0, 20.0, 40.0]) ** 1.5)
    >>> round(log_log_slope([10, 20, 40], regret).estimate, 12)
    1.5
    """
    x = require_finite("sizes", sizes)
    if x.ndim != 1 or len(x) < 2 or (x <= 0.0).any() or len(np.unique(x)) < 2:
        raise bad("sizes", "a slope needs at least two different positive sizes")
    check_level(level, n_resamples)
    away = np.log(x) - np.log(x).mean()
    weights = away / (away @ away)
    if paired:
        _check_seeds_first(values, len(x))
        samples = list(checked_sample("values", values, 2).T)
    else:
        apart: Any = values if np.iterable(values) else [values]
        samples = [checked_sample(f"values[{k}]", one, 1) for k, one in enumerate(apart)]
    if len(samples) != len(x):
        raise bad("values", f"{len(samples)} samples for {len(x)} sizes", cure="give (seeds, sizes), or one per size")
    samples, exponents = map(list, zip(*map(scaled, samples), strict=True))
    means = np.array([one.mean() for one in samples])
    if (wrong := means <= 0.0).any():
        raise bad("values", "the mean is not positive", index=int(wrong.argmax()), count=int(wrong.sum()))
    slopes, errors = slopes_of(samples, weights, n_resamples, seed, paired)
    slopes += np.log(2.0) * (weights @ np.array(exponents))
    estimate, error = float(slopes[0]), float(errors[0])
    kept = np.isfinite(slopes[1:]) & np.isfinite(errors[1:])
    if kept.mean() < level:
        raise bad("values", "most values are zero", cure="leave out sizes without regret")
    t = divided(slopes[1:][kept] - estimate, errors[1:][kept], error)
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
    check_level(level, RESAMPLES)
    z2 = float(ndtri(0.5 + level / 2.0)) ** 2
    p = successes / trials
    middle = (p + z2 / (2 * trials)) / (1 + z2 / trials)
    half = np.sqrt(z2 * (p * (1 - p) / trials + z2 / (4 * trials**2))) / (1 + z2 / trials)
    return Interval(p, max(0.0, float(middle - half)), min(1.0, float(middle + half)))


# -------------------------------------------------------------------- the bootstrap
def _interval(values: ArrayLike, statistic: Statistic, level: float, n_resamples: int, seed: int) -> Interval:
    found, _ = bands_of(checked_sample("values", values, 1)[:, None], statistic, level, n_resamples, seed, joint=False)
    return Interval(*(float(x[0]) for x in found))


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
            raise bad(argument, "a seed is given twice")
    shared = sorted(set(first_seeds) & set(second_seeds))
    if len(shared) < MIN_SEEDS:
        raise bad("second_seeds", f"{len(shared)} seeds are in both", cure=f"at least {MIN_SEEDS} are needed")
    places = [{seed: k for k, seed in enumerate(seeds)} for seeds in (first_seeds, second_seeds)]
    return one[[places[0][s] for s in shared]], other[[places[1][s] for s in shared]]
