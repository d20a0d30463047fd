"""The commands around experiments: what they print and how they refuse."""

import json
import os
import signal
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from livarot import agents
from livarot.cli import sweep
from livarot.sweeps import driver as sweeps
from livarot.sweeps.driver import Report
from livarot.sweeps.store.store import Store

runner = CliRunner()
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
sweep.register(app)

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
    assert "livarot (beta_scale=0.1) T=20: 3 seeds, 3 to run" in dry.output
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
    assert "3 of      3  hard-chain uniform T=20" in status.output
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
def test_what_is_not_a_part_is_refused(spec, tmp_path, text):
    result = run(spec, tmp_path / "store", "--shard", text)
    assert result.exit_code == 2
    assert "--shard 1/20" in result.output or "shard" in result.output


def test_the_schema_is_json():
    assert json.loads(call("schema").output)["title"] == "Experiment"


def test_the_commands_import_nothing_heavy():
    code = (
        "import sys, typer; from livarot.cli import sweep, doctor\n"
        "app = typer.Typer(); sweep.register(app); doctor.register(app)\n"
        "heavy = {'numpy', 'numba', 'pandas', 'pyarrow', 'joblib', 'pydantic'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


# -------------------------------------------------------------------- what a run refuses, and its exit code
def refused(result, says):
    assert result.exit_code == 2, result.output
    assert len(result.output.strip().splitlines()) == 1
    assert result.output.startswith("livarot: ")
    assert says in result.output


def edited(spec, *pairs):
    text = SPEC
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    spec.write_text(text)
    return spec


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--checkpoint", "nan"], "checkpoint: must be a finite number >= 0"),
        (["--checkpoint", "-1"], "checkpoint: must be a finite number >= 0"),
        (["--workers", "0"], "workers"),
        (["--group", "0"], "group"),
        (["--address", "tcp://127.0.0.1:1"], "takes no address"),
        (["--store", ""], "its name is empty"),
        (["--import", "no_such_module"], "there is no module 'no_such_module'"),
        (["--import", "no_such_module.py"], "without .py"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_nonsense_is_refused(spec, tmp_path, words, says, more):
    refused(run(spec, tmp_path / "store", *words, *more), says)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_folder_of_something_else_is_left_alone(spec, tmp_path, more):
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.tex").write_text("x")
    refused(run(spec, other, *more), "is not empty and not a store of livarot")
    assert [path.name for path in other.iterdir()] == ["chapter.tex"]
    refused(run(spec, other / "chapter.tex", *more), "is not a folder")
    (tmp_path / "half" / "runs").mkdir(parents=True)  # another sweep is making a store of it
    assert run(spec, tmp_path / "half", "--dry-run").exit_code == 0


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_what_cannot_be_built_is_refused_and_leaves_nothing(spec, tmp_path, more):
    store = tmp_path / "store"
    bandit = edited(spec, ('"uniform"', '"oful-mlogb"'))
    refused(run(bandit, store, *more), "agent 'oful-mlogb' in environment 'hard-chain': with gap=0.1, horizon=3")
    refused(run(edited(spec, ("horizon = 3", "horizon = -5")), store, *more), "environment 'hard-chain': with gap=0.1")
    assert not store.exists()


def test_zero_means_that_everything_is_stored(spec, tmp_path, monkeypatch):
    for done, failed, code in ((2, {}, 0), (1, {}, 1), (1, {"k" * 64: "Traceback\nValueError: no\n"}, 1)):
        report = Report(3, before=1, done=done, failed=failed)
        monkeypatch.setattr(sweeps, "sweep", lambda *given, found=report, **options: found)
        result = run(spec, tmp_path / "store")
        assert result.exit_code == code
        assert ("failed: kkkkkkkkkkkk: ValueError: no" in result.output) == bool(failed)


def test_an_interrupt_outside_of_the_sweep_tells_how_to_resume(spec, tmp_path, monkeypatch):
    """A second Ctrl-C may come when the sweep's handlers are gone already."""

    def interrupted(*given, **options):
        raise KeyboardInterrupt

    ignored = []
    monkeypatch.setattr(sweeps, "sweep", interrupted)
    monkeypatch.setattr(signal, "signal", lambda *given: ignored.append(given))
    result = run(spec, tmp_path / "store")
    assert result.exit_code == 130
    assert "resume with the same command: livarot" in result.output
    assert ignored == [(signal.SIGINT, signal.SIG_IGN)]


def test_a_problem_made_for_other_episodes_is_noted(spec, tmp_path):
    tuned = edited(spec, ("horizon = 3, gap = 0.1", "horizon = 3"))
    for words in (["--dry-run"], []):
        result = run(tuned, tmp_path / "store", *words)
        assert result.exit_code == 0
        assert "note: hard-chain is made for n_episodes = 1000, its default; the runs have 20: write" in result.output
    meant = edited(spec, ("horizon = 3, gap = 0.1", 'horizon = 3, n_episodes = "$episodes"'))
    assert "note" not in run(meant, tmp_path / "other", "--dry-run").output


# -------------------------------------------------------------------- how cells are named
def test_the_same_lines_in_the_same_order(spec, tmp_path):
    """Labels, presets and what varies, also where it is the default; one order everywhere."""
    default = agents.Livarot().beta_scale
    spec.write_text(
        f"""
episodes = 5
seeds = 1
[[environments]]
name = "hard-chain"
label = "the chain"
settings = {{ horizon = [4, 3], gap = 0.1 }}
[[agents]]
name = "uniform"
[[agents]]
name = "livarot"
settings.beta_scale = [0.1, {default}]
[[agents]]
name = "livarot"
preset = "paper"
[[agents]]
name = "bonus-livarot"
label = "bonus"
"""
    )
    told = [
        f"the chain (horizon={horizon}) {agent} T=5"
        for horizon in (4, 3)
        for agent in (
            "uniform",
            "livarot (beta_scale=0.1)",
            f"livarot (beta_scale={default})",
            "livarot (paper)",
            "bonus",
        )
    ]
    store = tmp_path / "store"
    dry = run(spec, store, "--dry-run").output.splitlines()
    assert dry == [f"{name}: 1 seed, 1 to run" for name in told] + [
        "10 runs, 0 stored, 10 to run; nothing was run (--dry-run)"
    ]
    assert run(spec, store).exit_code == 0
    sorted((store / "runs").iterdir())[0].unlink()  # known by its experiment only
    lines = call("status", store).output.splitlines()
    assert [line.split("  ")[-1] for line in lines[:-1]] == told
    assert lines[-1] == "9 of 10 runs stored, 0 failed, 0 damaged files"


def test_one_is_not_a_plural(spec, tmp_path):
    one = edited(spec, ("seeds = 3", "seeds = 1"), ('[[agents]]\nname = "uniform"\n', ""), ("[0.05, 0.1]", "0.1"))
    store = tmp_path / "store"
    assert "1 run, 0 stored, 1 to run" in run(one, store, "--dry-run").output
    assert "1 of 1 run in" in run(one, store).output
    assert "1 of 1 run stored, 0 failed, 0 damaged files" in call("status", store).output
    assert "1 run copied" in call("merge", tmp_path / "other", store).output


# -------------------------------------------------------------------- damaged stores, and agents of one's own
def damage(store):
    path = sorted((store / "runs").iterdir())[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    return path.stem


def test_status_says_zero_unless_it_is_asked_to_check(spec, tmp_path):
    store = tmp_path / "store"
    assert run(spec, store).exit_code == 0
    assert call("status", store, "--check").exit_code == 0
    key = damage(store)
    found = call("status", store, "--check")
    assert found.exit_code == 1
    assert "8 of 9 runs stored, 0 failed, 1 damaged file\n" in found.output
    assert [path.name[:64] for path in (store / "corrupt").iterdir()] == [key]
    assert call("status", store).exit_code == 0
    assert call("gc", store).exit_code == 0
    assert call("status", store, "--check").exit_code == 1  # one run is missing
    assert run(spec, store).exit_code == 0
    assert call("status", store, "--check").exit_code == 0
    with Store(store) as opened:
        opened.fail(opened.cells()[0].run(77), attempts=1, traceback="Traceback\nValueError: no")
    assert call("status", store, "--check").exit_code == 1


def test_an_export_names_what_is_damaged(spec, tmp_path):
    store = tmp_path / "store"
    assert run(spec, store).exit_code == 0
    assert call("export", store, tmp_path / "whole.CSV").exit_code == 0
    key = damage(store)
    result = call("export", store, tmp_path / "all.parquet")
    assert result.exit_code == 1
    assert "160 rows in" in result.output
    assert f"damaged and left out: run {key}" in result.output


OWN = """
from dataclasses import dataclass
from typing import ClassVar
from livarot import agents
from livarot.agents.controls import Uniform

@dataclass(frozen=True)
class Own(Uniform):
    name: ClassVar[str] = "own-agent"
    weight: float = 1.0

agents.registry.register("own-agent", Own, "one's own")
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """A module that registers an agent, and a process that has not imported it yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    name = "own_agents_of_a_test"
    (tmp_path / f"{name}.py").write_text(OWN)
    known = dict(agents.registry._entries)

    def forget():
        monkeypatch.setattr(agents.registry, "_entries", dict(known))
        sys.modules.pop(name, None)

    forget()
    yield name, forget
    sys.modules.pop(name, None)


def test_every_command_can_import_agents_of_one_s_own(own_module, spec, tmp_path):
    from livarot.cli import report

    report.register(app)
    name, forget = own_module
    store, own = tmp_path / "store", edited(spec, ('"uniform"', '"own-agent"'))
    assert run(own, store, "--import", name).exit_code == 0
    sorted((store / "runs").iterdir())[0].unlink()
    forget()
    blind = call("status", store, "--check")
    assert blind.exit_code == 1
    assert "not counted: experiment 'experiment'" in blind.output and "--import" in blind.output
    for words in (["status", store], ["gc", store, "--unplanned"], ["export", store, "all.csv"], ["report", store]):
        forget()
        result = call(*words, "--import", name)
        assert result.exit_code == 0, result.output
        refused(call(*words, "--import", "no_such_module"), "there is no module")
    forget()
    assert call("merge", tmp_path / "other", store).exit_code == 0  # it copies, whatever the names mean
    assert "8 of 9 runs stored" in call("status", store, "--import", name).output


def test_commands_without_a_store_import_too(own_module):
    from livarot.cli.app import app as whole

    name, forget = own_module
    for words in (
        ["list", "agents"],
        ["schema"],
        ["theory", "park-two-state", "--agent", "own-agent", "--episodes", "20", "--json"],
        ["tune", "park-two-state", "own-agent", "--grid", "weight=1,2", "--episodes", "2", "--seeds", "2"],
    ):
        forget()
        blind = runner.invoke(whole, words)
        assert "own-agent" not in blind.stdout
        forget()
        refused(runner.invoke(whole, [*words, "--import", "no_such_module"]), "there is no module")
        seen = runner.invoke(whole, [*words, "--import", name])
        assert seen.exit_code == 0 and "own-agent" in seen.output, seen.output


def test_every_command_that_knows_names_can_import():
    """A new command either takes --import or is listed here, since it builds nothing by name."""
    from livarot.cli.app import app as whole

    without = {"doctor", "evaluate", "fit", "merge", "plan", "reproduce", "sepsis", "variance", "version", "warmup"}
    for command in typer.main.get_command(whole).commands.values():
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--import" in options) != (command.name in without), command.name


@pytest.mark.parametrize(
    ("backend", "says"),
    [
        ("dask", "Dask is not installed"),
        ("ray", "no 'ray'; choose one of loky, dask, sequential; a cluster is used through dask"),
        ("threads", "no 'threads'; choose one of loky, dask, sequential"),
    ],
)
def test_a_backend_that_is_not_there_leaves_no_store(spec, tmp_path, monkeypatch, backend, says):
    monkeypatch.setitem(sys.modules, "distributed", None)
    store = tmp_path / "results" / "store"
    refused(call("run", spec, "--store", store, "--backend", backend), says)
    assert not store.parent.exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_thing", "needs a module that is not there: 'no_such_thing'"),
        ("1 +", "SyntaxError"),
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_a_module_that_cannot_be_imported(own_module, spec, tmp_path, text, says):
    (tmp_path / f"{own_module[0]}.py").write_text(text)
    refused(run(spec, tmp_path / "store", "--import", own_module[0]), says)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_two_interrupts_still_tell_how_to_resume(tmp_path):
    """From outside: the second Ctrl-C comes while the first one is being handled."""
    from tests.faults.tools import ROOT

    path = tmp_path / "slow.toml"
    path.write_text(
        'episodes = 5000\nseeds = 2\n[[environments]]\nname = "hard-chain"\nsettings = { horizon = 3, gap = 0.1 }\n'
        '[[agents]]\nname = "test-slow"\nsettings.delay = 0.01'
    )
    words = ["run", path, "--store", tmp_path / "store", "--backend", "sequential", "--import", "tests.faults.plugin"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.driver", *map(str, words)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("0 of 2 runs")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "resume with the same command" in said
    assert "Traceback" not in said
