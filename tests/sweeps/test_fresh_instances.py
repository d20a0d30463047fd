"""``"$seed"`` in the settings of an environment: a model of its own for every seed."""

import numpy as np
import pytest

import livarot
from livarot import LivarotError, envs
from livarot.agents import Livarot
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store.store import Store

SETTINGS = {"horizon": 4, "gap": 0.1, "seed": "$seed"}


def experiment(**settings):
    return Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings=SETTINGS | settings)],
        agents=[AgentSpec(name="livarot"), AgentSpec(name="oracle")],
        episodes=30,
        seeds=5,
    )


@pytest.mark.parametrize("group", [2, 64])
def test_the_runs_are_those_of_the_seeds_own_models(tmp_path, group):
    assert sweep(experiment(), tmp_path, backend="sequential", group=group).complete
    seeds = range(5)
    models = [envs.hard_chain(4, gap=0.1, seed=seed) for seed in seeds]
    assert len({model.theta.tobytes() for model in models}) > 1
    expected = livarot.run(models, Livarot(), 30, seed=seeds)
    store = Store(tmp_path)
    found = store.result(Cell.of("hard-chain", SETTINGS, "livarot", {}, 30))
    np.testing.assert_array_equal(found.regret, expected.regret)
    assert found.facts == expected.facts
    oracle = store.result(Cell.of("hard-chain", SETTINGS, "oracle", {}, 30))
    np.testing.assert_allclose(oracle.regret, 0.0, atol=1e-12)


def test_the_key_says_that_instances_are_fresh():
    fresh = Cell.of("hard-chain", SETTINGS, "livarot", {}, 30)
    fixed = Cell.of("hard-chain", SETTINGS | {"seed": 3}, "livarot", {}, 30)
    assert fresh.fresh and not fixed.fresh
    assert fresh.key_of(3) != fixed.key_of(3)
    assert fresh.environment_settings["seed"] == "$seed"
    assert fresh.model(3).theta.tobytes() == fixed.model().theta.tobytes()


@pytest.mark.parametrize("group", [1, 64])
def test_instances_may_have_other_features(tmp_path, group):
    """Every seed of ``random`` has features of its own: computed one by one, whatever the group."""
    wanted = Experiment(
        environments=[EnvironmentSpec(name="random", settings={"seed": "$seed", "horizon": 3})],
        agents=[AgentSpec(name="livarot")],
        episodes=5,
        seeds=8,
    )
    assert sweep(wanted, tmp_path, backend="sequential", group=group).complete
    (cell,) = wanted.cells()
    found = Store(tmp_path).result(cell)
    for seed in range(8):
        alone = livarot.run(envs.random_mdp(seed=seed, horizon=3), Livarot(), 5, seed=seed)
        np.testing.assert_array_equal(found.regret[seed], alone.regret[0])


@pytest.mark.parametrize("settings", [{"gap": "$seed"}, {"param_bound": "$seed"}])
def test_only_integers_can_be_the_seed(settings):
    with pytest.raises(LivarotError):
        Cell.of("hard-chain", SETTINGS | settings, "livarot", {}, 30).model(1)


def test_settings_of_agents_cannot_be_the_seed():
    with pytest.raises(LivarotError):
        Cell.of("hard-chain", SETTINGS, "livarot", {"n_explore": "$seed"}, 30)
