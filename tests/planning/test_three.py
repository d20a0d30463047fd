"""The two-dimensional solver for three outcomes against the general one, a search of the disc and by hand."""

from __future__ import annotations

import numpy as np
import pytest

import livarot
from livarot.core.lanes import LANES
from livarot.planning.climb import joint_maximum
from livarot.planning.lanes import (
    BEST_F,
    BEST_GAP,
    BETA,
    SCALE,
    Z0,
    centre_probabilities,
    centre_widths,
    lane_workspaces,
)
from livarot.planning.three import SIZE, three_maximum

TOL, STEPS, STARTS, WIDE = 5e-9, 500, 4, 1.0


def problems(rng, m, lanes, size=1.0):
    y = np.zeros((3 * m, LANES))
    y[:, :lanes] = rng.normal(size=(3 * m, lanes))
    v = np.zeros((3, LANES))
    v[:, :lanes] = rng.random((3, lanes)) * size
    logits = rng.normal(size=(3, lanes))
    return y, v, logits


def solve_both(y, v, logits, radius, m):
    """(value, gap) per lane, by the solver for three outcomes and by the general one."""
    lanes = logits.shape[1]
    found = []
    for general in (False, True):
        wo, wc, wl = lane_workspaces(3, m)
        wo[:, Z0 : Z0 + lanes] = logits
        wl[BETA : BETA + lanes] = radius
        wl[SCALE : SCALE + lanes] = np.ptp(v[:, :lanes])
        centre_probabilities(wo, wl, 3, lanes)
        centre_widths(y, wo, wc, wl, 3, m, lanes)
        if general:
            second = lane_workspaces(3, m)
            again = (np.zeros_like(y), np.zeros_like(v), *second)
            joint_maximum(0, STEPS, TOL, STARTS, WIDE, y, v, wo, wc, wl, *again, 3, m, lanes, False)
        else:
            three_maximum(STEPS, TOL, STARTS, WIDE, y, v, wo, wl, np.zeros(SIZE), np.zeros(SIZE), m, lanes)
        found.append((wl[BEST_F : BEST_F + lanes].copy(), wl[BEST_GAP : BEST_GAP + lanes].copy()))
    return found


def expectation(y, v, logits, lane, m, points):
    """f at points (n, m) of one lane."""
    z = logits[:, lane] + points @ y[:, lane].reshape(3, m).T
    weights = np.exp(z - z.max(axis=1, keepdims=True))
    return weights @ v[:, lane] / weights.sum(axis=1)


@pytest.mark.parametrize("m", [1, 2, 3, 7])
@pytest.mark.parametrize("radius", [0.0, 1e-6, 0.1, 1.0, 4.0])
def test_it_finds_what_the_general_solver_finds(m, radius):
    rng = np.random.default_rng(1000 * m + int(10 * radius))
    for _ in range(8):
        y, v, logits = problems(rng, m, LANES)
        (value, gap), (other, _) = solve_both(y, v, logits, radius, m)
        scale = np.ptp(v)
        assert np.all(gap <= TOL * scale)
        # the two walk the same way up to rounding; a stop within the tolerance leaves this much
        assert np.abs(value - other).max() <= 1e-7 * scale


def test_the_gap_certifies_a_stationary_point_at_every_scale():
    rng = np.random.default_rng(5)
    for size in (1e-9, 1.0, 1e9):
        y, v, logits = problems(rng, 2, 48, size)
        (value, gap), _ = solve_both(y, v, logits * 3, 2.0, 2)
        assert np.all(np.isfinite(value))
        assert np.all(gap <= TOL * np.ptp(v[:, :48]))
        assert np.all(value <= v[:, :48].max(axis=0) * (1 + 1e-12))


@pytest.mark.parametrize("m", [1, 2])
def test_against_a_search_of_the_disc(m):
    rng = np.random.default_rng(17 + m)
    angle = np.linspace(0, 2 * np.pi, 721)
    for radius in (0.3, 1.5):
        y, v, logits = problems(rng, m, 32)
        (value, _), _ = solve_both(y, v, logits, radius, m)
        for lane in range(32):
            rings = np.linspace(0, radius, 61)
            if m == 1:
                points = np.linspace(-radius, radius, 20001)[:, None]
            else:
                points = (rings[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)).reshape(-1, 2)
            best = expectation(y, v, logits, lane, m, points).max()
            assert value[lane] >= best - 1e-8
            assert value[lane] <= best + 2e-3 * radius  # the grid's own error


def test_a_maximum_inside_and_equal_values():
    y, v = np.zeros((3, LANES)), np.zeros((3, LANES))
    y[:, 0] = y[:, 1] = [-1.0, 0.0, 1.0]
    v[:, 0] = [0.0, 1.0, 0.0]  # best between the others: x = 0 is the maximum
    v[:, 1] = 0.25
    (value, gap), _ = solve_both(y, v, np.zeros((3, 2)), 3.0, 1)
    np.testing.assert_allclose(value, [1 / 3, 0.25], atol=1e-12)
    assert np.all(gap <= 1e-8)


def test_huge_logits_and_zero_features():
    y, v = np.zeros((6, LANES)), np.zeros((3, LANES))
    v[:, :2] = [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]]
    logits = np.array([[0.0, 1e4], [-1e4, 0.0], [1.0, -1e4]])
    (value, _), _ = solve_both(y, v, logits, 1.0, 2)
    np.testing.assert_allclose(value, [0.5 / (1 + np.exp(-1.0)), 0.0], atol=1e-12)


def test_a_plan_uses_it_and_agrees_with_inner_max():
    mdp = livarot.envs.river_swim(5, 6)
    agent = livarot.agents.Livarot()
    problem = mdp.problem
    state = agent.init(problem, 2)
    plan = livarot.optimistic_plan(problem, state.estimate, 1.3)
    h, s, a = 2, 2, 1
    ellipsoid = livarot.Ellipsoid(np.zeros(problem.dim), agent.reg * np.eye(problem.dim), 1.3)
    follow = plan.value[0, h + 1, problem.next_states(h, s, a)]
    inner = livarot.inner_max(problem.features(h, s, a), follow, ellipsoid)
    other = problem.reward[h, s, 0] + plan.value[0, h + 1, s - 1]
    assert plan.value[0, h, s] == pytest.approx(max(problem.reward[h, s, a] + inner.value, other), abs=1e-7)
