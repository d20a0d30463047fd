"""Ellipsoids: support and projection, against the twins, a conic solver and their own certificates."""

import clarabel
import numpy as np
import pytest
from scipy import sparse

from livarot import Ellipsoid, LivarotError
from tests.twins import core as ref


def conditioned(rng, d, condition, size=1.0):
    """A random symmetric matrix with eigenvalues from ``size`` down to ``size / condition``."""
    q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    low = -np.log10(condition)
    eigenvalues = 10.0 ** rng.uniform(low, 0.0, size=d)
    eigenvalues[0], eigenvalues[-1] = 1.0, 10.0**low
    full = (q * eigenvalues) @ q.T * size
    return (full + full.T) / 2


def exact_excess(ellipsoid, point):
    """|point - center|_matrix / radius - 1 in extended precision: in doubles it is wrong by eps * condition."""
    off = np.longdouble(point) - np.longdouble(ellipsoid.center)
    return float(np.sqrt(off @ np.longdouble(ellipsoid.matrix) @ off) / np.longdouble(ellipsoid.radius) - 1)


def kkt_residual(found, x, metric, ellipsoid):
    """|M (point - x) + mu A (point - center)| relative to |M x| + |M point|, in extended precision."""
    m, a = np.longdouble(metric), np.longdouble(ellipsoid.matrix)
    point = np.longdouble(found.point) - np.longdouble(ellipsoid.center)
    target = np.longdouble(x) - np.longdouble(ellipsoid.center)
    rest = m @ (point - target) + np.longdouble(found.multiplier) * (a @ point)
    return float(np.sqrt(rest @ rest) / (np.sqrt(np.sum((m @ target) ** 2)) + np.sqrt(np.sum((m @ point) ** 2))))


# ---------------------------------------------------------------- support
@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_support_against_the_twin(d):
    rng = np.random.default_rng(d)
    for _ in range(20):
        center, matrix, radius = rng.normal(size=d), conditioned(rng, d, 1e3), float(rng.uniform(0, 5))
        body, g = Ellipsoid(center, matrix, radius), rng.normal(size=d)
        point = body.support(g)
        np.testing.assert_allclose(point, ref.linear_max(g, (center, matrix, radius)), rtol=1e-9, atol=1e-10)
        assert body.distance(point) == pytest.approx(radius, rel=1e-9)
        assert body.width(g) == pytest.approx(radius * ref.dual_norm(g, matrix), rel=1e-9)
        assert g @ (point - center) == pytest.approx(body.width(g), rel=1e-9, abs=1e-12)
        others = center + radius * np.array([x / ref.norm_in(x, matrix) for x in rng.normal(size=(20, d))])
        assert np.max(others @ g) <= g @ point + 1e-9


def test_support_of_no_direction_and_of_a_point():
    body = Ellipsoid([1.0, 2.0], np.eye(2), 3.0)
    assert body.support([0.0, 0.0]).tolist() == [1.0, 2.0]
    assert Ellipsoid([1.0, 2.0], np.eye(2), 0.0).support([1.0, 1.0]).tolist() == [1.0, 2.0]


def test_ball_and_membership():
    ball = Ellipsoid.ball(3, 2.0)
    assert ball.dim == 3
    assert ball.well_conditioned
    assert ball.contains([2.0, 0.0, 0.0])
    assert ball.contains([2.0 * (1 + 1e-11), 0.0, 0.0])
    assert not ball.contains([2.0 * (1 + 1e-9), 0.0, 0.0])
    assert ball.distance([0.0, 3.0, 4.0]) == 5.0


# ---------------------------------------------------------------- projection
def test_projection_at_condition_1e8_is_feasible_and_optimal():
    """500 problems: x inside, on and outside; sizes of both matrices and of the radius from 1e-6 to 1e9."""
    rng = np.random.default_rng(20)
    active = 0
    for k in range(500):
        d = int(rng.integers(1, 9))
        size_m, size_a = 10.0 ** rng.uniform(-6, 9, size=2)
        metric, matrix = conditioned(rng, d, 1e8, size_m), conditioned(rng, d, 1e8, size_a)
        radius = 10.0 ** rng.uniform(-6, 9)
        direction = rng.normal(size=d)
        reach = (0.5, 1.0, 1.0 + 1e-6, 3.0, 1e6)[k % 5]
        body = Ellipsoid(np.zeros(d), matrix, radius)
        x = direction * (reach * radius / ref.norm_in(direction, matrix))
        found = body.projection(x, metric)
        assert exact_excess(body, found.point) <= 1e-10
        assert found.kkt <= 1e-8
        assert found.multiplier >= 0.0
        assert found.well_conditioned
        if reach == 0.5:
            assert found.point.tolist() == x.tolist()
            assert found.multiplier == 0.0
        elif reach > 1:
            active += 1
            assert found.multiplier > 0.0
            assert kkt_residual(found, x, metric, body) <= 1e-8
    assert active == 300


