"""BonusLivarot: the naive twin's runs, more optimistic than the maximum it bounds, learning; single-phase LIVAROT."""

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.agents import BonusLivarot, Livarot
from livarot.errors import LivarotError
from livarot.simulation.streams import AgentRandom
from tests.support import field
from tests.support.episodes import play_agent
from tests.support.models import same_bits

SETTINGS = {"reg": 2.0, "step_size": 3.0, "beta_scale": 0.2}


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
def test_runs_as_its_twin(shared):
    field.assert_follows_twin(BonusLivarot(**SETTINGS), field.ragged(shared), 25, seed=2, **SETTINGS)
    river = envs.river_swim(4, 5, shared_parameter=shared)
    field.assert_follows_twin(BonusLivarot(**SETTINGS), river, 25, seed=1, **SETTINGS)


def test_it_is_at_least_as_optimistic_as_the_maximum():
    mdp = field.ragged()
    log, _ = play_agent(mdp, BonusLivarot(**SETTINGS), 15)
    maximum = Livarot(**SETTINGS)
    for t, plan in enumerate(log["plans"]):
        state = maximum.init(mdp.problem)._replace(estimate=log["states"][t].estimate, episode=t)
        exact = maximum.plan(mdp.problem, state, AgentRandom([0], t))
        assert plan.radius[0] == exact.radius[0]
        assert np.all(plan.value >= exact.value - 1e-12)


def test_the_theory_has_livarots_constants():
    problem = envs.river_swim(4, 6).problem
    bonus, livarots = BonusLivarot.theory(), Livarot.theory(100)
    assert bonus.radius(problem, 12) == livarots.radius(problem, 12)
    assert same_bits(bonus.init(problem).estimate, livarots.init(problem).estimate)
    field.assert_tiny(bonus)


def test_single_phase_livarot():
    agent = Livarot.single_phase()
    assert agent.n_explore == 0
    assert agent == Livarot()
    regret = livarot.run(envs.hard_chain(5, gap=0.1), agent, 300, seed=range(8)).cumulative_regret[:, -1]
    assert regret.mean() < 0.6 * field.uniform_regret()


def test_what_every_agent_must_do(tmp_path):
    field.assert_value(BonusLivarot())
    field.assert_tiny(BonusLivarot())
    field.assert_resumes(BonusLivarot(), tmp_path)
    field.assert_pure(BonusLivarot(), field.ragged())
    field.assert_learns(BonusLivarot())


@pytest.mark.parametrize(("settings", "argument"), [({"reg": -1.0}, "reg"), ({"failure_level": 0.0}, "failure_level")])
def test_bad_settings(settings, argument):
    with pytest.raises(LivarotError) as caught:
        BonusLivarot(**settings)
    assert caught.value.argument == argument
