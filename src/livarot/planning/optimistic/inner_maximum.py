"""The inner maximum of E_theta[V] over an ellipsoid, with its certificate.

    max { sum_i p_i(theta) V_i : |theta - center|_matrix <= radius },   p(theta) = softmax(offset + Phi theta)

The problem is not concave: two outcomes are solved in closed form; otherwise a local solver with extra starts finds a
stationary point (``gap`` is its first-order gap), and ``upper`` bounds the global maximum from above, whatever the
solver did: the smallest of the box relaxation, the variance-aware bound (:mod:`bounds`), and max V.
"""
# mypy: disable-error-code="attr-defined"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.ellipsoid import Ellipsoid
from livarot.core.lanes import W, lane, lanes, number_in
from livarot.core.linalg import invert_lower
from livarot.core.mnl import softmax
from livarot.core.views import opened, part, view
from livarot.errors import bad, require_finite
from livarot.model.shown import compact
from livarot.planning.optimistic.bonuses import rounded_up, rounding
from livarot.planning.optimistic.choice import choice_size, load_into, look, solver_room, whitened
from livarot.planning.optimistic.rule import called
from livarot.planning.optimistic.rules import JointMaximum, ShiftedPower, Solver


@compact
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
    whiten = np.zeros((m, m))
    invert_lower(ellipsoid._factor, 0, m, whiten.reshape(-1), 0)
    z0 = shift + phi @ ellipsoid.center
    spread = float(v.max() - v.min())
    x, y = np.zeros(m), np.zeros((n_out, m))
    bound, slope, n_iter = float(v.max()), 0.0, 0
    if n_out > 2:
        scales = (ellipsoid.radius, spread)
        bound, slope, n_iter = _inner_max(JointMaximum(solver).made.table, z0, phi, whiten, v, scales, x, y)
        bound = min(bound, _pairwise_bound(y, z0, v, ellipsoid.radius))
    if n_out == 2:
        sign = 1.0 if v[0] >= v[1] else -1.0
        theta = ellipsoid.support(sign * (phi[0] - phi[1])) if spread > 0 else ellipsoid.center.copy()
        gap, converged = 0.0, True
    else:
        theta = ellipsoid.center + whiten.T @ x
        gap = slope / spread if spread > 0 else 0.0
        converged = gap <= max(solver.tol, 1e-8)
    p = softmax(shift + phi @ theta)
    value = float(p @ v)
    return InnerMax(value, theta, p, max(bound, value) if n_out != 2 else value, gap, n_iter, converged)


def _pairwise_bound(y: FloatArray, z0: FloatArray, v: FloatArray, beta: float) -> float:
    """f0 + beta |g0| + span(V) beta^2 max_ij |y_i - y_j|^2 / 8, rounded up: Popoviciu's inequality on Var(Yx)."""
    p = softmax(z0)
    f0 = float(p @ v)
    squared = (y**2).sum(axis=1)
    widest = float((squared[:, None] + squared[None, :] - 2.0 * y @ y.T).max())
    slip = rounding.py_func(*y.shape, float(np.abs(z0).max()), beta * float(np.sqrt(squared.max())))
    rise = beta * float(np.linalg.norm((p * (v - f0)) @ y))
    rise += float(v.max() - v.min()) * beta * beta * (max(widest, 0.0) + slip * squared.max()) / 8.0
    return float(rounded_up.py_func(f0, rise, slip, v.min(), v.max()))


@jit
def _inner_max(rule, z0, phi, whiten, values, scales, x, y):  # type: ignore[no-untyped-def]
    """The bound, the first-order gap and the steps of one problem, the same in all lanes; fills its point and Y."""
    n, m = phi.shape
    memory = np.zeros((choice_size(n, m) + n, W))
    return _solve(opened(rule), z0, phi, whiten, values, scales, x, y, memory)


@inner
def _solve(rule, z0, phi, whiten, values, scales, x, y, memory):  # type: ignore[no-untyped-def]
    n, m = phi.shape
    loaded, v = load_into(lanes(memory), n, m), part(lanes(memory), choice_size(n, m), n)
    whitened(view(whiten), view(phi), view(y))
    for i in range(n):
        loaded.z0[i], v[i] = lane(z0[i]), lane(values[i])
        for k in range(m):
            loaded.y[i, k] = y[i, k]
    choice = look(loaded, lane(scales[0]), lane(scales[1]), 0.0, True)
    bound, _ = called(rule.bound, choice, v, rule.settings)
    _, gap = called(rule.value, choice, v, rule.settings)
    room = solver_room(choice)
    for k in range(m):
        x[k] = number_in(room.best[k], 0)
    return number_in(bound, 0), number_in(gap, 0), int(number_in(room.steps[0], 0))
