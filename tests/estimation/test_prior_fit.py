"""Maximum likelihood under a prior per replica: stationarity, the learned ridge, what stages have in common."""

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.errors import LivarotError
from livarot.estimation.history import empty_history, record
from livarot.estimation.prior_fit import (
    Pool,
    PoolGuess,
    Prior,
    first_pool,
    fit_pool,
    fit_prior,
    learned_prior,
    nuisance,
    pooled_prior,
    with_mean_unknown,
)
from livarot.model.episodes import Episodes
from tests.estimation.test_level_set import data_of, history_of
from tests.support.models import random_model, to_mdp
from tests.twins import core as ref
from tests.twins import level_set as twin

CHAIN = envs.hard_chain(4, dim=3, gap=0.05)
GUESS = PoolGuess(tau=0.1, weight=1.0, mean_reg=0.01)


def random_prior(rng, problem, replicas):
    root = problem.rows.unpack(problem.rows.pack(rng.normal(size=(replicas, problem.dim, problem.dim))))
    dense = root @ np.swapaxes(root, 1, 2) + 0.1 * np.eye(problem.dim)
    return Prior(problem.rows.pack(dense), rng.normal(size=(replicas, problem.dim))), dense


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_the_estimate_is_stationary_and_its_gram_the_hessian(kind, shared):
    rng = np.random.default_rng(2)
    mdp = to_mdp(random_model(rng, H=3, S=4, A=2, d=4, U=3, kind=kind, offsets=True, one_table=shared), shared=shared)
    problem, history = mdp.problem, history_of(mdp, rng, 20)
    prior, dense = random_prior(rng, problem, 2)
    start = rng.normal(size=(2, *problem.theta_shape))
    kept = start.copy()
    found = fit_prior(problem, start, history, prior)
    np.testing.assert_array_equal(start, kept)
    cold = fit_prior(problem, 0 * start, history, prior)
    np.testing.assert_allclose(found.theta, cold.theta, atol=1e-7)
    for r, k in np.ndindex(2, problem.n_parameters):
        data, hat = data_of(mdp, history, r, k), found.theta[r, k]
        slope = twin.gradient(data, hat) + dense[r] @ (hat - prior.mean[r])
        np.testing.assert_allclose(slope, 0.0, atol=1e-6)
        hessian = dense[r] + sum(sum(counts) * ref.hessian(row, hat) for row, counts in data)
        np.testing.assert_allclose(problem.rows.unpack(found.gram)[r, k], hessian, atol=1e-8)


def test_extreme_priors():
    rng = np.random.default_rng(3)
    mdp = to_mdp(random_model(rng, H=2, S=3, A=2, d=3, U=3))
    problem, history = mdp.problem, history_of(mdp, rng, 10)
    mean = rng.normal(size=(2, 3))
    tight = fit_prior(
        problem, np.zeros((2, 2, 3)), history, Prior(np.tile(problem.rows.pack_identity(1e9), (2, 1)), mean)
    )
    np.testing.assert_allclose(tight.theta, np.repeat(mean[:, None], 2, axis=1), atol=1e-6)
    loose = fit_prior(
        problem, np.zeros((2, 2, 3)), history, Prior(np.tile(problem.rows.pack_identity(1e-6), (2, 1)), mean)
    )
    assert np.isfinite(loose.theta).all()


@pytest.mark.parametrize("mdp", [to_mdp(random_model(np.random.default_rng(4), d=4, U=3, kind="block")), CHAIN])
def test_the_learned_ridge(mdp):
    """One variance along the nuisance and one across it, or one in all where no direction is a nuisance."""
    problem, rng = mdp.problem, np.random.default_rng(4)
    (count, d), basis = problem.theta_shape, nuisance(problem)
    prior = Prior(np.tile(problem.rows.pack_identity(2.0), (2, 1)), np.zeros((2, d)))
    found = fit_prior(problem, np.zeros((2, count, d)), history_of(mdp, rng, 15), prior)
    learned = problem.rows.unpack(learned_prior(problem, found, 4.0, 0.5).precision)
    for r in range(2):
        spread = sum(
            np.outer(theta, theta) + np.linalg.inv(gram)
            for theta, gram in zip(found.theta[r], problem.rows.unpack(found.gram)[r], strict=True)
        )
        expected = np.zeros((d, d))
        along = basis @ basis.T
        for projection in (along, np.eye(d) - along):
            n = np.trace(projection)
            if n > 0.5:
                variance = (4 * n * 0.5 + np.trace(projection @ spread)) / ((4 + count) * n)
                expected += projection / variance
        np.testing.assert_allclose(learned[r], expected, rtol=1e-9, atol=1e-12)
    assert basis.shape[1] == (mdp is CHAIN)


@pytest.mark.parametrize("dim", [2, 3, 4])
def test_the_chain_s_nuisance_is_its_bias(dim):
    basis = nuisance(envs.hard_chain(5, dim=dim, gap=0.05).problem)
    np.testing.assert_allclose(np.abs(basis), np.eye(dim)[:, -1:], atol=1e-7)


