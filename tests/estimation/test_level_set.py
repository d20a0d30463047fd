"""Likelihood-ratio sets: the twin, the proof step by step (exact martingale, evidence, self-concordance), samples."""

import itertools
import math

import mpmath
import numpy as np
import pytest

import livarot
from livarot.errors import LivarotError
from livarot.estimation.history import History, empty_history, fit_history, record
from livarot.estimation.level_set import Levels, LevelSettings, level_sets
from tests.estimation.test_ons import random_episodes
from tests.support.models import random_model, rows_of, to_mdp
from tests.twins import core as ref
from tests.twins import level_set as twin
from tests.twins.agents import random_row

SURPRISE = math.log(3 / 0.05)


def history_of(mdp, rng, episodes, replicas=2):
    history = empty_history(mdp.problem, replicas)
    for _ in range(episodes):
        history = record(mdp.problem, history, random_episodes(rng, mdp, replicas))
    return history


def data_of(mdp, history, r, k):
    """The twins' data of one parameter."""
    rows, problem = rows_of(mdp), mdp.problem
    every = np.ndindex(problem.horizon, problem.n_states, problem.n_actions)
    flat = {problem.pair(h, s, a): rows[h][s][a] for h, s, a in every}
    n = int(history.used[r, k])
    pairs = [int(pair) for pair in history.pairs[r, k, :n]]
    return [(flat[pair], history.counts[r, k, i, : len(flat[pair][1])]) for i, pair in enumerate(pairs)]


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
@pytest.mark.parametrize("published", [False, True])
def test_as_the_twin(shared, kind, published):
    rng = np.random.default_rng(4)
    mdp = to_mdp(random_model(rng, H=3, S=4, A=2, d=4, U=3, kind=kind, offsets=True, one_table=shared), shared=shared)
    problem, bound, reg = mdp.problem, 1.3, 0.2
    history = history_of(mdp, rng, 25)
    zeros = np.zeros((2, *problem.theta_shape))
    fitted = fit_history(problem, zeros, history, reg, bound=bound)
    assert np.linalg.norm(fitted.theta, axis=2).max() <= bound * (1 + 1e-12)
    found = level_sets(problem, fitted.theta, history, LevelSettings(bound, reg, SURPRISE, published))
    for r, k in np.ndindex(2, problem.n_parameters):
        data, hat = data_of(mdp, history, r, k), fitted.theta[r, k]
        assert found.loss[r, k] == pytest.approx(twin.loss(data, hat), rel=1e-12)
        cost = twin.published_cost(data, problem.dim, bound)
        if not published:
            cost = min(cost, twin.mixture_cost(data, hat, bound))
        assert found.beta[r, k] == pytest.approx(SURPRISE + cost, rel=1e-10)
        radius = twin.radius(data, hat, SURPRISE + cost, bound, reg)
        assert found.radius[r, k] == pytest.approx(radius, rel=1e-7)
        gram = twin.gram(data, hat, radius, bound, reg)
        np.testing.assert_allclose(problem.rows.unpack(found.gram)[r, k], gram, rtol=0, atol=1e-6)
        w = problem.rows.unpack(found.whiten)[r, k]
        np.testing.assert_allclose(w.T @ w @ gram, np.eye(problem.dim), atol=1e-6)


def test_the_mixture_is_a_martingale_whatever_chooses_the_pair():
    """All sequences of five outcomes, pairs chosen by what was seen: the mean of the mixed ratio is 1."""
    rng = np.random.default_rng(6)
    rows = [random_row(rng, 2, 2), random_row(rng, 2, 3)]
    star, grid = rng.normal(size=2), rng.normal(size=(20, 2))
    mean, total = 0.0, 0.0
    for outcomes in itertools.product(range(3), repeat=5):
        chance, ratio, seen, valid = 1.0, np.ones(len(grid)), [], True
        for outcome in outcomes:
            row = rows[(sum(seen) + len(seen)) % 2]
            if outcome >= len(row[1]):
                valid = False
                break
            p = ref.softmax(row, star)[outcome]
            chance *= p
            ratio *= [ref.softmax(row, theta)[outcome] / p for theta in grid]
            seen.append(outcome)
        if valid:
            mean, total = mean + chance * ratio.mean(), total + chance
    assert total == pytest.approx(1.0, abs=1e-12)
    assert mean == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("optimal", [True, False], ids=["minimiser", "anywhere"])
