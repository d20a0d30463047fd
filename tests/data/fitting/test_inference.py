"""Covariances and confidence sets: closed forms, the inequalities of the theorem one by one, and coverage."""

import math

import numpy as np
import pytest
from scipy.stats import chi2, norm

from livarot.data import Choices, MNLTransition
from livarot.data.fitting.inference import (
    _evidence_cost,
    finite_sample_set,
    likelihood_radius,
    likelihood_ratio_test,
    pairwise_radius,
)
from livarot.data.fitting.likelihood import log_likelihood, reach
from livarot.data.fitting.newton import maximise
from livarot.errors import LivarotError
from tests.support.machine_logs import PAYS, fitted
from tests.twins import data as naive


def choices_of(start, features, count, offset=None):
    return Choices(start, features, count, tuple(f"x{j}" for j in range(features.shape[1])), offset)


def test_one_coefficient_by_hand():
    """k of n choose the first of two alternatives: theta = log(k/(n-k)), variance 1/k + 1/(n-k)."""
    k, n = 30, 100
    data = Choices(np.array([0, 2]), np.array([[1.0], [0.0]]), np.array([k, n - k], dtype=float), ("x",))
    fit = MNLTransition().fit(data)
    assert fit.theta_[0] == pytest.approx(math.log(k / (n - k)), rel=1e-10)
    assert fit.covariance_[0, 0] == pytest.approx(1 / k + 1 / (n - k), rel=1e-10)
    sandwich = MNLTransition(covariance="sandwich").fit(data)
    assert sandwich.covariance_[0, 0] == pytest.approx(1 / k + 1 / (n - k), rel=1e-9)  # the model is saturated
    table = fit.summary(level=0.9).table
    error = math.sqrt(1 / k + 1 / (n - k))
    assert table.loc["x", "upper"] == pytest.approx(fit.theta_[0] + norm.ppf(0.95) * error)
    assert table.loc["x", "P>|z|"] == pytest.approx(2 * norm.sf(abs(fit.theta_[0]) / error))
    facts = fit.summary().facts
    value = k * math.log(k / n) + (n - k) * math.log(1 - k / n)
    assert facts["Log-likelihood"] == pytest.approx(value)
    assert facts["Log-lik. at zero"] == pytest.approx(-n * math.log(2))
    assert facts["Pseudo R-squared"] == pytest.approx(1 - value / (-n * math.log(2)))
    assert facts["LR chi2"] == pytest.approx(2 * (value + n * math.log(2)))
    assert facts["AIC"] == pytest.approx(2 - 2 * value)
    test = likelihood_ratio_test(-n * math.log(2), value, 1)
    assert test.p_value == pytest.approx(chi2.sf(test.statistic, 1))


def test_the_sandwich_by_loops():
    start, x, count, _, _ = naive.sample(0)
    fit = MNLTransition(covariance="sandwich", reg=0.5).fit(choices_of(start, x, count))
    _, _, hessian, scores = naive.derivatives(start, x, count, np.zeros(len(x)), fit.theta_)
    bread = np.linalg.inv(hessian + 0.5 * np.eye(3))
    np.testing.assert_allclose(fit.covariance_, bread @ scores @ bread, rtol=1e-10)


def test_the_wald_set():
    start, x, count, _, _ = naive.sample(1)
    fit = MNLTransition().fit(choices_of(start, x, count))
    found = fit.confidence_set(0.9)
    assert found.radius == pytest.approx(math.sqrt(chi2.ppf(0.9, 3)))
    np.testing.assert_allclose(found.matrix @ fit.covariance_, np.eye(3), atol=1e-9)


