"""The commands around experiments: what they print and how they refuse."""

import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from livarot.cli import doctor, sweep
from livarot.experiments.sweep import Snapshot

runner = CliRunner()
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
sweep.register(app)
doctor.register(app)

SPEC = """
episodes = 20
seeds = 3
[[environments]]
name = "hard-chain"
settings = { horizon = 3, gap = 0.1 }
[[agents]]
name = "uniform"
[[agents]]
name = "livarot"
settings.beta_scale = [0.05, 0.1]
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SPEC)
    return path


def call(*words):
    return runner.invoke(app, [str(word) for word in words])


def run(spec, store, *words):
    return call("run", spec, "--store", store, "--backend", "sequential", *words)


def test_from_nothing_to_a_table(spec, tmp_path):
    store = tmp_path / "store"
    dry = run(spec, store, "--dry-run")
    assert dry.exit_code == 0
    assert "livarot(beta_scale=0.1) T=20: 3 seeds, 3 to run" in dry.output
    assert "9 runs, 0 stored, 9 to run" in dry.output
    assert not store.exists()
    first = run(spec, store)
    assert first.exit_code == 0, first.output
    assert "9 of 9 runs" in first.output
    again = run(spec, store)
    assert again.exit_code == 0
    assert "9 runs, 9 stored, 0 to run" in run(spec, store, "--dry-run").output
    status = call("status", store, "--verify")
    assert "9 of 9 runs stored, 0 failed, 0 damaged files" in status.output
    assert "3 of      3  hard-chain(gap=0.1, horizon=3) uniform() T=20" in status.output
    assert "180 rows" in call("export", store, tmp_path / "all.csv").output
    assert "9 runs copied" in call("merge", tmp_path / "other", store).output
    assert "0 files, 0 bytes removed" in call("gc", store).output


def test_refusals_are_one_line(spec, tmp_path):
    spec.write_text(SPEC.replace("uniform", "unifrom"))
    for result in (
        run(spec, tmp_path / "store"),
        run(tmp_path / "absent.toml", tmp_path / "store"),
        call("status", tmp_path),
        call("export", tmp_path, tmp_path / "x.csv"),
        call("gc", tmp_path / "absent"),
        call("merge", tmp_path / "a", tmp_path / "b"),
    ):
        assert result.exit_code == 2
        assert len(result.output.strip().splitlines()) == 1
        assert result.output.startswith("livarot: ")
    assert "did you mean 'uniform'" in run(spec, tmp_path / "store").output


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0", "-1/2", "1/2/3"])
def test_parts_that_are_none(spec, tmp_path, text):
    result = run(spec, tmp_path / "store", "--shard", text)
    assert result.exit_code == 2
    assert "--shard 1/20" in result.output or "shard" in result.output


def test_the_schema_is_json():
    assert json.loads(call("schema").output)["title"] == "Experiment"


def test_progress_in_lines():
    said = []
    show = sweep.progress_lines(said.append, every=10)
    for second in range(25):
        show(Snapshot(100, 4 * second, 0, 40 * second, 1000, float(second)))
    show(Snapshot(100, 99, 1, 1000, 1000, 25.0))
    assert said[0] == "0 of 100 runs"
    assert said[1] == "40 of 100 runs, 40 episodes/s, 0:00:15 left"
    assert said[-1] == "99 of 100 runs, 1 failed, 40 episodes/s, 0:00:00 left"
    assert len(said) == 4


def test_doctor(tmp_path):
    result = call("doctor", "--store", tmp_path)
    assert result.exit_code == 0, result.output
    for name in ("python", "processors", "BLAS threads", "numba cache", "store", "free disk", "distributed"):
        assert name in result.output
    checks = {check["name"]: check for check in json.loads(call("doctor", "--store", tmp_path, "--json").output)}
    assert checks["store"]["good"] is True
    assert "pip install ray" in checks["ray"]["cure"] or checks["ray"]["found"][0].isdigit()
    (tmp_path / "file").write_text("x")


def test_doctor_says_what_is_wrong(tmp_path, monkeypatch):
    from livarot.experiments import doctor as module

    monkeypatch.setattr(module, "_unwritable", lambda folder: "cannot be written (Read-only file system)")
    result = call("doctor", "--store", tmp_path)
    assert result.exit_code == 1
    assert "NO  store" in result.output
    assert "choose another folder" in result.output


def test_the_commands_import_nothing_heavy():
    code = (
        "import sys, typer; from livarot.cli import sweep, doctor\n"
        "app = typer.Typer(); sweep.register(app); doctor.register(app)\n"
        "heavy = {'numpy', 'numba', 'pandas', 'pyarrow', 'joblib', 'pydantic'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