@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
def test_the_ellipsoid_contains_the_set(optimal, shared):
    """Points on the boundary of {L - L(hat) <= beta} and of the ball, along random and worst directions."""
    rng = np.random.default_rng(9)
    furthest = 0.0
    for trial in range(5):
        model = random_model(rng, H=2, S=3, A=2, d=3, U=4 - trial % 3, offsets=True, one_table=shared)
        mdp = to_mdp(model, shared=shared)
        problem, bound, reg = mdp.problem, 10 ** rng.uniform(-0.3, 0.8), 10 ** rng.uniform(-4, 0)
        history = history_of(mdp, rng, 1000 if trial == 0 else int(10 ** rng.uniform(0, 2.2)))
        theta = fit_history(problem, np.zeros((2, *problem.theta_shape)), history, reg, bound=bound).theta
        if not optimal:
            theta = theta + 0.1 * rng.normal(size=theta.shape)
            theta *= np.minimum(1, bound / np.linalg.norm(theta, axis=2, keepdims=True))
        found = level_sets(problem, theta, history, LevelSettings(bound, reg, SURPRISE, False))
        for r, k in np.ndindex(2, problem.n_parameters):
            data, hat = data_of(mdp, history, r, k), theta[r, k]
            gram = problem.rows.unpack(found.gram)[r, k]
            far = np.linalg.inv(np.linalg.cholesky(gram)).T
            for _ in range(20):
                step = far @ rng.normal(size=3) if rng.random() < 0.5 else rng.normal(size=3)
                v = boundary(data, hat, step, bound, found.beta[r, k])
                away = math.sqrt(v @ gram @ v)
                assert away <= found.radius[r, k]
                furthest = max(furthest, away / found.radius[r, k])
    assert furthest > (0.8 if optimal else 0.5)


def boundary(data, hat, step, bound, beta):
    """The furthest point hat + t step that is in the ball and in the level set."""
    low, high, base = 0.0, 4 * bound / np.linalg.norm(step), twin.loss(data, hat)
    for _ in range(60):
        t = 0.5 * (low + high)
        point = hat + t * step
        inside = np.linalg.norm(point) <= bound and twin.loss(data, point) - base <= beta
        low, high = (t, high) if inside else (low, t)
    return low * step


def test_extreme_scales_stay_finite():
    rng = np.random.default_rng(10)
    mdp = to_mdp(random_model(rng, H=2, S=3, A=2, d=3, U=3))
    problem, history = mdp.problem, history_of(mdp, rng, 5)
    many = History(history.pairs, history.counts * 1e9, history.used)
    for counts, bound, reg in itertools.product((history, many), (1e-3, 1.0, 1e3), (1e-8, 1e6)):
        theta = fit_history(problem, np.zeros((2, *problem.theta_shape)), counts, reg, bound=bound).theta
        found = level_sets(problem, theta, counts, LevelSettings(bound, reg, SURPRISE, False))
        assert all(np.isfinite(part).all() for part in found)
        assert (found.beta >= SURPRISE).all()
        assert (found.radius > 0).all()


def test_no_data_no_cost():
    mdp = to_mdp(random_model(np.random.default_rng(1), H=2, S=3, A=2, d=3, U=3))
    found = level_sets(
        mdp.problem, np.zeros((1, 2, 3)), empty_history(mdp.problem, 1), LevelSettings(2.0, 0.5, 1.0, False)
    )
    assert isinstance(found, Levels)
    np.testing.assert_allclose(found.beta, 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.radius, math.sqrt(2 * 1.0 + 0.5 * 4.0), rtol=1e-8)


