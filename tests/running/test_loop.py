"""The loop of a sweep is that of a run."""

import numpy as np

import livarot
from livarot import agents, envs
from livarot.running.loop import Replicas
from livarot.running.result import COLUMNS

SEEDS = [3, 5, 8]


CHAIN = envs.hard_chain(3, gap=0.1)


DRIFTING = envs.Drifting(CHAIN.problem, np.stack([CHAIN.theta, -CHAIN.theta]), np.array([0, 7]))


def test_the_loop_is_that_of_run():
    for mdp, agent in [
        (CHAIN, agents.Livarot(n_explore=4)),
        (CHAIN, agents.Uniform()),
        (DRIFTING, agents.Livarot()),
    ]:
        cut = Replicas([mdp], agent, 15, SEEDS)
        for until in (1, 2, 7, 8, 15):
            cut.advance(until)
        run = livarot.run(mdp, agent, 15, seed=SEEDS)
        for name in COLUMNS:
            assert np.array_equal(cut.found()[name], run.columns[name].filled(np.nan), equal_nan=True)
