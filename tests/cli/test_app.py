"""The command line: what it prints, how it fails, how it is interrupted, and that it begins at once."""

import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import livarot
from livarot import agents, envs
from livarot.cli import studies
from livarot.cli.app import app

runner = CliRunner()
LIVAROT = [sys.executable, "-m", "livarot"]


def test_help_names_the_commands():
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert all(name in result.output for name in ("reproduce", "list", "version"))


def test_help_needs_no_heavy_import():
    code = (
        "import sys; from livarot.cli import main; sys.argv = ['livarot', 'reproduce', '--help']\n"
        "try: main()\nexcept SystemExit as end: assert end.code in (0, None), end.code\n"
        "heavy = {'numpy', 'numba', 'scipy', 'pandas', 'matplotlib'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_console_script_s_module_imports_nothing():
    code = "import sys; import livarot.cli; assert not {'typer', 'rich', 'numpy'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_version():
    assert runner.invoke(app, ["version"]).output == f"livarot {livarot.__version__}\n"
    assert runner.invoke(app, ["--version"]).output == f"livarot {livarot.__version__}\n"
    as_module = subprocess.run([*LIVAROT, "version"], check=True, capture_output=True, text=True)
    assert as_module.stdout == f"livarot {livarot.__version__}\n"


@pytest.mark.parametrize(("kind", "registry"), [("agents", agents.registry), ("envs", envs.registry)])
def test_list(kind, registry):
    lines = runner.invoke(app, ["list", kind]).output.splitlines()[1:]
    lines = lines[: lines.index("")] if "" in lines else lines  # what the columns mean stands below
    assert [line.split()[0] for line in lines] == list(registry)
    assert all(line.endswith(registry.summary(line.split()[0])) for line in lines)


def test_a_wrong_command_or_kind_is_refused():
    assert runner.invoke(app, ["list", "cheeses"]).exit_code == 2
    assert runner.invoke(app, ["cheese"]).exit_code == 2


@pytest.mark.parametrize(
    "options",
    [["--seeds", "0"], ["--workers", "-1"], ["--out", os.devnull], ["--out", f"{os.devnull}/below"]],
)
def test_our_errors_are_one_line(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, ["reproduce", "--quick", *options])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("livarot: ")
    assert list(tmp_path.iterdir()) == []


def test_defects_keep_their_traceback(monkeypatch):
    def broken(**options):
        raise ValueError("a defect")

    monkeypatch.setattr(studies, "reproduce", broken)
    assert isinstance(runner.invoke(app, ["reproduce"]).exception, ValueError)


def test_interrupted(monkeypatch, tmp_path):
    def interrupted(**options):
        raise KeyboardInterrupt

    monkeypatch.setattr(studies.paper, "reproduce", interrupted)
    result = runner.invoke(app, ["reproduce", "--out", str(tmp_path / "out")])
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1].startswith("livarot: interrupted")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_real_interrupt_ends_the_threads_and_leaves_nothing(tmp_path):
    lines = "from livarot.cli import main, progress; progress.SECONDS = 0.0; main()"  # a line whenever there is one
    command = [sys.executable, "-c", lines, "reproduce", "--out", str(tmp_path / "out"), "--workers", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    seen = []
    for line in process.stderr:  # the threads are at work
        seen.append(line)
        if "10 %" in line:
            break
    process.send_signal(signal.SIGINT)
    printed, rest = process.communicate(timeout=60)
    assert process.returncode == 130, (seen, rest)
    assert rest.splitlines()[-1] == "livarot: interrupted, nothing half-written is left"
    assert "Traceback" not in rest
    assert printed == ""
    assert not (tmp_path / "out").exists()


def test_help_is_short_and_groups_the_commands():
    result = runner.invoke(app, ["-h"])
    assert result.exit_code == 0
    for panel in ("Studies", "Problems and agents", "Data", "Experiments of many runs", "This machine"):
        assert panel in result.output
    assert "--grid" in runner.invoke(app, ["tune", "-h"]).output


def test_workers_and_imports_are_the_same_everywhere():
    """``--workers`` has one default, as many as processors; ``--import`` is where agents or environments are named."""
    import typer

    from livarot.cli.app import app

    group = typer.main.get_command(app)
    options = {
        name: {option: p for p in command.params for option in p.opts} for name, command in group.commands.items()
    }
    counted = {name for name, found in options.items() if "--workers" in found}
    assert counted == {"reproduce", "variance", "sepsis", "theory", "tune", "run"}
    assert {options[name]["--workers"].default for name in counted} == {None}
    naming = {"list", "theory", "tune", "run", "status", "export", "gc", "schema", "report", "board"}
    assert {name for name, found in options.items() if "--import" in found} == naming
