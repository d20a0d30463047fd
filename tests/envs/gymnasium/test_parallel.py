"""Episodes side by side: each slot plays the simulator's episode of its seed, whatever the others do."""

import numpy as np
import pytest

import livarot
from livarot.envs.gymnasium.parallel import BLOCK, ParallelEpisodes
from tests.support.terms import random_case


def played(parallel, slot, policy, discount=1.0):
    """One episode of a slot, the others waiting: its states, and what it earned."""
    states, earned = [int(parallel.states[slot])], 0.0
    moving = np.arange(len(parallel.states)) == slot
    while parallel.stages[slot] < parallel.horizon:
        actions = np.zeros(len(parallel.states), dtype=np.int64)
        actions[slot] = policy[parallel.stages[slot], parallel.states[slot]]
        stage = int(parallel.stages[slot])
        rewards = parallel.step(moving, actions)
        assert (rewards[~moving] == 0.0).all()
        states.append(int(parallel.states[slot]))
        earned += discount**stage * rewards[slot]
    return states, earned


@pytest.mark.parametrize("costs", [False, True])
def test_an_episode_is_the_simulator_s(costs):
    """States and discounted returns, with ends, rewards of the next state, and more episodes than a block."""
    mdp, _ = random_case(3, horizon=4, costs=costs)
    policy, n = livarot.solve(mdp).policy, BLOCK + 3
    expected = livarot.simulate(mdp, policy, n, seed=8)
    returns = mdp.problem.returns(expected)
    parallel = ParallelEpisodes(mdp, 2)
    for t in range(n):
        parallel.begin(1, 8 if t == 0 else None, None)
        assert parallel.episodes.tolist() == [-1, t]
        states, earned = played(parallel, 1, policy, mdp.problem.discount)
        assert states == expected.states[t, : len(states)].tolist()
        assert earned == pytest.approx(returns[t], rel=1e-9, abs=1e-9)


def test_any_episode_of_any_seed():
    mdp = livarot.envs.river_swim(5, 8)
    expected = livarot.simulate(mdp, np.ones((8, 5), dtype=np.int32), 60, seed=4).states
    parallel = ParallelEpisodes(mdp, 1)
    for seed, episode, t in ((4, 50, 50), (None, None, 51), (None, 7, 7), (4, None, 0), (9, None, 0), (4, 59, 59)):
        parallel.begin(0, seed, episode)
        own = played(parallel, 0, np.ones((8, 5), dtype=np.int32))[0]
        assert parallel.episodes[0] == t
        if seed != 9:
            assert own == expected[t].tolist()


def test_masks():
    """Actions that exist while an episode goes on; all of them where it is over."""
    mdp, _ = random_case(5, horizon=3)
    parallel = ParallelEpisodes(mdp, 4)
    assert parallel.masked and (parallel.mask() == 1).all()
    for slot in range(3):
        parallel.begin(slot, slot, None)
    mask = parallel.mask()
    np.testing.assert_array_equal(
        mask[parallel.stages < 3], mdp.problem.exists[0][parallel.states[parallel.stages < 3]]
    )
    assert (mask[3] == 1).all()
    wrong = np.where((mask == 0).any(axis=1), mask.argmin(axis=1), 0)
    refused = np.flatnonzero((mask == 0).any(axis=1))
    assert len(refused) and parallel.unavailable(np.ones(4, dtype=bool), wrong).tolist() == refused.tolist()
    assert parallel.unavailable(np.zeros(4, dtype=bool), wrong).tolist() == []
    assert not ParallelEpisodes(livarot.envs.river_swim(4, 5), 1).masked