def in_the_norm_of(rng, matrix, reach):
    """A random vector of length ``reach`` in the norm of a matrix, mostly along its weak directions."""
    values, vectors = np.linalg.eigh(matrix)
    g = np.longdouble(vectors @ (rng.normal(size=len(matrix)) / np.sqrt(np.maximum(values, 1e-17 * values[-1]))))
    return np.asarray(g * (np.longdouble(reach) / np.sqrt(g @ np.longdouble(matrix) @ g)), dtype=float)


@pytest.mark.parametrize("far", [0.0, 1.0], ids=["at the origin", "elsewhere"])
def test_projections_from_weak_directions_are_feasible_at_condition_1e8(far):
    """Along a weak direction |x|_A is wrong in doubles by rounding times the condition: what is outside by 1e-9 has to
    move, and nothing may end up outside by more than 1e-10."""
    rng = np.random.default_rng(26)
    for k in range(700):
        d = int(rng.integers(1, 9))
        metric, matrix = (conditioned(rng, d, rng.choice([1.0, 1e8]), 10.0 ** rng.uniform(-6, 9)) for _ in range(2))
        reach = (1.0, 1 + 1e-9, 1 + 1e-6, 1.5, 3.0, 1e3, 1e6)[k % 7]
        body = Ellipsoid(far * rng.normal(size=d) / np.sqrt(np.abs(matrix).max()), matrix, 1.0)
        x = body.center + in_the_norm_of(rng, matrix, reach)
        found = body.projection(x, metric)
        assert exact_excess(body, found.point) <= 1e-10
        assert body.contains(found.point)
        assert found.well_conditioned
        assert kkt_residual(found, x, metric, body) <= 1e-6
        assert (found.multiplier > 0.0) == (exact_excess(body, x) > 1e-11)


@pytest.mark.parametrize("condition", [1e10, 1e12, 1e14, 1e16])
def test_every_residual_above_1e_6_is_flagged(condition):
    """The residual of the returned point in extended precision; most of these problems cannot be solved better."""
    rng = np.random.default_rng(27)
    flagged = 0
    for k in range(350):
        d = int(rng.integers(2, 9))
        metric, matrix = (conditioned(rng, d, condition, 10.0 ** rng.uniform(-6, 9)) for _ in range(2))
        reach = (1.0, 1 + 1e-9, 1 + 1e-6, 1.5, 3.0, 1e3, 1e6)[k % 7]
        body = Ellipsoid(np.zeros(d), matrix, 1.0)
        x = in_the_norm_of(rng, matrix, reach) if k % 2 else rng.normal(size=d)
        found = body.projection(x, metric)
        residual = kkt_residual(found, x, metric, body) if exact_excess(body, x) > 1e-11 else 0.0
        assert not found.well_conditioned or (residual <= 1.001e-6 and exact_excess(body, found.point) <= 1.001e-6)
        flagged += not found.well_conditioned
    assert flagged > 20 or condition == 1e10


def test_projection_follows_the_centre():
    rng = np.random.default_rng(21)
    for _ in range(60):
        d = int(rng.integers(1, 7))
        metric, matrix = conditioned(rng, d, 1e8), conditioned(rng, d, 1e8)
        center, radius = rng.normal(size=d), 10.0 ** rng.uniform(-2, 2)
        away = 5 * radius * rng.normal(size=d)
        moved = Ellipsoid(center, matrix, radius).project(center + away, metric)
        here = Ellipsoid(np.zeros(d), matrix, radius).project((center + away) - center, metric)
        np.testing.assert_allclose(moved - center, here, rtol=0, atol=1e-14 * (1 + np.abs(moved).max()))


@pytest.mark.parametrize("d", [1, 2, 4, 8])
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
def test_projection_against_the_twin(d, condition):
    rng = np.random.default_rng(int(d + condition))
    for _ in range(15):
        metric, matrix = conditioned(rng, d, condition), conditioned(rng, d, condition)
        center, radius = rng.normal(size=d), float(10.0 ** rng.uniform(-2, 1))
        x = center + 10.0 ** rng.uniform(-1, 2) * rng.normal(size=d)
        expected = ref.project_ellipsoid(x, metric, (center, matrix, radius))
        found = Ellipsoid(center, matrix, radius).project(x, metric)
        scale = max(1.0, float(np.abs(x).max()))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * scale)


