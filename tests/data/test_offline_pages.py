"""docs/csv_to_policy.md and docs/log_enough.md: commands and examples run as printed, tables are what scripts print."""

import doctest
import re
import shlex
import shutil
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import offline
from docs.img import draw_policies
from livarot.cli.app import app
from tests.support.printed import same_binomials

ROOT = Path(__file__).parents[2]
PAGES = {name: ROOT / "docs" / name for name in ("csv_to_policy.md", "log_enough.md")}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture
def folder(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples" / "machines", tmp_path / "examples" / "machines")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", PAGES)
def test_the_examples(name, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page talks about them
        failed, tried = doctest.testfile(str(PAGES[name]), module_relative=False, optionflags=FLAGS)
    assert failed == 0 and tried > 10


def test_the_commands(folder):
    text = PAGES["csv_to_policy.md"].read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    told = []
    for line in block.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "livarot"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        told.append(result.output)
    assert "lower 95 % bound 16.7003" in told[2]
    assert "from step 4 on no logged episode follows the policy" in told[3]


@same_binomials
def test_the_table_and_the_figure():
    found = draw_policies.rows()
    page = PAGES["csv_to_policy.md"].read_text(encoding="utf-8")
    assert "\n".join(draw_policies.table(found)) in page
    (axes,) = draw_policies.draw(found).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [row.plan for row in found]
    pessimistic = next(row for row in found if row.plan == "pessimistic")
    assert pessimistic.claim <= pessimistic.true


def test_the_benchmark_in_small():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plans = offline.plan_table(found := offline.plan_study(3, sizes=(20,)))
        evaluations = offline.evaluation_study(3, n_episodes=60)
    assert len(plans) == 3 * 5 and len(evaluations) == 2 * 2 * 6
    assert all(row["claim_holds"] == 1.0 for row in plans if row["plan"] == "pessimistic")
    assert all(row["true"][0] <= row["optimum"] + 1e-12 for row in plans)
    assert len(offline.draw(found).axes) == 3
