"""OFU-MNL++: optimistic utilities over a box, what raising all of them does, constants and runs."""

import math

import numpy as np
import pytest

import livarot
from livarot.agents import OFUMNLPP
from livarot.envs import mnl_bandit
from livarot.running.check_agent import check_agent
from tests.support.episodes import play_agent
from tests.support.field import box_maximum
from tests.support.models import rows_of
from tests.twins import core as ref


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
