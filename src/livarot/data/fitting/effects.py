"""What coefficients mean: probabilities with intervals, marginal effects, elasticities, relative-risk ratios.

With ``p = softmax(phi theta)`` in a set, ``mu = sum_j p_j phi_j``, ``phi'_i = d phi_i / dx``, ``q_i = phi'_i . theta``,
``qbar = sum_j p_j q_j`` and ``mu' = sum_j p_j phi'_j`` (all certain):

    d p_i/d theta = p_i (phi_i - mu).

If x is the same for all alternatives (age), the effect m_i, its gradient and the elasticity are

    m_i               = d p_i/d x = p_i (q_i - qbar)
    d m_i/d theta     = (q_i - qbar) p_i (phi_i - mu) + p_i (phi'_i - mu' - sum_j p_j q_j (phi_j - mu))
    d log p_i/d log x = x (q_i - qbar).

If x belongs to the alternative (price), the own effect, the own and the cross elasticity are

    d p_i/d x_i           = p_i (1 - p_i) q_i
    d log p_i/d log x_i   = x_i (1 - p_i) q_i
    d log p_j/d log x_i   = -x_i p_i q_i

and the effect on each of the U - 1 others is, on average, -1/(U - 1) of the own one.  phi' is a central difference of
the features, so that log, polynomials and products are followed.  Standard errors are those of the delta method: the
mean gradient in theta, with the fit's own covariance.  Intervals of probabilities are made on the scale of the logit,
and stay within 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, IntArray
from livarot.data.fitting.sandwich import variance_along
from livarot.data.fitting.summary import coefficient_table, estimated
from livarot.data.reading.choices import Choices
from livarot.data.reading.columns import constant_within
from livarot.data.reading.table import read_table
from livarot.data.use.predict import sets_of
from livarot.errors import bad
from livarot.system.sizes import require_memory

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition

STEP = 1e-4  # of a central difference, in standard deviations of the column


class _Rows(NamedTuple):
    """Rows of choice sets under a fit."""

    choices: Choices
    phi: FloatArray  # (rows, d)
    p: FloatArray  # (rows,)
    away: FloatArray  # (rows, d) phi_i - mu
    theta: FloatArray  # (rows, d) of the row's stage
    stage: IntArray  # (rows,) which parameter

    def mean(self, values: FloatArray) -> FloatArray:
        """sum_j p_j values_j of the set of each row."""
        weighted = (values.T * self.p).T
        total = np.add.reduceat(weighted, self.choices.start[:-1], axis=0)
        return np.asarray(total[self.choices.set_of_row])

    @property
    def weight(self) -> FloatArray:
        """How often the set of each row was met; once where nothing was observed."""
        weight = self.choices.weight if self.choices.n_choices > 0 else np.ones(self.choices.n_sets)
        return np.asarray(weight[self.choices.set_of_row])


def _rows(fit: MNLTransition, choices: Choices) -> _Rows:
    require_memory("data", "the features of all rows", 5 * choices.n_rows * choices.dim)
    phi = choices.rows(slice(None))
    p = np.exp(fit._log_probabilities(choices))
    stage = np.zeros(choices.n_rows, dtype=np.int64)
    if not fit.homogeneous and choices.stage is not None:
        stage = choices.stage[choices.set_of_row]
    made = _Rows(choices, phi, p, phi, np.atleast_2d(fit.theta_)[stage], stage)
    return made._replace(away=phi - made.mean(phi))


class _Effect(NamedTuple):
    """A number per row and its gradient in theta."""

    value: FloatArray  # (rows,)
    gradient: FloatArray  # (rows, d)


def _averaged(
    fit: MNLTransition, rows: _Rows, effect: _Effect, groups: Mapping[Any, Any], level: float, *, all_sets: bool = True
) -> pd.DataFrame:
    """Weighted means over groups of rows (masks), with delta-method errors."""
    names, values, errors = [], [], []
    n_parameters = len(np.atleast_2d(fit.theta_))
    total = float(rows.weight[rows.choices.start[:-1]].sum())
    for name, mask in groups.items():
        if not np.any(mask):  # a state that is never a next state
            continue
        weight = np.where(mask, rows.weight, 0.0)
        weight = weight / (total if all_sets else max(float(weight.sum()), 1e-300))
        slope = np.zeros((n_parameters, len(fit.columns_)))
        np.add.at(slope, rows.stage, weight[:, None] * effect.gradient)
        names.append(name)
        values.append(float(weight @ effect.value))
        errors.append(math.sqrt(max(variance_along(fit, slope), 0.0)))
    table = coefficient_table([str(n) for n in names], np.array(values), np.diag(np.square(errors)), level)
    table.index = pd.MultiIndex.from_tuples(names) if isinstance(names[0], tuple) else pd.Index(names)
    return table.rename(columns={"coef": "effect"})


def _by_next_state(choices: Choices) -> dict[Any, Any]:
    """Masks of rows by next state."""
    if choices.next_state is None or choices.labels is None:
        raise bad(
            "fit", "does not know the next states of its alternatives", cure="name state, next_state when fitting"
        )
    return {label: choices.next_state == k for k, label in enumerate(choices.labels.states)}


# --- covariates: the same for all alternatives


def _profiles(fit: MNLTransition, at: Any) -> tuple[IntArray, dict[str, Any], FloatArray]:
    """Sets (of the design), covariates and weights at which an effect is taken."""
    choices = fit.choices_
    design = choices.design
    assert design is not None  # noqa: S101 (callers have checked)
    sets = design.sets.locate(choices.state, choices.action, choices.stage)  # type: ignore[arg-type]
    profile, weight = dict(choices.profile), choices.weight
    if isinstance(at, str):
        if at != "mean":
            raise bad("at", f"{at!r} is not known", cure="use None, 'mean', or {covariate: value}")
        for name, values in profile.items():
            profile[name] = _repeated(_typical(values, weight), len(weight))
    elif at is not None:
        if not isinstance(at, Mapping) or any(name not in profile for name in at):
            raise bad("at", "is not a mapping of covariates", cure=f"they are {', '.join(map(repr, profile))}")
        profile |= {name: _repeated(value, len(weight)) for name, value in at.items()}
    return sets, profile, weight


def _typical(values: Any, weight: FloatArray) -> Any:
    """The mean of numbers, the most frequent of labels."""
    if values.dtype != object:
        return float(weight @ values / weight.sum())
    labels = list(dict.fromkeys(values.tolist()))
    often = [float(weight[values == label].sum()) for label in labels]
    return labels[int(np.argmax(often))]


def _repeated(value: Any, n: int) -> Any:
    return np.full(n, value, dtype=object if isinstance(value, str) else None)


def _step(values: FloatArray, spread: float) -> float:
    """The step of a central difference in a column with this standard deviation."""
    return STEP * max(spread, 1e-8 * float(np.abs(values).max(initial=1.0)), 1e-12)


def _at(fit: MNLTransition, sets: IntArray, profile: Mapping[str, Any], weight: FloatArray) -> Choices:
    design = fit.choices_.design
    assert design is not None  # noqa: S101
    made = design.choices(sets, design.covariates(read_table(pd.DataFrame(dict(profile)))))
    count = np.zeros(made.n_rows)
    count[made.start[:-1]] = weight
    return replace(made, count=count)


def _common_effect(rows: _Rows, slope: FloatArray, x: FloatArray | None) -> _Effect:
    """m_i and its gradient, or the elasticity where ``x`` is given; ``slope`` is phi'."""
    q = np.einsum("ij,ij->i", slope, rows.theta)
    mean_slope, mean_q = rows.mean(slope), rows.mean(q)
    turned = rows.mean(q[:, None] * rows.away)
    bend = slope - mean_slope - turned
    if x is not None:
        return _Effect(x * (q - mean_q), x[:, None] * bend)
    value = rows.p * (q - mean_q)
    return _Effect(value, (q - mean_q)[:, None] * rows.p[:, None] * rows.away + rows.p[:, None] * bend)


