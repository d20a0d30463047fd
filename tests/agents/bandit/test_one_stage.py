"""Bounds for one informative stage: the box is solved exactly, and holds over the set."""

import math

import numpy as np
import pytest

import livarot
from livarot.agents import OFUMNLPP
from livarot.envs import mnl_bandit
from tests.support.field import box_maximum
from tests.support.models import random_estimate, rows_of
from tests.twins import core as ref


def raised(row, theta, gram, values, beta):
    z = [a + beta * ref.dual_norm(phi, gram) for a, phi in zip(ref.logits(row, theta), row[1], strict=True)]
    weight = [math.exp(x - max(z)) for x in z]
    return ref.dot(weight, values) / math.fsum(weight)


def planned(mdp, estimate, beta, **settings):
    """The plan of an agent whose radius is beta."""
    agent = OFUMNLPP(reg=1.0, **settings)
    scale = beta / agent.radius(mdp.problem, 0) * agent.beta_scale
    agent = OFUMNLPP(reg=1.0, beta_scale=scale, **settings)
    state = agent.init(mdp.problem, len(estimate.theta))._replace(estimate=estimate)
    return agent.plan(mdp.problem, state, None)


@pytest.mark.parametrize("n_outcomes", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_the_box_is_solved_exactly(n_outcomes, seed):
    rng = np.random.default_rng(seed)
    values = rng.random(n_outcomes)
    mdp = mnl_bandit(5, n_outcomes, 3, seed=seed, values=values)
    estimate, dense = random_estimate(rng, mdp.problem, 2)
    rows = rows_of(mdp)[0][0]
    for beta in (0.0, 0.1, 1.0, 4.0):
        plan = planned(mdp, estimate, beta)
        printed = planned(mdp, estimate, beta, printed_utilities=True)
        for r in range(2):
            place = estimate.theta[r, 0], dense[r, 0], values, beta
            bounds = [box_maximum(row, *place) for row in rows]
            assert plan.start_value[r] == pytest.approx(max(bounds), rel=1e-10)
            assert plan.policy[r, 0, 0] == ref.first_best(bounds)
            plain = [raised(row, *place) for row in rows]
            assert printed.start_value[r] == pytest.approx(max(plain), rel=1e-10)
        assert printed.upper is None


@pytest.mark.parametrize("seed", range(8))
def test_the_box_bounds_every_expectation_over_the_set(seed):
    rng = np.random.default_rng(seed)
    values = rng.random(4)
    mdp = mnl_bandit(3, 4, 3, seed=seed, values=values)
    estimate, dense = random_estimate(rng, mdp.problem, 1)
    rows = rows_of(mdp)[0][0]
    beta = 10 ** rng.uniform(-2, 0.5)
    plan = planned(mdp, estimate, beta)
    root = np.linalg.cholesky(np.linalg.inv(dense[0, 0]))
    for _ in range(200):
        step = rng.normal(size=3)
        step *= beta * rng.random() ** 0.2 / np.linalg.norm(step)
        theta = estimate.theta[0, 0] + root @ step
        assert max(ref.expected_value(row, theta, values) for row in rows) <= plan.upper[0] + 1e-12


def test_raising_every_utility_is_not_a_bound():
    """One arm, outcomes worth 0, .1 and 1 with equal widths: raising the poor one costs more than it brings."""
    phi = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.3, 0.0]]
    mdp = livarot.MNLMDP.from_function(
        2,
        4,
        1,
        features=lambda h, s, a: ([1, 2, 3], phi) if s == 0 else ([s], np.zeros((1, 3))),
        reward=lambda h, s, a: (0.0, 0.0, 0.1, 1.0)[s] if h == 1 else 0.0,
        theta=[0.0, 2.0, 0.0],
    )
    estimate = livarot.agents.OFUMNLPP(reg=1.0).init(mdp.problem).estimate
    estimate = estimate._replace(theta=mdp.theta[None].copy())
    truth = livarot.solve(mdp).value[0, 0]
    printed = planned(mdp, estimate, 2.0, printed_utilities=True)
    assert printed.start_value[0] < truth - 0.05
    assert planned(mdp, estimate, 2.0).start_value[0] > truth


def test_two_outcomes_both_are_the_joint_maximum():
    """With a zero reference the box, the raised utility and LIVAROT's maximum are one number."""
    mdp = mnl_bandit(5, 2, 3, seed=1)
    estimate, _ = random_estimate(np.random.default_rng(0), mdp.problem, 1)
    joint = livarot.optimistic_plan(mdp.problem, estimate, 0.7).start_value[0]
    assert planned(mdp, estimate, 0.7).start_value[0] == pytest.approx(joint, rel=1e-12)
    assert planned(mdp, estimate, 0.7, printed_utilities=True).start_value[0] == pytest.approx(joint, rel=1e-12)
