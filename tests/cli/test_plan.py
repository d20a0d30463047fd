"""The command that plans in a fitted model: policies, rewards in words, refusals."""

from pathlib import Path

import pandas as pd
import pytest

import livarot
from livarot.cli import fit as cli_fit
from livarot.cli import plan as cli_plan
from livarot.data import load_fit, plan_robust

EXAMPLE = Path(__file__).parents[2] / "examples" / "machines"


COLUMNS = "wears,wears_hard,breaks,breaks_by_wear,breaks_hard,improves,as_new,repaired"


TABLE = {"table": EXAMPLE / "log.csv", "features": [COLUMNS], "reachable": str(EXAMPLE / "reachable.csv")}


PLAN = {"reward": str(EXAMPLE / "rewards.csv"), "horizon": 26, "start": "new"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "machines.model"
    cli_fit.command(**TABLE, out=path)
    return path


def test_nominal_plan(model, tmp_path, capsys):
    cli_plan.command(model=model, **PLAN, out=tmp_path / "policy.csv")
    seen = capsys.readouterr()
    assert seen.out == "" and "nominal plan" in seen.err and "every step rests on data" in seen.err
    table = pd.read_csv(tmp_path / "policy.csv", dtype={"value": str})  # old versions of pandas lose the last digit
    first = table[(table.stage == 0) & (table.state == "new")]
    assert first.action.tolist() == ["hard"]
    fit = load_fit(model)
    pays = pd.read_csv(EXAMPLE / "rewards.csv").set_index(["state", "action"])["reward"]
    mdp = fit.to_mdp(pays, 26, "new")
    assert float(first.value.iloc[0]) == livarot.solve(mdp).value[0] @ mdp.problem.start
    cli_plan.command(model=model, **PLAN)
    assert capsys.readouterr().out == (tmp_path / "policy.csv").read_text()


def test_robust_and_optimistic_plans(model, tmp_path, capsys):
    values = {}
    for name, options in {"auto": {"robust": "auto"}, "0.05": {"robust": "0.05"}, "best": {"optimistic": 0.9}}.items():
        cli_plan.command(model=model, **PLAN, **options, resamples=40, out=tmp_path / name)
        table = pd.read_csv(tmp_path / name)
        values[name] = table.value.iloc[0]
    told = capsys.readouterr().err
    assert "40 refits" in told and "KL radius 0.05" in told and "90 % confidence set" in told
    fit = load_fit(model)
    mdp = fit.to_mdp(cli_plan.parse_pay(fit, "reward", PLAN["reward"]), 26, "new")
    assert values["auto"] == plan_robust(fit, mdp, n_resamples=40).value[0] @ mdp.problem.start
    assert values["0.05"] < values["auto"] < values["best"]


def test_rewards_in_words(model):
    fit = load_fit(model)
    assert cli_plan.parse_pay(fit, "reward", "new=1,worn out=0.25") == {"new": 1.0, "worn out": 0.25}
    for text, match in {
        "new": "neither a file nor",
        "new=1,new=2": "is given twice",
        "old=1": "'old' is not known",
        "new=x": "'x' is not a number",
    }.items():
        with pytest.raises(livarot.LivarotError, match=match):
            cli_plan.parse_pay(fit, "reward", text)


def test_plan_refuses(model, tmp_path):
    with pytest.raises(livarot.LivarotError, match="both given"):
        cli_plan.command(model=model, **PLAN, robust="0.1", optimistic=0.9)
    with pytest.raises(livarot.LivarotError, match="robust: 'much' is not a number; or 'auto'"):
        cli_plan.command(model=model, **PLAN, robust="much")
    with pytest.raises(livarot.LivarotError, match="start: 'old' is not known"):
        cli_plan.command(model=model, **(PLAN | {"start": "old"}))
    with pytest.raises(livarot.LivarotError, match="there is no file"):
        cli_plan.command(model=tmp_path / "none", **PLAN)


def test_plan_without_a_start_or_horizon_says_what_to_give(model):
    """And why: the example's log has no column of stages."""
    with pytest.raises(livarot.LivarotError, match=r"^start: .* without stages .*; give a state, one of .*'new'"):
        cli_plan.command(model=model, **(PLAN | {"start": None}))
    with pytest.raises(livarot.LivarotError, match=r"^horizon: is not given, and neither is a discount"):
        cli_plan.command(model=model, **(PLAN | {"horizon": None}))


def test_without_a_horizon_the_plan_has_no_end(model, tmp_path, capsys):
    """Costs in a file, a discount: the table has no stages, and is that of the library."""
    pays = pd.read_csv(EXAMPLE / "rewards.csv").rename(columns={"reward": "cost"})
    pays["cost"] = 500.0 - 400.0 * pays.cost
    pays.to_csv(tmp_path / "costs.csv", index=False)
    plain = {"cost": str(tmp_path / "costs.csv"), "discount": 0.95, "start": "new"}
    kinds = {"nominal": {}, "robust": {"robust": "0.05"}, "auto": {"robust": "auto"}, "best": {"optimistic": 0.9}}
    costs = {}
    for name, options in kinds.items():
        cli_plan.command(model=model, **plain, **options, resamples=40, out=tmp_path / name)
        table = pd.read_csv(tmp_path / name)
        assert list(table.columns) == ["state", "action", "cost", "count"] and len(table) == 6
        costs[name] = table.set_index("state").cost["new"]
    told = capsys.readouterr().err
    assert "under the fit: cost" in told and "worst-case cost" in told and "every step rests on data" in told
    assert costs["best"] < costs["nominal"] < costs["auto"] < costs["robust"]
    mdp = load_fit(model).to_mdp(cost=tmp_path / "costs.csv", discount=0.95, start="new")
    assert costs["nominal"] == -livarot.infinite.solve(mdp).value @ mdp.problem.start
    cli_plan.command(model=model, **plain, pessimistic=0.9)
    assert "pessimistic plan: lower 90 % bound -" in capsys.readouterr().err


def test_a_missing_reward_and_a_wrong_discount_are_refused(model, tmp_path):
    pd.read_csv(EXAMPLE / "rewards.csv").iloc[2:].to_csv(tmp_path / "r.csv", index=False)
    with pytest.raises(livarot.LivarotError, match=r"^reward: 2 \(state, action\) have no number, such as \('new'"):
        cli_plan.command(model=model, **PLAN | {"reward": str(tmp_path / "r.csv")})
    with pytest.raises(livarot.LivarotError, match="discount"):
        cli_plan.command(model=model, **PLAN, discount=1.5)
    with pytest.raises(livarot.LivarotError, match="horizon: is not given, and neither is a discount below 1"):
        cli_plan.command(model=model, **PLAN | {"horizon": None}, discount=1.0)
    with pytest.raises(livarot.LivarotError, match="both given"):
        cli_plan.command(model=model, **PLAN, cost="new=1")
    with pytest.raises(livarot.LivarotError, match="reward: is missing"):
        cli_plan.command(model=model, **PLAN | {"reward": None})


def test_terminal_states_in_words_and_in_files(model, tmp_path):
    fit = load_fit(model)
    pd.DataFrame({"state": ["broken", "worn out"]}).to_csv(tmp_path / "t.csv", index=False)
    pd.DataFrame({"state": ["broken"], "cost": [70.0]}).to_csv(tmp_path / "paid.csv", index=False)
    assert cli_plan.parse_terminal(fit, None, "cost") is None
    assert cli_plan.parse_terminal(fit, "broken, worn out", "cost") == ["broken", "worn out"]
    assert cli_plan.parse_terminal(fit, "broken=-3", "cost") == {"broken": -3.0}
    assert cli_plan.parse_terminal(fit, str(tmp_path / "t.csv"), "cost") == ["broken", "worn out"]
    assert cli_plan.parse_terminal(fit, str(tmp_path / "paid.csv"), "cost") == {"broken": 70.0}
    with pytest.raises(livarot.LivarotError, match="terminal: 'lost' is not known"):
        cli_plan.parse_terminal(fit, "lost", "cost")
    pays = "new=1,light=1,medium=1,heavy=1,worn out=1"
    plain = {"reward": pays, "horizon": 3, "start": "new", "terminal_reward": "new=9"}
    cli_plan.command(model=model, **plain, terminal="broken", out=tmp_path / "plan.csv")
    assert "broken" not in set(pd.read_csv(tmp_path / "plan.csv").state)
