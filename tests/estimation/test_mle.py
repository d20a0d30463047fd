"""Maximum likelihood with a ridge, weights and a ball: against the twin and first-order conditions."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import livarot
from livarot import LivarotError
from livarot.estimation.mle import fit_mle
from tests.support.models import random_model, rows_of, to_mdp
from tests.twins import core as ref

KINDS = ["dense", "block", "partial"]


def random_data(rng, mdp, n, weights=True):
    """Pairs of a model with random choices: (pairs, choices, weights) and the twin's samples."""
    problem, rows = mdp.problem, rows_of(mdp)
    places = [
        (
            int(rng.integers(problem.horizon)),
            int(rng.integers(problem.n_states)),
            int(rng.integers(problem.n_actions)),
        )
        for _ in range(n)
    ]
    pairs = np.array([problem.pair(*place) for place in places], dtype=np.int64)
    own = [rows[h][s][a] for h, s, a in places]
    choices = np.array([rng.integers(len(row[0])) for row in own], dtype=np.int32)
    w = rng.uniform(0.1, 3.0, size=n) if weights else np.ones(n)
    return pairs, choices, w, [(row, int(y), float(x)) for row, y, x in zip(own, choices, w, strict=True)]


def objective(samples, reg, theta):
    return math.fsum(w * ref.loss(row, theta, y) for row, y, w in samples) + reg / 2 * float(theta @ theta)


def slope(samples, reg, theta):
    return reg * theta + sum(w * ref.gradient(row, theta, y) for row, y, w in samples)


def curvature(samples, reg, theta):
    return reg * np.eye(len(theta)) + sum(w * ref.hessian(row, theta) for row, _, w in samples)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reg", [0.1, 2.0, 50.0])
@pytest.mark.parametrize("weights", [True, False], ids=["weights", "plain"])
def test_free_estimate_against_the_twin(kind, reg, weights):
    rng = np.random.default_rng(KINDS.index(kind))
    mdp = to_mdp(random_model(rng, S=5, d=4, U=5, kind=kind, offsets=True))
    pairs, choices, w, samples = random_data(rng, mdp, 40, weights)
    fit = fit_mle(mdp.problem, pairs, choices, w if weights else None, reg=reg)
    exact = ref.mle(samples, reg, mdp.problem.dim)
    np.testing.assert_allclose(fit.theta, exact, rtol=0, atol=1e-8)
    assert fit.converged
    assert fit.objective == pytest.approx(objective(samples, reg, fit.theta), rel=1e-12)
    hessian = mdp.problem.rows.unpack(fit.hessian)
    np.testing.assert_allclose(hessian, curvature(samples, reg, fit.theta), rtol=0, atol=1e-10)
    assert np.abs(slope(samples, reg, fit.theta)).max() <= 1e-6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bound", [0.1, 0.4, 0.8])
def test_estimate_on_an_active_ball(kind, bound):
    rng = np.random.default_rng(10 + KINDS.index(kind))
    mdp = to_mdp(random_model(rng, S=5, d=4, U=5, kind=kind, offsets=True))
    pairs, choices, w, samples = random_data(rng, mdp, 60)
    free = fit_mle(mdp.problem, pairs, choices, w, reg=0.05)
    assert np.linalg.norm(free.theta) > bound
    fit = fit_mle(mdp.problem, pairs, choices, w, reg=0.05, bound=bound)
    assert fit.converged
    assert np.linalg.norm(fit.theta) == pytest.approx(bound, rel=1e-9)
    np.testing.assert_allclose(fit.theta, ref.mle(samples, 0.05, mdp.problem.dim, bound), rtol=0, atol=1e-6)
    g = slope(samples, 0.05, fit.theta)  # stationary on the sphere: the slope points straight inwards
    assert np.linalg.norm(g + (np.linalg.norm(g) / bound) * fit.theta) <= 1e-6 * np.linalg.norm(g)
    assert objective(samples, 0.05, fit.theta) >= free.objective


def test_a_ball_that_does_not_bind_changes_nothing():
    rng = np.random.default_rng(20)
    mdp = to_mdp(random_model(rng, offsets=True))
    pairs, choices, w, _ = random_data(rng, mdp, 30)
    free = fit_mle(mdp.problem, pairs, choices, w, reg=1.0)
    fit = fit_mle(mdp.problem, pairs, choices, w, reg=1.0, bound=2 * float(np.linalg.norm(free.theta)))
    np.testing.assert_allclose(fit.theta, free.theta, rtol=0, atol=1e-12)


def test_a_weight_is_a_number_of_repetitions():
    rng = np.random.default_rng(21)
    mdp = to_mdp(random_model(rng))
    pairs, choices, _, _ = random_data(rng, mdp, 20)
    counts = rng.integers(0, 4, size=20)
    weighted = fit_mle(mdp.problem, pairs, choices, counts.astype(float), reg=1.0)
    repeated = fit_mle(mdp.problem, np.repeat(pairs, counts), np.repeat(choices, counts), reg=1.0)
    np.testing.assert_allclose(weighted.theta, repeated.theta, rtol=0, atol=1e-10)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-12)


