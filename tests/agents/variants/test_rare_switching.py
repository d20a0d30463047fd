"""Rare switching: a replica plans when a determinant has grown, the others keep their plans, with or without memory."""

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest

import livarot
from livarot import LivarotError
from livarot.agents import PSRL, UCBVI, UCRLMNLOL, Livarot, RareSwitching, Uniform
from livarot.agents.variants import rare_switching
from livarot.model.probabilities import transition_kernel
from livarot.simulation.rollout import play
from livarot.simulation.streams import AgentRandom, environment_uniforms
from tests.support.episodes import play_agent
from tests.support.models import same_bits

CHAIN = livarot.envs.hard_chain(5, gap=0.15)
RIVER = livarot.envs.river_swim(4, 6, shared_parameter=True)


@dataclass(frozen=True, eq=False)
class Counting:
    """Another agent, with a record of the replicas it was asked to plan for."""

    name: ClassVar[str] = "counting"

    agent: object = field(default_factory=Livarot)  # the other agent
    asked: list = field(default_factory=list)  # seeds of each plan

    def init(self, problem, n_replicas=1):
        return self.agent.init(problem, n_replicas)

    def plan(self, problem, state, rng):
        self.asked.append(list(rng._seeds))
        return self.agent.plan(problem, state, rng)

    def update(self, problem, state, episodes):
        return self.agent.update(problem, state, episodes)


def forget():
    rare_switching._memory.__dict__.clear()


def play_many(mdp, agent, n_episodes, seeds):
    """States and plans of several replicas."""
    problem, kernel = mdp.problem, transition_kernel(mdp)
    env = np.stack([environment_uniforms(s, 0, n_episodes, problem.horizon) for s in seeds], axis=1)
    states, plans = [agent.init(problem, len(seeds))], []
    for t in range(n_episodes):
        plans.append(agent.plan(problem, states[-1], AgentRandom(seeds, t)))
        episodes = play(problem, kernel.prob[None], kernel.base, plans[-1].policy, env[t], env[t])
        states.append(agent.update(problem, states[-1], episodes))
    return states, plans


def log_determinants(problem, estimate):
    return np.linalg.slogdet(problem.rows.unpack(estimate.gram))[1]


@pytest.mark.parametrize("mdp", [CHAIN, RIVER], ids=["chain", "river"])
def test_a_replica_plans_exactly_when_a_determinant_has_grown(mdp):
    inner = Counting(Livarot())
    agent, seeds = RareSwitching(inner, factor=1.5), [3, 4, 7]
    forget()
    states, plans = play_many(mdp, agent, 60, seeds)
    reference = log_determinants(mdp.problem, states[0].estimate)
    expected, n_plans = [seeds], np.ones(3)
    for t in range(1, 60):
        now = log_determinants(mdp.problem, states[t].estimate)
        due = (now > reference + math.log(1.5)).any(axis=1)
        reference[due] = now[due]
        n_plans += due
        for r in range(3):
            if not due[r]:
                assert same_bits(plans[t].policy[r], plans[t - 1].policy[r])
                assert plans[t].start_value[r] == plans[t - 1].start_value[r]
                assert plans[t].radius[r] == plans[t - 1].radius[r]
        if due.any():
            expected.append([seed for seed, yes in zip(seeds, due, strict=True) if yes])
        assert states[t].kept.n_plans.tolist() == n_plans.tolist()
    assert inner.asked == expected
    assert any(len(asked) < 3 for asked in expected[1:])  # replicas did switch one by one


def test_a_plan_is_that_of_the_inner_agent_at_the_switch():
    agent = RareSwitching(Livarot())
    states, plans = play_many(CHAIN, agent, 40, [5])
    for t in range(40):
        since = int(states[t].kept.since[0])
        own = states[since]
        plan = agent.agent.plan(CHAIN.problem, type(own).inner(*own[:-1]), AgentRandom([5], since))
        assert same_bits(tuple(plan)[:-1], tuple(plans[t])[:-1])


