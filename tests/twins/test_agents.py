"""The inner maximum, its bounds and the episode loops of the slow twins, against one another."""

import itertools
import math

import numpy as np
import pytest

from tests.twins import agents
from tests.twins import core as ref


# ---------------------------------------------------------------- the inner maximum
def test_two_outcomes_closed_form_is_the_global_maximum():
    rng = np.random.default_rng(11)
    for _ in range(40):
        row, values, region = agents.random_inner(rng, int(rng.integers(1, 5)), 2)
        closed, point = agents.inner_max_two(row, values, region)
        brute, _ = agents.inner_max_brute(row, values, region)
        assert closed == pytest.approx(brute, abs=1e-12)
        assert ref.inside(point, region)


def test_brute_force_on_a_plain_grid_of_the_plane():
    rng = np.random.default_rng(12)
    for _ in range(8):
        row, values, region = agents.random_inner(rng, 2, 4)
        brute, point = agents.inner_max_brute(row, values, region)
        assert ref.inside(point, region, 1e-10)
        assert ref.expected_value(row, point, values) == brute
        side = region[2] / math.sqrt(min(np.linalg.eigvalsh(region[1])))
        step = np.linspace(-side, side, 81)
        points = (region[0] + np.array(y) for y in itertools.product(step, step))
        plain = max(ref.expected_value(row, x, values) for x in points if ref.inside(x, region))
        assert plain <= brute + 1e-12
        assert plain >= brute - 0.1 * (max(values) - min(values))


def test_the_maximum_may_be_inside():
    row = ([0, 1, 2], np.array([[-1.0], [0.0], [1.0]]), np.zeros(3))
    value, point = agents.inner_max_brute(row, [0, 1, 0], (np.array([0.4]), np.eye(1), 1.0))
    assert value == pytest.approx(1 / 3, abs=1e-14)
    assert abs(point[0]) < 1e-6


@pytest.mark.parametrize(("d", "n", "count"), [(1, 4, 15), (2, 4, 15), (3, 5, 8), (5, 6, 8)])
def test_frank_wolfe_never_beats_brute_force(d, n, count):
    rng = np.random.default_rng(13)
    close = 0
    for _ in range(count):
        row, values, region = agents.random_inner(rng, d, n)
        span = max(values) - min(values)
        brute, point = agents.inner_max_brute(row, values, region)
        slope = ref.value_gradient(row, point, values)
        assert slope @ (ref.linear_max(slope, region) - point) <= 1e-6 * span  # first-order stationary
        plain, at, gap = agents.frank_wolfe(row, values, region, 60)
        sharp, _, sharp_gap = agents.frank_wolfe(row, values, region, 15, line_search=True)
        assert ref.inside(at, region, 1e-10)
        assert max(plain, sharp) <= brute + 1e-10 * span
        assert min(gap, sharp_gap) >= -1e-12 * span
        close += sharp >= brute - 1e-4 * span
    assert close >= 0.6 * count  # one start, wide ellipsoids: local maxima are expected


def test_narrow_ellipsoids_have_no_local_maxima():
    rng = np.random.default_rng(14)
    for _ in range(20):
        row, values, (center, matrix, radius) = agents.random_inner(rng, 2, 4)
        reach = max(ref.dual_norm(f, matrix) for f in row[1]) * radius
        region = (center, matrix, 0.1 * radius / reach)
        brute, _ = agents.inner_max_brute(row, values, region)
        sharp, _, _ = agents.frank_wolfe(row, values, region, 15, line_search=True)
        assert sharp == pytest.approx(brute, abs=1e-9)


def test_bounds_hold_on_five_hundred_problems():
    rng = np.random.default_rng(15)
    for k in range(500):
        d, n = (int(rng.integers(3, 6)), int(rng.integers(4, 7))) if k % 25 == 0 else (int(rng.integers(1, 3)), 4)
        row, values, region = agents.random_inner(rng, d, n)
        brute, _ = agents.inner_max_brute(row, values, region, n_starts=8)
        center = ref.expected_value(row, region[0], values)
        slack = 1e-10 * (max(values) - min(values))
        for bound in (
            agents.box_bound(row, values, region),
            agents.box_bound(row, values, region, reference=row[1].mean(axis=0)),
            agents.variance_bound(row, values, region),
        ):
            assert center - slack <= brute <= bound + slack <= max(values) + 2 * slack
        if k % 10 == 0:  # the thresholds find the best of all corners of the box
            mean = np.array(ref.softmax(row, region[0])) @ row[1]
            width = [region[2] * ref.dual_norm(f - mean, region[1]) for f in row[1]]
            corners = []
            for signs in itertools.product((-1, 1), repeat=n):
                moved = np.array(ref.logits(row, region[0])) + np.array(signs) * width
                p = np.exp(moved - moved.max())
                corners.append(p @ values / p.sum())
            assert agents.box_bound(row, values, region) == pytest.approx(max(corners), abs=1e-12)


