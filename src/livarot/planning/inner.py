"""The inner maximum of E_theta[V] over an ellipsoid, with its certificate.

    maximise  sum_i p_i(theta) V_i,  p = softmax(offset + Phi theta),   over |theta - center|_matrix <= radius

A non-concave problem: two outcomes are solved in closed form; otherwise a local solver with extra starts finds a
stationary point (``gap`` is its first-order gap), and ``upper`` bounds the global maximum from above, whatever the
solver did: the smallest of the box relaxation, the variance-aware bound (:mod:`livarot.planning.bounds`), and max V.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.ellipsoid import Ellipsoid
from livarot.core.lanes64 import LANES
from livarot.core.linalg import invert_lower
from livarot.core.mnl import softmax
from livarot.core.ragged import FloatArray
from livarot.errors import bad, require_finite
from livarot.planning.bounds import rounded_up, rounding, upper_bound
from livarot.planning.climb import joint_maximum
from livarot.planning.lanes import (
    BEST_GAP,
    BEST_X,
    BETA,
    SCALE,
    STEPS,
    Z0,
    centre_probabilities,
    centre_widths,
    lane_workspaces,
    whiten_shared,
)
from livarot.planning.rules import JOINT_MAXIMUM, ShiftedPower, Solver


class InnerMax(NamedTuple):
    """The best point found and a bound on what was missed."""

    value: float
    theta: FloatArray
    probabilities: FloatArray
    upper: float  # >= the global maximum
    gap: float  # first-order gap relative to the range of the values
    n_iter: int
    converged: bool


@checked
def inner_max(
    features: ArrayLike,
    values: ArrayLike,
    ellipsoid: Ellipsoid,
    *,
    solver: Solver | None = None,
    offset: ArrayLike | None = None,
) -> InnerMax:
    """Maximise the expected value over the ellipsoid.

    >>> result = inner_max([[1.0], [0.0]], [1.0, 0.0], Ellipsoid([0.0], [[1.0]], 2.0))
    >>> round(result.value, 6), round(float(1 / (1 + np.exp(-2.0))), 6)
    (0.880797, 0.880797)
    """
    solver = ShiftedPower() if solver is None else solver
    phi = np.atleast_2d(require_finite("features", features))
    v = require_finite("values", values).reshape(-1)
    if phi.ndim != 2 or len(phi) == 0:
        raise bad("features", f"has shape {phi.shape}", cure="give one row per outcome, at least one")
    n_out, m = phi.shape
    if m != ellipsoid.dim:
        raise bad("features", f"have {m} columns, the ellipsoid has dimension {ellipsoid.dim}")
    if len(v) != n_out:
        raise bad("values", f"has {len(v)} entries for {n_out} rows of features")
    shift = np.zeros(n_out) if offset is None else require_finite("offset", offset)
    if shift.shape != (n_out,):
        raise bad("offset", f"has shape {shift.shape}, expected {(n_out,)}")
    whiten = np.zeros(m * m)
    invert_lower(ellipsoid._factor, 0, m, whiten, 0)
    y, first_phi, first_v = np.zeros((n_out * m, LANES)), np.zeros((n_out * m, LANES)), np.zeros((n_out, LANES))
    first_phi[:, 0], first_v[:, 0] = phi.reshape(-1), v
    whiten_shared(whiten, 0, first_phi, y, n_out, m, 1)
    z0 = shift + phi @ ellipsoid.center
    spread = float(v.max() - v.min())
    wo, wc, wl = lane_workspaces(n_out, m)
    wo[:, Z0] = z0
    wl[BETA], wl[SCALE] = ellipsoid.radius, spread
    centre_probabilities(wo, wl, n_out, 1)
    centre_widths(y, wo, wc, wl, n_out, m, 1)
    bound = np.zeros(LANES)
    upper_bound(y, first_v, wo, wc, wl, bound, n_out, m, 1)
    best = float(min(bound[0], _pairwise_bound(y[:, 0].reshape(n_out, m), z0, v, ellipsoid.radius)))
    if n_out == 2:
        sign = 1.0 if v[0] >= v[1] else -1.0
        theta = ellipsoid.support(sign * (phi[0] - phi[1])) if spread > 0 else ellipsoid.center.copy()
        gap, n_iter, converged = 0.0, 0, True
    else:
        code = solver.code(JOINT_MAXIMUM)
        joint_maximum(
            code.solver, code.n_iter, code.tol, code.n_starts, code.wide,
            y, first_v, wo, wc, wl, y, first_v, wo, wc, wl, n_out, m, 1,
        )  # fmt: skip
        theta = ellipsoid.center + whiten.reshape(m, m).T @ wc[:, BEST_X]
        gap = float(wl[BEST_GAP] / spread) if spread > 0 else 0.0
        n_iter = int(wl[STEPS])
        converged = gap <= max(code.tol, 1e-8)
    p = softmax(shift + phi @ theta)
    value = float(p @ v)
    return InnerMax(value, theta, p, max(best, value) if n_out != 2 else value, gap, n_iter, converged)


def _pairwise_bound(y: FloatArray, z0: FloatArray, v: FloatArray, beta: float) -> float:
    """f0 + beta |g0| + span(V) beta^2 max_ij |y_i - y_j|^2 / 8, rounded up: Popoviciu's inequality on Var(Yx)."""
    p = softmax(z0)
    f0 = float(p @ v)
    squared = (y**2).sum(axis=1)
    widest = float((squared[:, None] + squared[None, :] - 2.0 * y @ y.T).max())
    slip = rounding(*y.shape, float(np.abs(z0).max()), beta * float(np.sqrt(squared.max())))
    rise = beta * float(np.linalg.norm((p * (v - f0)) @ y))
    rise += float(v.max() - v.min()) * beta * beta * (max(widest, 0.0) + slip * squared.max()) / 8.0
    return float(rounded_up(f0, rise, slip, v.min(), v.max()))
