"""UCRL-MNL-LL: the naive twin's runs, the ellipsoid contains the Bernstein set, learning."""

import math

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.agents import UCRLMNLLL
from livarot.errors import LivarotError
from tests.support import field
from tests.twins import core as ref
from tests.twins.agents import random_row

LOOSE = 1e-6  # the twin's maximum for three outcomes is a search


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("concordance", [0.0, 2.0])
def test_runs_as_its_twin(shared, concordance):
    settings = {"reg": 0.7, "beta_scale": 0.02}
    agent = UCRLMNLLL(self_concordance=concordance, **settings)
    chain = envs.hard_chain(4, gap=0.1, seed=1)
    if shared:
        chain = field.ragged(shared, U=2)
    field.assert_follows_twin(agent, chain, 20, seed=2, concordance=concordance, **settings)
    river = envs.river_swim(3, 3, shared_parameter=shared)
    field.assert_follows_twin(agent, river, 6, seed=1, plan_atol=LOOSE, concordance=concordance, **settings)


def test_the_ridge_of_the_theory_grows():
    agent, problem = UCRLMNLLL.theory(), envs.hard_chain(4, gap=0.1).problem
    assert (agent.reg, agent.beta_scale, agent.self_concordance) == (None, 1.0, 2.0)
    scaled = UCRLMNLLL(reg=None, beta_scale=0.01, self_concordance=2.0)
    log = field.assert_follows_twin(scaled, envs.hard_chain(4, gap=0.1), 12, reg=None, beta_scale=0.01)
    ridge = log["states"][0].estimate.gram[0, 0, 0]
    assert ridge == pytest.approx(2 * math.log(4 / 0.05), rel=1e-14)
    beta = (problem.param_bound + 3) * math.sqrt(2 * math.log(4 / 0.05))
    first = agent.plan(problem, agent.init(problem), None)
    assert first.radius[0] == pytest.approx(beta * (1 + 2 * problem.param_bound), rel=1e-14)


def test_the_theory_covers_and_is_optimistic():
    result = livarot.run(envs.river_swim(4, 6), UCRLMNLLL.theory(), 15, seed=range(2))
    assert result.covered.all()
    assert (result.optimism_gap + result.optimism_loss).min() >= -1e-12


def test_the_ellipsoid_contains_the_set():
    """Random data, random theta: |theta - hat|_H(hat) <= (1 + 2|theta - hat|) |G(theta) - G(hat)|_{H(theta)^-1}."""
    rng = np.random.default_rng(0)
    tightest = 0.0
    for _ in range(300):
        d, reg = int(rng.integers(1, 4)), 10 ** rng.uniform(-3, 0)
        data = [random_row(rng, d, int(rng.integers(2, 5))) for _ in range(int(rng.integers(1, 8)))]
        hat, theta = rng.normal(size=d), rng.normal(size=d) * 10 ** rng.uniform(-1, 1)

        def slope(x, data=data, reg=reg):
            return reg * x + sum(ref.gradient(row, x, 0) for row in data)

        def curvature(x, data=data, reg=reg):
            return reg * np.eye(len(x)) + sum(ref.hessian(row, x) for row in data)

        beta = ref.dual_norm(slope(theta) - slope(hat), curvature(theta))
        away = ref.norm_in(theta - hat, curvature(hat))
        c = 2 * float(np.linalg.norm(theta - hat))
        assert away <= (1 + c) * beta * (1 + 1e-12)
        tightest = max(tightest, away / beta)
    assert tightest > 1.2  # without the factor it would be wrong


def test_what_every_agent_must_do(tmp_path):
    field.assert_value(UCRLMNLLL())
    field.assert_tiny(UCRLMNLLL())
    field.assert_resumes(UCRLMNLLL(), tmp_path)
    field.assert_pure(UCRLMNLLL(), field.ragged())
    field.assert_learns(UCRLMNLLL())


@pytest.mark.parametrize(
    ("settings", "argument"), [({"self_concordance": -1.0}, "self_concordance"), ({"rule": 3}, "rule")]
)
def test_bad_settings(settings, argument):
    with pytest.raises(LivarotError) as caught:
        UCRLMNLLL(**settings)
    assert caught.value.argument == argument
