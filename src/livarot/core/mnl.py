"""The mathematics of one multinomial-logistic choice (all certain).

For rows ``phi_i`` (U, d), offsets ``o_i`` and a parameter theta: logits ``z_i = o_i + phi_i . theta`` and
``p = softmax(z)``.  With ``y`` the observed row and ``V_i`` values of the outcomes, what the kernels compute is:

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

from livarot.core import law
from livarot.core.arrays import FloatArray
from livarot.core.compiling.jit import jit
from livarot.core.views import matrix, part, view
from livarot.errors import bad


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
        raise bad("logits", "have a NaN or an infinite maximum", index=where, count=len(wrong), cure=cure)
    return z


def softmax(logits: ArrayLike) -> FloatArray:
    """p = exp(z) / sum exp(z) along the last axis; a logit of -inf has p = 0.

    >>> softmax([1e4, 1e4, -1e4])
    array([0.5, 0.5, 0. ])
    """
    z = _logits(logits)
    weights = np.exp(z - z.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))
