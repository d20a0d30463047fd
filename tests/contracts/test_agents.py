"""What every registered agent promises.  A new entry of the registry is tested by this file without a change."""

import contextlib

import numpy as np
import pytest

import livarot
from livarot import LivarotError, agents
from livarot.running.check_agent import agent_checks, small
from livarot.simulation.streams import AgentRandom

RULES = [rule for rule, _ in agent_checks(agents.Uniform())]
OTHERS = {  # settings with other code paths than the defaults
    "livarot, burn-in": agents.Livarot(n_explore=4),
    "livarot, state-aware burn-in": agents.Livarot(n_explore=4, exploration=agents.StateAwareExploration()),
    "ucbvi, Bernstein as printed": agents.UCBVI.theory(20, agents.tabular.ucbvi.Bernstein()),
    "ucbvi, Hoeffding as printed": agents.UCBVI.theory(20),
    "psrl, any next state": agents.PSRL(alpha0=None, known_support=False),
    "rlsvi, any next state": agents.RLSVI(known_support=False),
    "ucrl2 as printed": agents.UCRL2.theory(),
    "drifting, restarts": agents.DriftingLivarot(discount=1.0, restart_every=7),
    "rare switching, visits": agents.RareSwitching(agents.PSRL()),
    "rare switching, burn-in": agents.RareSwitching(agents.Livarot(n_explore=4), factor=1.1),
}


def registered(name):
    """The agent with its defaults, and the environment it is made for, if it is made for one."""
    if name == "oracle":
        mdp = small("river-swim")
        return agents.Oracle(livarot.solve(mdp).policy), mdp
    return agents.make(name), None


def broken(agent, rule, env):
    return dict(agent_checks(agent, env=env))[rule]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", agents.registry.names())
def test_registered(name, rule):
    agent, env = registered(name)
    assert agent.name == name
    broken(agent, rule, env)()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("agent", OTHERS.values(), ids=OTHERS)
def test_other_settings(agent, rule):
    broken(agent, rule, None)()


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("name", agents.registry.names())
def test_random_numbers_of_another_number_of_replicas(name, streams):
    """They are not used, or refused: kernels would read beyond them, or give two replicas the same numbers."""
    agent, env = registered(name)
    problem = (env or small(agent.made_for or "river-swim")).problem
    one_each = agent.plan(problem, agent.init(problem, 2), AgentRandom([0, 1]))
    with contextlib.suppress(LivarotError):
        plan = agent.plan(problem, agent.init(problem, 2), AgentRandom([0, 1, 2][:streams]))
        np.testing.assert_array_equal(plan.policy, one_each.policy)


@pytest.mark.parametrize("name", agents.registry.names())
def test_summaries_are_one_line(name):
    assert 0 < len(agents.registry.summary(name)) <= 90


def test_every_environment_has_a_small_version():
    for name in set(livarot.envs.registry) - livarot.envs.LARGE:
        problem = small(name).problem
        assert problem.n_states * problem.n_actions * problem.horizon <= 2000, name
