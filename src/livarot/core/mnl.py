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

import math

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.jit import jit
from livarot.core.ragged import FloatArray
from livarot.errors import bad

ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer kept in the low bits


@jit
def exp(x):
    """e^x for x <= 0 (clamped at -700), to 4e-16 relative, in operations that a compiler can vectorise.

    e^x = 2^k e^r with k = round(x / log 2), |r| <= log(2)/2 and a Taylor polynomial of degree 12; the library
    function is a scalar call and five times slower inside a loop.
    """
    x = max(x, -700.0)
    t = x * 1.4426950408889634 + ROUNDER
    k = t - ROUNDER
    r = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    p = 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    bits = (np.float64(t).view(np.int64) << np.int64(52)) + np.float64(p).view(np.int64)
    return np.int64(bits).view(np.float64)


@jit
def local_parameter(theta, first, coords, base, cols, at, m, local):
    """The m coordinates of theta (flat, at ``first``) that a pair's columns touch."""
    for j in range(m):
        local[j] = theta[first + coords[base + cols[at + j]]]


@jit
def choice_probabilities(offset, row, n, feat, at, m, local, p):
    """p_i = softmax(offset_i + phi_i . local), i < n, features row-major (n, m) at ``at``."""
    top = -math.inf
    for i in range(n):
        z = offset[row + i]
        for j in range(m):
            z += feat[at + i * m + j] * local[j]
        p[i] = z
        top = max(top, z)
    for i in range(n):
        p[i] = exp(p[i] - top)
    total = 0.0
    for i in range(n):
        total += p[i]
    total = 1.0 / total
    for i in range(n):
        p[i] *= total


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
