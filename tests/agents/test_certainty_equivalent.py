"""Certainty equivalence plays the best policy of its estimate."""

import numpy as np

import livarot
from livarot import envs
from livarot.agents import CertaintyEquivalent
from tests.support.episodes import play_agent
from tests.support.models import to_model
from tests.twins import core as ref


def test_certainty_equivalence_follows_the_estimate():
    mdp = envs.hard_chain(5, gap=0.2, seed=3)
    agent = CertaintyEquivalent(step_size=5.0, reg=1.0)
    log, _ = play_agent(mdp, agent, 40)
    rows = to_model(mdp)["rows"]
    for t in range(40):
        theta = log["states"][t].estimate.theta[0]
        exact = ref.solve(rows, theta, mdp.problem.reward)
        reach = mdp.problem.reachable[:-1]
        np.testing.assert_allclose(log["plans"][t].value[0, :-1][reach], exact["value"][:-1][reach], atol=1e-12)
        first = [[ref.first_best(exact["q"][h, s]) for s in range(7)] for h in range(5)]
        np.testing.assert_array_equal(log["plans"][t].policy[0][reach], np.array(first)[reach])
    result = livarot.run(mdp, agent, 5)
    assert result.covered.mask.all()
    assert not result.optimism_gap.mask.any()
