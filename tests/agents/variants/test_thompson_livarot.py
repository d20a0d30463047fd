"""ThompsonLivarot: the naive twin's runs with the same normal numbers, the sample's law, learning."""

import numpy as np
import pytest

from livarot import envs
from livarot.agents import Livarot, ThompsonLivarot
from livarot.errors import LivarotError
from tests.support import field

SETTINGS = {"reg": 2.0, "step_size": 3.0}


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("project", [False, True])
def test_runs_as_its_twin(shared, project):
    """The wide samples leave the B-ball, so that projections have work to do."""
    settings = SETTINGS | {"beta_scale": 0.4}
    agent = ThompsonLivarot(project=project, **settings)
    K = 1 if shared else 4
    field.assert_follows_twin(
        agent, field.ragged(shared), 25, seed=2, normals=(K, 3), project_sample=project, **settings
    )
    K = 1 if shared else 5
    river = envs.river_swim(4, 5, shared_parameter=shared)
    field.assert_follows_twin(agent, river, 25, seed=1, normals=(K, 6), project_sample=project, **settings)


def test_it_believes_in_a_sample_and_claims_no_set():
    mdp = field.ragged()
    agent = ThompsonLivarot()
    log = field.assert_follows_twin(agent, mdp, 3, normals=(4, 3), reg=agent.reg, step_size=agent.step_size,
                                    beta_scale=agent.beta_scale)  # fmt: skip
    assert all(plan.radius is None and plan.upper is None for plan in log["plans"])
    assert not np.array_equal(log["plans"][0].value, log["plans"][1].value)


def test_the_theory_has_livarots_constants():
    problem = envs.river_swim(4, 6).problem
    assert ThompsonLivarot.theory().radius(problem, 12) == Livarot.theory(100).radius(problem, 12)
    field.assert_tiny(ThompsonLivarot.theory())


def test_what_every_agent_must_do(tmp_path):
    field.assert_value(ThompsonLivarot())
    field.assert_tiny(ThompsonLivarot())
    field.assert_resumes(ThompsonLivarot(), tmp_path)
    field.assert_pure(ThompsonLivarot(), field.ragged())
    field.assert_learns(ThompsonLivarot())


@pytest.mark.parametrize(
    ("settings", "argument"), [({"step_size": -1.0}, "step_size"), ({"beta_scale": -1.0}, "beta_scale")]
)
def test_bad_settings(settings, argument):
    with pytest.raises(LivarotError) as caught:
        ThompsonLivarot(**settings)
    assert caught.value.argument == argument
