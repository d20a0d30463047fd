"""Tests of terms: does a coefficient, or all coefficients of a category, differ from zero?

Wald: ``theta_S' Cov_SS^-1 theta_S``, chi-square with |S| degrees of freedom, from the fit's own covariance (so it
stays right under clusters and weights).  Likelihood ratio: twice the loss of log-likelihood when the columns S are left
out and the rest is fitted again (maximum likelihood with independent observations only).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.stats import chi2
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray
from livarot.data.fitting.inference import LikelihoodRatio, likelihood_ratio_test
from livarot.data.fitting.newton import maximise
from livarot.errors import bad

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition


@dataclass(frozen=True)
class Wald:
    """A quadratic form of coefficients, against the chi-square law of their number."""

    statistic: float
    df: int
    p_value: float

    def __str__(self) -> str:
        return f"Wald chi2 = {self.statistic:.4g} on {self.df} df, p = {self.p_value:.4g}"


def chosen_columns(fit: MNLTransition, term: str | Sequence[str]) -> BoolArray:
    """The columns of a term, of a column, or of several of either."""
    asked = [term] if isinstance(term, str) else list(term) if isinstance(term, list | tuple) else [None]
    if not all(isinstance(one, str) for one in asked):
        raise bad("term", "is not the name of a term, or a list of them", cure="see fit.choices_.terms")
    found = np.zeros(len(fit.columns_), dtype=bool)
    for one in asked:
        own = np.array([one in (name, group) for name, group in zip(fit.columns_, fit.choices_.terms, strict=True)])
        if not own.any():
            known = ", ".join(map(repr, dict.fromkeys(fit.choices_.terms)))
            raise bad("term", f"there is no {one!r}", cure=f"the terms are {known}")
        found |= own
    if not asked:
        raise bad("term", "is empty", cure="name a term or a column")
    return found


def joint_test(fit: MNLTransition, columns: BoolArray) -> Wald:
    """The Wald test that these coefficients are zero, at all stages."""
    statistic, df = 0.0, 0
    for theta, cov in zip(np.atleast_2d(fit.theta_), fit._covariances(), strict=True):
        tested = columns & (np.diag(cov) > 0.0)  # not those that are held at 0
        own, part = theta[tested], cov[np.ix_(tested, tested)]
        size = np.sqrt(np.diag(part))
        try:
            solved = cho_solve(cho_factor(part / size / size[:, None], lower=True), own / size)
        except (LinAlgError, ValueError):
            cure = "test fewer coefficients at once, or use more clusters than coefficients"
            raise bad("fit", "the covariance of these coefficients is singular", cure=cure) from None
        statistic += float(own / size @ solved)
        df += len(own)
    return Wald(statistic, df, float(chi2.sf(statistic, df)))


@checked
def wald_test(fit: MNLTransition, term: str | Sequence[str]) -> Wald:
    """Are all coefficients of a term (or of the columns named) zero?

    >>> from livarot.data import MNLTransition
    >>> log = {"state": ["ok"] * 40, "action": ["run"] * 40, "next_state": ["ok"] * 30 + ["worn"] * 10,
    ...        "wear": [0.0] * 30 + [1.0] * 10}
    >>> print(wald_test(MNLTransition(features=["wear"], reachable="all").fit(log), "wear"))
    Wald chi2 = 9.052 on 1 df, p = 0.002624
    """
    check_is_fitted(fit, "theta_")
    return joint_test(fit, chosen_columns(fit, term))


@checked
def lr_test(fit: MNLTransition, term: str | Sequence[str]) -> LikelihoodRatio:
    """The likelihood-ratio test of a term: the model is fitted again without it."""
    check_is_fitted(fit, "theta_")
    if float(fit.reg) > 0.0:
        raise bad("fit", "has a ridge: the test is for maximum likelihood", cure="fit with reg=0, or use wald_test")
    if fit.choices_.log_weight is not None or fit.choices_.cluster is not None:
        raise bad("fit", "has weights or clusters, so its likelihood cannot be compared", cure="use wald_test")
    out = chosen_columns(fit, term)
    small = 0.0
    for (where, part), found, held in zip(fit._groups(fit.choices_), fit.maxima_, fit.held_, strict=True):
        free = ~out & ~held
        if free.any():
            own = maximise(part, tol=float(fit.tol), max_iter=int(fit.max_iter), where=where, free=free)
            small += own.log_likelihood
        else:
            small += found.null_log_likelihood
    return likelihood_ratio_test(small, fit.log_likelihood_, int((out & ~fit.held_).sum()))


@checked
def term_tests(fit: MNLTransition, kind: str = "wald") -> pd.DataFrame:
    """One row per term: statistic, df, p_value; ``kind`` "wald", or "lr" (one refit per term)."""
    check_is_fitted(fit, "theta_")
    if kind not in ("wald", "lr"):
        raise bad("kind", f"{kind!r} is not known", cure="use 'wald' or 'lr'")
    test = wald_test if kind == "wald" else lr_test
    terms = list(dict.fromkeys(fit.choices_.terms))
    found = [test(fit, term) for term in terms]
    rows = {"statistic": [t.statistic for t in found], "df": [t.df for t in found]}
    return pd.DataFrame(rows | {"p_value": [t.p_value for t in found]}, index=pd.Index(terms, name="term"))