def test_bonuses_by_hand():
    row = ([0, 1], np.array([[0.0], [1.0]]), np.zeros(2))  # p = 1/2, Cov(phi, v) = 1/4
    region = (np.zeros(1), np.array([[4.0]]), 1.0)
    assert agents.variance_bound(row, [0.0, 1.0], region) == pytest.approx(0.5 + 0.25 / 2 + 1 / 4 / 8)
    assert agents.variance_bound(row, [0.0, 1.0], (np.zeros(1), np.eye(1), 9.0)) == 1.0
    assert agents.li_bonus(row, region, 3) == pytest.approx(3 * 0.5 / 2 + 2.5 * 3 / 4)


# ---------------------------------------------------------------- episode loops
def test_plans_break_ties_towards_the_first_action():
    model = ref.riverswim_rows(3, 1)
    extra = [0.0, 1e-9, 4e-9]  # of the second action in each state; the tolerance is 1e-9 (1 + s)
    policy, value = agents.optimistic_plan(model, lambda h, s, a, row, values: s + extra[s] * a)
    assert policy.tolist() == [[0, 0, 1]]
    assert value[0].tolist() == [0.0, 1 + 1e-9, 2 + 4e-9]


def test_draw_is_the_inverse_distribution_function():
    assert [agents.draw([0.25, 0.0, 0.75], u) for u in (0.0, 0.2499, 0.25, 0.9, 1.0)] == [0, 0, 2, 2, 2]
    assert agents.draw([0.1] * 3 + [0.7 - 1e-9], 1 - 1e-12) == 3


def test_exploration_routine_as_printed():
    model = ref.hard_chain_rows(5, 200, 2, gap=0.1, signs=np.array([1, -1, 1, -1, 1]))
    uniforms = np.random.default_rng(0).random((12, 6))
    log = agents.explore(model, uniforms)
    bound, kappa = model["param_bound"], 4 * math.exp(4 * model["param_bound"])
    assert log["kappa"] == pytest.approx(kappa)
    assert log["rho"] == pytest.approx(1.0)
    # Both actions have unit features: the first is played, then the less explored, and so on in turn.
    assert [x[0][1] for x in log["triples"]] == [0, 1] * 6
    assert all(triple[0] == 0 and triple[2] == 0 for x in log["triples"] for triple in x)
    features = [model["rows"][0][0][a][1][0] for a in (0, 1)]
    design = np.eye(2) + 6 / kappa * sum(np.outer(f, f) for f in features)
    np.testing.assert_allclose(log["design"], [design] * 5, rtol=1e-12)
    for h in range(5):
        moving = [t for t in range(12) if log["states"][t][h] < 5]
        used = [features[log["actions"][t][h]] for t in moving]
        exact = design + sum((np.outer(f, f) for f in used), np.zeros((2, 2))) / kappa
        np.testing.assert_allclose(log["matrix"][h], exact, rtol=1e-12)
    first = (bound + 3) * math.sqrt(2 * math.log(13 * 5 / 0.05))
    second = 14**0.25 * kappa**1.5 * 2 * math.log(7.5)
    assert log["radius"] == pytest.approx((1 + 3 * math.sqrt(2)) * (first + second))
    for h in range(5):  # the center is stationary: real samples, weighted pseudo-samples, ridge lambda_0 + 1
        center, weights, growing = log["center"][h], [], np.eye(2)
        slope = 2 * center
        for t in range(12):
            a = log["actions"][t][h]
            growing = growing + np.outer(features[a], features[a]) / kappa
            weights.append(ref.dual_norm(features[a], growing))
            slope = slope + weights[-1] * ref.gradient(model["rows"][h][0][a], center, 0)
            row = model["rows"][h][log["states"][t][h]][a]
            slope = slope + ref.gradient(row, center, log["choices"][t][h])
        assert np.abs(slope).max() < 1e-12
        assert weights[-1] < weights[0] < 1
    # the sets contain the whole ball: the projection on them changes nothing
    assert all(log["radius"] > 2 * bound * math.sqrt(np.linalg.norm(m, 2)) for m in log["matrix"])


def test_exploration_radius_of_the_experiment():
    bound = 2.223
    radius = agents.explore_radius(80, 10, 2, bound, 4 * math.exp(4 * bound), 1.0, 0.05)
    assert 4e8 < radius < 8e8


