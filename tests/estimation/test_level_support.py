"""The reach of a linear function over a likelihood-ratio set: dense samples of the boundary, certificate, refusals."""

import math

import mpmath
import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.errors import LivarotError
from livarot.estimation.history import History, fit_history
from livarot.estimation.level_support import contrasts, reach_of
from tests.estimation.test_level_set import data_of, history_of
from tests.support.models import random_model, to_mdp
from tests.twins import level_set as twin

REG = 0.2


def penalised(data, theta):
    return twin.loss(data, theta) + 0.5 * REG * float(theta @ theta)


def boundary(data, hat, level, directions):
    """Where rays from theta_hat leave the set, by bisection."""
    limit, points = penalised(data, hat) + level, []
    for ray in directions:
        inside, outside = 0.0, 1.0
        while penalised(data, hat + outside * ray) < limit:
            outside *= 2.0
        for _ in range(50):
            middle = 0.5 * (inside + outside)
            inside, outside = (middle, outside) if penalised(data, hat + middle * ray) < limit else (inside, middle)
        points.append(hat + inside * ray)
    return np.array(points)


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize(("kind", "level"), [("dense", 0.02), ("dense", 8.0), ("partial", 3.0)])
def test_nothing_in_the_set_reaches_further_and_something_reaches_as_far(shared, kind, level):
    rng = np.random.default_rng(4)
    d = 2 if kind == "dense" else 3
    mdp = to_mdp(random_model(rng, H=2, S=3, A=2, d=d, U=2, kind=kind, offsets=True, one_table=shared), shared=shared)
    problem, history = mdp.problem, history_of(mdp, rng, 12, 1)
    hat = fit_history(problem, np.zeros((1, *problem.theta_shape)), history, REG).theta
    found = contrasts(problem)
    reach = reach_of(problem, hat, history, REG, np.full(hat.shape[:2], level))
    angles = np.linspace(0.0, 2.0 * math.pi, 300, endpoint=False)
    rays = np.stack((np.cos(angles), np.sin(angles)), axis=1) if d == 2 else rng.normal(size=(100, d))
    for k in range(problem.n_parameters):
        edge = boundary(data_of(mdp, history, 0, k), hat[0, k], level, rays) @ found.vectors.T
        own = found.wanted[k]
        assert own.any()
        assert (edge.max(axis=0) <= reach.upper[0, k] + 1e-8)[own].all()
        assert (edge.min(axis=0) >= reach.lower[0, k] - 1e-8)[own].all()
        if d == 2:  # the rays are close enough to one another to find the ends
            width = reach.upper[0, k] - reach.lower[0, k]
            np.testing.assert_allclose(edge.max(axis=0)[own], reach.upper[0, k][own], atol=1e-3 * width[own].max())
            np.testing.assert_allclose(edge.min(axis=0)[own], reach.lower[0, k][own], atol=1e-3 * width[own].max())
    assert (reach.attained >= 0.0).all()
    assert (reach.attained <= 1e-5 * (1.0 + reach.upper - reach.lower)).all()  # bound and attained value agree


def test_without_data_the_set_is_a_ball():
    """F = reg/2 |theta|^2: w reaches sqrt(2 level/reg) |w|, and B |w| where that is less."""
    problem = envs.hard_chain(3, gap=0.1).problem
    history = history_of(envs.hard_chain(3, gap=0.1), np.random.default_rng(0), 0, 1)
    hat, found = np.zeros((1, *problem.theta_shape)), contrasts(problem)
    size = np.where(found.wanted, np.linalg.norm(found.vectors, axis=1), 0.0)
    reach = reach_of(problem, hat, history, REG, np.full(hat.shape[:2], 2.0))
    np.testing.assert_allclose(reach.upper[0], math.sqrt(4.0 / REG) * size, atol=1e-7)
    np.testing.assert_allclose(reach.lower[0], -math.sqrt(4.0 / REG) * size, atol=1e-7)
    reach = reach_of(problem, hat, history, REG, np.full(hat.shape[:2], 2.0), bound=1.5)
    np.testing.assert_allclose(reach.upper[0], 1.5 * size, atol=1e-7)


