"""An episode that ends early teaches what happened and no more."""

import numpy as np

import livarot
from livarot.running.learn import learn
from livarot.running.stepwise import Online
from tests.support.corridor import KNOWN, REWARD, Corridor
from tests.support.episodes import equal


def test_an_early_end_teaches_what_happened_and_no_more():
    """With one theta for all stages, H = 8 ended after two steps is the episode of a problem with H = 2."""
    env, agent = Corridor(), livarot.agents.Livarot()
    anywhere = KNOWN | {"start": None}
    long = learn(env, agent, n_episodes=1, **anywhere).problem
    short = learn(env, agent, n_episodes=1, **anywhere | {"horizon": 2, "reward": REWARD[:2]}).problem
    states = []
    for problem in (long, short):
        online = Online(agent, problem)
        online.observe(2, 1, 0.0, 3, 0)
        online.observe(3, 1, 1.0, 4, 1, terminated=True)
        assert online.episode == 1
        states.append(online.state.agent.estimate)
    assert equal(*states)
    assert np.any(states[0].theta)  # something was learned


def test_an_early_end_is_the_absorbing_state_played_to_the_end():
    problem = learn(Corridor(), livarot.agents.Uniform(), n_episodes=1, **KNOWN | {"start": None}).problem
    short, long = (Online(livarot.agents.Livarot(), problem) for _ in range(2))
    for online in (short, long):
        online.observe(2, 1, 0.0, 3, 0)
    short.observe(3, 1, 1.0, 4, 1, terminated=True)
    long.observe(3, 1, 1.0, 4, 1)
    for h in range(2, 8):
        assert long.episode == 0
        long.observe(4, 1, 0.0, 4, h)
    assert long.episode == short.episode == 1
    assert equal(long.state, short.state)


def test_an_end_at_the_last_stage_needs_no_absorbing_state():
    known = KNOWN | {"terminal_states": (), "horizon": 3, "reward": REWARD[:3]}
    result = learn(Corridor(), livarot.agents.Uniform(), n_episodes=200, **known)
    assert result.lengths.tolist() == [3] * 200  # from cell 1, three steps to the right: one episode in sixteen
    assert result.returns.max() == 1.0
