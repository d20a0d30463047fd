"""Environments by name."""

import numpy as np

from livarot import envs


def test_environments_by_name():
    assert {"hard-chain", "river-swim", "six-arms", "deep-sea", "park-two-state", "random"} <= set(envs.registry)
    made = envs.make("river-swim", n_states=4, horizon=5, features="moves")
    assert made.problem.same_as(envs.river_swim(4, 5, features="moves").problem)
    chain = envs.make("hard-chain", horizon=4, gap=0.1, seed=3)
    np.testing.assert_array_equal(chain.theta, envs.hard_chain(4, gap=0.1, seed=3).theta)
    assert all(envs.registry.summary(name) for name in envs.registry)
