"""ORRL-MNL: the naive twin's runs with the same normal numbers, the paper's constants, learning."""

import math

import pytest
from scipy.stats import norm

from livarot import envs
from livarot.agents import ORRLMNL, UCRLMNLPlus
from livarot.errors import LivarotError
from tests.support import field

SETTINGS = {"reg": 2.0, "step_size": 3.0}


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("beta_scale", [0.0005, 0.02])
def test_runs_as_its_twin(shared, beta_scale):
    settings = SETTINGS | {"beta_scale": beta_scale}
    agent = ORRLMNL(n_samples=5, **settings)
    log = field.assert_follows_twin(agent, field.ragged(shared), 25, seed=2, normals=(4, 5, 3), **settings)
    assert (max(plan.value.max() for plan in log["plans"]) == 4.0) == (beta_scale == 0.02)
    river = envs.river_swim(4, 5, shared_parameter=shared)
    field.assert_follows_twin(agent, river, 25, seed=1, normals=(5, 5, 6), **settings)


def test_the_constants_of_the_paper():
    """M = ceil(1 - log(HU)/log Phi(1)); estimate and radius are UCRL-MNL+'s."""
    agent, problem = ORRLMNL.theory(), envs.river_swim(4, 6).problem
    assert agent.samples(problem) == math.ceil(1 - math.log(6 * 3) / norm.logcdf(1))
    assert agent.radius(problem, 7) == UCRLMNLPlus.theory().radius(problem, 7)
    field.assert_tiny(agent)


def test_what_every_agent_must_do(tmp_path):
    field.assert_value(ORRLMNL())
    field.assert_tiny(ORRLMNL())
    field.assert_resumes(ORRLMNL(), tmp_path)
    field.assert_pure(ORRLMNL(), field.ragged())
    field.assert_learns(ORRLMNL())


@pytest.mark.parametrize(
    ("settings", "argument"), [({"n_samples": 0}, "n_samples"), ({"bonus_constant": -1.0}, "bonus_constant")]
)
def test_bad_settings(settings, argument):
    with pytest.raises(LivarotError) as caught:
        ORRLMNL(**settings)
    assert caught.value.argument == argument
