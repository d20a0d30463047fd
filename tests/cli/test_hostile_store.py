"""What a hostile store may contain, as it is shown in a terminal and in a spreadsheet."""

import csv

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from livarot.cli.app import app
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store.store import Store
from tests.support.stores import columns_of

FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1", "\r=1", " =1", '"=1', "'=1", "plain"]
STEERING = "one\x1b[2J\x1b]0;pwned\x07two\u202ethree\x9b\udcff\rfour"


def call(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def store(tmp_path):
    """Runs of agents and environments that are named like formulas."""
    with Store(tmp_path / "store", create=True) as made:
        for name in FORMULAS:
            cell = Cell(name, {"x": name}, name, {name: 1}, 3)
            rng = np.random.default_rng(0)
            made.put(cell.run(0), columns_of(rng, 3, -5.0, covered=True), np.ones((3, 1), dtype=np.int32))
    return tmp_path / "store"


def test_a_csv_has_no_formulas(store, tmp_path):
    result = call("export", store, tmp_path / "x.csv")
    assert result.exit_code == 0, result.output
    with open(tmp_path / "x.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * len(FORMULAS)
    for name in ("environment", "agent"):
        guarded = [f"'{text}" for text in FORMULAS if text not in ('"=1', "plain")]
        assert {row[name] for row in rows} == {*guarded, '"=1', "plain"}
    assert all(float(row["regret"]) < 0 for row in rows)  # numbers are not formulas


def test_a_parquet_file_has_the_names_as_they_are(store, tmp_path):
    assert call("export", store, tmp_path / "x.parquet").exit_code == 0
    assert set(pd.read_parquet(tmp_path / "x.parquet").agent) == set(FORMULAS)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_export_follows_no_link(store, tmp_path, name):
    precious = tmp_path / "precious"
    precious.write_text("years of work")
    (tmp_path / f".{name}.part").symlink_to(precious)
    (tmp_path / name).symlink_to(precious)  # replaced, as any file is
    assert call("export", store, tmp_path / name).exit_code == 0
    assert precious.read_text() == "years of work"
    assert not (tmp_path / name).is_symlink()
    assert {path.name for path in tmp_path.iterdir()} == {"store", "precious", f".{name}.part", name}


def test_an_export_that_fails_leaves_nothing(store, tmp_path):
    (tmp_path / "x.csv").mkdir()  # cannot be replaced by a file
    result = call("export", store, tmp_path / "x.csv")
    assert result.exit_code == 2
    assert "cannot write" in result.output
    assert {path.name for path in tmp_path.iterdir()} == {"store", "x.csv"}
    assert call("export", store, tmp_path / "nowhere" / "x.csv").exit_code == 2


def test_status_does_not_steer_the_terminal(store):
    experiment = Experiment(
        name=f"n{STEERING.encode('ascii', 'ignore').decode()}",
        environments=[EnvironmentSpec(name="hard-chain", label="a\x1b[2Jb", settings={"gap": 0.1})],
        agents=[AgentSpec(name="uniform", label="c\x9bd")],
        episodes=3,
        seeds=1,
    )
    foreign = experiment.model_copy(update={"agents": [AgentSpec(name="not\x1b[2Jthere")]})
    with Store(store) as opened:
        opened.add_spec(experiment)
        opened.add_spec(foreign)
        opened.fail(experiment.runs()[0], attempts=2, traceback=f"Traceback:\n\t{STEERING}\nlast")
    result = call("status", store, "--failures")
    assert result.exit_code == 0, result.output
    text = result.stdout + (result.stderr if result.stderr_bytes else "")
    assert "not counted: experiment" in text
    assert all(sign.isprintable() or sign in "\n\t" for sign in text)
    assert r"one\x1b[2J\x1b]0;pwned\x07two\u202ethree\x9b\udcff\rfour" in text
    assert "2 attempts\nTraceback:\n\t" in text
