"""Ellipsoids ``{theta : |theta - center|_matrix <= radius}``; the radius is never squared (reading E4)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.core.linalg import factor_dense, one_block, project_dense, solve_dense
from livarot.errors import bad, require_finite
from livarot.system.sizes import require_memory

Wide = NDArray[Any]  # of numpy.longdouble: numpy's annotations say that its arithmetic gives doubles

INSIDE = 1e-11  # a point no further outside than this share of the radius stays where it is
TRUSTED = 1e-6  # residuals above this are flagged
POLISH = 8  # most steps in extended precision; two or three are usual


class Projection(NamedTuple):
    """A projection and its certificate.

    ``kkt`` is ``|M(x - x0) + mu A(x - c)|`` relative to ``|M(x0 - c)| + |M(x - c)|``, of the point as it is returned.
    ``well_conditioned`` is False when a factorisation met a pivot below rounding, when ``kkt`` exceeds 1e-6, or when
    the point is outside by more than that share of the radius: then trust the answer only as far as ``kkt`` says.
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
        low = np.zeros_like(self.matrix)  # with reciprocal diagonal
        self.well_conditioned = bool(factor_dense(self.matrix, low))
        self._factor = low.reshape(-1)

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
        solve_dense(self._factor.reshape(self.matrix.shape), solved)
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
        return float(_length(self.matrix, _vector("x", x, self.dim), self.center))

    def contains(self, x: ArrayLike, tolerance: float = 1e-10) -> bool:
        """Is x inside, up to a relative tolerance on the radius?"""
        return self.distance(x) <= self.radius * (1.0 + tolerance)

    def project(self, x: ArrayLike, metric: ArrayLike) -> FloatArray:
        """The point of the ellipsoid nearest to x in the norm of ``metric`` (not the Euclidean one)."""
        return self.projection(x, metric).point

    def projection(self, x: ArrayLike, metric: ArrayLike) -> Projection:
        """:meth:`project` with its multiplier and KKT residual."""
        given = _vector("x", x, self.dim)
        target, matrix = given - self.center, _symmetric("metric", metric, self.center)
        # scale both matrices to order one, by powers of four: exact, and so are their roots
        size_m, size_a = _order("metric", matrix), _order("matrix", self.matrix)
        m, a, radius = matrix / size_m, self.matrix / size_a, self.radius * np.sqrt(1.0 / size_a)
        if _length(a, given, self.center) <= radius * (1.0 + INSIDE):
            return Projection(given, 0.0, 0.0, 0, True)
        out, memory = np.empty(self.dim), (np.empty((2, m.size)), np.empty((3, self.dim)))
        sides = m.reshape(-1), a.reshape(-1), target
        mu, steps, sound = project_dense(one_block(self.dim), *sides, radius, out, *memory)
        if self.radius > 0.0:
            out, mu = _polish(m, a, target, out, mu, radius)
        point = self.center + out
        kkt = _kkt(m, a, given, point, self.center, mu) if self.radius > 0.0 else 0.0
        inside = self.radius == 0.0 or bool(_length(a, point, self.center) <= radius * (1.0 + TRUSTED))
        return Projection(point, mu * size_m / size_a, kkt, steps, bool(sound) and kkt <= TRUSTED and inside)


def _wide(*arrays: FloatArray) -> tuple[Wide, ...]:
    return tuple(x.astype(np.longdouble) for x in arrays)


def _length(a: FloatArray, x: FloatArray, center: FloatArray) -> Any:
    """|x - center|_A in extended precision: double precision is wrong by rounding times the condition of A."""
    wide, one, other = _wide(a, x, center)
    return np.sqrt(max((one - other) @ wide @ (one - other), np.longdouble(0.0)))


def _kkt(m: FloatArray, a: FloatArray, x0: FloatArray, x: FloatArray, center: FloatArray, mu: float) -> float:
    """The residual of :class:`Projection`; where mu is infinite, how far the two terms are from opposite directions."""
    wide_m, wide_a, origin, point, middle = _wide(m, a, x0, x, center)
    pull, push = wide_m @ (point - origin), wide_a @ (point - middle)
    if np.isinf(mu):
        return float(_norm(pull / _norm(pull) + push / _norm(push))) if _norm(push) > 0.0 else 0.0
    return float(_norm(pull + mu * push) / (_norm(wide_m @ (origin - middle)) + _norm(wide_m @ (point - middle))))


def _norm(x: Wide) -> Any:
    largest = np.abs(x).max()
    return largest * np.sqrt(np.sum((x / largest) ** 2)) if largest > 0.0 else largest


def _order(argument: str, matrix: FloatArray) -> float:
    """The power of four nearest to a matrix's largest entry."""
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

    Plain double precision leaves |x|_A, and with it mu, wrong by rounding times the condition of A.  Of x and the move
    y = target - x, for which (M + mu A) y = mu A target, the shorter one is refined: errors are relative to its length.
    """
    wide_m, wide_a, aim, point = _wide(m, a, target, x)
    near = _norm(aim - point) < _norm(point)
    factor = np.empty_like(a)
    for turn in range(POLISH if np.isfinite(mu) else 0):
        if not factor_dense(m + mu * a, factor):
            break
        weight = np.longdouble(mu)
        system, short = wide_m + weight * wide_a, aim - point if near else point
        goal = weight * (wide_a @ aim) if near else wide_m @ aim
        for _ in range(2):
            step = (goal - system @ short).astype(np.float64)
            solve_dense(factor, step)
            short = short + step
        point = aim - short if near else short
        pull = wide_a @ point
        norm = np.sqrt(point @ pull)
        off = float(norm / np.longdouble(radius)) - 1.0
        solved = pull.astype(np.float64)
        solve_dense(factor, solved)
        slope = float(pull @ solved)
        if abs(off) < 1e-14 or not slope > 0.0 or turn == POLISH - 1:
            break
        mu = max(mu + off * float(norm) ** 2 / slope, 0.0)  # 1/|x(mu)| is concave: a step back may go too far
    largest = np.abs(point).max()
    if not largest > 0.0:
        return x, mu
    unit = point / largest  # the square of a radius of 1e-300 underflows
    length = np.sqrt(unit @ wide_a @ unit)
    return np.asarray(unit * (np.longdouble(radius) / length), dtype=np.float64), mu
