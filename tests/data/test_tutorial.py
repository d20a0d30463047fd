"""docs/tutorial.md: every command and every example runs as printed, in a folder of its own."""

import doctest
import re
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from livarot.cli.app import app
from tests.support.printed import same_binomials

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples" / "machines", tmp_path / "examples" / "machines")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands(folder):
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) == 4
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "livarot"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in ("nominal", "robust", "hopeful")}
    first = {name: table.value.iloc[0] for name, table in tables.items()}
    assert first["robust"] < first["nominal"] < first["hopeful"]


@same_binomials
def test_the_examples(folder):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert failed == 0
    assert tried > 25


def test_the_data_are_what_the_script_makes(folder):
    from benchmarks.warm_start import example

    (folder / "again").mkdir()
    example().main(folder / "again")
    for name in ("log", "reachable", "rewards"):
        stored = (ROOT / "examples" / "machines" / f"{name}.csv").read_bytes()
        assert (folder / "again" / f"{name}.csv").read_bytes() == stored
