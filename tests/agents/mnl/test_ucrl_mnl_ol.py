"""UCRL-MNL-OL and the controls: the twin's runs, constants, and what they must not have."""

import math

import numpy as np
import pytest

import livarot
from livarot import agents, envs
from livarot.agents import UCRLMNLOL
from livarot.simulation.streams import environment_uniforms
from tests.support.episodes import assert_same_run, play_agent
from tests.support.models import random_model, to_mdp, to_model
from tests.twins import agents as twin


def expected_run(mdp, n, seed, **options):
    return twin.run_ucrl_mnl_ol(to_model(mdp), environment_uniforms(seed, 0, n, mdp.problem.horizon), **options)


@pytest.mark.parametrize("bound", ["tight", None])
@pytest.mark.parametrize(("H", "d"), [(4, 2), (6, 2), (5, 3)])
def test_runs_on_the_hard_chain(H, d, bound):
    mdp = envs.hard_chain(H, gap=0.1, dim=d, seed=H, param_bound=bound)
    log, _ = play_agent(mdp, UCRLMNLOL.paper(), 60, seed=1)
    assert_same_run(mdp, log, expected_run(mdp, 60, 1), plan_atol=1e-10)


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("beta_scale", [0.002, 0.3])
def test_runs_on_river_swim(shared, beta_scale):
    """The larger scale reaches the clip at H."""
    mdp = envs.river_swim(4, 6, shared_parameter=shared)
    agent = UCRLMNLOL(reg=2.0, step_size=3.0, beta_scale=beta_scale)
    log, _ = play_agent(mdp, agent, 60, seed=2)
    expected = expected_run(mdp, 60, 2, reg=2.0, step_size=3.0, beta_scale=beta_scale, shared=shared)
    assert_same_run(mdp, log, expected, plan_atol=1e-9)
    assert (max(plan.value.max() for plan in log["plans"]) == 6.0) == (beta_scale == 0.3)


def without_lone_features(model):
    """Rows with one outcome get the feature zero: the printed bonus would reward them for nothing."""
    rows = [[[(n, f if len(n) > 1 else 0 * f, o) for n, f, o in state] for state in stage] for stage in model["rows"]]
    return model | {"rows": rows}


def test_runs_on_a_random_ragged_model():
    model = without_lone_features(random_model(np.random.default_rng(3), H=4, S=5, A=3, d=3, U=5, offsets=True))
    mdp = to_mdp(model)
    log, _ = play_agent(mdp, UCRLMNLOL(reg=10.0, step_size=10.0, beta_scale=0.01), 60, seed=4)
    assert_same_run(mdp, log, expected_run(mdp, 60, 4, beta_scale=0.01), plan_atol=1e-9)


def test_presets_and_constants():
    paper = UCRLMNLOL.paper()
    assert (paper.step_size, paper.reg, paper.beta_scale, paper.failure_level) == (10.0, 10.0, 0.02, 0.05)
    assert (paper.printed_radius, paper.bonus_constant) == (True, 2.5)
    assert UCRLMNLOL() == paper
    theory = UCRLMNLOL.theory()
    assert (theory.step_size, theory.reg, theory.beta_scale, theory.printed_radius) == (
        None,
        None,
        1.0,
        False,
    )
    problem = envs.river_swim(4, 6).problem
    bound, d, U = problem.param_bound, 6, 3
    eta = 0.5 * math.log(1 + U) + bound + 1
    reg = 84 * math.sqrt(2) * eta * (bound + d)
    gram = problem.rows.unpack(theory.init(problem).estimate.gram)
    np.testing.assert_allclose(gram[0, 0], reg * np.eye(d), rtol=1e-14)
    for episode in (0, 20):
        t = episode + 1
        assert paper.radius(problem, episode) == pytest.approx(0.02 * twin.ucrl_radius(t, 6, d, U, 0.05))
        level = math.log(2 * math.sqrt(1 + 2 * t) * 6 / 0.05)
        growth = 3 * math.log(1 + U * t) + bound + 2
        total = growth * (17 / 16 * reg + 2 * math.sqrt(reg) * level + 16 * level**2) + 2
        total += 7 * math.sqrt(6) / 6 * d * eta * math.log(1 + (t + 1) / (2 * reg))
        assert theory.radius(problem, episode) == pytest.approx(math.sqrt(2 * eta * total + 4 * reg * bound**2))


@pytest.mark.parametrize("episode", [0, 1, 7, 100])
def test_the_theory_s_radius_counts_the_updates_of_a_shared_parameter(episode):
    """n episodes of H stages are nH updates, and the radius is that of the estimate number nH + 1."""
    H, delta = 20, 0.05
    problem = envs.river_swim(6, H, shared_parameter=True).problem
    d, U, bound = problem.dim, problem.max_reachable, problem.param_bound
    eta = 0.5 * math.log(1 + U) + bound + 1
    reg = 84 * math.sqrt(2) * eta * (bound + d)
    t = episode * H + 1
    level = math.log(2 * math.sqrt(1 + 2 * t) * H / delta)
    growth = 3 * math.log(1 + U * t) + bound + 2
    total = growth * (17 / 16 * reg + 2 * math.sqrt(reg) * level + 16 * level**2) + 2
    total += 7 * math.sqrt(6) / 6 * d * eta * math.log(1 + (t + 1) / (2 * reg))
    exact = math.sqrt(2 * eta * total + 4 * reg * bound**2)
    assert UCRLMNLOL.theory().radius(problem, episode) == pytest.approx(exact, rel=1e-13)
    # the printed radius has the number of the episode
    printed = 0.02 * twin.ucrl_radius(episode + 1, H, d, U, delta)
    assert UCRLMNLOL.paper().radius(problem, episode) == pytest.approx(printed, rel=1e-13)


def test_the_theory_runs_and_covers():
    result = livarot.run(envs.river_swim(4, 6), UCRLMNLOL.theory(), 10, seed=range(2))
    assert result.covered.all()
    assert result.optimism_gap.min() >= -1e-12
    assert result.optimism_loss.mask.all()  # its plan is not a maximum over the set
    assert result.inner_gap.mask.all()


# ---------------------------------------------------------------- controls


def test_agents_are_values():
    assert agents.Livarot(reg=3.0) == agents.Livarot(reg=3.0)
    assert hash(UCRLMNLOL(reg=3.0)) == hash(UCRLMNLOL(reg=3.0))
    assert repr(UCRLMNLOL(reg=3.0)) != repr(UCRLMNLOL(reg=4.0))
