"""``livarot evaluate`` and ``livarot plan --pessimistic``: from a log and a policy to what it is worth."""

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import livarot
from livarot.cli import evaluate as cli_evaluate
from livarot.cli import fit as cli_fit
from livarot.cli import plan as cli_plan
from livarot.cli.app import app
from livarot.data import evaluate_policy, plan_pessimistic, policy_table, read_episodes, save_fit, write_policy
from tests.support.offline_logs import behaviour, fitted, make_log, target, to_mdp, truth

REWARD = "new=0.9,used=0.5,worn=0.1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log, a model and the policy to judge."""
    here = tmp_path_factory.mktemp("evaluate")
    log = make_log(truth(), behaviour(), 250, 1)
    log.rename(columns={"episode": "machine", "step": "week"}).to_csv(here / "log.csv", index=False)
    fit = fitted(log)
    save_fit(here / "model", fit)
    write_policy(here / "policy.csv", policy_table(to_mdp(fit), target()))
    return here, log, fit


def given(folder: Path, **more):
    found = {"log": folder / "log.csv", "policy": folder / "policy.csv", "episode": "machine", "step": "week"}
    return found | more


def test_without_a_model(folder, capsys):
    here, log, _ = folder
    cli_evaluate.command(**given(here))
    told = capsys.readouterr()
    expected = evaluate_policy(log, policy_table(to_mdp(fitted(log)), target()))
    assert repr(expected) in told.out and told.err == ""
    assert "importance sampling" in told.out and "model" not in told.out


def test_with_a_model(folder, capsys):
    here, log, fit = folder
    cli_evaluate.command(**given(here, model=here / "model", reward=REWARD, probability="probability", as_json=True))
    found = json.loads(capsys.readouterr().out)
    start = log[log.step == 0].state.value_counts(normalize=True).to_dict()
    mdp = fit.to_mdp({"new": 0.9, "used": 0.5, "worn": 0.1}, 4, start)
    expected = evaluate_policy(read_episodes(log, mdp, probability="probability"), target(), fit, mdp)
    assert list(found["estimates"]) == list(expected.estimates)
    for name, one in expected.estimates.items():
        assert found["estimates"][name]["value"] == pytest.approx(one.value, rel=1e-12)
        assert found["estimates"][name]["upper"] == pytest.approx(one.upper, rel=1e-12)
    assert found["n_episodes"] == 250 and found["behaviour"] == "known" and found["no_overlap"] == []


def test_from_the_command_line(folder, tmp_path):
    here, _, _ = folder
    made = ["plan", str(here / "model"), "--reward", REWARD, "--horizon", "4", "--start", "new"]
    result = CliRunner().invoke(app, [*made, "--pessimistic", "0.9", "--out", str(tmp_path / "careful.csv")])
    assert result.exit_code == 0, result.output
    assert "pessimistic plan: lower 90 % bound" in result.stderr and "coverage: visits" in result.stderr
    table = pd.read_csv(tmp_path / "careful.csv")
    mdp = folder[2].to_mdp({"new": 0.9, "used": 0.5, "worn": 0.1}, 4, "new")
    plan = plan_pessimistic(folder[2], mdp, 0.9)
    assert table.value.iloc[0] == pytest.approx(plan.value[0] @ mdp.problem.start, rel=1e-12)
    asked = ["evaluate", str(here / "log.csv"), "--policy", str(here / "policy.csv"), "--episode", "machine"]
    result = CliRunner().invoke(app, [*asked, "--step", "week", "--behaviour", "logit"])
    assert result.exit_code == 0, result.output
    assert "behaviour logit" in result.output
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 2 and "there is no column 'step'" in result.output


def test_notes_and_refusals(folder, tmp_path, capsys):
    here, log, _ = folder
    short = log[log.episode < 20].rename(columns={"episode": "machine", "step": "week"})
    short.to_csv(tmp_path / "short.csv", index=False)
    cli_evaluate.command(**given(here, log=tmp_path / "short.csv"))
    assert "note: the effective sample size falls to" in capsys.readouterr().err
    with pytest.raises(livarot.LivarotError, match="reward: goes with a model"):
        cli_evaluate.command(**given(here, reward=REWARD))
    with pytest.raises(livarot.LivarotError, match="level"):
        cli_evaluate.command(**given(here, level=1.5))
    with pytest.raises(livarot.LivarotError, match="robust: robust and pessimistic are both given"):
        cli_plan.command(model=here / "model", reward=REWARD, robust="0.1", pessimistic=0.9)


def test_a_formula_fits_the_model_to_the_log(folder, tmp_path, capsys):
    """``--formula`` (with ``--cluster``): the same as to fit, to store and to hand over the model."""
    here, _, _ = folder
    options = {"formula": "~ next_state + action:next_state", "reachable": "all", "cluster": "machine"}
    cli_fit.command(table=here / "log.csv", out=tmp_path / "m", **options)
    capsys.readouterr()
    found = []
    for model in (options, {"model": tmp_path / "m"}):
        cli_evaluate.command(**given(here, reward=REWARD, as_json=True, **model))
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1] and "doubly robust" in found[0]["estimates"]
    with pytest.raises(livarot.LivarotError, match="model: a model and a formula"):
        cli_evaluate.command(**given(here, reward=REWARD, model=tmp_path / "m", **options))
