"""Gaussian optimistic sampling and posterior samples: the twins, the law of the samples, bad input."""

import numpy as np
import pytest

from livarot.errors import LivarotError
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import PlugIn
from livarot.planning.sampling import LargestNormSampling, OutcomeSampling, correlated, posterior_sample, sampled_plan
from tests.support.models import random_estimate, random_model, replica, same_bits, to_mdp, to_model
from tests.twins.field import backward, orrl_bonus, rrl_bonus, samples


def made(kind, shared, seed=0, **sizes):
    rng = np.random.default_rng(seed)
    options = {"H": 3, "S": 4, "A": 3, "d": 4, "U": 4} | sizes
    model = random_model(rng, kind=kind, offsets=True, one_table=shared, **options)
    mdp = to_mdp(model, shared=shared)
    return rng, mdp, *random_estimate(rng, mdp.problem, 2)


@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("rule", [LargestNormSampling(), OutcomeSampling(), OutcomeSampling(0.5)])
def test_plans_are_the_twins(kind, shared, rule):
    rng, mdp, estimate, dense = made(kind, shared)
    problem, model, beta = mdp.problem, to_model(mdp), 0.05
    normals = rng.normal(size=(2, 3, 5, problem.dim))
    plan = sampled_plan(problem, estimate, beta, rule, normals)
    reach = problem.reachable[:-1]
    for r in range(2):
        memory = {"theta": estimate.theta[r], "gram": dense[r]}
        xi = [samples(dense[r, problem.stage_parameter[h]], 3 * beta, normals[r, h]) for h in range(3)]

        def bonus(h, row, theta, gram, xi=xi):
            if isinstance(rule, LargestNormSampling):
                return rrl_bonus(row, gram, xi[h])
            whole = orrl_bonus(row, theta, gram, xi[h], beta, 3)
            return whole + (rule.constant / 3 - 1) * (whole - orrl_bonus(row, theta, gram, xi[h], 0.0, 3))

        policy, value = backward(model, shared, memory, bonus)
        np.testing.assert_allclose(plan.value[r, :-1][reach], value[:-1][reach], rtol=0, atol=1e-11)
        np.testing.assert_array_equal(plan.policy[r][reach], policy[reach])
        assert plan.start_value[r] == pytest.approx(problem.start @ value[0], abs=1e-11)
    alone = sampled_plan(problem, replica(estimate, 1), beta, rule, normals[1:])
    assert same_bits((alone.value[0], alone.policy[0]), (plan.value[1], plan.policy[1]))


def test_without_a_radius_both_are_the_plug_in_plan():
    rng, mdp, estimate, _ = made("dense", False, H=4)
    normals = rng.normal(size=(2, 4, 2, 4))
    exact = optimistic_plan(mdp.problem, estimate, 0.0, PlugIn())
    for rule in (LargestNormSampling(), OutcomeSampling()):
        plan = sampled_plan(mdp.problem, estimate, 0.0, rule, normals)
        np.testing.assert_allclose(plan.value, exact.value, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(plan.policy, exact.policy)


@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_samples_have_the_inverse_gram_as_covariance(kind):
    """With the unit vectors for z the samples are the columns of W', and W'W = gram^-1 holds exactly."""
    _, mdp, estimate, dense = made(kind, False)
    problem = mdp.problem
    units = np.broadcast_to(np.eye(problem.dim), (2, 3, problem.dim, problem.dim))
    columns = correlated(problem, estimate.whiten, problem.stage_parameter, units)
    product = columns @ columns.swapaxes(-1, -2) @ dense
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(problem.dim), product.shape), rtol=0, atol=1e-10)
    one = np.zeros((2, 3, problem.dim))
    one[..., 1] = 1.0
    drawn = posterior_sample(problem, estimate, 0.5, one)
    np.testing.assert_allclose(drawn, estimate.theta + 0.5 * columns[..., 1], rtol=0, atol=1e-15)


def test_bad_input():
    rng, mdp, estimate, _ = made("dense", False)
    normals = rng.normal(size=(2, 3, 2, 4))
    with pytest.raises(LivarotError, match="radius"):
        sampled_plan(mdp.problem, estimate, -1.0, LargestNormSampling(), normals)
    with pytest.raises(LivarotError, match="normals"):
        sampled_plan(mdp.problem, estimate, 1.0, LargestNormSampling(), normals[:1])
    with pytest.raises(LivarotError, match="constant"):
        OutcomeSampling(-1.0)
