"""What to check before trusting a fit.

Every function takes the fit and, optionally, other data (a table or :class:`~livarot.data.Choices`); without them it
looks at the data of the fit.  N_g counts how often set g was met, c_i how often its row i was chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import beta, chi2, norm
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, IntArray
from livarot.data.estimator import MNLTransition
from livarot.data.fitting.inference import LikelihoodRatio, likelihood_ratio_test
from livarot.data.fitting.likelihood import blocks, centred_rows, derivatives
from livarot.data.fitting.separation import dependencies
from livarot.data.fitting.summary import axes
from livarot.data.reading.choices import Choices
from livarot.errors import bad
from livarot.system.sizes import require_memory

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _data(fit: MNLTransition, data: Any) -> Choices:
    check_is_fitted(fit, "theta_")
    choices = fit.choices_ if data is None else fit._read(data, like=fit.choices_)
    if choices.n_choices == 0:
        raise bad("data", "has no observed choices", cure="it needs the next states, or the chosen flags")
    return choices


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predicted against observed frequencies: columns predicted, observed, lower, upper, count of ``table``.

    ``lower`` and ``upper`` are exact binomial (Clopper-Pearson) limits of the observed share (95 % by default).
    ``band_lower`` and ``band_upper`` are where the observed share lies with that probability if the model is right.
    """

    table: pd.DataFrame

    def plot(self, ax: Axes | None = None) -> Axes:
        """Observed share over predicted probability, with its limits and the diagonal."""
        ax = axes(ax, (4.5, 4.5))
        t = self.table
        off = [t["observed"] - t["lower"], t["upper"] - t["observed"]]
        ax.plot([0.0, 1.0], [0.0, 1.0], color="0.7", linewidth=1.0, zorder=0)
        ax.fill_between(t["predicted"], t["band_lower"], t["band_upper"], color="0.9", zorder=0)
        ax.errorbar(t["predicted"], t["observed"], yerr=np.asarray(off), fmt="o", markersize=4.0, linewidth=1.0)
        ax.set(xlabel="predicted probability", ylabel="observed share", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
        return ax


@checked
def calibration(fit: MNLTransition, data: Any = None, bins: int = 10, *, level: float = 0.95) -> Calibration:
    """All alternatives of all choices, in bins of equal weight by their predicted probability.

    The band is ``p +- z sqrt(sum of w p (1 - p)) / sum of w`` of the alternatives of a bin, taken as independent.
    """
    require_memory("bins", "the table of bins", 4 * bins)
    choices = _data(fit, data)
    p = np.exp(fit._log_probabilities(choices))
    trials = choices.weight[choices.set_of_row]
    order = np.argsort(p, kind="stable")
    place = np.cumsum(trials[order])
    group = np.minimum((bins * (place - trials[order] / 2.0) / place[-1]).astype(np.int64), bins - 1)
    parts = trials, trials * p, choices.count, trials * p * (1.0 - p)
    sums = [np.bincount(group, weights=w[order], minlength=bins) for w in parts]
    total, expected, observed, variance = (s[sums[0] > 0] for s in sums)
    tail = (1.0 - level) / 2.0
    reach = float(norm.isf(tail)) * np.sqrt(variance) / total
    table = pd.DataFrame(
        {
            "predicted": expected / total,
            "observed": observed / total,
            "lower": np.nan_to_num(beta.ppf(tail, observed, total - observed + 1.0), nan=0.0),
            "upper": np.nan_to_num(beta.ppf(1.0 - tail, observed + 1.0, total - observed), nan=1.0),
            "band_lower": np.maximum(expected / total - reach, 0.0),
            "band_upper": np.minimum(expected / total + reach, 1.0),
            "count": total,
        }
    )
    return Calibration(table)


@checked
def residuals(fit: MNLTransition, data: Any = None, by: str = "state") -> pd.DataFrame:
    """Observed against expected counts.

    ``by="row"``: one row per (set, next state) with Pearson's ``(c_i - N_g p_i)/sqrt(N_g p_i)``.  ``by="state"`` (or
    "action", "next_state", "stage"): sums of these squares with their degrees of freedom, 1 - 1/U_g for each row, and
    chi-square p-values (rough where expected counts are below five; no parameters are subtracted), worst first.
    Refused where sets were met less than twice on average, as with continuous covariates.
    """
    choices = _data(fit, data)
    met_often = choices.weight[choices.weight > 0]
    if choices.n_choices < 2.0 * len(met_often):
        problem = f"there are {len(met_often)} choice sets for {choices.n_choices:g} choices"
        cure = "residuals need sets that were met many times; look at calibration(fit) instead"
        raise bad("data", f"{problem}: Pearson residuals mean nothing there", cure=cure)
    frame = choices.frame()
    frame["expected"] = choices.weight[choices.set_of_row] * np.exp(fit._log_probabilities(choices))
    frame["residual"] = (frame["count"] - frame["expected"]) / np.sqrt(frame["expected"].clip(lower=1e-300))
    met = choices.weight[choices.set_of_row] > 0
    frame = frame[met]
    if by == "row":
        return frame.reset_index(drop=True)
    if by not in frame or by in ("set", "count"):
        raise bad("by", f"there is no {by!r}", cure="use 'row', or 'state', 'action', 'next_state' or 'stage' if known")
    own = frame.assign(chi2=frame["residual"] ** 2, df=1.0 - 1.0 / choices.sizes[choices.set_of_row][met])
    found = own.groupby(by)[["count", "expected", "chi2", "df"]].sum()
    found["df"] = found["df"].round(9)
    found["p_value"] = chi2.sf(found["chi2"], np.maximum(found["df"], 1e-9))
    return found.sort_values("p_value", kind="stable")


@checked
def influence(fit: MNLTransition) -> pd.DataFrame:
    """How each distinct observation moves the estimate: one Newton step for the data without one such observation.

    Without observation (g, y) the gradient at theta_hat is ``phi_y - mu_g`` and the Hessian ``H + reg I - H_g``, H_g
    that of one choice in g, so the step is ``-(H + reg I - H_g)^-1 (phi_y - mu_g)``.  Columns: set, labels, count (how
    many observations are equal to it), ``move`` (length of the step in standard errors, that is in the norm of the
    Hessian), and one ``d name`` per coefficient.  Largest first.
    """
    choices = _data(fit, None)
    pieces = []
    for k, (_, part) in enumerate(fit._groups(choices)):
        found = fit.maxima_[k]
        steps, rows = _one_step(part, found.theta, found.hessian + float(fit.reg) * np.eye(choices.dim))
        frame = part.frame().iloc[rows].reset_index(drop=True)
        frame["move"] = np.sqrt(np.einsum("ni,ij,nj->n", steps, found.hessian, steps))
        moved = pd.DataFrame(steps, columns=[f"d {name}" for name in choices.columns])
        pieces.append(pd.concat([frame, moved], axis=1))
    everything = pd.concat(pieces, ignore_index=True)
    return everything.sort_values("move", ascending=False, kind="stable").reset_index(drop=True)


def _one_step(choices: Choices, theta: FloatArray, hessian: FloatArray) -> tuple[FloatArray, IntArray]:
    """Steps (n, d), and the observed rows they belong to."""
    steps, rows, free = [], [], np.diag(hessian) > 0.0  # the others are held at 0
    for block in blocks(choices):
        centred, p = centred_rows(choices, block, theta)
        seen = np.flatnonzero(choices.count[block.begin : block.end] > 0)
        for row, g in zip(seen, choices.set_of_row[block.begin + seen], strict=True):
            inside = slice(int(choices.start[g]) - block.begin, int(choices.start[g + 1]) - block.begin)
            one, step = (centred[inside] * p[inside, None]).T @ centred[inside], np.zeros(choices.dim)
            try:
                step[free] = -np.linalg.solve((hessian - one)[np.ix_(free, free)], centred[row, free])
                steps.append(step)
            except np.linalg.LinAlgError as error:
                problem = "without one observation there is no estimate"
                raise bad("fit", problem, index=int(block.begin + row), cure="set reg > 0, or collect more") from error
        rows.append(block.begin + seen)
    return np.asarray(steps).reshape(-1, choices.dim), np.concatenate(rows)


@checked
def likelihood_ratio(small: MNLTransition, large: MNLTransition) -> LikelihoodRatio:
    """Test whether the larger of two nested models, both fitted to the same data, fits better than by chance."""
    for fit in (small, large):
        check_is_fitted(fit, "theta_")
    if float(small.reg) > 0.0 or float(large.reg) > 0.0:
        raise bad("reg", "is positive: the test is for maximum likelihood", cure="fit both models with reg=0")
    if any(fit.choices_.log_weight is not None or fit.choices_.cluster is not None for fit in (small, large)):
        raise bad("large", "has weights or clusters, so its likelihood cannot be compared", cure="use wald_test")
    extra = _outside(small, large)
    if extra:
        raise bad("small", f"has {extra[0]!r}, which the larger model cannot express", cure="the models must be nested")
    df = large.n_parameters_ - small.n_parameters_
    near = abs(small.null_log_likelihood_ - large.null_log_likelihood_) <= 1e-9 * (
        1.0 + abs(small.null_log_likelihood_)
    )
    if small.n_choices_ != large.n_choices_ or not near:
        raise bad("large", "was fitted to other data, sets or offsets", cure="fit both models to the same table")
    if df < 1:
        raise bad("large", "has no more parameters than the smaller model", cure="swap them, or compare by score")
    return likelihood_ratio_test(small.log_likelihood_, large.log_likelihood_, df)


def _outside(small: MNLTransition, large: MNLTransition) -> list[str]:
    """Columns of the smaller model that are not combinations of those of the larger one (within choice sets)."""
    extra = [name for name in small.columns_ if name not in large.columns_]
    a, b = small.choices_, large.choices_
    if not extra or not np.array_equal(a.start, b.start):
        return extra
    every = slice(None)
    kept = np.concatenate((b.rows(every), a.rows(every)), axis=1)
    names = (*(f"large {name}" for name in b.columns), *a.columns)
    both = Choices(a.start, kept, a.count, names)
    at_zero = derivatives(both, np.zeros(both.dim))
    explained = {int(np.flatnonzero(v)[-1]) for v in dependencies(at_zero.hessian, at_zero.spread > 0.0)}
    return [name for j, name in enumerate(a.columns, start=b.dim) if j not in explained]


@dataclass(frozen=True)
class HeldOut:
    """Mean log-loss per choice (nats) on held-out data; smaller is better."""

    model: float
    empirical: float | None  # (training count + 1/2) / (N_g + U_g/2) within each (stage, state, action), if known
    uniform: float  # log U_g
    n_choices: float

    def __str__(self) -> str:
        lines = [f"held-out log-loss per choice, {self.n_choices:g} choices"]
        for name in ("model", "empirical", "uniform"):
            if getattr(self, name) is not None:
                lines.append(f"  {name:<10}{getattr(self, name):10.5f}")
        return "\n".join(lines)


@checked
def held_out(fit: MNLTransition, data: Any) -> HeldOut:
    """The model on data it has not seen, beside the training frequencies of each (state, action) and equal odds.

    The frequencies add 1/2 to every reachable next state (Krichevsky and Trofimov), since a next state that was not
    seen in training would otherwise have infinite loss.  A choice that is met for the first time has equal odds.
    Choices without state and action columns have no such frequencies (``empirical`` is None).
    """
    choices = _data(fit, data)
    seen = np.flatnonzero(choices.count > 0)
    weight, total = choices.count[seen], choices.n_choices
    sizes = choices.sizes[choices.set_of_row[seen]].astype(np.float64)
    empirical = None
    if fit.choices_.state is not None and choices.state is not None:
        trained, met = _training_counts(fit, choices, seen)
        empirical = float(weight @ -np.log((trained + 0.5) / (met + sizes / 2.0)) / total)
    model = -fit._log_probabilities(choices)[seen]
    return HeldOut(float(weight @ model / total), empirical, float(weight @ np.log(sizes) / total), total)


def _training_counts(fit: MNLTransition, choices: Choices, seen: Any) -> tuple[FloatArray, FloatArray]:
    """How often the fit's data had each row of ``seen``, and its (stage, state, action)."""
    before = fit.choices_.frame().drop(columns="set")
    keys = [name for name in ("stage", "state", "action", "next_state") if name in before]
    counts = before.groupby(keys)["count"].sum()
    wanted = choices.frame().iloc[seen]
    each = wanted.merge(counts.rename("trained").reset_index(), on=keys, how="left")["trained"].fillna(0.0)
    totals = before.groupby(keys[:-1])["count"].sum().rename("met").reset_index()
    met = wanted.merge(totals, on=keys[:-1], how="left")["met"].fillna(0.0)
    return each.to_numpy(dtype=np.float64), met.to_numpy(dtype=np.float64)
