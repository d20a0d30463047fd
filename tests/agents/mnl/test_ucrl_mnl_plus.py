"""UCRL-MNL+: the naive twin's runs, the paper's constants, learning."""

import math

import pytest

from livarot import envs
from livarot.agents import UCRLMNLPlus
from livarot.errors import LivarotError
from tests.support import field
from tests.twins.field import mirror_radius

SETTINGS = {"reg": 2.0, "step_size": 3.0, "beta_scale": 0.003}


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("beta_scale", [0.0005, 0.03])
def test_runs_as_its_twin(shared, beta_scale):
    """The larger scale exceeds H: V is clipped, Q is not."""
    settings = SETTINGS | {"beta_scale": beta_scale}
    log = field.assert_follows_twin(UCRLMNLPlus(**settings), field.ragged(shared), 25, seed=2, **settings)
    assert (max(plan.value.max() for plan in log["plans"]) == 4.0) == (beta_scale == 0.03)
    field.assert_follows_twin(
        UCRLMNLPlus(**settings), envs.river_swim(4, 5, shared_parameter=shared), 25, seed=1, **settings
    )


def test_the_constants_of_the_paper():
    agent, problem = UCRLMNLPlus.theory(), envs.river_swim(4, 6).problem
    B, d, U = problem.param_bound, 6, 3
    alpha = math.log(U) + 2 * (1 + B)
    reg = max(12 * math.sqrt(2) * alpha, 48 * d * alpha)
    assert agent.init(problem).estimate.gram[0, 0, 0] == pytest.approx(reg, rel=1e-14)
    assert agent._step_size(problem) == pytest.approx(alpha / 2, rel=1e-14)
    assert agent.radius(problem, 4) == pytest.approx(mirror_radius(5, d, 6, U, B, reg, 0.05), rel=1e-13)
    field.assert_tiny(agent)


def test_what_every_agent_must_do(tmp_path):
    field.assert_value(UCRLMNLPlus())
    field.assert_tiny(UCRLMNLPlus())
    field.assert_resumes(UCRLMNLPlus(), tmp_path)
    field.assert_pure(UCRLMNLPlus(), field.ragged())
    field.assert_learns(UCRLMNLPlus())


@pytest.mark.parametrize(
    ("settings", "argument"),
    [({"beta_scale": -1.0}, "beta_scale"), ({"reg": 0.0}, "reg"), ({"bonus_constant": -1.0}, "bonus_constant")],
)
def test_bad_settings(settings, argument):
    with pytest.raises(LivarotError) as caught:
        UCRLMNLPlus(**settings)
    assert caught.value.argument == argument
