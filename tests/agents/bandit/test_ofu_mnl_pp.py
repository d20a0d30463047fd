"""OFU-MNL++: optimistic utilities over a box, what raising all of them does, constants and runs."""

import itertools
import math

import numpy as np
import pytest

import livarot
from livarot.agents import OFUMNLPP
from livarot.envs import mnl_bandit
from livarot.running.check_agent import check_agent
from tests.support.episodes import play_agent
from tests.support.models import random_estimate, rows_of
from tests.twins import core as ref


def box_maximum(row, theta, gram, values, beta):
    """The best of all corners: raise or lower each utility by beta |phi|_{gram^-1}."""
    best = -math.inf
    z, widths = ref.logits(row, theta), [beta * ref.dual_norm(phi, gram) for phi in row[1]]
    for signs in itertools.product((-1, 1), repeat=len(z)):
        moved = [a + s * b for a, s, b in zip(z, signs, widths, strict=True)]
        top = max(moved)
        weight = [math.exp(x - top) for x in moved]
        best = max(best, ref.dot(weight, values) / math.fsum(weight))
    return best


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


def test_raising_every_utility_is_no_bound():
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


def test_constants():
    problem = mnl_bandit(5, 4, 3).problem
    theory = OFUMNLPP.theory()
    eta = (1 + 3 * math.sqrt(2) * 3.0) / 2
    reg = max(12 * math.sqrt(2) * 3 * eta, 144 * eta * 3, 2)
    np.testing.assert_allclose(theory.init(problem).estimate.gram[0, 0].reshape(3, 3), reg * np.eye(3), rtol=1e-14)
    expected = math.sqrt(2 / 3 * 3 * math.log(41 / 0.05)) + 2 * 3.0 * math.sqrt(reg)
    assert theory.radius(problem, 40) == pytest.approx(expected, rel=1e-14)
    run = livarot.run(mnl_bandit(5, 4, 3), theory, 20, seed=range(3))
    assert run.covered.all() and run.optimism_gap.min() >= -1e-12 and run.optimism_loss.max() == 0.0


def test_runs_follow_the_twin():
    mdp = mnl_bandit(6, 3, 3, seed=4)
    agent = OFUMNLPP(step_size=2.0, reg=3.0, beta_scale=0.05)
    log, _ = play_agent(mdp, agent, 60, seed=1)
    rows, theta, gram = rows_of(mdp)[0][0], np.zeros(3), 3.0 * np.eye(3)
    for t in range(60):
        beta = 0.05 * (math.sqrt(2 / 3 * 3 * math.log(max(t, 1) / 0.05)) + 2 * 3.0 * math.sqrt(3.0))
        arm = ref.first_best([box_maximum(row, theta, gram, [0.0, 0.5, 1.0], beta) for row in rows])
        assert log["plans"][t].policy[0, 0, 0] == arm
        choice = int(log["episodes"][t].choices[0, 0])
        theta, gram = ref.omd_step(rows[arm], choice, theta, gram, 2.0, [ref.ball(3, mdp.problem.param_bound)])
        np.testing.assert_allclose(log["states"][t + 1].estimate.theta[0, 0], theta, rtol=0, atol=1e-9)
    assert len({int(e.actions[0, 0]) for e in log["episodes"]}) > 1


def test_it_keeps_the_rules_of_agents():
    check_agent(OFUMNLPP(), env=mnl_bandit(5, 3, 3))


def test_it_is_refused_where_it_is_not_defined():
    with pytest.raises(livarot.LivarotError, match="stages have something to learn"):
        livarot.run(livarot.envs.hard_chain(5), OFUMNLPP(), 2)
    with pytest.raises(livarot.LivarotError) as error:
        OFUMNLPP(failure_level=0.0)
    assert error.value.argument == "failure_level"


@pytest.mark.parametrize(
    "agent", [livarot.agents.Livarot(), livarot.agents.OFULMLogB(), OFUMNLPP()], ids=lambda a: a.name
)
def test_all_three_learn_a_bandit(agent):
    """500 episodes, 5 seeds: below a quarter of the uniform policy's regret."""
    mdp = mnl_bandit(10, 3, 4, seed=0)
    uniform = livarot.run(mdp, livarot.agents.Uniform(), 1).regret[0, 0]
    assert livarot.run(mdp, agent, 500, seed=range(5)).regret.sum(axis=1).mean() < 0.25 * 500 * uniform
