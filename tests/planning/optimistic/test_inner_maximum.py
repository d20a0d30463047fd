"""The inner maximum over an ellipsoid: closed form, brute force, certificates and extreme inputs."""

import math

import numpy as np
import pytest

from livarot import Ellipsoid, FrankWolfe, LivarotError, ShiftedPower, inner_max
from livarot.core.mnl import softmax
from tests.twins import agents as twin
from tests.twins import core as ref


def scaled_problem(rng, d, n, half_width):
    """A row, values and an ellipsoid on which the logits move by ``half_width`` around their mean at most."""
    while True:
        row, matrix, center = twin.random_row(rng, d, n), twin.random_matrix(rng, d, 0.7), rng.normal(size=d)
        mean = np.array(ref.softmax(row, center)) @ row[1]
        reach = max(ref.dual_norm(f - mean, matrix) for f in row[1])
        if reach > 1e-3:
            return row, 5 * rng.random(n), (center, matrix, half_width / reach)


def solved(row, values, region, **options):
    return inner_max(row[1], values, Ellipsoid(*region), offset=row[2], **options)


def consistent(found, row, values, region):
    """The reported point is in the ellipsoid, and value and probabilities are those of that point."""
    assert ref.inside(found.theta, region, 1e-10)
    np.testing.assert_allclose(found.probabilities, ref.softmax(row, found.theta), rtol=0, atol=1e-12)
    assert found.value == pytest.approx(ref.expected_value(row, found.theta, values), abs=1e-12 * (1 + max(values)))
    assert found.value <= found.upper <= max(values) * (1 + 1e-13)


# ---------------------------------------------------------------- two outcomes
@pytest.mark.parametrize("d", [1, 2, 5])
def test_two_outcomes_in_closed_form(d):
    rng = np.random.default_rng(d)
    for _ in range(40):
        row, values, region = twin.random_inner(rng, d, 2)
        found = solved(row, values, region)
        exact, point = twin.inner_max_two(row, values, region)
        assert found.value == pytest.approx(exact, abs=1e-12)
        assert found.upper == found.value
        assert (found.gap, found.converged) == (0.0, True)
        np.testing.assert_allclose(found.theta, point, rtol=1e-9, atol=1e-9)
        consistent(found, row, values, region)


def test_two_outcomes_by_hand():
    """The logit of the better outcome gains radius |phi_1 - phi_2| / sqrt(matrix)."""
    body = Ellipsoid([0.5], [[4.0]], 3.0)
    for values, sign in (([1.0, 0.0], 1), ([0.0, 1.0], -1)):
        found = inner_max([[1.0], [-1.0]], values, body)
        logit = 2 * 0.5 * sign + 3.0 * 2.0 / 2.0
        assert found.value == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-15)


