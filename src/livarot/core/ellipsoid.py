"""Ellipsoids ``{theta : |theta - center|_matrix <= radius}``; the radius is never squared (reading E4)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.linalg import cholesky, project_packed, projection_workspace, solve_cholesky
from livarot.core.ragged import FloatArray
from livarot.core.sizes import require_memory
from livarot.errors import bad, require_finite


class Projection(NamedTuple):
    """A projection and its certificate.

    ``kkt`` is ``|M(x - x0) + mu A(x - c)|`` relative to the size of its terms; ``well_conditioned`` is False when
    a factorisation met a pivot below rounding, and then ``kkt`` says how far the answer can be trusted.
    """

    point: FloatArray
    multiplier: float
    kkt: float
    n_iter: int
    well_conditioned: bool


@checked
class Ellipsoid:
    """``{theta : |theta - center|_matrix <= radius}`` with a positive definite matrix.

    >>> ball = Ellipsoid.ball(2, 1.0)
    >>> ball.project([3.0, 4.0], np.eye(2))
    array([0.6, 0.8])
    >>> Ellipsoid([1.0, 0.0], np.diag([4.0, 1.0]), 2.0).support([1.0, 0.0])
    array([2., 0.])
    """

    def __init__(self, center: ArrayLike, matrix: ArrayLike, radius: float) -> None:
        self.center: FloatArray = np.array(require_finite("center", center))
        self.matrix: FloatArray = _symmetric("matrix", matrix, self.center)
        self.radius = radius
        self._factor = np.empty(self.matrix.size)
        self.well_conditioned = bool(cholesky(self.matrix.reshape(-1), 0, self.dim, self._factor, 0))

    @classmethod
    @checked
    def ball(cls, dim: int, radius: float) -> Ellipsoid:
        """The Euclidean ball of a radius around the origin."""
        require_memory("dim", "its matrix", 3 * dim**2)
        return cls(np.zeros(dim), np.eye(dim), radius)

    @property
    def dim(self) -> int:
        return len(self.center)

    def _dual_norm(self, direction: FloatArray) -> tuple[FloatArray, float]:
        solved = direction.copy()
        solve_cholesky(self._factor, 0, self.dim, solved, 0)
        return solved, math.sqrt(max(float(direction @ solved), 0.0))

    def width(self, direction: ArrayLike) -> float:
        """max of direction . (theta - center) over the ellipsoid: radius * |direction|_{matrix^-1}."""
        return self.radius * self._dual_norm(_vector("direction", direction, self.dim))[1]

    def support(self, direction: ArrayLike) -> FloatArray:
        """The point that maximises ``direction . theta``: center + radius H^-1 g / |g|_{H^-1}."""
        solved, norm = self._dual_norm(_vector("direction", direction, self.dim))
        return self.center + (solved * (self.radius / norm) if norm > 0 else 0.0)

    def distance(self, x: ArrayLike) -> float:
        """|x - center|_matrix."""
        off = _vector("x", x, self.dim) - self.center
        return math.sqrt(max(float(off @ self.matrix @ off), 0.0))

    def contains(self, x: ArrayLike, tolerance: float = 1e-10) -> bool:
        """Is x inside, up to a relative tolerance on the radius?"""
        return self.distance(x) <= self.radius * (1.0 + tolerance)

    def project(self, x: ArrayLike, metric: ArrayLike) -> FloatArray:
        """The point of the ellipsoid nearest to x in the norm of ``metric`` (not the Euclidean one)."""
        return self.projection(x, metric).point

    def projection(self, x: ArrayLike, metric: ArrayLike) -> Projection:
        """:meth:`project` with its multiplier and KKT residual."""
        target = _vector("x", x, self.dim) - self.center
        matrix = _symmetric("metric", metric, self.center)
        # scale both matrices to order one, by powers of four: exact, and so are their roots
        size_m, size_a = _order("metric", matrix), _order("matrix", self.matrix)
        blocks = np.array([0, self.dim]), np.array([0, self.dim**2])
        out = np.empty(self.dim)
        m, a = matrix / size_m, self.matrix / size_a
        mu, steps, sound = project_packed(
            m.reshape(-1),
            a.reshape(-1),
            *blocks,
            target,
            self.radius * np.sqrt(1.0 / size_a),
            out,
            projection_workspace(self.dim, self.dim**2),
        )
        if mu > 0.0 and self.radius > 0.0:
            out, mu = _polish(m, a, target, out, mu, self.radius * np.sqrt(1.0 / size_a))
        pull, push = m @ (out - target), a @ out
        if mu == 0.0 or self.radius == 0.0:
            kkt = 0.0
        elif np.isinf(mu):
            pull, push = pull / np.abs(pull).max(), push / max(float(np.abs(push).max()), 1e-320)
            kkt = float(np.linalg.norm(pull / np.linalg.norm(pull) + push / np.linalg.norm(push)))
        else:
            kkt = float(np.linalg.norm(pull + mu * push) / (np.linalg.norm(m @ target) + np.linalg.norm(m @ out)))
        inside = mu == 0.0
        point = np.asarray(x, dtype=np.float64).copy() if inside else self.center + out
        return Projection(point, mu * size_m / size_a, kkt, steps, bool(sound))


def _order(argument: str, matrix: FloatArray) -> float:
    """The power of four next to a matrix's largest entry."""
    largest = float(np.abs(matrix).max())
    if largest == 0.0:
        raise bad(argument, "is zero", cure="give a positive definite matrix")
    return float(4.0 ** np.round(np.log2(largest) / 2.0))


