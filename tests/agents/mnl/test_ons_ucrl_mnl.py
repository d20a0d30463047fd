"""ONS-UCRL-MNL: the naive twin's runs, both radii, learning."""

import pytest

from livarot import envs
from livarot.agents import ONSUCRLMNL
from livarot.errors import LivarotError
from tests.support import field

SETTINGS = {"reg": 2.0, "kappa": 6.0}


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("beta_scale", [0.0005, 0.05])
def test_runs_as_its_twin(shared, beta_scale):
    settings = SETTINGS | {"beta_scale": beta_scale}
    log = field.assert_follows_twin(ONSUCRLMNL(**settings), field.ragged(shared), 25, seed=2, **settings)
    assert (max(plan.value.max() for plan in log["plans"]) == 4.0) == (beta_scale == 0.05)
    river = envs.river_swim(4, 5, shared_parameter=shared)
    field.assert_follows_twin(ONSUCRLMNL(**settings), river, 25, seed=1, **settings)
    explicit = ONSUCRLMNL(printed_radius=False, **settings)
    field.assert_follows_twin(explicit, river, 15, seed=3, printed=False, **settings)


def test_the_theory_needs_kappa_and_clips():
    agent = ONSUCRLMNL.theory()
    assert (agent.kappa, agent.beta_scale, agent.printed_radius) == (None, 1.0, False)
    problem = envs.river_swim(4, 6).problem
    assert agent.plan(problem, agent.init(problem), None).value.max() == 6.0
    field.assert_tiny(agent)


def test_what_every_agent_must_do(tmp_path):
    field.assert_value(ONSUCRLMNL())
    field.assert_tiny(ONSUCRLMNL())
    field.assert_resumes(ONSUCRLMNL(), tmp_path)
    field.assert_pure(ONSUCRLMNL(), field.ragged())
    field.assert_learns(ONSUCRLMNL())


@pytest.mark.parametrize(
    ("settings", "argument"), [({"bonus_constant": -1.0}, "bonus_constant"), ({"kappa": -2.0}, "kappa")]
)
def test_bad_settings(settings, argument):
    with pytest.raises(LivarotError) as caught:
        ONSUCRLMNL(**settings)
    assert caught.value.argument == argument
