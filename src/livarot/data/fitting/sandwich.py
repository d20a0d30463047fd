"""Covariances that stay valid if the model is wrong: sandwich, sampling weights, clusters.

With scores ``u_n = phi_y - mu_g`` of observations (frequency f_n, sampling weight w_n) and A the Hessian, ridge
included:

    hessian    A^-1                                                     the model is right, no weights
    sandwich   A^-1 (sum_n f_n w_n^2 u_n u_n') A^-1                     independent observations
    cluster    c A^-1 (sum_G m_G m_G') A^-1,  m_G = sum_{n in G} f_n w_n u_n,   c = G/(G-1) (N-1)/(N-d)

The last is that of Liang and Zeger (1986) with the correction for few clusters that statsmodels and Stata use.  The
scores of choices in a log of an MDP are a martingale difference, so a right model needs no clusters; a person's taste
that the model leaves out makes them correlated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.sparse import coo_array

from livarot.core.arrays import FloatArray
from livarot.data.fitting.likelihood import blocks, centred_rows, derivatives
from livarot.data.reading.choices import Choices
from livarot.errors import bad
from livarot.model.labels import factorise

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition

KINDS = ("hessian", "sandwich", "cluster")

LEAST_PIVOT = 1e-14  # of a matrix with unit diagonal: what is smaller is rounding


def inverse(matrix: FloatArray, argument: str = "hessian") -> FloatArray:
    """The inverse of a positive definite matrix, scaled to a unit diagonal first.

    Rows and columns of zeros belong to coefficients that are held at 0: they stay as they are.
    """
    free = matrix.any(axis=1)
    if free.any() and not free.all():
        whole = np.zeros_like(matrix)
        whole[np.ix_(free, free)] = inverse(matrix[np.ix_(free, free)], argument)
        return whole
    size = np.sqrt(np.diag(matrix))
    if not (size > 0).all():
        raise bad(argument, "is not positive definite", cure="drop columns that cancel, or set reg > 0")
    cause: LinAlgError | None = None
    try:
        low = cholesky(matrix / size / size[:, None], lower=True)
    except LinAlgError as error:
        cause = error
    if cause is not None or np.diag(low).min() ** 2 < LEAST_PIVOT:
        raise bad(argument, "is not positive definite", cure="drop collinear columns, or set reg > 0") from cause
    half = solve_triangular(low, np.eye(len(low)), lower=True)
    return np.asarray(half.T @ half / size / size[:, None])


def covariance_kind(asked: str, choices: Choices) -> str:
    """The covariance that was asked for; "auto" is the one that the data need."""
    if asked == "auto":
        if choices.cluster is not None:
            return "cluster"
        return "hessian" if choices.log_weight is None else "sandwich"
    if asked not in KINDS:
        raise bad("covariance", f"{asked!r} is not known", cure="use 'auto', 'hessian', 'sandwich' or 'cluster'")
    if asked == "cluster" and choices.cluster is None:
        raise bad("covariance", "is by clusters, and none are given", cure="name their column: cluster='person'")
    return asked


def middle(choices: Choices, theta: FloatArray, kind: str) -> FloatArray:
    """What stands between the two inverse Hessians, (d, d)."""
    if kind == "cluster":
        sums = cluster_scores(choices, theta)
        return np.asarray(correction(choices) * (sums.T @ sums))
    squares = choices
    if choices.log_weight is not None:
        often = np.ones(len(choices.log_row)) if choices.log_count is None else choices.log_count
        total = np.bincount(choices.log_row, weights=often * choices.log_weight**2, minlength=choices.n_rows)
        squares = replace(choices, count=total.astype(np.float64))
    return derivatives(squares, theta, counted=True).hessian


def cluster_scores(choices: Choices, theta: FloatArray) -> FloatArray:
    """m_G, (number of clusters, d)."""
    assert choices.cluster is not None  # noqa: S101 (covariance_kind has checked)
    weight = observation_weights(choices)
    shape = int(choices.cluster.max()) + 1, choices.n_rows
    spread = coo_array((weight, (choices.cluster, choices.log_row)), shape=shape).tocsc()
    total = np.zeros((shape[0], choices.dim))
    for block in blocks(choices):
        centred, _ = centred_rows(choices, block, theta)
        total += np.asarray(spread[:, block.begin : block.end] @ centred)
    return total


def observation_weights(choices: Choices) -> FloatArray:
    """f_n w_n of every observation."""
    weight = np.ones(len(choices.log_row))
    for part in (choices.log_count, choices.log_weight):
        weight = weight if part is None else weight * part
    return weight


def correction(choices: Choices) -> float:
    """G/(G-1) (N-1)/(N-d)."""
    assert choices.cluster is not None  # noqa: S101 (callers have checked)
    groups, n = len(np.unique(choices.cluster)), choices.n_observations
    if groups < 2:
        raise bad("cluster", "has one cluster only", cure="a robust covariance needs many; leave cluster out")
    if n <= choices.dim:
        raise bad("cluster", f"{n:g} observations are too few for {choices.dim} coefficients", cure="drop columns")
    return groups / (groups - 1.0) * (n - 1.0) / (n - choices.dim)


def with_clusters(fit: MNLTransition, cluster: Any) -> Choices:
    """The choices of a fit with the clusters that are asked for."""
    choices = fit.choices_
    if cluster is None:
        return choices
    if isinstance(cluster, str):
        if choices.cluster is None or cluster != fit.cluster:
            raise bad("cluster", f"the fit does not know {cluster!r}", cure=f"fit with cluster={cluster!r}")
        return choices
    if not isinstance(cluster, Iterable) or isinstance(cluster, Mapping) or getattr(cluster, "ndim", 1) != 1:
        raise bad("cluster", "is not a list of labels", cure="give one for each row of the log")
    labels, _ = factorise(cluster, "cluster")
    if len(labels) != len(choices.log_row):
        problem = f"has {len(labels)} labels for {len(choices.log_row)} observations"
        raise bad("cluster", problem, cure="give one for each row of the log, or name the column when fitting")
    return replace(choices, cluster=labels)


def variance_along(fit: MNLTransition, slope: FloatArray, cluster: Any = None) -> float:
    """The variance of ``sum_k slope_k . theta_k``: (K, d) in the units of the columns.

    Parameters of different stages are independent, unless clusters link them: then every cluster's part in the sum,
    ``sum_k slope_k' A_k^-1 m_{G,k}``, is squared as a whole (:mod:`livarot.data.fitting.sandwich`).
    """
    if cluster is None and (fit.homogeneous or fit.covariance_kind_ != "cluster"):
        return sum(float(g @ cov @ g) for g, cov in zip(slope, fit._covariances(), strict=True))
    choices = with_clusters(fit, cluster)
    groups = [part for _, part in fit._groups(choices)]
    assert choices.cluster is not None  # noqa: S101 (asked for, or fitted with)
    parts = np.zeros(int(choices.cluster.max()) + 1)
    for g, part, found in zip(slope, groups, fit.maxima_, strict=True):
        bread = inverse(found.hessian + float(fit.reg) * np.eye(choices.dim))
        sums = cluster_scores(part, found.theta)
        parts[: len(sums)] += sums @ (bread @ g)
    return float(correction(choices) * (parts @ parts))