def _vector(argument: str, x: ArrayLike, dim: int) -> FloatArray:
    vector = np.array(require_finite(argument, x))
    if vector.shape != (dim,):
        raise bad(argument, f"has shape {vector.shape}, expected {(dim,)}")
    return vector


def _symmetric(argument: str, matrix: ArrayLike, center: FloatArray) -> FloatArray:
    array = np.array(require_finite(argument, matrix))
    if center.ndim != 1 or len(center) == 0:
        raise bad("center", f"has shape {center.shape}, expected (d,) with d >= 1")
    if array.shape != (len(center), len(center)):
        raise bad(argument, f"has shape {array.shape}, expected {(len(center), len(center))}")
    largest = float(np.abs(array).max())
    lopsided = np.argwhere(np.abs(array - array.T) > 1e-8 * largest)
    if len(lopsided):
        raise bad(argument, "is not symmetric", index=tuple(int(i) for i in lopsided[0]), count=len(lopsided))
    if (np.diag(array) < 0).any() or float(np.linalg.eigvalsh(array)[0]) < -1e-10 * largest:
        raise bad(argument, "is not positive definite", cure="add a multiple of the identity")
    return np.ascontiguousarray((array + array.T) / 2)


def _polish(
    m: FloatArray, a: FloatArray, target: FloatArray, x: FloatArray, mu: float, radius: float
) -> tuple[FloatArray, float]:
    """Refine (M + mu A) x = M target and |x|_A = radius with residuals and norms in extended precision.

    Plain double precision leaves |x|_A, and with it mu, wrong by rounding times the condition of A.
    """
    wide_m, wide_a = m.astype(np.longdouble), a.astype(np.longdouble)
    point, goal = x.astype(np.longdouble), wide_m @ target.astype(np.longdouble)
    factor = np.empty(a.size)
    for _ in range(4 if np.isfinite(mu) else 0):
        if not cholesky((m + mu * a).reshape(-1), 0, len(x), factor, 0):
            break
        system = wide_m + np.longdouble(mu) * wide_a
        for _ in range(2):
            step = (goal - system @ point).astype(np.float64)
            solve_cholesky(factor, 0, len(x), step, 0)
            point = point + step
        pull = wide_a @ point
        norm = np.sqrt(point @ pull)
        off = float(norm / np.longdouble(radius)) - 1.0
        solved = pull.astype(np.float64)
        solve_cholesky(factor, 0, len(x), solved, 0)
        slope = float(pull @ solved)
        moved = mu + off * float(norm) ** 2 / slope if slope > 0.0 else mu
        if abs(off) < 1e-14 or not moved > 0.0:
            break
        mu = moved
    largest = np.abs(point).max()
    if not largest > 0.0:
        return x, mu
    unit = point / largest  # a radius of 1e-300 has no square
    length = np.sqrt(unit @ wide_a @ unit)
    return np.asarray(unit * (np.longdouble(radius) / length), dtype=np.float64), mu
