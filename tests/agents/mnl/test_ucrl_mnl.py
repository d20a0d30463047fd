"""UCRL-MNL of Hwang and Oh: the naive twin's runs (it keeps a log, the library counts), its radii, learning."""

import math

import pytest

from livarot import envs
from livarot.agents import UCRLMNL
from livarot.errors import LivarotError
from tests.support import field
from tests.support.episodes import play_agent


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("beta_scale", [0.003, 0.3])
def test_runs_as_its_twin(shared, beta_scale):
    settings = {"reg": 0.5, "beta_scale": beta_scale}
    log = field.assert_follows_twin(UCRLMNL(**settings), field.ragged(shared), 10, seed=2, **settings)
    assert (max(plan.value.max() for plan in log["plans"]) == 4.0) == (beta_scale == 0.3)
    river = envs.river_swim(4, 5, shared_parameter=shared)
    field.assert_follows_twin(UCRLMNL(**settings), river, 10, seed=1, **settings)


def test_the_radius_with_kappa():
    settings = {"reg": 0.5, "beta_scale": 0.01, "kappa": 7.0}
    agent = UCRLMNL(printed_radius=False, **settings)
    field.assert_follows_twin(agent, field.ragged(), 10, printed=False, **settings)


def test_presets():
    paper, theory = UCRLMNL.paper(), UCRLMNL.theory()
    assert (paper.reg, paper.beta_scale, paper.printed_radius) == (1.0, 0.01, True)
    problem = envs.river_swim(6, 20, shared_parameter=True).problem
    assert paper.radius(problem, 9) == pytest.approx(0.01 * math.sqrt(10 * math.log(1 + 10 * 20 * 6 / 10)), rel=1e-14)
    B = problem.param_bound
    inside = 10 * math.log(1 + 200 * 3 / 10) + 2 * math.log(20 / 0.05)
    assert theory.radius(problem, 9) == pytest.approx(9 * math.exp(4 * B) * math.sqrt(inside) + B, rel=1e-13)
    field.assert_tiny(theory)


def test_memory_stops_growing():
    """At most the informative pairs of the model, whatever the number of episodes."""
    mdp = envs.river_swim(4, 5, shared_parameter=True)
    _, state = play_agent(mdp, UCRLMNL(), 120)
    assert state.history.used.max() <= (mdp.problem.rows.pair_block >= 0).sum() == 4
    assert state.history.counts.sum() > 400


def test_what_every_agent_must_do(tmp_path):
    field.assert_value(UCRLMNL())
    field.assert_tiny(UCRLMNL())
    field.assert_resumes(UCRLMNL(), tmp_path)
    field.assert_pure(UCRLMNL(), field.ragged())
    field.assert_learns(UCRLMNL())


@pytest.mark.parametrize(("settings", "argument"), [({"reg": 0.0}, "reg"), ({"kappa": 0.0}, "kappa")])
def test_bad_settings(settings, argument):
    with pytest.raises(LivarotError) as caught:
        UCRLMNL(**settings)
    assert caught.value.argument == argument