def test_where_the_estimate_is_on_the_ball():
    """Points of the ball and of the level set, drawn near the boundary, never reach further; without data for a
    direction the ball alone counts; and the smallest levels leave nothing but the estimate."""
    rng, bound, level = np.random.default_rng(8), 0.4, 1.5
    mdp = to_mdp(random_model(rng, H=1, S=3, A=2, d=2, U=2, offsets=True), shared=True)
    problem, history = mdp.problem, history_of(mdp, rng, 60, 1)
    hat = fit_history(problem, np.zeros((1, *problem.theta_shape)), history, REG, bound=bound).theta
    assert np.linalg.norm(hat) == pytest.approx(bound, rel=1e-9)
    data, found = data_of(mdp, history, 0, 0), contrasts(problem)
    limit = penalised(data, hat[0, 0]) + level
    draws = rng.normal(size=(4000, 2))
    draws *= (bound * rng.random(len(draws)) ** 0.2 / np.linalg.norm(draws, axis=1))[:, None]
    inside = np.array([x for x in draws if penalised(data, x) <= limit])
    assert 100 < len(inside) < 3900
    reach = reach_of(problem, hat, history, REG, np.full((1, 1), level), bound)
    own, ends = found.wanted[0], inside @ found.vectors.T
    assert (ends.max(axis=0) <= reach.upper[0, 0] + 1e-9)[own].all()
    assert (ends.min(axis=0) >= reach.lower[0, 0] - 1e-9)[own].all()
    assert (reach.upper - reach.lower)[0, 0][own].max() < 1.3 * np.ptp(ends, axis=0)[own].max()
    reach = reach_of(problem, hat, history, REG, np.full((1, 1), 1e-12), bound)
    np.testing.assert_allclose(reach.upper[0, 0][own], (hat[0, 0] @ found.vectors.T)[own], atol=1e-5)
    np.testing.assert_allclose(reach.lower[0, 0][own], (hat[0, 0] @ found.vectors.T)[own], atol=1e-5)


def test_contrasts_are_those_of_reachable_pairs():
    problem = envs.hard_chain(4, gap=0.1).problem
    found = contrasts(problem)
    for h in range(problem.horizon):
        for s in np.flatnonzero(problem.reachable[h]):
            for a in range(problem.n_actions):
                phi, place = problem.features(h, s, a), found.of_pair[problem.pair(h, s, a)]
                if len(phi) == 2 and (phi[0] != phi[1]).any():
                    np.testing.assert_array_equal(found.vectors[place], phi[0] - phi[1])
                    assert found.wanted[problem.stage_parameter[h], place]
                else:
                    assert place == -1


def test_refusals():
    with pytest.raises(LivarotError, match="3 outcomes"):
        contrasts(envs.make("random").problem)
    mdp = envs.hard_chain(3, gap=0.1)
    history, hat = history_of(mdp, np.random.default_rng(0), 2, 1), np.zeros((1, *mdp.problem.theta_shape))
    for level in (np.zeros(hat.shape[:2]), np.full(hat.shape[:2], np.nan), np.ones((1, 1))):
        with pytest.raises(LivarotError, match="level"):
            reach_of(mdp.problem, hat, history, REG, level)


def test_a_large_part_that_rows_have_in_common_takes_nothing_from_the_bounds():
    """One dimension, features .9 and .9 less very little: the exact ends of the set are within the bounds."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        apart = 10 ** rng.uniform(-12, -1)
        bound, visits, level = 10 ** rng.uniform(-1, 1) / apart, round(10 ** rng.uniform(0, 8)), 10 ** rng.uniform(0, 1)
        rows, reg = [[0.9], [0.9 - apart]], 1 / bound**2
        mdp = livarot.MNLMDP.from_function(
            1,
            2,
            1,
            features=lambda h, s, a, rows=rows: ([0, 1], rows),
            reward=np.zeros((1, 2, 1)),
            theta=[[0.0]],
            param_bound=bound,
            start=[1.0, 0.0],
        )
        one = int(rng.binomial(visits, 1 / (1 + math.exp(-apart * rng.uniform(-1, 1) * bound))))
        history = History(np.array([[[0]]]), np.array([[[[one, visits - one]]]], dtype=float), np.array([[1]]))
        hat = fit_history(mdp.problem, np.zeros((1, 1, 1)), history, reg, 1e-8, bound=bound).theta
        found = reach_of(mdp.problem, hat, history, reg, np.full((1, 1), level), bound)
        width = contrasts(mdp.problem).vectors[0, 0]
        with mpmath.workdps(40):
            x, centre = mpmath.mpf(rows[0][0]) - mpmath.mpf(rows[1][0]), mpmath.mpf(float(hat[0, 0, 0]))

            def loss(y, x=x, one=one, visits=visits, reg=reg):
                chances = mpmath.log(1 + mpmath.e ** (-x * y)), mpmath.log(1 + mpmath.e ** (x * y))
                return one * chances[0] + (visits - one) * chances[1] + mpmath.mpf(reg) / 2 * y * y

            most = loss(centre) + level
            for sign, got in ((1, found.upper[0, 0, 0]), (-1, -found.lower[0, 0, 0])):
                inside, outside = centre, mpmath.mpf(sign * bound)
                for _ in range(80 if loss(outside) > most else 0):
                    middle = (inside + outside) / 2
                    inside, outside = (middle, outside) if loss(middle) <= most else (inside, middle)
                end = inside if loss(outside) > most else outside
                assert got >= float(sign * width * end) * (1 - 1e-12) - 1e-300
