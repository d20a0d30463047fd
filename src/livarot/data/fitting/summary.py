"""What is printed about a fit: coefficients with their errors and tests, and the facts above them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from livarot.core.arrays import FloatArray
from livarot.data.fitting.inference import likelihood_ratio_test
from livarot.data.fitting.term_tests import joint_test
from livarot.errors import bad
from livarot.extras import extras_explained

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from livarot.data.estimator import MNLTransition

RIGHT = "Log-likelihood"  # the first fact of the right column
MOST_DECIMALS, WIDEST = 7, 9  # the most decimals and characters of a number


@dataclass(frozen=True, eq=False)
class Summary:
    """The table of coefficients and the facts above it; ``print`` it, or take ``table`` (a DataFrame)."""

    table: pd.DataFrame
    facts: dict[str, Any]
    level: float

    def __str__(self) -> str:
        name_width = max(18, min(max((len(str(name)) for name in self.table.index), default=0), 40))
        width = name_width + 60
        lines = ["MNL transition model".center(width).rstrip(), "=" * width]
        items = [(name, _shown(value)) for name, value in self.facts.items()]
        half = list(self.facts).index(RIGHT)
        for i in range(max(half, len(items) - half)):
            left = f"{items[i][0] + ':':<20}{items[i][1]:>17}" if i < half else " " * 37
            right = f"{items[half + i][0] + ':':<20}{items[half + i][1]:>17}" if half + i < len(items) else ""
            lines.append(f"{left}    {right}".rstrip())
        lines.append("=" * width)
        lines.append(" " * name_width + "".join(f"{head:>10}" for head in self._heads()))
        lines.append("-" * width)
        for name, row in self.table.iterrows():
            lines.append(f"{str(name)[:40]:<{name_width}}" + "".join(f"{cell:>10}" for cell in _cells(row)))
        lines.append("=" * width)
        return "\n".join(lines)

    def _heads(self) -> list[str]:
        tail = (1.0 - self.level) / 2.0
        return ["coef", "std err", "z", "P>|z|", f"[{tail:.3f}", f"{1.0 - tail:.3f}]"]

    def _formatted(self) -> pd.DataFrame:
        rows = [_cells(row) for _, row in self.table.iterrows()]
        return pd.DataFrame(rows, index=self.table.index, columns=self._heads())

    def _repr_html_(self) -> str:
        facts = pd.DataFrame({"": {name: _shown(value) for name, value in self.facts.items()}})
        return str(facts.to_html(header=False)) + str(self._formatted().to_html())

    def to_latex(self) -> str:
        """A ``tabular`` of the coefficients, with the facts below it (needs the LaTeX package booktabs)."""
        heads = [r"$P>|z|$" if head == "P>|z|" else _latex(head) for head in self._heads()]
        lines = [r"\begin{tabular}{lrrrrrr}", r"\toprule", " & ".join(["", *heads]) + r" \\", r"\midrule"]
        for name, row in self.table.iterrows():
            cells = [cell.replace("-", "$-$", 1) if cell.startswith("-") else cell for cell in _cells(row)]
            lines.append(" & ".join([_latex(str(name)), *cells]) + r" \\")
        lines.append(r"\midrule")
        for fact, value in self.facts.items():
            lines.append(rf"{_latex(fact)} & \multicolumn{{6}}{{r}}{{{_latex(_shown(value))}}} \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Coefficients with their intervals, the first one on top."""
        t = self.table
        ax = axes(ax, (6.0, 1.0 + 0.28 * len(t)))
        place = np.arange(len(t))[::-1]
        off = np.asarray([t["coef"] - t["lower"], t["upper"] - t["coef"]])
        ax.axvline(0.0, color="0.7", linewidth=1.0, zorder=0)
        ax.errorbar(t["coef"], place, xerr=off, fmt="o", markersize=4.0, linewidth=1.2)
        ax.set_yticks(place, [str(name) for name in t.index])
        ax.set(xlabel=f"coefficient, {100 * self.level:g} % interval", ylim=(-0.6, len(t) - 0.4))
        return ax


def axes(ax: Any, size: tuple[float, float]) -> Axes:
    """The axes to draw on: those given, or new ones."""
    if ax is None:
        with extras_explained():
            from matplotlib.figure import Figure

        return Figure(figsize=size, layout="constrained").subplots()
    if not callable(getattr(ax, "errorbar", None)):
        raise bad("ax", f"is a {type(ax).__name__}", cure="give matplotlib axes, or None")
    return ax  # type: ignore[no-any-return]


