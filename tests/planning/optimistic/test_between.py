"""Plans between bounds of logits: the exact plan where bounds meet, the joint maximum over ellipsoids, terms."""

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.estimation.level_support import contrasts
from livarot.estimation.omd import initial_estimate
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.between import plan_between
from livarot.planning.optimistic.rules import JointMaximum
from tests.support.models import random_model, to_mdp


def by_pair(problem, numbers):
    """(R, K, contrasts) as (R, K, pairs)."""
    pairs = contrasts(problem).of_pair
    return np.where(pairs < 0, 0.0, numbers[:, :, pairs])


def two_outcome_model(shared):
    rng = np.random.default_rng(3)
    model = random_model(rng, H=4, S=3, A=2, d=3, U=2, kind="dense", offsets=True, one_table=shared)
    return to_mdp(model, shared=shared)


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
def test_bounds_that_meet_give_the_exact_plan(shared):
    mdp = two_outcome_model(shared)
    logits = by_pair(mdp.problem, mdp.theta[None] @ contrasts(mdp.problem).vectors.T)
    plan, exact = plan_between(mdp.problem, logits, logits), livarot.solve(mdp)
    assert plan.start_value[0] == pytest.approx(mdp.problem.start @ exact.normalised.value[0], abs=1e-12)
    reachable = mdp.problem.reachable[:-1]
    np.testing.assert_array_equal(plan.policy[0][reachable], exact.policy[reachable])


@pytest.mark.parametrize("mdp", [two_outcome_model(False), two_outcome_model(True), envs.make("park-two-state")])
def test_bounds_of_ellipsoids_give_the_joint_maximum(mdp):
    problem, vectors = mdp.problem, contrasts(mdp.problem).vectors
    estimate = initial_estimate(problem, 2, 1.7)
    estimate = estimate._replace(theta=estimate.theta + np.random.default_rng(1).normal(size=estimate.theta.shape))
    radius = np.array([0.8, 1.3])
    centre, width = estimate.theta @ vectors.T, np.linalg.norm(vectors, axis=1) / np.sqrt(1.7)
    away = radius[:, None, None] * width
    plan = plan_between(problem, by_pair(problem, centre - away), by_pair(problem, centre + away))
    joint = optimistic_plan(problem, estimate, radius, JointMaximum())
    np.testing.assert_allclose(plan.value, joint.value, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(plan.policy, joint.policy)
    np.testing.assert_allclose(plan.start_value, joint.start_value, rtol=1e-10)


def test_discount_rewards_of_next_states_and_terminal_rewards():
    mdp = livarot.MNLMDP.from_function(
        4,
        2,
        2,
        features=lambda h, s, a: ([0, 1], [[0.0], [1.0 if a else -0.5]]),
        theta=[0.7],
        reward=lambda h, s, a, s2: float(s2 == 1) - 0.3 * a,
        terminal_reward=[0.0, 2.0],
        discount=0.9,
    )
    logits = by_pair(mdp.problem, mdp.theta[None] @ contrasts(mdp.problem).vectors.T)
    plan, exact = plan_between(mdp.problem, logits, logits), livarot.solve(mdp)
    assert plan.start_value[0] == pytest.approx(mdp.problem.start @ exact.normalised.value[0], abs=1e-12)
