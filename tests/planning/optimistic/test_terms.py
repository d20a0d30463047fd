"""Optimistic plans with costs, discount, rewards of the next state, masks and terminal states."""

from __future__ import annotations

import numpy as np
import pytest

import livarot
from livarot.estimation.omd import whitened
from livarot.planning.sampling import OutcomeSampling, sampled_plan
from tests.support.engines import engine
from tests.support.terms import random_case
from tests.twins import terms

RULES = {
    "joint": livarot.JointMaximum(),
    "variance": livarot.VarianceBonus(),
    "second": livarot.SecondOrderBonus(),
    "max-norm": livarot.MaxNormBonus(),
    "plug-in": livarot.PlugIn(),
}


def estimate_of(mdp, replicas=1, weight=4.0):
    problem = mdp.problem
    gram = np.broadcast_to(problem.rows.pack_identity(weight), (replicas, *problem.gram_shape)).copy()
    theta = np.broadcast_to(mdp.theta, (replicas, *mdp.theta.shape)).copy()
    return whitened(problem, theta, gram)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("costs", [False, True])
def test_the_joint_maximum_is_that_of_a_grid(seed, costs):
    mdp, told = random_case(seed, dim=1, costs=costs)
    problem, radius, weight = mdp.problem, 0.8, 4.0
    plan = livarot.optimistic_plan(problem, estimate_of(mdp, weight=weight), radius).in_units(problem)
    grid = [np.linspace(t[0] - radius / 2.0, t[0] + radius / 2.0, 401).tolist() for t in mdp.theta]
    choices = {}
    for h, s, a in told["law"]:
        phi = problem.features(h, s, a)[:, 0].tolist()
        choices[h, s, a] = dict(zip(problem.next_states(h, s, a).tolist(), phi, strict=True))
    value, _ = terms.optimal(**told, expect=terms.of_a_grid(choices, grid, max))
    expected = float(problem.start @ np.array(value[0]))
    assert plan.start_value[0] >= expected - 1e-9
    assert plan.start_value[0] == pytest.approx(expected, abs=2e-3)  # of a range of 70: the grid is fine, not exact
    assert plan.upper[0] >= plan.start_value[0] - 1e-9
    assert plan.start_value[0] > problem.start @ livarot.solve(mdp).value[0]


@pytest.mark.parametrize("rule", list(RULES))
def test_radius_zero_is_the_plan_of_the_truth_and_engines_agree(rule):
    mdp, _ = random_case(3)
    problem = mdp.problem
    best = livarot.solve(mdp)
    plans = [livarot.optimistic_plan(problem, estimate_of(mdp, n), 0.0, RULES[rule]) for n in (1, 9)]
    assert [plan.engine for plan in plans] == ["pairs", "replicas"]
    for name in ("value", "policy"):
        one, many = (getattr(plan, name) for plan in plans)
        assert np.array_equal(np.broadcast_to(one, many.shape), many)
    found = plans[0].in_units(problem).value[0]
    np.testing.assert_allclose(found, best.value, rtol=0, atol=1e-8)


@pytest.mark.parametrize("rule", list(RULES))
@pytest.mark.parametrize("seed", range(3))
def test_no_rule_plays_what_does_not_exist(rule, seed):
    mdp, _ = random_case(seed, horizon=4, n_states=5, n_actions=4, dim=3)
    problem = mdp.problem
    for replicas in (1, 9):
        plan = livarot.optimistic_plan(problem, estimate_of(mdp, replicas, 1.0), 1.5, RULES[rule])
        there = np.take_along_axis(
            np.broadcast_to(problem.exists, (replicas, *problem.exists.shape)), plan.policy[..., None], -1
        )
        assert there.all()
        assert np.isfinite(plan.value).all() and (plan.value >= 0.0).all()
        left = problem.horizon - np.arange(problem.horizon + 1)[:, None]
        if rule in ("joint", "variance", "plug-in"):
            assert (plan.value[:, :-1] <= left[:-1] + 1e-9).all()
        optimum = float(problem.start @ livarot.solve(mdp).normalised.value[0])
        if rule != "plug-in":
            assert (plan.start_value >= optimum - 1e-9).all()


def test_masked_states_are_screened_too():
    """Many actions of three outcomes, some missing; nothing that outlasts a stage: the screened engine."""
    rng = np.random.default_rng(5)
    mask = rng.random((6, 8)) < 0.8
    mask[:, 0] |= ~mask.any(axis=1)
    phi = rng.standard_normal((6, 8, 4, 3)) / 3
    nexts = np.stack([[rng.permutation(6)[:4] for _ in range(8)] for _ in range(6)])
    mdp = livarot.MNLMDP.from_function(
        5, 6, 8,
        features=lambda h, s, a: (nexts[s, a], phi[s, a]),
        reward=rng.random((6, 8)) * mask, theta=rng.standard_normal(3), available=mask, normalise=True,
    )  # fmt: skip
    problem = mdp.problem
    plan = livarot.optimistic_plan(problem, estimate_of(mdp), 0.5)
    assert plan.engine == "screened"
    assert mask[np.arange(6), plan.policy[0]].all()
    with engine("pairs"):
        every = livarot.optimistic_plan(problem, estimate_of(mdp), 0.5)
    np.testing.assert_allclose(plan.value, every.value, rtol=0, atol=1e-9)
    assert np.array_equal(plan.policy, every.policy)
    assert plan.upper[0] >= plan.start_value[0] >= problem.start @ livarot.solve(mdp).value[0] - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_sampled_plans_play_what_exists(seed):
    mdp, _ = random_case(seed)
    problem = mdp.problem
    normals = np.random.default_rng(seed).standard_normal((2, problem.horizon, 5, problem.dim))
    plan = sampled_plan(problem, estimate_of(mdp, 2), 0.3, OutcomeSampling(), normals)
    there = np.take_along_axis(np.broadcast_to(problem.exists, (2, *problem.exists.shape)), plan.policy[..., None], -1)
    assert there.all()
    zero = sampled_plan(problem, estimate_of(mdp, 2), 0.0, OutcomeSampling(), normals)
    np.testing.assert_allclose(zero.in_units(problem).value[0], livarot.solve(mdp).value, rtol=0, atol=1e-8)