def _cells(row: Any) -> list[str]:
    """A row with as many decimals as its standard error needs."""
    error = float(row["std err"])
    decimals = 4 if not (math.isfinite(error) and error > 0) else max(4, 2 - math.floor(math.log10(error)))
    small = decimals > MOST_DECIMALS

    def number(x: float, fewer: int = 0) -> str:
        text = f"{x:.{min(decimals - fewer, 6)}f}"
        return f"{x:.3g}" if small or len(text) > WIDEST else text

    ends = number(row["lower"], 1), number(row["upper"], 1)
    return [number(row["coef"]), number(error), f"{row['z']:.3f}", f"{row['P>|z|']:.3f}", *ends]


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _latex(text: str) -> str:
    words = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(words.get(sign, f"\\{sign}" if sign in "&%_#${}" else sign) for sign in text)


def coefficient_table(names: list[str], theta: FloatArray, cov: FloatArray, level: float) -> pd.DataFrame:
    """Coefficients with standard errors, z, two-sided p and interval."""
    error = np.sqrt(np.diag(cov))
    z = theta / error
    reach = float(norm.ppf(0.5 + level / 2.0)) * error
    return pd.DataFrame(
        {
            "coef": theta,
            "std err": error,
            "z": z,
            "P>|z|": 2.0 * norm.sf(np.abs(z)),
            "lower": theta - reach,
            "upper": theta + reach,
        },
        index=names,
    )


def estimated(fit: MNLTransition) -> Iterator[tuple[list[str], FloatArray, FloatArray]]:
    """Names, estimates and covariance of each parameter, without coefficients that are held at 0."""
    for k, (held, cov) in enumerate(zip(fit.held_, fit._covariances(), strict=True)):
        free = np.flatnonzero(~held)
        where = "" if fit.homogeneous or fit.stages_ is None else f" @ {fit.stages_[k]}"
        yield [f"{fit.columns_[j]}{where}" for j in free], np.atleast_2d(fit.theta_)[k, free], cov[np.ix_(free, free)]


def summarise(fit: MNLTransition, level: float) -> Summary:
    """See :meth:`livarot.data.MNLTransition.summary`."""
    tables = [coefficient_table(names, theta, cov, level) for names, theta, cov in estimated(fit)]
    return Summary(pd.concat(tables), {**_left(fit), **_right(fit)}, level)


def _left(fit: MNLTransition) -> dict[str, Any]:
    choices = fit.choices_
    facts: dict[str, Any] = {
        "No. choices": float(choices.n_observations),
        "No. choice sets": int(choices.n_sets),
        "Parameters": fit.n_parameters_,
        "Ridge": float(fit.reg),
        "Covariance": fit.covariance_kind_,
        "Converged": fit.converged_,
        "Columns dropped": len(fit.dropped_),
    }
    if fit.held_.any():
        facts["Held at 0"] = int(fit.held_.sum())
    if choices.cluster is not None:
        facts["Clusters"] = len(np.unique(choices.cluster))
    if choices.log_weight is not None:
        facts["Sum of weights"] = float(choices.n_choices)
    if fit.reg > 0:
        facts["Standard errors"] = "Bayesian"
    return facts


def _right(fit: MNLTransition) -> dict[str, Any]:
    """Likelihoods and tests; under weights or clusters Wald's test replaces the likelihood-ratio test."""
    null, value = fit.null_log_likelihood_, fit.log_likelihood_
    facts: dict[str, Any] = {
        RIGHT: value,
        "Log-lik. at zero": null,
        "Pseudo R-squared": 1.0 - value / null if null < 0 else 0.0,
    }
    if fit.covariance_kind_ == "cluster" or fit.choices_.log_weight is not None:
        wald = joint_test(fit, np.ones(len(fit.columns_), dtype=bool))
        facts |= {"Wald chi2": wald.statistic, "Wald p-value": f"{wald.p_value:.3g}"}
    else:
        test = likelihood_ratio_test(null, value, fit.n_parameters_)
        facts |= {"LR chi2": test.statistic, "LR p-value": f"{test.p_value:.3g}"}
    if fit.choices_.log_weight is None:
        facts |= {"AIC": fit.aic_, "BIC": fit.bic_}
    return facts