def test_parts_of_another_problem_are_refused():
    mdp = to_mdp(random_model(np.random.default_rng(1), H=2, S=3, A=2, d=3, U=3))
    history, settings = empty_history(mdp.problem, 1), LevelSettings(1.0, 1.0, 1.0, False)
    with pytest.raises(LivarotError, match="theta"):
        level_sets(mdp.problem, np.zeros((1, 2, 4)), history, settings)
    with pytest.raises(LivarotError, match="predicted"):
        level_sets(mdp.problem, np.zeros((1, 2, 3)), history, settings, np.zeros((1, 3)))


def test_collinear_features_do_not_shrink_the_set():
    """Two columns that differ by little more than rounding: the whitener reaches as far as exact arithmetic does."""
    for apart in (1e-3, 1e-6, 1e-8, 3e-9):
        mdp = livarot.MNLMDP.from_function(
            1,
            2,
            1,
            features=lambda h, s, a, apart=apart: ([0, 1], [[0.5, 0.5 * (1 + apart * (1 + 2 * s))], [0.0, 0.0]]),
            reward=np.zeros((1, 2, 1)),
            theta=[[0.0, 0.0]],
            param_bound=1e6,
            start=[0.5, 0.5],
        )
        problem, reg = mdp.problem, 1e-12
        history = history_of(mdp, np.random.default_rng(1), 400, replicas=1)
        found = level_sets(problem, np.zeros((1, 1, 2)), history, LevelSettings(1e6, reg, SURPRISE, False))
        whiten = problem.rows.unpack(found.whiten)[0, 0]
        with mpmath.workdps(60):
            exact = mpmath.matrix(problem.rows.unpack(found.gram)[0, 0].tolist()) ** -1
            for x in ([1.0, 0.0], [0.0, 1.0], [1.0, -1.0]):
                true = mpmath.sqrt((mpmath.matrix([x]) * exact * mpmath.matrix(x))[0])
                assert np.linalg.norm(whiten @ x) >= float(true) * (1 - 1e-6)
            # the Gram matrix is at most what the data say
            whole = mpmath.matrix([[reg, 0], [0, reg]])
            for row, counts in data_of(mdp, history, 0, 0):
                phi = mpmath.matrix((row[1][0] - row[1][1]).tolist())
                whole += float(counts.sum()) / 4 * phi * phi.T
            for x in ([1.0, 0.0], [0.0, 1.0], [1.0, -1.0]):
                x = mpmath.matrix(x)
                assert (x.T * mpmath.matrix(problem.rows.unpack(found.gram)[0, 0].tolist()) * x)[0] <= (
                    x.T * whole * x
                )[0] * (1 + mpmath.mpf("1e-9"))


def pair_of_opposites(contrasts, bound, common=0.0):
    """A state per contrast, one stage, with the two outcomes common + contrast and common."""
    n, d = contrasts.shape
    return livarot.MNLMDP.from_function(
        1,
        max(n, 2),
        1,
        features=lambda h, s, a: ([0, 1], [common + contrasts[s % n], common + 0 * contrasts[s % n]]),
        reward=np.zeros((1, max(n, 2), 1)),
        theta=np.zeros((1, d)),
        param_bound=bound,
        start=np.full(max(n, 2), 1 / max(n, 2)),
    )


def seen_evenly(problem, n, visits):
    """Every state's pair ``visits`` times, half of them with either outcome."""
    pairs = np.array([problem.pair(0, s, 0) for s in range(n)]).reshape(1, 1, n)
    return History(pairs, np.full((1, 1, n, 2), visits / 2), np.full((1, 1), n))


