"""The slow twins against closed forms, printed numbers and one another (the library is not involved)."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from tests.twins import core as ref
from tests.twins.agents import random_matrix, random_row


def five_point(f, x, step=1e-3):
    """Derivatives of f along each coordinate, error O(step^4)."""
    out = []
    for j in range(len(x)):
        e = step * np.eye(len(x))[j]
        out.append((f(x - 2 * e) - 8 * f(x - e) + 8 * f(x + e) - f(x + 2 * e)) / (12 * step))
    return np.array(out)


# ---------------------------------------------------------------- one row
@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 800.0])
def test_softmax_and_loss_against_fifty_digits(scale):
    rng = np.random.default_rng(1)
    row, theta = random_row(rng, 3, 5), scale * rng.normal(size=3)
    with mpmath.workdps(50):
        z = [mpmath.mpf(float(row[2][i])) + mpmath.fdot(row[1][i].tolist(), theta.tolist()) for i in range(5)]
        total = mpmath.fsum(mpmath.exp(x) for x in z)
        exact = [float(mpmath.exp(x) / total) for x in z]
        losses = [float(mpmath.log(total) - x) for x in z]
    np.testing.assert_allclose(ref.softmax(row, theta), exact, rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose([ref.loss(row, theta, y) for y in range(5)], losses, rtol=1e-12, atol=1e-15)


def test_derivatives_against_finite_differences():
    rng = np.random.default_rng(2)
    for _ in range(20):
        d, n = rng.integers(1, 6), rng.integers(1, 6)
        row, theta, values = random_row(rng, d, n), 2 * rng.normal(size=d), rng.random(n)
        y = int(rng.integers(n))
        slope = five_point(lambda x, row=row, y=y: ref.loss(row, x, y), theta)
        np.testing.assert_allclose(ref.gradient(row, theta, y), slope, atol=1e-10)
        curvature = five_point(lambda x, row=row, y=y: ref.gradient(row, x, y), theta)
        np.testing.assert_allclose(ref.hessian(row, theta), curvature, atol=1e-10)
        gain = five_point(lambda x, row=row, v=values: ref.expected_value(row, x, v), theta)
        np.testing.assert_allclose(ref.value_gradient(row, theta, values), gain, atol=1e-10)
        p = np.array(ref.softmax(row, theta))
        assert ref.variance(row, theta, values) == pytest.approx(p @ values**2 - (p @ values) ** 2, abs=1e-14)


# ---------------------------------------------------------------- dynamic programming
@pytest.mark.parametrize("seed", range(4))
def test_solve_is_the_best_of_all_policies(seed):
    model = ref.random_rows(np.random.default_rng(seed), H=3, S=3, A=2, d=2, U=3, scale=2.0, offsets=True)
    args = model["rows"], model["theta"], model["reward"]
    best = ref.solve(*args)
    np.testing.assert_allclose(best["value"][0], ref.brute_force_solve(*args), atol=1e-13)
    np.testing.assert_allclose(ref.evaluate(*args, best["policy"]), best["value"], atol=1e-13)
    one_hot = np.eye(2)[best["policy"]]
    np.testing.assert_allclose(ref.evaluate(*args, one_hot), best["value"], atol=1e-13)


def trajectories(model, policy):
    """Every (probability, states, return) of a policy given as action probabilities."""
    H = len(model["rows"])
    paths = [(p, [s], 0.0) for s, p in enumerate(model["start"]) if p > 0]
    for h in range(H):
        longer = []
        for mass, states, total in paths:
            for a, weight in enumerate(policy[h][states[-1]]):
                row = model["rows"][h][states[-1]][a]
                for i, p in enumerate(ref.softmax(row, model["theta"][h])):
                    gain = model["reward"][h][states[-1]][a]
                    longer.append((mass * weight * p, [*states, row[0][i]], total + gain))
        paths = longer
    return paths


def test_distributions_values_and_sigma_bar_by_enumerating_trajectories():
    rng = np.random.default_rng(5)
    model = ref.random_rows(rng, H=4, S=3, A=2, d=2, U=3, scale=2.0)
    args = model["rows"], model["theta"], model["reward"]
    mixed = rng.dirichlet(np.ones(2), size=(4, 3))
    paths = trajectories(model, mixed)
    assert math.fsum(p for p, _, _ in paths) == pytest.approx(1, abs=1e-13)
    value = math.fsum(p * g for p, _, g in paths)
    assert ref.evaluate(*args, mixed)[0] @ model["start"] == pytest.approx(value, abs=1e-12)
    mass = np.zeros((5, 3))
    for p, states, _ in paths:
        for h, s in enumerate(states):
            mass[h, s] += p
    found = ref.state_distribution(model["rows"], model["theta"], mixed, model["start"])
    np.testing.assert_allclose(found, mass, atol=1e-13)

    best = ref.solve(*args)
    paths = trajectories(model, np.eye(2)[best["policy"]])
    # H^3 sigma_bar^2 is the mean over start states of the variance of the return
    within = math.fsum(p * (g - best["value"][0, states[0]]) ** 2 for p, states, g in paths)
    squared = ref.sigma_bar_optimal(*args, model["start"]) ** 2
    assert squared == pytest.approx(within / 4**3, abs=1e-13)
    assert squared <= 1 / (4 * 4)  # prop:bound bar sigma optimal trajectory
    along = [p * ref.sigma_bar_trajectory(*args, [states]) ** 2 for p, states, _ in paths[::7]]
    again = [p * ref.episode_variance(best, states) for p, states, _ in paths[::7]]
    np.testing.assert_allclose(along, again, rtol=1e-12)


def test_ties_go_to_the_larger_variance_then_to_the_first():
    still = ([0], np.zeros((1, 1)), np.zeros(1))
    coin = ([1, 2], np.zeros((2, 1)), np.zeros(2))
    rows = [[[still, coin, coin]] + [[([s], np.zeros((1, 1)), np.zeros(1))] * 3 for s in (1, 2)]] * 2
    reward = np.zeros((2, 3, 3))
    reward[1, 0], reward[1, 1], reward[1, 2] = 0.5, 0.0, 1.0
    best = ref.solve(rows, np.zeros((2, 1)), reward)
    assert best["q"][0, 0].tolist() == [0.5, 0.5, 0.5]
    assert best["policy"][0].tolist() == [1, 0, 0]
    assert best["variance"][0].tolist() == [0.25, 0, 0]
    assert ref.first_best([0.5, 0.5 + 1e-10, 0.5]) == 0
    assert ref.first_best([0.5, 0.5 + 1e-8, 0.5]) == 1


# ---------------------------------------------------------------- ellipsoids and estimation
def farthest_gain(point, target, metric, regions, rng, n=300):
    """Largest decrease of |. - target|_metric found at random points of the intersection."""
    here, worst = ref.norm_in(point - target, metric), 0.0
    for _ in range(n):
        other = point + 10 ** rng.uniform(-6, 0) * rng.normal(size=len(point))
        if all(ref.inside(other, region, 0.0) for region in regions):
            worst = max(worst, here - ref.norm_in(other - target, metric))
    return worst


@pytest.mark.parametrize("seed", range(12))
def test_projections_agree_and_are_optimal(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 5))
    metric, x = random_matrix(rng, d), 4 * rng.normal(size=d)
    radius = float(10 ** rng.uniform(-2, 0.5))
    on_ball = ref.project_ball(x, metric, radius)
    np.testing.assert_allclose(on_ball, ref.project_ellipsoid(x, metric, ref.ball(d, radius)), atol=1e-12)
    first = (rng.normal(size=d), random_matrix(rng, d), 1.0)
    second = (first[0] + 0.5 * rng.normal(size=d), random_matrix(rng, d), 1.5)
    pull = np.linalg.cholesky(np.linalg.inv(metric))
    for regions in ([first], [first, second], [second, first]):
        point = ref.project(x, metric, regions)
        assert all(ref.inside(point, region, 1e-10) for region in regions)
        assert farthest_gain(point, x, metric, regions, rng) <= 1e-9
        unit = max(1e-3, ref.norm_in(point - x, metric))
        numeric = ref.minimise_on(
            lambda y, u=unit: ref.norm_in(y - x, metric) ** 2 / (2 * u**2),
            lambda y, u=unit: metric @ (y - x) / u**2,
            first[0],
            regions,
            pull * unit,
        )
        np.testing.assert_allclose(point, numeric, atol=2e-6)


def test_both_constraints_can_be_tight():
    regions = [(np.array([-0.8, 0.0]), np.eye(2), 1.0), (np.array([0.8, 0.0]), np.eye(2), 1.0)]
    point = ref.project([0.1, 3.0], np.diag([1.0, 5.0]), regions)
    np.testing.assert_allclose(point, [0.0, 0.6], atol=1e-12)
    with pytest.raises(ValueError, match="intersect"):
        ref.project([0.0, 0.0], np.eye(2), [(np.array([9.0, 0]), np.eye(2), 1.0), ref.ball(2, 1.0), regions[0]])


def test_linear_maximum():
    rng = np.random.default_rng(3)
    region = (rng.normal(size=3), random_matrix(rng, 3), 0.7)
    g = rng.normal(size=3)
    best = ref.linear_max(g, region)
    assert ref.norm_in(best - region[0], region[1]) == pytest.approx(0.7, rel=1e-12)
    for _ in range(500):
        y = rng.normal(size=3)
        assert g @ (region[0] + 0.7 * y / ref.norm_in(y, region[1])) <= g @ best + 1e-12
    assert ref.linear_max(np.zeros(3), region).tolist() == region[0].tolist()


@pytest.mark.parametrize("kind", ["ball", "ellipsoid", "both", "free"])
@pytest.mark.parametrize("seed", range(5))
def test_omd_step_numeric_and_secular(kind, seed):
    rng = np.random.default_rng(100 + seed)
    d, n = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    row, theta = random_row(rng, d, n), rng.normal(size=d)
    theta *= 0.9 / np.linalg.norm(theta)
    gram = 0.3 * np.eye(d) + 0.3 * random_matrix(rng, d, 0.5)
    around = (theta + 0.05, random_matrix(rng, d, 0.5), 0.5)
    chosen = {
        "ball": [ref.ball(d, 1.0)],
        "ellipsoid": [around],
        "both": [ref.ball(d, 1.0), around],
        "free": [],
    }
    regions, eta, y = chosen[kind], float(10 ** rng.uniform(0, 1.3)), int(rng.integers(n))
    new, grown = ref.omd_step(row, y, theta, gram, eta, regions)
    numeric, _ = ref.omd_step(row, y, theta, gram, eta, regions, numeric=True)
    np.testing.assert_allclose(new, numeric, atol=1e-6)
    assert all(ref.inside(new, region, 1e-10) for region in regions)
    np.testing.assert_allclose(grown, gram + ref.hessian(row, new), atol=1e-15)
    metric = gram + eta * ref.hessian(row, theta)
    if kind == "ball":
        free = theta - eta * np.linalg.solve(metric, ref.gradient(row, theta, y))
        np.testing.assert_allclose(new, ref.project_ball(free, metric, 1.0), atol=1e-12)


def test_mle_is_stationary():
    rng = np.random.default_rng(8)
    samples = [(random_row(rng, 3, 4), int(rng.integers(4)), float(rng.random())) for _ in range(25)]
    free = ref.mle(samples, 0.1, 3)
    slope = 0.1 * free + sum(w * ref.gradient(row, free, y) for row, y, w in samples)
    assert np.abs(slope).max() < 1e-13
    assert np.linalg.norm(free) > 0.2
    tight = ref.mle(samples, 0.1, 3, radius=0.2)
    slope = 0.1 * tight + sum(w * ref.gradient(row, tight, y) for row, y, w in samples)
    assert np.linalg.norm(tight) == pytest.approx(0.2, rel=1e-9)
    np.testing.assert_allclose(slope / np.linalg.norm(slope), -tight / 0.2, atol=1e-6)


# ---------------------------------------------------------------- instances
@pytest.mark.parametrize(
    ("H", "best", "worst", "bar", "bound", "kappa", "value", "gap_worst", "gap_uniform", "ratio"),
    [
        (3, 0.336561, 0.330121, 0.01449, 0.709, 4.5, 0.8964, 0.0150, 0.0075, 1.444),
        (5, 0.202500, 0.197523, 0.01555, 1.403, 6.3, 1.6548, 0.0327, 0.0163, 1.458),
        (10, 0.101768, 0.098260, 0.01949, 2.223, 11.3, 3.5332, 0.0926, 0.0461, 1.457),
        (20, 0.051250, 0.048779, 0.02601, 2.987, 21.9, 7.3009, 0.2611, 0.1296, 1.449),
        (30, 0.034354, 0.032342, 0.03122, 3.424, 32.7, 11.0904, 0.4783, 0.2370, 1.443),
    ],
)
def test_hard_chain_table(H, best, worst, bar, bound, kappa, value, gap_worst, gap_uniform, ratio):
    signs = np.random.default_rng(H).choice([-1, 1], size=(H, 1))
    model = ref.hard_chain_rows(H, 1000, 2, signs=signs)
    args = model["rows"], model["theta"], model["reward"]
    right = [int(x == 1) for x in signs[:, 0]]
    for h in range(H):
        assert ref.softmax(model["rows"][h][h][right[h]], model["theta"][h])[1] == pytest.approx(best, abs=5e-7)
        assert ref.softmax(model["rows"][h][h][1 - right[h]], model["theta"][h])[1] == pytest.approx(worst, abs=5e-7)
    assert model["bar"] == pytest.approx(bar, abs=5e-6)
    assert model["param_bound"] == pytest.approx(bound, abs=5e-4)
    assert max(np.linalg.norm(f) for a in (0, 1) for f in model["rows"][0][0][a][1]) == pytest.approx(1)
    assert 2 + 2 * math.cosh(model["param_bound"]) == pytest.approx(kappa, abs=0.05)  # |phi| = 1: 1/(p (1-p))
    solution = ref.solve(*args)
    start = solution["value"][0, 0]
    assert start == pytest.approx(value, abs=5e-5)
    opposite = np.repeat(1 - np.array(right)[:, None], H + 2, axis=1)
    assert start - ref.evaluate(*args, opposite)[0, 0] == pytest.approx(gap_worst, abs=5e-5)
    uniform = start - ref.evaluate(*args, np.full((H, H + 2, 2), 0.5))[0, 0]
    assert uniform == pytest.approx(gap_uniform, abs=5e-5)
    assert 1000 * uniform / H**1.5 == pytest.approx(ratio, abs=5e-4)
    p = model["p_best"]
    for h in range(H):  # closed forms of the appendix
        left = H - h - 1
        assert solution["value"][h, H + 1] == pytest.approx(H - h)
        difference = solution["value"][h + 1, H + 1] - solution["value"][h + 1, h + 1]
        assert difference == pytest.approx((1 - (1 - p) ** left) / p, abs=1e-11)
        normalised = (1 - p) * (1 - (1 - p) ** left) ** 2 / (H**2 * p)
        assert solution["variance"][h, h] / H**2 == pytest.approx(normalised, abs=1e-13)
        if left > 0:
            assert solution["policy"][h, h] == right[h]


@pytest.mark.parametrize("d", [2, 3, 4])
def test_hard_chain_probabilities_in_any_dimension(d):
    H, gap = 7, 0.1 / 7
    signs = np.random.default_rng(d).choice([-1, 1], size=(H, d - 1))
    model = ref.hard_chain_rows(H, 500, d, gap=gap, signs=signs)
    assert len(model["rows"][0][0]) == 2 ** (d - 1)
    for h, (k, a) in itertools.product(range(H), enumerate(model["actions"])):
        exact = 1 / (1 + (H - 1) * math.exp(-model["bar"] * float(np.dot(signs[h], a))))
        assert ref.softmax(model["rows"][h][h][k], model["theta"][h])[1] == pytest.approx(exact, rel=1e-12)
        if list(a) == signs[h].tolist():
            assert exact == pytest.approx(1 / H + (d - 1) * gap, rel=1e-12)


@pytest.mark.parametrize(("S", "H", "value"), [(4, 12, 2.6627), (6, 20, 3.3973), (8, 24, 2.6226)])
def test_riverswim(S, H, value):
    model = ref.riverswim_rows(S, H)
    solution = ref.solve(model["rows"], model["theta"], model["reward"])
    assert solution["value"][0, 0] == pytest.approx(value, abs=5e-5)
    assert ref.softmax(model["rows"][0][1][1], model["theta"][0]) == pytest.approx([0.05, 0.6, 0.35])
    assert ref.softmax(model["rows"][0][0][1], model["theta"][0]) == pytest.approx([0.4, 0.6])
    assert ref.softmax(model["rows"][0][S - 1][1], model["theta"][0]) == pytest.approx([0.4, 0.6])
    if S == 6:
        assert model["param_bound"] == pytest.approx(5.12, abs=5e-3)
