"""Models and learners that runs and their judge are tested with."""

import numpy as np

from livarot import envs
from livarot.agents import UCRLMNLOL, CertaintyEquivalent, Livarot, StateAwareExploration, Uniform
from tests.support.models import random_model, to_mdp

RIVER = envs.river_swim(4, 6)


RAGGED = to_mdp(random_model(np.random.default_rng(1), H=4, S=5, A=3, d=3, U=4, offsets=True))


LEARNERS = [
    Livarot(),
    Livarot(n_explore=5),
    Livarot(n_explore=5, exploration=StateAwareExploration()),
    UCRLMNLOL(),
    CertaintyEquivalent(),
    Uniform(),
]


def ids(agent):
    return f"{agent.name}-{type(getattr(agent, 'exploration', None)).__name__}-{getattr(agent, 'n_explore', 0)}"