def chained(rng, d):
    """Columns of which each is the one before but for a little: a few small pivots make a very small eigenvalue."""
    little = 10 ** rng.uniform(-4, -2)
    mixed = np.linalg.qr(rng.normal(size=(d, d)))[0] @ (np.diag([1.0] + [little] * (d - 1)) + np.eye(d, k=1))
    return mixed / 1.5, 10 ** rng.uniform(3, 7), float(2 * round(10 ** rng.uniform(3, 7)))


def reach_in_exact_arithmetic(contrasts, visits, reg, x):
    """|x| in the norm of (reg I + sum of visits/4 phi phi')^-1, which no valid Gram matrix exceeds."""
    rows = [mpmath.matrix([mpmath.mpf(float(c)) for c in row]) for row in contrasts]
    whole = mpmath.eye(contrasts.shape[1]) * mpmath.mpf(reg)
    for row in rows:
        whole += mpmath.mpf(visits) / 4 * row * row.T
    column = mpmath.matrix([float(c) for c in x])
    return float(mpmath.sqrt((column.T * mpmath.lu_solve(whole, column))[0]))


@pytest.mark.parametrize("d", [3, 4, 5, 6])
def test_chains_of_collinear_columns(d):
    """In the direction that the data say least about: as far as in exact arithmetic, or more."""
    rng = np.random.default_rng(d)
    for _ in range(6):
        contrasts, bound, visits = chained(rng, d)
        problem, reg = pair_of_opposites(contrasts, bound).problem, 1 / bound**2
        predicted = np.full((1, 1), d * visits * math.log(2) + 3)
        settings = LevelSettings(bound, reg, SURPRISE, False)
        found = level_sets(problem, np.zeros((1, 1, d)), seen_evenly(problem, d, visits), settings, predicted)
        x = np.linalg.svd(contrasts)[2][-1]
        with mpmath.workdps(60):
            true = reach_in_exact_arithmetic(contrasts, visits, reg, x)
        assert np.linalg.norm(problem.rows.unpack(found.whiten)[0, 0] @ x) >= true * (1 - 1e-9)
        assert np.isfinite(found.radius).all()


@pytest.mark.parametrize("d", [3, 4, 6])
def test_the_mixture_of_collinear_columns_costs_no_less_than_it_does(d):
    rng = np.random.default_rng(20 + d)
    for _ in range(8):
        contrasts, bound, visits = chained(rng, d)
        problem = pair_of_opposites(contrasts, bound).problem
        settings = LevelSettings(bound, 1 / bound**2, SURPRISE, False)
        found = level_sets(problem, np.zeros((1, 1, d)), seen_evenly(problem, d, visits), settings)
        rho = mpmath.mpf(bound) ** 2 / (d + 2)
        with mpmath.workdps(80):
            m = mpmath.eye(d)
            for row in contrasts:
                row = mpmath.matrix([float(c) for c in row])
                m += rho * mpmath.mpf(visits) / 4 * row * row.T
            exact = mpmath.log(mpmath.det(m)) / 2 + (d - sum((m**-1)[i, i] for i in range(d))) / 2
        published = twin.published_cost([((0, np.array([row, 0 * row])), [visits]) for row in contrasts], d, bound)
        assert found.beta[0, 0] - SURPRISE >= min(float(exact), published) - 1e-9


@pytest.mark.parametrize("units", [1, 3, 64])
def test_what_rows_have_in_common_does_not_matter(units):
    """Features .9 and .9 less a few last digits: the set is that of their difference."""
    apart = 0.9 - (0.9 - 2.0**-53 * units)
    bound, visits = 4 / apart, 1e4
    found = []
    for common in (0.0, 0.9 - apart):
        problem = pair_of_opposites(np.array([[apart]]), bound, common).problem
        predicted = np.full((1, 1), visits * math.log(2) + 3)
        settings = LevelSettings(bound, 1 / bound**2, SURPRISE, False)
        found.append(level_sets(problem, np.zeros((1, 1, 1)), seen_evenly(problem, 1, visits), settings, predicted))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
