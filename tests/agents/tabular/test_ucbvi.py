"""UCBVI: each plan of a run is the twin's, with every bonus; optimism; the printed constants."""

import math

import numpy as np
import pytest

import livarot
from livarot import LivarotError
from livarot.agents import UCBVI
from livarot.agents.tabular.ucbvi import Bernstein, Hoeffding, Simple
from tests.support.episodes import play_agent
from tests.support.tabular import MODELS, assert_same_plan, follow_of, law_of
from tests.twins import tabular as ref

SETTINGS = [
    UCBVI(Simple(), 0.4),
    UCBVI(Hoeffding(), 0.01),
    UCBVI(Bernstein(), 0.02, known_support=False, monotone=True),
    UCBVI(Bernstein(), 0.02, n_episodes=50),
    UCBVI.theory(10),
    UCBVI.theory(10, Bernstein()),
]


def twin_bonus(agent, problem, t, seen):
    H, S, A = problem.reward.shape
    L = math.log(5 * S * A * (agent.n_episodes or t + 1) * H / 0.05)
    if isinstance(agent.bonus, Simple):
        return ref.simple(H, agent.bonus_scale)
    if isinstance(agent.bonus, Hoeffding):
        return ref.hoeffding(H, L, agent.bonus_scale)
    return ref.bernstein(H, S, A, L, agent.bonus_scale, seen)


@pytest.mark.parametrize("agent", SETTINGS, ids=repr)
@pytest.mark.parametrize("mdp", MODELS.values(), ids=MODELS)
def test_every_plan_is_the_twins(mdp, agent):
    problem, follow, law = mdp.problem, follow_of(mdp, agent.known_support), law_of(mdp)
    log, _ = play_agent(mdp, agent, 10, seed=2)
    seen = np.zeros((problem.horizon, problem.n_states), dtype=int)
    past, last_q = [], np.full(problem.reward.shape, float(problem.horizon)) if agent.monotone else None
    for t in range(10):
        bonus = twin_bonus(agent, problem, t, seen)
        twin = ref.bonus_plan(follow, law, problem.reward, ref.count(follow, law, past), bonus, last_q)
        assert_same_plan(mdp, log["plans"][t], twin, agent.known_support, atol=1e-11)
        last_q = twin[1] if agent.monotone else None
        episodes = log["episodes"][t]
        past.append((episodes.states[0].tolist(), episodes.actions[0].tolist()))
        for h in range(problem.horizon):
            seen[h, episodes.states[0, h]] += 1


@pytest.mark.parametrize("bonus", [Hoeffding(), Bernstein()])
def test_the_printed_constants_are_optimistic(bonus):
    mdp = livarot.envs.river_swim(4, 5, shared_parameter=True)
    result = livarot.run(mdp, UCBVI.theory(60, bonus), 60, seed=range(3))
    assert (result.optimism_gap >= -1e-12).all()


def test_pooled_counts_learn_faster():
    agent = UCBVI(Simple(), 0.3, known_support=False)
    final = [
        livarot.run(livarot.envs.river_swim(4, 10, shared_parameter=x), agent, 300, seed=range(5)).regret.sum(axis=1)
        for x in (True, False)
    ]
    assert final[0].max() < final[1].min() / 3


def test_bad_settings():
    with pytest.raises(LivarotError, match="bonus"):
        UCBVI(bonus="hoeffding")
    with pytest.raises(LivarotError, match="bonus_scale"):
        UCBVI(bonus_scale=-1.0)
    with pytest.raises(LivarotError, match="n_episodes"):
        UCBVI.theory(0)
