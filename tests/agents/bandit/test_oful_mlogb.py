"""OFUL-MLogB: its UCB written out, validity over the confidence set, runs, and where it is not defined."""

import math

import numpy as np
import pytest

import livarot
from livarot.agents import OFULMLogB
from livarot.envs import mnl_bandit
from livarot.running.check_agent import check_agent
from tests.support.episodes import play_agent
from tests.support.models import random_estimate, rows_of
from tests.twins import core as ref


def ucb(row, theta, gram, values, beta, constant):
    """rho.s + beta |Hcal^-1/2 (I (x) x) grad s rho| + c R beta^2 |(I (x) x') Hcal^-1/2|^2, with an SVD."""
    p, v = np.array(ref.softmax(row, theta)), np.asarray(values, dtype=float)
    root = np.linalg.cholesky(np.linalg.inv(gram))
    jacobian = np.diag(p) - np.outer(p, p)
    first = np.linalg.norm(root.T @ np.asarray(row[1]).T @ jacobian @ v)
    second = np.linalg.norm(np.asarray(row[1]) @ root, 2) ** 2
    total = p @ v + beta * first + constant * np.linalg.norm(v) * beta**2 * second
    return min(total, v.max())


@pytest.mark.parametrize("kronecker", [False, True])
@pytest.mark.parametrize("n_outcomes", [2, 4])
def test_the_ucb_is_the_formula(n_outcomes, kronecker):
    rng = np.random.default_rng(n_outcomes)
    values = rng.random(n_outcomes)
    mdp = mnl_bandit(6, n_outcomes, 3, seed=2, values=values, kronecker=kronecker)
    estimate, dense = random_estimate(rng, mdp.problem, 2)
    rows = rows_of(mdp)[0][0]
    for scale in (0.001, 0.05, 0.3):
        agent = OFULMLogB(beta_scale=scale)
        state = agent.init(mdp.problem, 2)._replace(estimate=estimate, episode=9)
        plan = agent.plan(mdp.problem, state, None)
        beta = scale * math.log(n_outcomes) * math.log(11) * math.sqrt(mdp.problem.dim)
        for r in range(2):
            bounds = [ucb(rows[a], estimate.theta[r, 0], dense[r, 0], values, beta, 3.0) for a in range(6)]
            assert plan.start_value[r] == pytest.approx(max(bounds), rel=1e-11)
            assert plan.policy[r, 0, 0] == ref.first_best(bounds)
            np.testing.assert_array_equal(plan.value[r, 1, 1:], values)
            assert plan.radius[r] == pytest.approx(beta, rel=1e-14)


@pytest.mark.parametrize("constant", [0.5, 3.0])
@pytest.mark.parametrize("seed", range(8))
def test_it_bounds_every_expectation_over_the_set(seed, constant):
    """The constant 1/2 suffices; 200 points on the boundary and inside."""
    rng = np.random.default_rng(seed)
    values = rng.random(4)
    mdp = mnl_bandit(3, 4, 3, seed=seed, values=values)
    estimate, dense = random_estimate(rng, mdp.problem, 1)
    rows = rows_of(mdp)[0][0]
    beta = 10 ** rng.uniform(-2, 0.5)
    agent = OFULMLogB(beta_scale=beta / (math.log(4) * math.log(2) * math.sqrt(3)), bonus_constant=constant)
    plan = agent.plan(mdp.problem, agent.init(mdp.problem, 1)._replace(estimate=estimate), None)
    root = np.linalg.cholesky(np.linalg.inv(dense[0, 0]))
    for _ in range(200):
        step = rng.normal(size=3)
        step *= beta * rng.random() ** 0.2 / np.linalg.norm(step)
        theta = estimate.theta[0, 0] + root @ step
        assert max(ref.expected_value(row, theta, values) for row in rows) <= plan.upper[0] + 1e-12


def test_runs_follow_the_twin():
    mdp = mnl_bandit(6, 3, 3, seed=4)
    agent = OFULMLogB(step_size=2.0, reg=3.0, beta_scale=0.05)
    log, _ = play_agent(mdp, agent, 60, seed=1)
    rows, theta, gram = rows_of(mdp)[0][0], np.zeros(3), 3.0 * np.eye(3)
    chosen = set()
    for t in range(60):
        beta = 0.05 * math.log(3) * math.log(t + 2) * math.sqrt(3)
        bounds = [ucb(row, theta, gram, [0.0, 0.5, 1.0], beta, 3.0) for row in rows]
        arm = ref.first_best(bounds)
        assert log["plans"][t].policy[0, 0, 0] == arm == log["episodes"][t].actions[0, 0]
        choice = int(log["episodes"][t].choices[0, 0])
        theta, gram = ref.omd_step(rows[arm], choice, theta, gram, 2.0, [ref.ball(3, mdp.problem.param_bound)])
        estimate = log["states"][t + 1].estimate
        np.testing.assert_allclose(estimate.theta[0, 0], theta, rtol=0, atol=1e-9)
        np.testing.assert_allclose(estimate.gram[0, 0].reshape(3, 3), gram, rtol=0, atol=1e-8)
        chosen.add(arm)
    assert len(chosen) > 1