def test_livarot_on_the_chain_is_a_logistic_bandit_per_stage():
    H, T = 4, 25
    model = ref.hard_chain_rows(H, T, 3, gap=0.05, signs=np.random.default_rng(1).choice([-1, 1], size=(H, 2)))
    uniforms = np.random.default_rng(2).random((T, H + 1))
    log = agents.run_livarot(model, uniforms, beta_scale=0.3)
    optimal = ref.solve(model["rows"], model["theta"], model["reward"])["value"][0, 0]
    for t in range(T):
        for h in range(H - 1):
            score = []
            for a in range(4):
                f = model["rows"][h][h][a][1][0]
                width = log["radius"][t][h] * ref.dual_norm(f, log["gram"][t][h])
                score.append(-f @ log["theta"][t][h] + width)
            assert log["policies"][t][h, h] == ref.first_best(score)
        assert log["policies"][t][H - 1].tolist() == [0] * (H + 2)  # all actions tie
        assert log["value_pi"][t] <= optimal + 1e-12
        assert log["radius"][t][0] == pytest.approx(
            0.3 * (math.sqrt(2 * math.log((t + 1) / 0.05)) + 24 * model["param_bound"] * math.sqrt(3))
        )
    assert np.all(np.linalg.norm(log["theta"], axis=2) <= model["param_bound"] * (1 + 1e-12))
    assert np.ptp([a[0] for a in log["actions"]]) > 0


def test_optimism_when_the_sets_cover_the_parameter():
    model = ref.random_rows(np.random.default_rng(3), H=3, S=3, A=2, d=2, U=3)
    uniforms = np.random.default_rng(4).random((6, 4))
    optimal = ref.solve(model["rows"], model["theta"], model["reward"])["value"]
    for optimism in ("max", "variance"):
        log = agents.run_livarot(model, uniforms, beta_scale=1.0, paper_radius=False, optimism=optimism)
        for t in range(6):
            count = max(1, t)
            expected = math.sqrt(4 / 3 * math.log(count * 3 / 0.05)) + 2 * math.sqrt(10)
            assert log["radius"][t] == pytest.approx([expected] * 3)
            for h in range(3):
                gap = ref.norm_in(log["theta"][t][h] - model["theta"][h], log["gram"][t][h])
                assert gap <= log["radius"][t][h]
            assert np.all(log["plans"][t] >= optimal - 1e-10)
            assert np.all(log["plans"][t][0] <= 3)
    bonus = agents.run_ucrl_mnl_ol(model, uniforms, beta_scale=1.0)
    assert all(np.all(v >= optimal - 1e-10) and np.all(v <= 3) for v in bonus["plans"])
    assert bonus["radius"][1][0] == pytest.approx(math.sqrt(2) * math.log(3) * math.log(2 * 3 / 0.05))


def test_paper_run_discards_the_exploration_data():
    model = ref.hard_chain_rows(4, 100, 2, gap=0.1, signs=np.ones((4, 1)))
    uniforms = np.random.default_rng(6).random((14, 5))
    log = agents.run_livarot(model, uniforms, n_explore=8)
    assert log["planned"][:8] == [None] * 8
    assert not np.any(log["theta"][8])  # zero lies in the sets
    np.testing.assert_array_equal(log["gram"][8], [10 * np.eye(2)] * 4)
    assert len(log["theta"]) == 15
    assert np.any(log["theta"][9])
    radius = 0.01 * (math.sqrt(4 / 3 * math.log(9 / 0.05)) + 24 * model["param_bound"] * math.sqrt(2))
    assert log["radius"][8] == pytest.approx([radius] * 4)  # exploration episodes count
    assert len(log["regions"][0]) == 2
    exact = ref.evaluate(model["rows"], model["theta"], model["reward"], log["policies"][3])[0, 0]
    assert log["value_pi"][3] == exact


def test_shared_parameter_is_updated_in_stage_order():
    model = ref.riverswim_rows(3, 4)
    uniforms = np.random.default_rng(7).random((2, 5))
    log = agents.run_livarot(model, uniforms, shared=True, paper_radius=False)
    theta, gram = np.zeros(4), 10 * np.eye(4)
    for h in range(4):
        row = model["rows"][h][log["states"][0][h]][log["actions"][0][h]]
        region = [ref.ball(4, model["param_bound"])]
        theta, gram = ref.omd_step(row, log["choices"][0][h], theta, gram, 20.0, region)
    np.testing.assert_array_equal(log["theta"][1], [theta])
    np.testing.assert_array_equal(log["gram"][1], [gram])
    expected = 0.01 * (math.sqrt(8 / 3 * math.log(4 * 4 / 0.05)) + 2 * model["param_bound"] * math.sqrt(10))
    assert log["radius"][1] == pytest.approx([expected] * 4)


def test_one_parameter_per_stage_and_shared_agree_when_there_is_one_stage():
    model = ref.random_rows(np.random.default_rng(9), H=1, S=3, A=2, d=2, U=3)
    uniforms = np.random.default_rng(10).random((10, 2))
    for run in (agents.run_livarot, agents.run_ucrl_mnl_ol):
        one, other = run(model, uniforms, shared=True), run(model, uniforms)
        np.testing.assert_array_equal(one["theta"], other["theta"])
        assert one["states"] == other["states"]