def test_projection_on_the_ball_against_the_twin():
    rng = np.random.default_rng(22)
    for _ in range(30):
        d = int(rng.integers(1, 8))
        metric, x = conditioned(rng, d, 1e4, 10.0), 3 * rng.normal(size=d)
        found = Ellipsoid.ball(d, 0.7).project(x, metric)
        np.testing.assert_allclose(found, ref.project_ball(x, metric, 0.7), atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_projection_against_a_conic_solver(seed):
    """min |x - x0|_M subject to |L'(x - c)| <= r as a second-order cone programme."""
    rng = np.random.default_rng(seed)
    d = 2 + seed
    metric, matrix = conditioned(rng, d, 10.0), conditioned(rng, d, 10.0)
    center, radius, x0 = rng.normal(size=d), 0.8, rng.normal(size=d) * 100
    metric /= 100  # the solver's own accuracy is the square root of its gap: let the curvature be large
    root = np.linalg.cholesky(matrix)
    rows = sparse.csc_matrix(np.vstack((np.zeros((1, d)), -root.T)))  # (r, L'(x - c)) in the cone
    limits = np.concatenate(([radius], -root.T @ center))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(metric)),
        -metric @ x0,
        rows,
        limits,
        [clarabel.SecondOrderConeT(d + 1)],
        settings,
    )
    exact = np.array(solver.solve().x)
    body = Ellipsoid(center, matrix, radius)
    assert not body.contains(x0)
    np.testing.assert_allclose(body.project(x0, metric), exact, atol=1e-6)


def test_projection_is_not_the_euclidean_one():
    metric = np.diag([1.0, 100.0])
    point = Ellipsoid.ball(2, 1.0).project([2.0, 2.0], metric)
    np.testing.assert_allclose(point, ref.project_ball([2.0, 2.0], metric, 1.0), atol=1e-10)
    assert np.linalg.norm(point - np.array([1.0, 1.0]) / np.sqrt(2)) > 0.2


def test_projection_is_idempotent():
    rng = np.random.default_rng(23)
    for _ in range(100):
        d = int(rng.integers(1, 7))
        metric, matrix = conditioned(rng, d, 1e6), conditioned(rng, d, 1e6)
        center = rng.normal(size=d)
        body, x = Ellipsoid(center, matrix, 0.5), center + 10 * rng.normal(size=d)
        once = body.project(x, metric)
        twice = body.project(once, metric)
        assert np.linalg.norm(twice - once) <= 1e-12 * np.linalg.norm(once)


@pytest.mark.parametrize("center", [[0.0, 0.0], [3.0, -1.0]])
def test_radius_zero_gives_the_centre(center):
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    found = Ellipsoid(center, matrix, 0.0).projection([10.0, 10.0], np.diag([1.0, 1e6]))
    assert found.point.tolist() == center
    assert found.kkt == 0.0


def test_tiny_radius_points_in_the_right_direction():
    rng = np.random.default_rng(24)
    for _ in range(20):
        d = int(rng.integers(1, 6))
        metric, matrix = conditioned(rng, d, 1e4), conditioned(rng, d, 1e4)
        x = rng.normal(size=d)
        found = Ellipsoid(np.zeros(d), matrix, 1e-300).projection(x, metric)
        limit = np.linalg.solve(matrix, metric @ x)  # the direction in the limit of an infinite multiplier
        unit = found.point / ref.norm_in(found.point * 1e300, matrix) * 1e300
        np.testing.assert_allclose(unit, limit / ref.norm_in(limit, matrix), rtol=1e-6)
        assert found.kkt <= 1e-8
        assert ref.norm_in(found.point * 1e300, matrix) <= 1 + 1e-10