def test_the_gradient_has_the_right_sign_and_no_ridge():
    """A public implementation has y - p and adds lam theta: its likelihood would go down."""
    mdp = mnl_bandit(10, 3, 3, seed=3)
    _, state = play_agent(mdp, OFULMLogB(step_size=1.0, beta_scale=0.05), 800, seed=0)
    assert np.linalg.norm(state.estimate.theta[0, 0] - mdp.theta[0]) < 0.5 * np.linalg.norm(mdp.theta[0])


def test_constants():
    problem = mnl_bandit(5, 4, 3).problem
    theory = OFULMLogB.theory()
    eta = 0.5 * math.log(4) + 3.0 + 1.0
    reg = 84 * math.sqrt(2) * eta * (3.0 + math.sqrt(3) * 3)
    np.testing.assert_allclose(theory.init(problem).estimate.gram[0, 0].reshape(3, 3), reg * np.eye(3), rtol=1e-14)
    t = 5
    level, growth = math.log(2 * math.sqrt(1 + 2 * t) / 0.05), 3 * math.log(1 + 4 * t) + 5.0
    total = growth * (17 / 16 * reg + 2 * math.sqrt(reg) * level + 16 * level**2) + 2
    total += 7 * math.sqrt(6) / 6 * 3 * eta * math.log(1 + (t + 1) / (2 * reg))
    assert theory.radius(problem, t - 1) == pytest.approx(math.sqrt(2 * eta * total + 36 * reg), rel=1e-12)
    run = livarot.run(mnl_bandit(5, 4, 3), theory, 20, seed=range(3))
    assert run.covered.all() and run.optimism_gap.min() >= -1e-12 and run.optimism_loss.max() == 0.0


def test_it_keeps_the_rules_of_agents():
    check_agent(OFULMLogB(), env=mnl_bandit(5, 3, 3))


def test_it_is_refused_where_it_is_not_defined():
    with pytest.raises(livarot.LivarotError, match="stages have something to learn") as error:
        OFULMLogB().init(livarot.envs.river_swim().problem)
    assert error.value.argument == "problem" and error.value.index == (1,)
    certain = livarot.MNLMDP.from_function(
        2, 1, 1, features=lambda h, s, a: ([0], [[1.0]]), reward=[[1.0]], theta=[0.5]
    )
    with pytest.raises(livarot.LivarotError, match="no stage"):
        livarot.run(certain, OFULMLogB(), 2)
    for settings, argument in (
        ({"reg": 0.0}, "reg"),
        ({"beta_scale": -1.0}, "beta_scale"),
        ({"step_size": -1.0}, "step_size"),
    ):
        with pytest.raises(livarot.LivarotError) as error:
            OFULMLogB(**settings)
        assert error.value.argument == argument


def test_a_decision_between_certain_moves():
    """One informative stage in the middle: what comes before and after is planned exactly."""
    rng = np.random.default_rng(0)

    def features(h, s, a):
        if h == 1 and s in (1, 2):
            return [3, 4], [[0.0, 0.0], [0.6, 0.8 * (2 * a - 1) * (1 if s == 1 else 0.3)]]
        return [1 + a if h == 0 else s], [[0.0, 0.0]]

    mdp = livarot.MNLMDP.from_function(4, 5, 2, features=features, reward=rng.random((4, 5, 2)), theta=[1.0, -1.0])
    agent = OFULMLogB(beta_scale=0.0)
    state = agent.init(mdp.problem)
    estimate = state.estimate._replace(theta=mdp.theta[None])
    plan = agent.plan(mdp.problem, state._replace(estimate=estimate), None)
    solution = livarot.solve(mdp)
    assert plan.start_value[0] == pytest.approx(solution.value[0, 0], abs=1e-14)
    reach = mdp.problem.reachable[:-1]
    np.testing.assert_allclose(plan.value[0, :-1][reach], solution.value[:-1][reach], rtol=0, atol=1e-14)
