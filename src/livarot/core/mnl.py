"""The mathematics of one multinomial-logistic choice (all certain).

For rows ``phi_i`` (U, d), offsets ``o_i`` and a parameter theta: logits ``z_i = o_i + phi_i . theta`` and
``p = softmax(z)``.  With ``y`` the observed row and ``V_i`` values of the outcomes:

    loss        l(theta) = -log p_y
    gradient    sum_i (p_i - 1[i = y]) phi_i
    Hessian     sum_i p_i (phi_i - mu)(phi_i - mu)',   mu = sum_i p_i phi_i     (centred: no cancellation)
    expectation f = sum_i p_i V_i,   variance sum_i p_i (V_i - f)^2
    d f/d theta = sum_i p_i (V_i - f) phi_i,   and |d^2 f| <= span(V) Var_p(phi . x) along a direction x

Everything goes through the shifted exponential, so logits of 1e4 are as good as logits of 1.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from livarot.core import lanes, law
from livarot.core.arrays import FloatArray
from livarot.core.jit import jit
from livarot.core.views import matrix, part, view
from livarot.errors import bad


@jit
def exp(x):
    """e^x for x <= 0 (clamped at -700), to 4e-16 relative (:func:`livarot.core.lanes.exp`)."""
    return lanes.exp(x)


@jit
def local_parameter(theta, first, coords, base, cols, at, m, local):
    """The m coordinates of theta (flat, at ``first``) that a pair's columns touch."""
    for j in range(m):
        local[j] = theta[first + coords[base + cols[at + j]]]


@jit
def choice_probabilities(offset, row, n, feat, at, m, local, p):
    """p_i = softmax(offset_i + phi_i . local), i < n, features row-major (n, m) at ``at``."""
    own = part(view(p), 0, n)
    law.logits(part(view(offset), row, n), matrix(view(feat), at, n, m), view(local), own)
    law.softmax(own, own)


def _logits(logits: ArrayLike) -> FloatArray:
    """Logits (..., U) as float64, refused unless the largest of each choice is finite."""
    try:
        z = np.asarray(logits, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise bad("logits", f"are not numbers ({error})") from error
    if z.ndim == 0 or z.size == 0:
        raise bad("logits", f"have shape {z.shape}", cure="give one number per outcome")
    wrong = np.argwhere(~np.isfinite(z.max(axis=-1)))
    if len(wrong):
        where, cure = tuple(wrong[0]) or None, "give finite numbers or -inf"
        raise bad("logits", "NaN, or the largest is infinite", index=where, count=len(wrong), cure=cure)
    return z


def log_softmax(logits: ArrayLike) -> FloatArray:
    """log p along the last axis, to full relative accuracy even where p is almost 1."""
    z = _logits(logits)
    top = z.argmax(axis=-1, keepdims=True)
    shifted = z - np.take_along_axis(z, top, axis=-1)
    weights = np.exp(shifted)
    np.put_along_axis(weights, top, 0.0, axis=-1)
    return np.asarray(shifted - np.log1p(weights.sum(axis=-1, keepdims=True)))


def softmax(logits: ArrayLike) -> FloatArray:
    """p = exp(z) / sum exp(z) along the last axis; a logit of -inf has p = 0.

    >>> softmax([1e4, 1e4, -1e4])
    array([0.5, 0.5, 0. ])
    """
    z = _logits(logits)
    weights = np.exp(z - z.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def loss(theta: ArrayLike, features: ArrayLike, chosen: int, offset: ArrayLike = 0.0) -> float:
    """-log p_y."""
    return float(-log_softmax(np.asarray(offset) + np.asarray(features) @ np.asarray(theta))[chosen])


def gradient(theta: ArrayLike, features: ArrayLike, chosen: int, offset: ArrayLike = 0.0) -> FloatArray:
    """sum_i (p_i - 1[i = y]) phi_i."""
    phi = np.asarray(features, dtype=np.float64)
    p = softmax(np.asarray(offset) + phi @ np.asarray(theta))
    p[chosen] -= 1.0
    return np.asarray(p @ phi)


def hessian(theta: ArrayLike, features: ArrayLike, offset: ArrayLike = 0.0) -> FloatArray:
    """sum_i p_i (phi_i - mu)(phi_i - mu)'."""
    phi = np.asarray(features, dtype=np.float64)
    p = softmax(np.asarray(offset) + phi @ np.asarray(theta))
    centred = phi - p @ phi
    return np.asarray((centred * p[:, None]).T @ centred)


def expectation(probabilities: ArrayLike, values: ArrayLike) -> float:
    """sum_i p_i V_i."""
    return float(np.dot(probabilities, values))


def variance(probabilities: ArrayLike, values: ArrayLike) -> float:
    """sum_i p_i (V_i - f)^2."""
    v = np.asarray(values, dtype=np.float64)
    return float(np.dot(probabilities, (v - np.dot(probabilities, v)) ** 2))


def expectation_gradient(theta: ArrayLike, features: ArrayLike, values: ArrayLike) -> FloatArray:
    """d/d theta of sum_i p_i V_i, which is Cov_p(phi, V)."""
    phi, v = np.asarray(features, dtype=np.float64), np.asarray(values, dtype=np.float64)
    p = softmax(phi @ np.asarray(theta))
    return np.asarray((p * (v - p @ v)) @ phi)
