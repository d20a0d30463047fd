"""Every registered agent on a model with costs, discount, rewards of the next state, masks and terminal states."""

from __future__ import annotations

import numpy as np
import pytest

import livarot
from livarot.agents import registry
from livarot.simulation.streams import AgentRandom
from tests.support.terms import random_case

BANDITS = {"oful-mlogb", "ofu-mnl-pp"}
NAMES = [name for name in registry if name not in BANDITS]
TABULAR = ("ucbvi", "psrl", "rlsvi", "ucrl2")


def agent_named(name, mdp, **settings):
    if name == "oracle":
        return livarot.agents.make(name, policy=livarot.solve(mdp).policy)
    if name == "rare-switching":
        return livarot.agents.make(name, agent=livarot.agents.Livarot())
    return livarot.agents.make(name, **settings)


@pytest.mark.parametrize("name", NAMES)
def test_agents_run_and_never_play_what_does_not_exist(name):
    mdp, _ = random_case(1, horizon=4, n_states=5, n_actions=3)
    problem = mdp.problem
    agent = agent_named(name, mdp)
    state, rng = agent.init(problem, 2), AgentRandom([0, 1])
    kernel = livarot.model.probabilities.transition_kernel(mdp)
    from livarot.simulation.rollout import play
    from livarot.simulation.streams import action_uniforms, environment_uniforms

    for t in range(15):
        rng.start(t)
        plan = agent.plan(problem, state, rng)
        policy = np.broadcast_to(plan.policy, (2, *plan.policy.shape[1:]))
        exists = np.broadcast_to(problem.exists, (2, *problem.exists.shape))
        if policy.ndim == 3:
            assert np.take_along_axis(exists, policy[..., None], -1).all()
        else:
            assert not policy[~exists].any()
        luck = [
            np.stack([draw(r, t, 1, problem.horizon)[0] for r in (0, 1)])
            for draw in (environment_uniforms, action_uniforms)
        ]
        episodes = play(problem, kernel.prob[None], kernel.base, plan.policy, *luck)
        state = agent.update(problem, state, episodes)
    result = livarot.run(mdp, agent, 15, seed=[0, 1])
    assert (result.regret >= -1e-9).all()


@pytest.mark.parametrize("name", TABULAR)
def test_tabular_agents_with_unknown_sets(name):
    mdp, _ = random_case(1, horizon=4, n_states=5, n_actions=3)
    result = livarot.run(mdp, livarot.agents.make(name, known_support=False), 15, seed=[0, 1])
    assert (result.regret >= -1e-9).all()


def test_livarot_learns_in_any_units():
    """The same problem with costs in cents: the same plans, hence the same normalised regret."""
    mdp, _ = random_case(2, horizon=4, costs=True)
    result = livarot.run(mdp, livarot.agents.Livarot(), 200, seed=range(3))
    uniform = livarot.run(mdp, livarot.agents.Uniform(), 200, seed=range(3))
    assert result.regret.sum() < 0.5 * uniform.regret.sum()