# ---------------------------------------------------------------- three and more
@pytest.mark.parametrize("half_width", [0.3, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("d", [1, 2])
def test_against_brute_force(d, half_width):
    rng = np.random.default_rng(int(10 * half_width) + d)
    for _ in range(120 if half_width == 0.3 else 30):
        row, values, region = scaled_problem(rng, d, int(rng.integers(3, 7)), half_width)
        best, _ = twin.inner_max_brute(row, values, region)
        found, span = solved(row, values, region), np.ptp(values)
        consistent(found, row, values, region)
        assert best <= found.upper + 1e-12 * span
        assert found.value <= best + 1e-9 * span
        assert found.gap <= 1e-8
        assert found.converged
        slope = ref.value_gradient(row, found.theta, values)
        gap = slope @ (ref.linear_max(slope, region) - found.theta)
        assert gap <= 1e-8 * span + 1e-12
        if half_width == 0.3:
            assert found.value >= best - 1e-8 * span
        bounds = (twin.box_bound(row, values, region), twin.variance_bound(row, values, region))
        assert found.upper <= min(bounds) + 1e-12 * span  # as sharp as the bounds it is made of


def test_the_bound_is_the_smallest_of_its_parts():
    """The box, the gradient with max|phi_i|^2 / 2 and with max|phi_i - phi_j|^2 / 8: no more and no less."""
    rng, pairwise = np.random.default_rng(77), 0
    for k in range(60):
        row, values, region = scaled_problem(rng, 1 + k % 3, int(rng.integers(3, 6)), (0.03, 0.1, 0.3)[k % 3])
        found, span = solved(row, values, region), np.ptp(values)
        box, gradient = twin.box_bound(row, values, region), twin.variance_bound(row, values, region)
        assert found.upper == pytest.approx(min(box, gradient), abs=1e-12 * span)
        pairwise += gradient < box - 1e-6 * span
    assert pairwise > 10


@pytest.mark.parametrize(("d", "n"), [(3, 4), (4, 6), (5, 5)])
def test_more_dimensions_against_brute_force(d, n):
    rng = np.random.default_rng(100 + d)
    for half_width in (0.3, 1.0, 4.0):
        row, values, region = scaled_problem(rng, d, n, half_width)
        best, _ = twin.inner_max_brute(row, values, region)
        found, span = solved(row, values, region), np.ptp(values)
        consistent(found, row, values, region)
        assert best <= found.upper + 1e-9 * span
        assert found.value >= best - 1e-7 * span  # both searches are local in this many dimensions
        assert found.gap <= 1e-8


def grid_maximum(row, values, region, points):
    """The largest value over a grid of the unit ball: quick, but below the maximum by the error of the grid."""
    center, matrix, radius = region
    move = radius * np.linalg.solve(np.linalg.cholesky(matrix), row[1].T).T
    p = softmax(row[2] + row[1] @ center + points @ move.T)
    return float((p @ values).max())


def unit_grid(d):
    if d == 1:
        return np.linspace(-1, 1, 2001)[:, None]
    angle, length = np.meshgrid(np.linspace(0, 2 * np.pi, 240, endpoint=False), np.linspace(0, 1, 15))
    return np.column_stack([(length * np.cos(angle)).ravel(), (length * np.sin(angle)).ravel()])


@pytest.mark.parametrize(("half_width", "share"), [(0.3, 0.0), (1.0, 0.003), (4.0, 0.005), (10.0, 0.02)])
def test_how_often_a_wide_maximum_is_missed(half_width, share):
    rng = np.random.default_rng(int(10 * half_width))
    missed, count = 0, 600
    grids = {1: unit_grid(1), 2: unit_grid(2)}
    for k in range(count):
        d = 1 + k % 2
        row, values, region = scaled_problem(rng, d, int(rng.integers(3, 7)), half_width)
        best, found = grid_maximum(row, values, region, grids[d]), solved(row, values, region)
        assert best <= found.upper + 1e-12
        missed += best - found.value > 1e-3 * np.ptp(values)
    assert missed <= share * count


def test_a_narrow_ellipsoid_around_a_local_minimum():
    """Both ends are local maxima; the slope at the centre points to the lower one."""
    phi, values, offset = [[-0.9], [-0.3], [0.4]], [0.9, 0.1, 0.7], [0.0, 0.0, 1.1]
    ends = [float(softmax(np.array(offset) + np.array(phi)[:, 0] * x) @ values) for x in (-0.3332, 0.3332)]
    found = inner_max(phi, values, Ellipsoid([0.0], [[1.0]], 0.3332), offset=offset)
    assert found.value == pytest.approx(max(ends), abs=1e-8)


@pytest.mark.parametrize("center", [0.4, -0.7, 0.0])
@pytest.mark.parametrize("solver", [ShiftedPower(), FrankWolfe(n_iter=3000)])
def test_the_maximum_may_be_inside(center, solver):
    """phi = (-1, 0, 1), V = (0, 1, 0): the middle outcome is likeliest at theta = 0, with probability 1/3."""
    found = inner_max([[-1.0], [0.0], [1.0]], [0.0, 1.0, 0.0], Ellipsoid([center], [[1.0]], 1.0), solver=solver)
    tolerance = 1e-12 if isinstance(solver, ShiftedPower) else 1e-6
    assert found.value == pytest.approx(1 / 3, abs=tolerance)
    assert abs(found.theta[0]) <= math.sqrt(10 * tolerance) + 1e-12
    assert found.upper >= 1 / 3 - 1e-15


# ---------------------------------------------------------------- solvers
@pytest.mark.parametrize("half_width", [0.3, 4.0])
def test_frank_wolfe_against_its_twin(half_width):
    """From the centre alone it is the printed iteration, number for number."""
    rng = np.random.default_rng(30)
    for n_iter in (1, 7, 30):
        row, values, region = scaled_problem(rng, 3, 5, half_width)
        found = solved(row, values, region, solver=FrankWolfe(n_iter=n_iter, n_starts=0))
        value, point, gap = twin.frank_wolfe(row, values, region, n_iter)
        assert found.value == pytest.approx(value, abs=1e-9)
        np.testing.assert_allclose(found.theta, point, rtol=0, atol=1e-7)
        assert found.gap * np.ptp(values) == pytest.approx(gap, rel=1e-5, abs=1e-10)
        assert found.n_iter == n_iter
        consistent(found, row, values, region)


def test_frank_wolfe_with_starts_never_beats_the_bound():
    rng = np.random.default_rng(31)
    better = 0
    for k in range(60):
        row, values, region = scaled_problem(rng, 1 + k % 4, int(rng.integers(3, 7)), (1.0, 4.0, 10.0)[k % 3])
        alone = solved(row, values, region, solver=FrankWolfe(n_starts=0))
        many = solved(row, values, region, solver=FrankWolfe())
        sharp = solved(row, values, region)
        span = np.ptp(values)
        assert alone.value <= many.value + 1e-12 * span
        assert many.value <= many.upper
        assert many.upper == pytest.approx(sharp.upper, abs=1e-9 * span)
        assert many.gap >= 0
        better += many.value > alone.value + 1e-3 * span
        consistent(many, row, values, region)
    assert better >= 1  # extra starts matter somewhere


def test_a_solver_that_stops_early_says_so():
    rng = np.random.default_rng(32)
    row, values, region = scaled_problem(rng, 3, 6, 4.0)
    early = solved(row, values, region, solver=ShiftedPower(max_iter=1, n_starts=0))
    assert not early.converged
    assert early.gap > 1e-8
    done = solved(row, values, region)
    assert done.converged
    assert early.value <= done.value + 1e-12 <= done.upper + 2e-12
    loose = solved(row, values, region, solver=ShiftedPower(tol=1e-2))
    assert loose.n_iter <= done.n_iter
    assert loose.gap <= 1e-2


# ---------------------------------------------------------------- edges
@pytest.mark.parametrize("n", [2, 3, 6])
def test_radius_zero_is_the_expectation_at_the_centre(n):
    rng = np.random.default_rng(40 + n)
    row, values, (center, matrix, _) = scaled_problem(rng, 2, n, 1.0)
    found = solved(row, values, (center, matrix, 0.0))
    assert found.value == pytest.approx(ref.expected_value(row, center, values), abs=1e-14)
    np.testing.assert_array_equal(found.theta, center)
    assert found.upper == pytest.approx(found.value, abs=1e-12)
    assert found.gap <= 1e-8


def test_one_outcome():
    found = inner_max([[0.3, -0.2]], [0.7], Ellipsoid.ball(2, 5.0))
    assert (found.value, found.upper) == (0.7, 0.7)
    assert found.probabilities.tolist() == [1.0]
    assert found.gap == 0.0


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("level", [0.0, 1.0, 3.7, 1e6])
def test_equal_values(n, level):
    rng = np.random.default_rng(41)
    row, _, region = scaled_problem(rng, 2, n, 4.0)
    found = solved(row, np.full(n, level), region)
    assert found.value == pytest.approx(level, rel=1e-14)
    assert found.upper == pytest.approx(level, rel=1e-13)
    assert found.upper >= found.value
    assert found.gap <= 1e-8
    assert found.converged


def test_equal_features():
    """The ellipsoid cannot move any logit: the maximum is the value at the centre, from offsets alone."""
    found = inner_max(np.full((3, 2), 0.4), [0.0, 1.0, 2.0], Ellipsoid.ball(2, 9.0), offset=[0.0, 1.0, -1.0])
    assert found.value == pytest.approx(float(softmax([0.0, 1.0, -1.0]) @ [0, 1, 2]), abs=1e-13)
    assert found.upper >= found.value - 1e-15


@pytest.mark.parametrize("size", [1e2, 1e3, 1e4])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_huge_logits(size, n):
    rng = np.random.default_rng(42)
    for _ in range(20):
        row, values, (_, matrix, radius) = scaled_problem(rng, 2, n, 1.0)
        region = (size * rng.normal(size=2), matrix, radius)
        found = solved(row, values, region)
        assert np.isfinite([found.value, found.upper, found.gap, *found.theta, *found.probabilities]).all()
        consistent(found, row, values, region)
        assert found.value >= ref.expected_value(row, region[0], values) - 1e-12


@pytest.mark.parametrize("size", [1e-8, 1e-4, 1e6, 1e12])
def test_values_of_any_size_give_the_same_point(size):
    """Scaling the values by a power of two scales the answer and changes nothing else."""
    rng = np.random.default_rng(43)
    factor = 2.0 ** round(math.log2(size))
    for _ in range(10):
        row, values, region = scaled_problem(rng, 2, 4, 2.0)
        plain, scaled = solved(row, values, region), solved(row, factor * values, region)
        assert scaled.value == pytest.approx(factor * plain.value, rel=1e-12)
        assert scaled.upper == pytest.approx(factor * plain.upper, rel=1e-12)
        np.testing.assert_allclose(scaled.theta, plain.theta, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("size", [1e-12, 1e-6, 1e6, 1e12])
def test_matrices_of_any_size_give_the_same_answer(size):
    rng = np.random.default_rng(44)
    factor = 4.0 ** round(math.log(size, 4))
    for n in (2, 3, 5):
        row, values, (center, matrix, radius) = scaled_problem(rng, 3, n, 2.0)
        plain = solved(row, values, (center, matrix, radius))
        scaled = solved(row, values, (center, factor * matrix, math.sqrt(factor) * radius))
        assert scaled.value == pytest.approx(plain.value, rel=1e-12)
        assert scaled.upper == pytest.approx(plain.upper, rel=1e-12)


@pytest.mark.parametrize("half_width", [1e-300, 1e-12, 1e3, 1e6, 1e12])
def test_ellipsoids_of_any_width(half_width):
    rng = np.random.default_rng(45)
    for n in (2, 3, 6):
        row, values, region = scaled_problem(rng, 2, n, half_width)
        found = solved(row, values, region)
        assert np.isfinite([found.value, found.upper, found.gap, *found.theta]).all()
        assert found.value <= found.upper
        assert found.value >= ref.expected_value(row, region[0], values) - 1e-12
        if half_width < 1e-6:
            assert found.upper == pytest.approx(ref.expected_value(row, region[0], values), abs=1e-9)


def test_a_wide_ellipsoid_reaches_an_extreme_outcome():
    """The outcome with the longest feature can be made certain."""
    found = inner_max([[0.0], [1.0], [-1.0]], [0.0, 0.2, 1.0], Ellipsoid([0.0], [[1.0]], 50.0))
    assert found.value == pytest.approx(1.0, abs=1e-12)


def test_inputs_are_left_alone():
    phi, values, offset = np.eye(3), np.array([0.0, 1.0, 0.5]), np.zeros(3)
    body = Ellipsoid(np.zeros(3), np.eye(3), 1.0)
    before = [x.copy() for x in (phi, values, offset, body.center, body.matrix)]
    found = inner_max(phi, values, body, offset=offset)
    for now, then in zip((phi, values, offset, body.center, body.matrix), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert found.theta is not body.center


@pytest.mark.parametrize(
    ("change", "argument", "index"),
    [
        ({"features": [[0.0], [1.0]]}, "features", None),
        ({"features": [[0.0, float("nan")], [1.0, 0.0]]}, "features", (0, 1)),
        ({"values": [1.0]}, "values", None),
        ({"values": [1.0, float("inf")]}, "values", (1,)),
        ({"offset": [1.0]}, "offset", None),
        ({"offset": [float("nan"), 0.0]}, "offset", (0,)),
    ],
)
def test_bad_input(change, argument, index):
    good = {"features": np.eye(2), "values": [0.0, 1.0], "ellipsoid": Ellipsoid.ball(2, 1.0)}
    with pytest.raises(LivarotError) as caught:
        inner_max(**(good | change))
    assert (caught.value.argument, caught.value.index) == (argument, index)