def test_every_growth_is_every_episode():
    """The first stage of the chain always teaches something: with factor 1 nothing is kept."""
    plain = livarot.run(CHAIN, Livarot(), 80, seed=range(3))
    rare = livarot.run(CHAIN, RareSwitching(Livarot(), factor=1.0), 80, seed=range(3))
    assert same_bits(plain.regret, rare.regret) and same_bits(plain.variance, rare.variance)


@pytest.mark.parametrize("agent", [Livarot(), UCRLMNLOL(), PSRL(), UCBVI(), Uniform()], ids=lambda a: a.name)
def test_the_memory_changes_nothing(agent):
    rare, seeds = RareSwitching(agent, factor=1.3), [2, 9, 11]
    _, plans = play_many(RIVER, rare, 25, seeds)
    states, _ = play_many(RIVER, rare, 25, seeds)
    for t in reversed(range(25)):
        if t % 2:
            forget()
        assert same_bits(tuple(rare.plan(RIVER.problem, states[t], AgentRandom(seeds, t))), tuple(plans[t]))


@pytest.mark.parametrize("mdp", [CHAIN, RIVER], ids=["chain", "river"])
@pytest.mark.parametrize("factor", [1.5, 2.0])
def test_the_number_of_plans_is_logarithmic(mdp, factor):
    agent, n_episodes = RareSwitching(Livarot(reg=3.0), factor), 1000
    states, _ = play_many(mdp, agent, n_episodes, [0, 1, 2])
    problem = mdp.problem
    updates = n_episodes * problem.horizon if problem.shared_parameter else n_episodes
    growth = problem.dim * math.log(1 + updates / (3.0 * problem.dim))
    bound = 1 + problem.n_parameters * growth / math.log(factor)
    assert states[-1].kept.n_plans.max() <= bound
    assert states[-1].kept.n_plans.min() > 3


@pytest.mark.parametrize("agent", [PSRL(), UCBVI()], ids=lambda a: a.name)
def test_visits_take_the_place_of_determinants(agent):
    states, plans = play_many(CHAIN, RareSwitching(agent), 300, [1, 2])
    pairs = CHAIN.problem.horizon * CHAIN.problem.n_states * CHAIN.problem.n_actions
    n_plans = states[-1].kept.n_plans
    assert n_plans.min() > 3 and n_plans.max() <= 1 + pairs * (1 + math.log2(300))
    assert n_plans.max() < 100  # out of 300
    assert sum(a is not b for a, b in pairwise(plans)) <= n_plans.sum()


def test_a_burn_in_is_planned_every_episode():
    agent = Livarot(n_explore=12)
    log, _ = play_agent(CHAIN, agent, 13)
    rare, state = play_agent(CHAIN, RareSwitching(agent), 13)
    for t in range(13):
        assert same_bits(tuple(log["plans"][t]), tuple(rare["plans"][t]))
    assert state.kept.n_plans[0] >= 13


def test_bad_settings():
    for factor in (0.5, 0.0, float("nan")):
        with pytest.raises(LivarotError, match="factor"):
            RareSwitching(factor=factor)
    with pytest.raises(LivarotError, match="cannot be wrapped"):
        RareSwitching(RareSwitching())
    with pytest.raises(LivarotError, match="agent: must be Agent, got 'livarot'"):
        RareSwitching("livarot")


@pytest.mark.statistical
def test_the_regret_stays_close():
    """40 seeds, T = 2000: with the factor 1.2 at most half as much again, with 2 at most three times as much."""
    agents = (Livarot(), RareSwitching(Livarot(), 1.2), RareSwitching(Livarot(), 2.0))
    final = [livarot.run(CHAIN, agent, 2000, seed=range(40)).cumulative_regret[:, -1] for agent in agents]
    plain, close, far = (x.mean() for x in final)
    assert close < 1.5 * plain and far < 3 * plain