def _of_covariate(fit: MNLTransition, name: str, at: Any, level: float, elastic: bool) -> pd.DataFrame:
    sets, profile, weight = _profiles(fit, at)
    values = profile[name]
    design = fit.choices_.design
    assert design is not None  # noqa: S101
    if design.is_category(name):
        if elastic:
            raise bad("variable", f"{name!r} is a category", cure="use marginal_effects")
        return _of_category(fit, name, sets, profile, weight, level)
    rows = _rows(fit, _at(fit, sets, profile, weight))
    step = _step(values, float(np.std(fit.choices_.profile[name])))
    up, down = (_at(fit, sets, profile | {name: values + s}, weight).rows(slice(None)) for s in (step, -step))
    x = values[rows.choices.set_of_row] if elastic else None
    effect = _common_effect(rows, (up - down) / (2.0 * step), x)
    return _averaged(fit, rows, effect, _by_next_state(rows.choices), level, all_sets=not elastic)


def _of_category(
    fit: MNLTransition, name: str, sets: IntArray, profile: Mapping[str, Any], weight: FloatArray, level: float
) -> pd.DataFrame:
    """Changes of probabilities from the reference level to every other one."""
    choices = fit.choices_
    design = choices.design
    assert design is not None  # noqa: S101
    factor = next(f for f in design.factors if f.category and f.name == name)
    levels = choices.levels[factor.text][0]
    base = _rows(fit, _at(fit, sets, {**profile, name: _repeated(levels[0], len(sets))}, weight))
    tables = []
    for other in levels[1:]:
        rows = _rows(fit, _at(fit, sets, {**profile, name: _repeated(other, len(sets))}, weight))
        gradient = rows.p[:, None] * rows.away - base.p[:, None] * base.away
        groups = {(f"{other} - {levels[0]}", label): mask for label, mask in _by_next_state(rows.choices).items()}
        tables.append(_averaged(fit, rows, _Effect(rows.p - base.p, gradient), groups, level))
    return pd.concat(tables)


