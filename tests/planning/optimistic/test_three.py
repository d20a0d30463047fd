"""Plans of pairs with three outcomes, against the general solver, a search and results by hand."""

import numpy as np
import pytest

import livarot
from tests.support.inner_problems import expectations, plan, plan_many


def problems(rng, m, count):
    """values (3,), z (count, 3), y (count, 3, m)."""
    return rng.random(3), rng.normal(size=(count, 3)), rng.normal(size=(count, 3, m))


@pytest.mark.parametrize("m", [1, 2, 3, 7])
@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.1, 1.0, 4.0])
def test_it_finds_what_the_general_solver_finds(m, radius):
    rng = np.random.default_rng(1000 * m + int(10 * radius))
    for _ in range(3):
        values, z, y = problems(rng, m, 20)
        made = plan_many(values, z, y, np.full(20, radius))
        span = np.ptp(values)
        for i in range(20):
            body = livarot.Ellipsoid.ball(m, radius)
            general = livarot.inner_max(y[i], values, body, offset=z[i])
            own = plan(y[i], values, radius, z[i])  # in the pair's own columns
            # the solvers take the same steps up to rounding; stopping within the tolerance leaves this much
            assert own.start_value[0] == pytest.approx(general.value, abs=1e-7 * span)
            assert made.start_value[i] == pytest.approx(general.value, abs=1e-7 * span)
            assert max(made.inner_gap[i], own.inner_gap[0]) <= 1e-8


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0])
def test_the_gap_certifies_a_stationary_point_at_every_scale(size):
    values, z, y = problems(np.random.default_rng(5), 2, 48)
    made = plan_many(size * values, 3 * z, y, np.full(48, 2.0))
    assert np.all(made.inner_gap <= 1e-8)
    plain = plan_many(values, 3 * z, y, np.full(48, 2.0))
    np.testing.assert_allclose(made.start_value, size * plain.start_value, rtol=1e-7)
    assert np.all(made.start_value <= size * values.max() * (1 + 1e-12))


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("radius", [0.3, 1.5])
def test_against_a_search_of_the_disc(m, radius):
    angle, rings = np.linspace(0, 2 * np.pi, 721), np.linspace(0, radius, 61)
    disc = (rings[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)).reshape(-1, 2)
    points = np.linspace(-radius, radius, 20001)[:, None] if m == 1 else disc
    values, z, y = problems(np.random.default_rng(17 + m), m, 32)
    made = plan_many(values, z, y, np.full(32, radius))
    for i in range(32):
        best = expectations(values, z[i], y[i], points).max()
        assert made.start_value[i] >= best - 1e-8
        assert made.start_value[i] <= best + 2e-3 * radius  # the grid's own error


def test_a_maximum_inside_and_equal_values():
    """The feature of the best outcome lies between the others, so that x = 0 is the maximum."""
    inside = plan([[-1.0], [0.0], [1.0]], [0.0, 1.0, 0.0], 3.0)
    assert inside.start_value[0] == pytest.approx(1 / 3, abs=1e-12)
    equal = plan([[-1.0], [0.0], [1.0]], [0.25, 0.25, 0.25], 3.0)
    assert (equal.start_value[0], equal.upper[0]) == pytest.approx((0.25, 0.25), abs=1e-15)
    assert max(inside.inner_gap[0], equal.inner_gap[0]) <= 1e-8


def test_huge_logits_and_zero_features():
    values, y = np.array([0.0, 1.0, 0.5]), np.zeros((2, 3, 2))
    made = plan_many(values, np.array([[0.0, -1e4, 1.0], [1e4, 0.0, -1e4]]), y, np.ones(2))
    np.testing.assert_allclose(made.start_value, [0.5 / (1 + np.exp(-1.0)), 0.0], atol=1e-12)


def test_a_plan_uses_it_and_agrees_with_inner_max():
    mdp = livarot.envs.river_swim(5, 6)
    agent = livarot.agents.Livarot()
    problem = mdp.problem
    state = agent.init(problem, 2)
    made = livarot.optimistic_plan(problem, state.estimate, 1.3)
    h, s, a = 2, 2, 1
    ellipsoid = livarot.Ellipsoid(np.zeros(problem.dim), agent.reg * np.eye(problem.dim), 1.3)
    follow = made.value[0, h + 1, problem.next_states(h, s, a)]
    inner = livarot.inner_max(problem.features(h, s, a), follow, ellipsoid)
    other = problem.reward[h, s, 0] + made.value[0, h + 1, s - 1]
    assert made.value[0, h, s] == pytest.approx(max(problem.reward[h, s, a] + inner.value, other), abs=1e-7)


def test_moderately_wide_sets_are_seldom_missed():
    """Half-widths from 1 to 4 against a search of the disc: none of 3,000 is missed; from the centre alone many are."""
    angle = np.linspace(0, 2 * np.pi, 180, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    disc = np.concatenate([length * ring for length in np.linspace(0.1, 1, 10)])
    missed, alone, count = 0, 0, 150
    for seed in range(20):
        rng = np.random.default_rng([5, seed])
        values, z, y = problems(rng, 2, count)
        reach = np.linalg.norm(y - y.mean(axis=1, keepdims=True), axis=2).max(axis=1)
        radius = 10 ** rng.uniform(0, 0.6, count) / reach
        best = np.array([expectations(values, z[i], y[i], radius[i] * disc).max() for i in range(count)])
        least = best - 1e-6 * np.ptp(values)
        missed += int((plan_many(values, z, y, radius).start_value < least).sum())
        one = livarot.JointMaximum(livarot.ShiftedPower(n_starts=0))
        alone += int((plan_many(values, z, y, radius, one).start_value < least).sum())
    assert missed == 0
    assert alone > 20