def test_no_data_gives_zero():
    problem = livarot.envs.river_swim(4, 3).problem
    fit = fit_mle(problem, np.zeros(0, np.int64), np.zeros(0, np.int32), reg=2.0)
    assert not fit.theta.any()
    assert fit.converged
    np.testing.assert_array_equal(problem.rows.unpack(fit.hessian), 2.0 * np.eye(problem.dim))


def test_pairs_with_one_outcome_do_not_count():
    mdp = livarot.envs.river_swim(4, 3)
    left, right = mdp.problem.pair(0, 2, 0), mdp.problem.pair(0, 2, 1)
    only = fit_mle(mdp.problem, np.array([right] * 3), np.array([2, 2, 0], np.int32), reg=1.0)
    both = fit_mle(
        mdp.problem, np.array([right, left, right, left, right]), np.array([2, 0, 2, 0, 0], np.int32), reg=1.0
    )
    np.testing.assert_array_equal(only.theta, both.theta)


def test_one_sided_data_are_held_by_the_ridge_or_the_ball():
    """Always the same outcome: without the ridge the estimate would run away."""
    mdp = livarot.MNLMDP.from_function(
        1, 2, 1, features=lambda h, s, a: ([0, 1], [[0.0], [1.0]]), reward=np.zeros((2, 1)), theta=[0.0]
    )
    pairs, choices = np.zeros(50, np.int64), np.ones(50, np.int32)
    for reg in (1.0, 1e-3, 1e-6):
        fit = fit_mle(mdp.problem, pairs, choices, reg=reg)
        root = brentq(lambda x, reg=reg: reg * x - 50 / (1 + math.exp(x)), 0.0, 50.0, xtol=1e-14)
        assert fit.theta.item() == pytest.approx(root, rel=1e-6)
        assert fit.converged
    held = fit_mle(mdp.problem, pairs, choices, reg=0.0, bound=3.0)
    assert held.theta.item() == pytest.approx(3.0, rel=1e-12)
    np.testing.assert_allclose(held.hessian, 50 * math.exp(3) / (1 + math.exp(3)) ** 2, rtol=1e-9)


def test_many_samples_find_the_parameter():
    mdp = livarot.envs.river_swim(4, 6, features="moves", shared_parameter=True)
    episodes = livarot.simulate(mdp, np.ones((6, 4), dtype=np.int32), 4000, seed=2)
    pairs = episodes.states[:, :-1].astype(np.int64).reshape(-1) * 2 + episodes.actions.reshape(-1)
    fit = fit_mle(mdp.problem, pairs, episodes.choices.reshape(-1), reg=1.0)
    deviation = fit.theta - mdp.theta[0]
    scale = np.sqrt(np.diag(np.linalg.inv(mdp.problem.rows.unpack(fit.hessian))))
    assert np.abs(deviation / scale).max() < 4.0


def test_inputs_are_left_alone():
    rng = np.random.default_rng(22)
    mdp = to_mdp(random_model(rng))
    pairs, choices, w, _ = random_data(rng, mdp, 10)
    before = pairs.copy(), choices.copy(), w.copy()
    fit_mle(mdp.problem, pairs, choices, w, reg=1.0, bound=0.1)
    for now, then in zip((pairs, choices, w), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"reg": -1.0}, "reg"),
        ({"reg": float("nan")}, "reg"),
        ({"weights": np.array([1.0, -1.0])}, "weights"),
        ({"weights": np.array([1.0, float("nan")])}, "weights"),
        ({"weights": np.array([1.0])}, "choices"),
        ({"choices": np.array([0], np.int32)}, "choices"),
    ],
)
def test_bad_input(change, argument):
    problem = livarot.envs.river_swim(3, 2).problem
    good = {"pairs": np.array([1, 1]), "choices": np.array([0, 1], np.int32), "weights": None, "reg": 1.0}
    with pytest.raises(LivarotError) as caught:
        fit_mle(problem, **(good | change))
    assert caught.value.argument == argument


def test_the_loss_goes_on_beyond_the_smallest_probability():
    """What was seen has probability e^-(10^4 - theta): the loss is that, and not 700 for all that is less likely."""
    mdp = livarot.MNLMDP.from_function(
        1,
        2,
        1,
        features=lambda h, s, a: ([0, 1], [[1.0], [0.0]]),
        offset=lambda h, s, a: [-1e4, 0.0],
        reward=np.zeros((1, 2, 1)),
        theta=[[0.0]],
    )
    found = fit_mle(mdp.problem, np.array([0]), np.array([0], dtype=np.int32), reg=1.0)
    assert found.theta[0] == pytest.approx(1.0)
    assert found.objective == pytest.approx(1e4 - 0.5)
