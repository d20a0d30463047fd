"""RLSVI: each plan is the twin's with the noise of the replica's own stream."""

import pytest

import livarot
from livarot import LivarotError
from livarot.agents import RLSVI
from livarot.simulation.streams import AgentRandom
from tests.support.episodes import play_agent
from tests.support.tabular import MODELS, assert_same_plan, follow_of, law_of
from tests.twins import tabular as ref


@pytest.mark.parametrize("agent", [RLSVI(), RLSVI(1.0, 1.0, known_support=False)], ids=repr)
@pytest.mark.parametrize("mdp", MODELS.values(), ids=MODELS)
def test_every_plan_is_the_twins(mdp, agent):
    follow, law, past = follow_of(mdp, agent.known_support), law_of(mdp), []
    log, _ = play_agent(mdp, agent, 8, seed=4)
    for t in range(8):
        noise = AgentRandom([4], t).normal(mdp.problem.reward.shape)[0]
        counts = ref.count(follow, law, past)
        twin = ref.noisy_plan(follow, law, mdp.problem.reward, counts, noise, agent.noise_scale, agent.rest_scale)
        assert_same_plan(mdp, log["plans"][t], twin, agent.known_support)
        past.append((log["episodes"][t].states[0].tolist(), log["episodes"][t].actions[0].tolist()))


def test_it_learns():
    mdp = livarot.envs.hard_chain(4, gap=0.2)
    regret = livarot.run(mdp, RLSVI(), 600, seed=range(6)).regret
    assert regret[:, -100:].mean() < 0.3 * regret[:, :10].mean()


def test_bad_settings():
    with pytest.raises(LivarotError, match="noise_scale"):
        RLSVI(-0.1)
    with pytest.raises(LivarotError, match="rest_scale"):
        RLSVI(rest_scale=float("nan"))