# --- attributes: of one alternative


def _of_attribute(
    fit: MNLTransition, name: str, data: Any, by: str | None, level: float, elastic: bool
) -> pd.DataFrame:
    if fit.choices_.layout == "transitions":
        known = fit.choices_.design.names if fit.choices_.design is not None else ()
        cure = f"the covariates are {', '.join(map(repr, known)) or 'none'}; or fit a table of alternatives"
        raise bad("variable", f"{name!r} is not a covariate", cure=cure)
    if data is None:
        raise bad("data", "is not given", cure="a fit to alternatives does not keep its table: pass it again")
    table = read_table(data)
    values = np.asarray(table.numbers(name, "variable"), dtype=np.float64)
    step = _step(values, float(values.std()))
    own = fit._read(table, like=fit.choices_)
    order = np.arange(own.n_rows) if own.table_row is None else np.argsort(own.table_row)
    if own.n_rows != table.n_rows:
        raise bad("data", "has equal sets that are stored once", cure="leave the state columns out for this")
    moved = (table.with_column(name, values + s) for s in (step, -step))
    up, down = (fit._read(one, like=fit.choices_).rows(slice(None)) for one in moved)
    rows, slope, x = _rows(fit, own), (up - down) / (2.0 * step), values[order]
    groups = _labelled(table, by, order, own)
    if constant_within(x, own.start).all():
        effect = _common_effect(rows, slope, x if elastic else None)
        return _averaged(fit, rows, effect, groups, level, all_sets=not elastic)
    q = np.einsum("ij,ij->i", slope, rows.theta)
    p, away = rows.p, rows.away
    if elastic:
        pair = (
            _Effect(x * (1.0 - p) * q, x[:, None] * ((1.0 - p)[:, None] * slope - (p * q)[:, None] * away)),
            _Effect(-x * p * q, -x[:, None] * (p[:, None] * slope + (p * q)[:, None] * away)),
        )
    else:
        gradient = (q * (1.0 - 2.0 * p) * p)[:, None] * away + (p * (1.0 - p))[:, None] * slope
        others = -1.0 / np.maximum(own.sizes[own.set_of_row] - 1.0, 1.0)
        mine = _Effect(p * (1.0 - p) * q, gradient)
        pair = mine, _Effect(others * mine.value, others[:, None] * gradient)
    tables = []
    for kind, effect in zip(("own", "cross"), pair, strict=True):
        keyed = {(kind, label): mask for label, mask in groups.items()}
        tables.append(_averaged(fit, rows, effect, keyed, level, all_sets=False))
    return pd.concat(tables)


def _labelled(table: Any, by: str | None, order: IntArray, choices: Choices) -> dict[Any, Any]:
    """Masks of rows by alternative: by a column, by next state, or all together."""
    if by is not None:
        codes, labels = table.labels(by, "by")
        return {label: codes[order] == k for k, label in sorted(enumerate(labels), key=lambda pair: str(pair[1]))}
    if choices.next_state is not None and choices.labels is not None:
        return _by_next_state(choices)
    return {"all": np.ones(choices.n_rows, dtype=bool)}


# --- public


