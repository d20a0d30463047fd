"""Estimates of another problem and episodes that cannot have happened are refused before a kernel reads them."""

import numpy as np
import pytest

import livarot
from livarot import Episodes, LivarotError, agents, envs
from tests.support.refusals import refusal

MDP = envs.river_swim(4, 5)
OTHERS = {
    "other horizon": envs.river_swim(4, 3),
    "other states": envs.river_swim(6, 5),
    "one parameter": livarot.MNLMDP.from_function(
        5,
        4,
        2,
        features=lambda h, s, a: ([0, s], np.eye(2)) if s else ([0], np.zeros((1, 2))),
        reward=np.zeros((4, 2)),
        theta=np.ones(2),
    ),
    "hard chain": envs.hard_chain(5),
}


def of(mdp, replicas=2):
    return agents.Livarot().init(mdp.problem, replicas).estimate


@pytest.mark.parametrize("name", OTHERS)
def test_the_estimate_of_another_problem_is_refused(name):
    with pytest.raises(LivarotError, match=r"^estimate: .* this problem needs \(2, 5, "):
        livarot.optimistic_plan(MDP.problem, of(OTHERS[name]), 1.0)


def test_each_array_is_looked_at():
    whole = of(MDP)
    for name, array in zip(whole._fields, whole, strict=True):
        cut = (array[:1], array[:, 1:], array[:, :, 1:], array.astype(np.float32), array.astype(np.int64), array[0])
        for wrong in cut:
            with pytest.raises(LivarotError, match=r"^estimate: .* has shape"):
                livarot.optimistic_plan(MDP.problem, whole._replace(**{name: wrong}), 1.0)


@pytest.mark.parametrize("thing", [None, 3, object(), (), (1, 2, 3), "abc", np.zeros(3)])
def test_what_is_not_an_estimate_is_refused(thing):
    with pytest.raises(LivarotError, match=r"^estimate: is not an Estimate"):
        livarot.optimistic_plan(MDP.problem, thing, 1.0)


def test_its_own_estimate_is_taken():
    assert livarot.optimistic_plan(MDP.problem, of(MDP), 1.0).policy.shape == (2, 5, 4)


@pytest.mark.parametrize(
    ("states", "actions"),
    [
        ([[0, 2, 2]], [[1, 1]]),  # two states at once
        ([[0, 0]], [[0, 0]]),  # too short
        ([[0, 0, 0]], [[0]]),
        ([[0, 1, 2]], [[3, 1]]),  # action 3 does not exist (it would be action 1 of state 1)
        ([[-1, 1, 2]], [[1, 1]]),
    ],
)
def test_episodes_that_cannot_have_happened(states, actions):
    problem = envs.river_swim(3, 2).problem
    assert refusal(lambda: Episodes.from_states(problem, states, actions)).argument in ("states", "actions")
