"""The LaTeX table: bold for learners, numbers that fit their intervals, names that are not commands."""

import re

import pytest

from livarot.report.latex import escape, table
from livarot.report.read_runs import read_runs
from livarot.report.summary import summarise
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from tests.support.stores import hostile_store, store_of

SCALES = {"oracle": 0.0, "livarot": 0.5, "psrl": 0.7, "uniform": 0.2}


def table_of(path, names, horizons=(4,), seeds=5):
    experiment = Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": list(horizons)})],
        agents=[AgentSpec(name=name) for name in names],
        episodes=10,
        seeds=seeds,
    )
    return table(summarise(read_runs(store_of(path, experiment, SCALES))))


def rows_of(text):
    return [line for line in text.splitlines() if line.startswith(r"\quad")]


def test_only_the_best_learner_is_bold(tmp_path):
    """The oracle and, here, the uniform policy have less regret: they are controls."""
    rows = rows_of(table_of(tmp_path / "a", ["oracle", "psrl", "livarot", "uniform"]))
    assert [row.split(" & ")[0] for row in rows] == [rf"\quad {x}" for x in ("oracle", "psrl", "livarot", "uniform")]
    assert ["mathbf" in row for row in rows] == [False, False, True, False]
    assert "mathbf" not in table_of(tmp_path / "b", ["oracle", "livarot", "uniform"])  # a single learner has no rival


def test_numbers_are_right_aligned_with_two_digits_of_half_the_interval(tmp_path):
    text = table_of(tmp_path / "a", ["psrl", "livarot"], seeds=12)
    assert r"\begin{tabular}{lr r@{\ }r r@{\ }r r}" in text
    for row in rows_of(text):
        estimate, ends = row.split(" & ")[2:4]
        low, high = map(float, ends.strip("$[]").split(", "))
        decimals = len(estimate.strip("$}").partition(".")[2])
        assert (high - low) / 2.0 * 10**decimals + 0.5 >= 10.0 and (high - low) / 2.0 * 10**decimals <= 100.5


@pytest.mark.parametrize(("horizons", "kind"), [((4, 5), "tabular"), (range(3, 18), "longtable")])
def test_a_long_table_is_broken_over_pages(tmp_path, horizons, kind):
    text = table_of(tmp_path / "a", ["psrl", "livarot", "uniform"], horizons, seeds=1)
    assert f"\\begin{{{kind}}}" in text and f"\\end{{{kind}}}" in text
    assert ("\\endhead" in text) == ("longtable}" in text.splitlines()[0]) == (kind == "longtable")
    assert text.count("\n\\multicolumn{7}{l}{hard-chain (horizon=") == len(horizons)


def test_a_name_is_not_a_command(tmp_path):
    lines = table(summarise(read_runs(hostile_store(tmp_path / "store")))).splitlines()
    rows = [line.removeprefix(r"\quad ") for line in lines if line.startswith(r"\quad")]
    names = [line.removeprefix(r"\multicolumn{7}{l}{") for line in lines if line.startswith(r"\multicolumn")]
    commands = set(re.findall(r"\\([A-Za-z]+)", "\n".join([*rows, *names])))
    assert rows and names
    assert commands <= {"mathbf", "cdot", "textbackslash", "textless", "textgreater", "textquotedbl"} | {
        "textquotesingle", "textasciigrave", "textasciitilde", "textasciicircum", "textbar",
    }  # fmt: skip
    assert all(len(re.findall(r"(?<!\\)&", row)) == 6 and row.endswith(r"\\") for row in rows)
    assert all(len(re.findall(r"(?<!\\)&", name)) == 0 for name in names)
    assert escape("a--b%\n\x07") == r"a-{}-b\% [07]"