def test_the_radius_solves_its_equation():
    for bound in (1e-6, 1.0, 50.0):
        for wide in (0.0, 1e-7, 0.1, 3.0, 100.0):
            for push in (0.0, 0.01 / max(wide, 1.0)):
                t = likelihood_radius(bound, wide, push)
                x = wide * t
                curve = t**2 / 2 if x < 1e-3 else (math.exp(-x) + x - 1) / wide**2
                assert curve - push * t == pytest.approx(bound, rel=1e-3 if x < 1e-3 else 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_evidence_bound_holds(seed):
    """-log of the evidence is at most the bound of steps 2 and 3: importance sampling of a two-dimensional integral."""
    start, x, count, _, _ = naive.sample(seed, n=15 * (seed + 1), dim=2, scale=0.5)
    data = choices_of(start, x, count)
    found = maximise(data, reg=0.01)
    low = np.linalg.cholesky(found.hessian)
    far = reach(data, found.theta, low)
    rng = np.random.default_rng(seed)
    for scale in (0.1, 1.0, 10.0):
        cost = _evidence_cost(np.linalg.eigvalsh(found.hessian), float(found.theta @ found.theta), far.farthest, scale)
        wide = np.linalg.cholesky(np.linalg.inv(found.hessian + np.eye(2) / scale**2)) * 1.5
        z = rng.normal(size=(4000, 2))
        points = found.theta + z @ wide.T
        proposal = -0.5 * (z**2).sum(axis=1) - math.log(2 * math.pi) - np.log(np.diag(wide)).sum()
        prior = -0.5 * (points**2).sum(axis=1) / scale**2 - math.log(2 * math.pi) - 2 * math.log(scale)
        likelihood = np.array([log_likelihood(data, point) for point in points]) - found.log_likelihood
        weights = np.exp(likelihood + prior - proposal)
        evidence, error = weights.mean(), weights.std() / math.sqrt(len(weights))
        assert -math.log(evidence) <= cost + 4 * error / evidence


def test_the_ellipsoid_holds_the_likelihood_ratio_set():
    """Nowhere outside of it is the likelihood ratio within the bound: along many lines, small sample."""
    start, x, count, _, _ = naive.sample(3, n=30, dim=2)
    data = choices_of(start, x, count)
    found = maximise(data)
    low = np.linalg.cholesky(found.hessian)
    far = reach(data, found.theta, low)
    rng = np.random.default_rng(0)
    for bound in (0.5, 3.0, 10.0):
        t = likelihood_radius(bound, far.average)
        for _ in range(20):
            v = np.linalg.solve(low.T, (w := rng.normal(size=2)) / np.linalg.norm(w))
            assert found.log_likelihood - log_likelihood(data, found.theta + t * v) >= bound


def test_bad_levels_and_kinds():
    start, x, count, _, _ = naive.sample(4)
    fit = MNLTransition().fit(choices_of(start, x, count))
    with pytest.raises(LivarotError, match="level"):
        fit.confidence_set(95)
    with pytest.raises(LivarotError, match="'profile' is not known; use 'wald' or 'finite-sample'"):
        fit.confidence_set(kind="profile")
    with pytest.raises(LivarotError, match="covariance: 'hc3' is not known"):
        MNLTransition(covariance="hc3").fit(choices_of(start, x, count))
    with pytest.raises(LivarotError, match="too far from the maximum"):
        MNLTransition(reg=1e5).fit(choices_of(start, x, count)).confidence_set(kind="finite-sample")


@pytest.mark.statistical
def test_coverage():
    """500 data sets of 300 ragged choices, d = 3: Wald 92.5-97.5 % (error of a share: 1 %), finite-sample >= 95 %."""
    inside = {"wald": 0, "finite-sample": 0}
    for seed in range(500):
        start, x, count, _, theta = naive.sample(1000 + seed, n=300)
        fit = MNLTransition().fit(choices_of(start, x, count))
        for kind in inside:
            inside[kind] += fit.confidence_set(0.95, kind=kind).contains(theta)
    assert 0.925 <= inside["wald"] / 500 <= 0.975
    assert inside["finite-sample"] / 500 >= 0.95


@pytest.mark.statistical
def test_coverage_of_small_samples():
    """300 data sets of 12 choices with two alternatives, d = 1: the finite-sample set where asymptotics fail."""
    rng = np.random.default_rng(0)
    inside = tried = 0
    while tried < 300:
        x = rng.normal(size=(12, 2, 1)) * 2.0
        chosen = (x[:, :, 0] + rng.gumbel(size=(12, 2))).argmax(axis=1)
        try:
            fit = MNLTransition().fit(Choices.from_arrays(x, chosen=chosen))
        except LivarotError:  # separable: no estimate, and no set
            continue
        tried += 1
        inside += fit.confidence_set(0.95, kind="finite-sample").contains([1.0])
    assert inside / tried >= 0.95


def test_the_set_shrinks_with_data():
    start, x, count, _, _ = naive.sample(5)
    data = choices_of(start, x, count)
    widths = [
        finite_sample_set(d, maximise(d), 0.95).width([1.0, 0.0, 0.0])
        for d in (data, data.with_counts(4.0 * count), data.with_counts(100.0 * count))
    ]
    assert widths[0] > 1.7 * widths[1] > 3.0 * widths[2]


@pytest.mark.parametrize("homogeneous", [True, False])
def test_over_the_pairwise_radius_all_pairs_hold_together(homogeneous):
    """Draws of N(theta_hat, Cov), and every pair's own chi-square, written out: as often as the level says or more."""
    fit = fitted(900, stage=None if homogeneous else "week", homogeneous=homogeneous)
    mdp = fit.to_mdp(PAYS, 3, "new", terminal="broken")
    problem, level = mdp.problem, 0.8
    found = fit.confidence_set(level, problem=problem)
    sets = [found] if homogeneous else found
    radius = pairwise_radius(problem, sets, level)
    assert radius < min(own.radius for own in sets)
    assert radius == pytest.approx(norm.isf((1.0 - level) / 2 / (2 * len(sets))), rel=1e-9)  # an action, a coefficient
    rng = np.random.default_rng(0)
    inside = np.ones(4000, dtype=bool)
    for h in range(3 if not homogeneous else 1):
        cov = np.linalg.inv(sets[h].matrix)
        off = rng.multivariate_normal(np.zeros(2), cov, size=len(inside))
        for s, a in np.ndindex(problem.n_states, problem.n_actions):
            phi = problem.rows.features(problem.rows.pair(int(problem.stage_table[h]), s, a))
            if len(phi) > 1:
                apart = phi[1:] - phi[0]
                seen = off @ apart.T
                inside &= np.einsum("ni,ij,nj->n", seen, np.linalg.pinv(apart @ cov @ apart.T), seen) <= radius**2
    assert level - 0.02 < inside.mean() < level + 0.06


def test_pairs_that_need_every_direction_have_the_wald_radius():
    log = {"state": ["a"] * 60, "action": ["x"] * 60, "next_state": ["a", "b", "c"] * 20}
    states = {"state": ["a", "b", "c"], "u": [0.0, 1.0, 0.0], "v": [0.0, 0.0, 1.0]}
    fit = MNLTransition(features=["u", "v"], reachable={"a": ["a", "b", "c"]}, states=states).fit(log)
    problem = fit.to_mdp({"a": 1.0}, 2, "a", terminal=["b", "c"]).problem
    own = fit.confidence_set(0.9, problem=problem)
    assert pairwise_radius(problem, [own], 0.9) == own.radius == pytest.approx(np.sqrt(chi2.ppf(0.9, 2)))