@pytest.mark.parametrize("which", ["metric", "matrix", "both"])
@pytest.mark.parametrize("condition", [1e10, 1e12, 1e14, 1e16])
def test_ill_conditioned_matrices_degrade_with_a_warning_and_not_with_nan(condition, which):
    rng = np.random.default_rng(25)
    for k in range(25):
        d = int(rng.integers(2, 7))
        metric = conditioned(rng, d, condition if which != "matrix" else 10.0, 10.0 ** rng.uniform(-6, 9))
        matrix = conditioned(rng, d, condition if which != "metric" else 10.0, 10.0 ** rng.uniform(-6, 9))
        body = Ellipsoid(np.zeros(d), matrix, 1.0)
        x = rng.normal(size=d)
        x *= (2.0, 1e5)[k % 2] / max(ref.norm_in(x, matrix), 1e-300)
        found = body.projection(x, metric)
        assert np.isfinite(found.point).all()
        assert np.isfinite(found.kkt)
        assert exact_excess(body, found.point) <= (1e-5 if found.well_conditioned else 1e-2)
        # an answer that cannot be trusted says so: by its flag, or by the residual it reports
        warned = not found.well_conditioned or found.kkt > 1e-9
        assert warned or kkt_residual(found, x, metric, body) <= 1e-8


def test_singular_matrices_are_flagged():
    body = Ellipsoid([0.0, 0.0], np.diag([1.0, 0.0]), 1.0)
    assert not body.well_conditioned
    assert np.isfinite(body.support([1.0, 1.0])).all()
    found = Ellipsoid.ball(2, 1.0).projection([3.0, 4.0], np.diag([1.0, 0.0]))
    assert not found.well_conditioned
    assert np.isfinite(found.point).all()
    assert np.linalg.norm(found.point) <= 1 + 1e-10


def test_inputs_are_not_touched_and_not_shared():
    center, matrix, x, metric = np.ones(2), np.diag([2.0, 3.0]), np.full(2, 9.0), np.diag([5.0, 1.0])
    copies = [a.copy() for a in (center, matrix, x, metric)]
    body = Ellipsoid(center, matrix, 1.0)
    body.project(x, metric)
    body.support(x)
    for now, before in zip((center, matrix, x, metric), copies, strict=True):
        np.testing.assert_array_equal(now, before)
    inside = Ellipsoid(center, matrix, 100.0).project(x, metric)
    assert inside is not x
    center[0] = 7.0
    assert body.center[0] == 1.0


# ---------------------------------------------------------------- refusals
NAN = float("nan")


@pytest.mark.parametrize(
    ("make", "argument", "index", "count"),
    [
        (lambda: Ellipsoid([0.0, NAN], np.eye(2), 1.0), "center", (1,), 1),
        (lambda: Ellipsoid([0.0, 0.0], [[1.0, 0.0], [0.0, np.inf]], 1.0), "matrix", (1, 1), 1),
        (lambda: Ellipsoid([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]], 1.0), "matrix", (0, 1), 2),
        (lambda: Ellipsoid([0.0, 0.0], np.diag([1.0, -1.0]), 1.0), "matrix", None, None),
        (lambda: Ellipsoid([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], 1.0), "matrix", None, None),
        (lambda: Ellipsoid([0.0, 0.0], np.eye(3), 1.0), "matrix", None, None),
        (lambda: Ellipsoid([[0.0]], np.eye(1), 1.0), "center", None, None),
        (lambda: Ellipsoid([], np.zeros((0, 0)), 1.0), "center", None, None),
        (lambda: Ellipsoid([0.0], np.eye(1), -1.0), "radius", None, None),
        (lambda: Ellipsoid([0.0], np.eye(1), NAN), "radius", None, None),
        (lambda: Ellipsoid([0.0], np.eye(1), np.inf), "radius", None, None),
        (lambda: Ellipsoid.ball(2, 1.0).project([1.0, NAN], np.eye(2)), "x", (1,), 1),
        (lambda: Ellipsoid.ball(2, 1.0).project([1.0], np.eye(2)), "x", None, None),
        (lambda: Ellipsoid.ball(2, 1.0).project([1.0, 9.0], np.eye(3)), "metric", None, None),
        (lambda: Ellipsoid.ball(2, 1.0).project([1.0, 9.0], np.zeros((2, 2))), "metric", None, None),
        (lambda: Ellipsoid.ball(2, 1.0).project([1.0, 9.0], [[1.0, 3.0], [0.0, 1.0]]), "metric", (0, 1), 2),
        (lambda: Ellipsoid.ball(2, 1.0).support([1.0, NAN]), "direction", (1,), 1),
        (lambda: Ellipsoid.ball(2, 1.0).support([1.0, 2.0, 3.0]), "direction", None, None),
    ],
)
def test_bad_input(make, argument, index, count):
    with pytest.raises(LivarotError) as caught:
        make()
    error = caught.value
    assert (error.argument, error.index, error.count) == (argument, index, count)
    assert str(error).startswith(f"{argument}: ")
    assert "\n" not in str(error)