@checked
def marginal_effects(
    fit: MNLTransition, variable: str, *, at: Any = None, data: Any = None, by: str | None = None, level: float = 0.95
) -> pd.DataFrame:
    """How probabilities change with a variable: ``effect``, ``std err``, z, p and interval, one row per next state.

    A *covariate* of a log of transitions: the average over the observations (``at=None``), at the means of all
    covariates (``at="mean"``), or with some of them fixed (``at={"age": 60.0}``); of a category, the change from the
    reference to every other level.  A column of a table of *alternatives*, which is passed again as ``data``: if it is
    the same for all alternatives, as above; otherwise the effect on the alternative's own probability and, on average,
    on each other one; ``by`` names the column that tells alternatives apart.
    """
    return _effects(fit, variable, at, data, by, level, elastic=False)


@checked
def elasticities(
    fit: MNLTransition, variable: str, *, at: Any = None, data: Any = None, by: str | None = None, level: float = 0.95
) -> pd.DataFrame:
    """By how many per cent a probability changes per 1 % of a variable; arguments as in :func:`marginal_effects`."""
    return _effects(fit, variable, at, data, by, level, elastic=True)


def _effects(
    fit: MNLTransition, variable: str, at: Any, data: Any, by: str | None, level: float, *, elastic: bool
) -> pd.DataFrame:
    check_is_fitted(fit, "theta_")
    if fit.choices_.profile and variable in fit.choices_.profile:
        return _of_covariate(fit, variable, at, level, elastic)
    if at is not None:
        raise bad("at", "is for covariates of a log of transitions", cure="leave it out")
    return _of_attribute(fit, variable, data, by, level, elastic)


@checked
def probability_interval(fit: MNLTransition, data: Any, level: float = 0.95) -> pd.DataFrame:
    """Predicted probabilities with standard errors and intervals.

    Transitions: one row per row of ``data`` and reachable next state.  Alternatives: one row per row of ``data``.
    """
    check_is_fitted(fit, "theta_")
    transitions = fit.choices_.layout == "transitions"
    if transitions:
        choices, row = sets_of(fit, data)
    else:
        choices = fit._read(data, like=fit.choices_)
    rows = _rows(fit, choices)
    gradient = rows.p[:, None] * rows.away
    cov = np.stack(fit._covariances())[rows.stage] if not fit.homogeneous else fit.covariance_
    square = np.einsum("ij,ijk,ik->i" if cov.ndim == 3 else "ij,jk,ik->i", gradient, cov, gradient)
    table = _interval(rows.p, np.sqrt(np.maximum(square, 0.0)), level)
    if not transitions:
        return table if choices.table_row is None else table.iloc[choices.table_row].reset_index(drop=True)
    assert choices.next_state is not None  # noqa: S101 (this layout has them)
    assert choices.labels is not None  # noqa: S101
    sizes = choices.sizes[row]
    taken = np.arange(int(sizes.sum())) + np.repeat(choices.start[row] - (np.cumsum(sizes) - sizes), sizes)
    found = table.iloc[taken].reset_index(drop=True)
    found.insert(0, "next_state", choices.labels.states.decode(choices.next_state[taken]))
    found.insert(0, "row", np.repeat(np.arange(len(row)), sizes))
    return pd.DataFrame(found.infer_objects())


def _interval(p: FloatArray, error: FloatArray, level: float) -> pd.DataFrame:
    z = float(norm.ppf(0.5 + level / 2.0))
    inner = np.clip(p, 1e-300, 1.0 - 1e-16)
    reach = z * error / (inner * (1.0 - inner))
    with np.errstate(over="ignore"):
        lower, upper = expit(logit(inner) - reach), expit(logit(inner) + reach)
    sure = error == 0.0
    return pd.DataFrame(
        {
            "probability": p,
            "std err": error,
            "lower": np.where(sure, p, lower),
            "upper": np.where(sure, p, upper),
        }
    )


@checked
def relative_risk_ratios(fit: MNLTransition, level: float = 0.95) -> pd.DataFrame:
    """exp(coefficient), by which one more unit multiplies the odds against the reference, with its interval."""
    check_is_fitted(fit, "theta_")
    tables = []
    for names, theta, cov in estimated(fit):
        table = coefficient_table(names, theta, cov, level)
        ratio = np.exp(table["coef"])
        ends = {name: np.exp(table[name]) for name in ("lower", "upper")}
        tables.append(
            pd.DataFrame({"ratio": ratio, "std err": ratio * table["std err"], "P>|z|": table["P>|z|"]} | ends)
        )
    return pd.concat(tables)