def test_no_contrast_touches_the_nuisance_and_features_do():
    rng = np.random.default_rng(5)
    for trial in range(10):
        model = random_model(rng, H=2, S=3, A=2, d=5, U=3, ragged=False, one_table=bool(trial % 2))
        for stage in model["rows"]:  # the last two coordinates are those of the next state, whatever the action
            for state in stage:
                for nxt, phi, _ in state:
                    phi[:, 3:] = 0.2 * np.sin([[n, 2 * n] for n in nxt])
                    state[:] = [(state[0][0], p, o) for _, p, o in state]
        problem = to_mdp(model, normalise=True).problem
        basis = nuisance(problem)
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-9)
        touched = 0.0
        for s in range(3):
            rows = [problem.features(0, s, a) for a in range(2)]
            centred = [phi - phi.mean(axis=0) for phi in rows]
            for i in range(3):
                difference = centred[0][i] - centred[1][i]
                np.testing.assert_allclose(difference @ basis, 0.0, atol=1e-5)
            touched = max(touched, np.abs(np.concatenate(centred) @ basis).max(initial=0.0))
        assert basis.shape[1] == 0 or touched > 1e-3
    assert nuisance(envs.random_mdp().problem).shape == (4, 0)


def test_pooling_written_out():
    rng = np.random.default_rng(6)
    mdp = envs.hard_chain(5, dim=3, gap=0.05)
    problem, basis = mdp.problem, nuisance(mdp.problem)
    pool = Pool(rng.normal(size=(2, 1)), np.ones((2, 1, 1)), np.array([0.2, 1.5]))
    prior = pooled_prior(problem, pool, 0.7)
    for r in range(2):
        dense = 0.7 * (np.eye(3) - basis @ basis.T) + basis @ basis.T / pool.tau[r]
        np.testing.assert_allclose(problem.rows.unpack(prior.precision)[r], dense, atol=1e-12)
        np.testing.assert_allclose(prior.mean[r], basis @ pool.mean[r], atol=1e-12)
    found = fit_prior(problem, np.zeros((2, 5, 3)), history_of(mdp, rng, 30), prior)
    new, wider = fit_pool(problem, found, pool, GUESS), with_mean_unknown(problem, found, pool)
    for r in range(2):
        precision = problem.rows.unpack(prior.precision)[r]
        covariances = [np.linalg.inv(g) for g in problem.rows.unpack(found.gram)[r]]
        curve = 0.01 + sum((basis.T @ (precision - precision @ c @ precision) @ basis)[0, 0] for c in covariances)
        assert new.spread[r, 0, 0] == pytest.approx(1 / curve, rel=1e-9)
        away = [(basis.T @ theta)[0] - pool.mean[r, 0] for theta in found.theta[r]]
        mean = pool.mean[r, 0] + 0.5 / curve * (sum(away) / pool.tau[r] - 0.01 * pool.mean[r, 0])
        assert new.mean[r, 0] == pytest.approx(mean, rel=1e-9)
        known = sum(1 - (basis.T @ c @ basis)[0, 0] / pool.tau[r] for c in covariances)
        square = sum(((basis.T @ theta)[0] - mean) ** 2 for theta in found.theta[r])
        assert new.tau[r] == pytest.approx((0.1 + square) / (1 + known), rel=1e-9)
        for k, c in enumerate(covariances):
            total = c + c @ precision @ basis @ pool.spread[r] @ basis.T @ precision @ c
            np.testing.assert_allclose(problem.rows.unpack(wider.gram)[r, k], np.linalg.inv(total), rtol=1e-7)


@pytest.mark.parametrize("jitter", [0.0, 1.0])
def test_stages_that_differ_are_noticed(jitter):
    """tau from 400 episodes of random play: small where stages agree, large where they do not."""
    mdp = envs.jittered_chain(10, gap=0.05, bias_jitter=jitter)
    problem, history = mdp.problem, empty_history(mdp.problem, 2)
    played = livarot.simulate(mdp, np.full((10, 12, 2), 0.5), 800, seed=3)
    for t in range(0, 800, 2):
        history = record(problem, history, Episodes(*(part[t : t + 2] for part in played)))
    pool, theta = first_pool(problem, 2, GUESS), np.zeros((2, 10, 2))
    for _ in range(100):
        found = fit_prior(problem, theta, history, pooled_prior(problem, pool, 1.0))
        theta, pool = found.theta, fit_pool(problem, found, pool, GUESS)
    true = np.std(mdp.theta[:, 1])
    assert (pool.tau < 0.1).all() if jitter == 0 else (pool.tau > 0.3 * true**2).all()


def test_parts_of_another_problem_are_refused():
    mdp = envs.hard_chain(4, gap=0.1)
    history = history_of(mdp, np.random.default_rng(0), 2, replicas=1)
    good = Prior(mdp.problem.rows.pack_identity()[None], np.zeros((1, 2)))
    for theta, prior, named in (
        (np.zeros((1, 4, 3)), good, "theta"),
        (np.zeros((1, 4, 2)), good._replace(mean=np.zeros((1, 3))), "mean"),
        (np.zeros((1, 4, 2)), good._replace(precision=np.zeros((1, 3))), "precision"),
    ):
        with pytest.raises(LivarotError, match=named):
            fit_prior(mdp.problem, theta, history, prior)
