"""Runs as tables: with JSON or a column per setting, and in the units of their environments."""

import json

import numpy as np
import pandas as pd
import pytest

from livarot import MNLMDP, LivarotError, envs
from livarot.report.page import data_of
from livarot.report.read_runs import read_runs
from livarot.report.summary import summarise
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.keys import Cell, unit_scales
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store import housekeeping, tables
from livarot.sweeps.store.store import Store


@pytest.mark.parametrize("name", ["all.parquet", "all.CSV"])
def test_export(store, tmp_path, name):
    import pandas as pd

    assert tables.export(store, tmp_path / name) == (600, [])
    path = tmp_path / name
    table = pd.read_parquet(path) if name.endswith("parquet") else pd.read_csv(path, converters={"regret": float})
    assert len(table) == 600
    one = table[(table.agent == "livarot") & (table.seed == 1) & table.environment_settings.str.contains('"horizon":4')]
    assert np.array_equal(one.episode, np.arange(1, 31))
    cell = next(c for c in store.cells() if c.agent == "livarot" and c.environment_settings["horizon"] == 4)
    assert np.array_equal(one.regret, store.result(cell, [1]).regret[0])
    assert table[table.agent == "uniform"].covered.isna().all()
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == [name]
    with pytest.raises(LivarotError, match="neither"):
        tables.export(store, tmp_path / "all.xls")


def test_export_names_damaged_runs(store, tmp_path):
    path = next((store.path / "runs").iterdir())
    path.write_bytes(path.read_bytes()[:-100])
    assert tables.export(store, tmp_path / "all.parquet") == (570, [path.stem])
    assert housekeeping.status(store).damaged == 1


def read(path):
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


@pytest.mark.parametrize("name", ["all.parquet", "all.csv"])
def test_a_tidy_table_has_labels_settings_and_cumulative_regret(store, tmp_path, name):
    assert tables.export(store, tmp_path / name, tidy=True) == (600, [])
    table = read(tmp_path / name)
    assert set(table["env.horizon"]) == {3, 4} and set(table["agent_name"]) == {"livarot", "uniform"}
    assert table["environment"].str.contains("horizon=").all() and set(table["environment_name"]) == {"hard-chain"}
    assert table.loc[table["agent_name"] == "uniform", "agent.beta_scale"].isna().all()
    for cell in store.cells():
        here = table[
            (table["agent_name"] == cell.agent) & (table["env.horizon"] == cell.environment_settings["horizon"])
        ]
        result = store.result(cell)
        for row, seed in enumerate(result.seeds):
            one = here[here["seed"] == seed]
            assert one["cumulative_regret"].to_numpy() == pytest.approx(result.cumulative_regret[row], rel=1e-12)
            assert one["cumulative_realised_regret"].to_numpy() == pytest.approx(
                result.cumulative_realised_regret[row], rel=1e-12
            )
        if cell.agent == "livarot":
            assert set(here["agent.rule"]) == {cell.agent_settings["rule"]["name"]}
            assert set(here["agent.beta_scale"]) == {cell.agent_settings["beta_scale"]}


def test_columns_of_settings_have_one_type():
    assert [tables._kind(values) for values in ([1, None], [1, 2.0], [True], [1, "$seed"], [None])] == [
        "int64",
        "double",
        "bool",
        "string",
        "string",
    ]


# ---------------------------------------------------------------- units
def dollar_machine(horizon: int = 3, price: float = 120.0) -> MNLMDP:
    """Wear 0..2; running costs 30 dollars per unit of wear, a new machine its price."""

    def features(h, wear, action):
        worse = min(wear + 1, 2)
        return ([0], [[0.0]]) if action == 1 or worse == wear else ([wear, worse], [[0.0], [1.0]])

    def cost(h, wear, action):
        return price if action == 1 else 30.0 * wear

    return MNLMDP.from_function(horizon, 3, 2, features=features, cost=cost, theta=[0.3], start=0, param_bound=1.0)


@pytest.fixture
def dollars(tmp_path, monkeypatch):
    """Two prices; at the second the scale is another one."""
    monkeypatch.setattr(envs.registry, "_entries", dict(envs.registry._entries))
    envs.registry.register("dollar-machine", dollar_machine, "costs in dollars")
    experiment = Experiment(
        environments=[EnvironmentSpec(name="dollar-machine", settings={"price": [120.0, 500.0]})],
        agents=[AgentSpec(name="uniform"), AgentSpec(name="certainty-equivalent")],
        episodes=12,
        seeds=5,
    )
    sweep(experiment, tmp_path / "dollars", backend="sequential")
    with Store(tmp_path / "dollars") as store:
        yield store


def test_everything_about_a_sweep_is_in_the_units_of_its_environment(dollars, tmp_path):
    table = dollars.table()
    tables.export(dollars, tmp_path / "all.parquet", tidy=True)
    rows = read(tmp_path / "all.parquet")
    summary = summarise(read_runs(dollars.path), controls=True)
    for one in summary.cells:
        price = one.cell.environment_settings["price"]
        result = dollars.result(one.cell)
        assert result.units.scale == price and set(unit_scales(one.cell, [0, 1])) == {price}
        total = result.regret.sum(axis=1)
        assert one.cell.agent != "uniform" or total.min() > 100.0  # dollars, not shares of the price
        assert one.values == pytest.approx(total, rel=1e-12)
        assert one.totals["regret"].estimate == pytest.approx(total.mean(), rel=1e-12)
        assert one.totals["realised_regret"].estimate == pytest.approx(
            result.realised_regret.sum(axis=1).mean(), rel=1e-9
        )
        assert one.curves["regret"].mean[-1] == pytest.approx(total.mean(), rel=1e-12)
        assert one.normalised.estimate == pytest.approx(total.mean() / price, rel=1e-12)
        own = table[table["cell"] == one.cell.key]
        assert own["regret"].to_numpy() == pytest.approx(total, rel=1e-12) and set(own["unit_scale"]) == {price}
        here = rows[(rows["env.price"] == price) & (rows["agent_name"] == one.cell.agent) & (rows["episode"] == 12)]
        assert here["cumulative_regret"].to_numpy() == pytest.approx(total, rel=1e-12)
        assert set(here["unit_scale"]) == {price}
    shown = data_of(summary)
    assert shown["units"] is True and json.dumps(shown)
    assert {cell["told"]["regret"] for cell in shown["cells"]} != {
        cell["told"]["normalised"] for cell in shown["cells"]
    }


def test_an_environment_that_is_not_registered_here_is_normalised_and_named(dollars, monkeypatch):
    from livarot.report.page import _intro

    wanted = {one.cell.key: one.values for one in summarise(read_runs(dollars.path)).cells}
    monkeypatch.delitem(envs.registry._entries, "dollar-machine")
    summary = summarise(read_runs(dollars.path))
    for one in summary.cells:
        assert one.scales is None and one.normalised is None
        assert one.values * one.cell.environment_settings["price"] == pytest.approx(wanted[one.cell.key], rel=1e-12)
    assert "regret is normalised: dollar-machine" in _intro(summary)


@pytest.mark.parametrize("name", sorted(set(envs.registry) - set(envs.LARGE)))
def test_livarot_s_own_environments_have_rewards_between_0_and_1(name):
    """They are not built to be asked."""
    assert unit_scales(Cell.of(name, {}, "uniform", {}, 5), [0]) == envs.make(name).problem.units.scale == 1.0
