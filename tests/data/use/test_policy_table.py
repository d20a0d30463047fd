"""Policies for people to read: labels, only states that can be reached, nothing that a spreadsheet runs."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot.data import labels_of, policy_table, write_policy
from livarot.data.use.policy_table import as_csv, guarded
from tests.support.machine_logs import ONLY_NEW, fitted, to_mdp


def test_every_row_is_the_policy():
    fit = fitted(400)
    mdp = to_mdp(fit)
    plan, labels = livarot.solve(mdp), labels_of(mdp)
    table = policy_table(mdp, plan.policy, value=plan.value, fit=fit)
    assert list(table.columns) == ["stage", "state", "action", "value", "count"]
    assert len(table) == int((mdp.problem.reachable[:-1] & ~mdp.problem.terminal).sum())
    support = fit.support()["count"]
    for row in table.itertuples():
        s = labels.states.index(row.state)
        assert row.action == labels.actions[int(plan.policy[row.stage, s])]
        assert row.value == plan.value[row.stage, s]
        assert row.count == support.get((row.state, row.action), 0.0)
    assert table.iloc[0].tolist()[:2] == [0, "new"]


def test_drawn_actions_and_named_stages():
    fit = fitted(600, homogeneous=False, stage="week")
    mdp = fit.to_mdp(ONLY_NEW, start="new", terminal="broken")
    policy = np.full((3, 4, 2), 0.5)
    table = policy_table(mdp, policy)
    assert list(table.columns) == ["stage", "state", "action", "probability"]
    assert set(table.probability) == {0.5} and set(table.stage) == set(fit.stages_)


def test_formulas_are_guarded(tmp_path):
    evil = ["=cmd()", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "'quoted", "fine", "a=b", 'with "quotes", commas']
    table = pd.DataFrame({"state": evil, "=value": np.arange(len(evil)) - 3.5})
    write_policy(tmp_path / "p.csv", table)
    rows = list(csv.reader(io.StringIO((tmp_path / "p.csv").read_bytes().decode(), newline="")))
    assert rows[0] == ["state", "'=value"]
    for given, (found, number) in zip(evil, rows[1:], strict=True):
        assert found == (given if given in ("fine", "a=b", 'with "quotes", commas') else f"'{given}")
        assert float(number) == evil.index(given) - 3.5
    assert guarded(-3) == -3 and guarded(("=", 1)) == "('=', 1)"
    assert "0.1\n" in as_csv(pd.DataFrame({"x": [0.1]}))


def test_refusals(tmp_path):
    mdp = to_mdp(fitted(100))
    with pytest.raises(livarot.LivarotError, match="value: has shape"):
        policy_table(mdp, livarot.solve(mdp).policy, value=np.zeros((2, 2)))
    with pytest.raises(livarot.LivarotError, match="create its folder first"):
        write_policy(tmp_path / "no" / "p.csv", pd.DataFrame({"x": [1]}))
