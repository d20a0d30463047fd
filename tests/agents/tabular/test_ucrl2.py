"""UCRL2: each plan is the twin's, whose inner maxima are linear programs; epochs end when visits double."""

import math

import numpy as np
import pytest

import livarot
from livarot import LivarotError
from livarot.agents import UCRL2
from tests.support.episodes import play_agent
from tests.support.tabular import MODELS, assert_same_plan, follow_of, law_of
from tests.twins import tabular as ref


def twin_plan(mdp, agent, past):
    problem, follow, law = mdp.problem, follow_of(mdp, agent.known_support), law_of(mdp)
    steps = max(len(past) * problem.horizon, 1)
    log = math.log(2 * problem.n_actions * steps / 0.05)

    def width(n, n_next):
        return agent.width_scale * math.sqrt(agent.constant * n_next * log / n)

    return ref.optimistic_plan(follow, law, problem.reward, ref.count(follow, law, past), width)


@pytest.mark.parametrize("agent", [UCRL2(), UCRL2(width_scale=0.3, doubling=True, known_support=False)], ids=repr)
@pytest.mark.parametrize("name", ["stage-dependent", "homogeneous"])
def test_every_plan_is_the_twins(name, agent):
    mdp = MODELS[name]
    follow, law = follow_of(mdp, agent.known_support), law_of(mdp)
    log, state = play_agent(mdp, agent, 12, seed=1)
    past, epoch, epochs = [], [], 1
    twin = twin_plan(mdp, agent, past)
    for t in range(12):
        assert_same_plan(mdp, log["plans"][t], twin, agent.known_support, atol=1e-9)
        past.append((log["episodes"][t].states[0].tolist(), log["episodes"][t].actions[0].tolist()))
        now, then = ref.count(follow, law, past), ref.count(follow, law, epoch)
        pairs = list(np.ndindex(*mdp.problem.reward.shape))
        n = [(ref.visits(follow, law, now, *p), ref.visits(follow, law, then, *p)) for p in pairs]
        if not agent.doubling or any(a > b and a >= 2 * b for a, b in n):
            twin, epoch, epochs = twin_plan(mdp, agent, past), list(past), epochs + 1
    assert state.n_epochs.tolist() == [epochs]


def test_few_epochs_and_the_same_plan_within():
    mdp = livarot.envs.river_swim(4, 8, shared_parameter=True)
    agent = UCRL2(doubling=True, known_support=False)
    log, state = play_agent(mdp, agent, 400)
    switches = sum(a.policy is not b.policy for a, b in zip(log["plans"], log["plans"][1:], strict=False))
    pairs = mdp.problem.n_states * mdp.problem.n_actions
    # the last update may have begun an epoch that is not played
    assert switches <= state.n_epochs[0] <= 1 + pairs * math.log2(2 * 400 * 8) < 150


def test_the_printed_widths_are_optimistic():
    mdp = livarot.envs.river_swim(4, 5)
    assert (livarot.run(mdp, UCRL2.theory(), 50, seed=range(3)).optimism_gap >= -1e-12).all()


def test_bad_settings():
    for name in ("constant", "width_scale"):
        with pytest.raises(LivarotError, match=name):
            UCRL2(**{name: -1.0})
    with pytest.raises(LivarotError, match="failure_level"):
        UCRL2(failure_level=0.0)
