"""RRL-MNL: the naive twin's runs with the same normal numbers, the paper's constants, learning."""

import math

import pytest
from scipy.stats import norm

import livarot
from livarot import envs
from livarot.agents import RRLMNL
from livarot.errors import LivarotError
from tests.support import field
from tests.twins.field import newton_radius

SETTINGS = {"reg": 2.0, "kappa": 6.0}


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("beta_scale", [0.0003, 0.05])
def test_runs_as_its_twin(shared, beta_scale):
    settings = SETTINGS | {"beta_scale": beta_scale}
    agent = RRLMNL(n_samples=3, **settings)
    log = field.assert_follows_twin(agent, field.ragged(shared), 25, seed=2, normals=(4, 3, 3), **settings)
    assert (max(plan.value.max() for plan in log["plans"]) == 4.0) == (beta_scale == 0.05)
    river = envs.river_swim(4, 5, shared_parameter=shared)
    field.assert_follows_twin(agent, river, 25, seed=1, normals=(5, 3, 6), **settings)


def test_one_sample_can_be_pessimistic():
    agent = RRLMNL(n_samples=1, **SETTINGS, beta_scale=0.05)
    log = field.assert_follows_twin(agent, field.ragged(), 10, normals=(4, 1, 3), beta_scale=0.05, **SETTINGS)
    assert min(plan.value.min() for plan in log["plans"]) < 0.0  # clipped from above only


def test_the_constants_of_the_paper():
    agent, problem = RRLMNL.theory(), envs.river_swim(4, 6).problem
    B, kappa = problem.param_bound, 9 * math.exp(4 * problem.param_bound)
    assert agent.samples(problem) == math.ceil(1 - math.log(6) / norm.logcdf(1))
    assert agent.radius(problem, 4) == pytest.approx(newton_radius(5, 6, 6, 3, B, 1.0, kappa, 0.05), rel=1e-13)
    shared = envs.river_swim(4, 6, shared_parameter=True).problem
    assert agent.radius(shared, 4) == pytest.approx(newton_radius(30, 6, 6, 3, B, 1.0, kappa, 0.05), rel=1e-13)
    field.assert_tiny(agent)


def test_what_every_agent_must_do(tmp_path):
    field.assert_value(RRLMNL())
    field.assert_tiny(RRLMNL())
    field.assert_resumes(RRLMNL(), tmp_path)
    field.assert_pure(RRLMNL(), field.ragged())
    field.assert_learns(RRLMNL())


def test_a_bound_that_is_not_a_number_is_refused():
    mdp = envs.hard_chain(4, gap=0.1, param_bound=200.0)
    with pytest.raises(LivarotError, match=r"kappa: .* overflows"):
        livarot.run(mdp, RRLMNL.theory(), 2)


@pytest.mark.parametrize(("settings", "argument"), [({"n_samples": 0}, "n_samples"), ({"kappa": 0.0}, "kappa")])
def test_bad_settings(settings, argument):
    with pytest.raises(LivarotError) as caught:
        RRLMNL(**settings)
    assert caught.value.argument == argument
