"""``livarot fit`` and ``livarot plan``: from a table to a policy table."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot.cli import fit as cli_fit
from livarot.cli import plan as cli_plan
from livarot.data import MNLTransition, load_fit
from livarot.errors import LivarotError

EXAMPLE = Path(__file__).parents[2] / "examples" / "machines"
COLUMNS = "wears,wears_hard,breaks,breaks_by_wear,breaks_hard,improves,as_new,repaired"
TABLE = {"table": EXAMPLE / "log.csv", "features": [COLUMNS], "reachable": str(EXAMPLE / "reachable.csv")}


def test_fit_prints_the_summary_and_stores_the_model(tmp_path, capsys):
    cli_fit.command(**TABLE, out=tmp_path / "m")
    told = capsys.readouterr().out
    fit = MNLTransition(features=COLUMNS.split(","), reachable=EXAMPLE / "reachable.csv").fit(EXAMPLE / "log.csv")
    assert str(fit.summary()) in told and "model in" in told
    assert np.array_equal(load_fit(tmp_path / "m").theta_, fit.theta_)
    cli_fit.command(**TABLE, as_json=True, reg=1.0)
    seen = capsys.readouterr()
    found = json.loads(seen.out)
    assert "note: the ridge decides 2 of 8 coefficients" in seen.err
    assert found["facts"]["Ridge"] == 1.0 and len(found["coefficients"]) == 8
    assert found["coefficients"][0]["column"] == "wears"


def test_fit_says_what_should_be_known(tmp_path, capsys):
    log = pd.read_csv(EXAMPLE / "log.csv").assign(worse=lambda t: (t.next_state == "broken") * 1.0)
    log.to_csv(tmp_path / "log.csv", index=False)
    cli_fit.command(table=tmp_path / "log.csv", features=["worse"], state="state")
    seen = capsys.readouterr()
    assert seen.err.count("note: ") == 1 and "inferred" in seen.err


def test_fit_refuses(tmp_path):
    with pytest.raises(livarot.LivarotError, match="features: 'wears,' has an empty term"):
        cli_fit.command(**(TABLE | {"features": ["wears,"]}))
    with pytest.raises(livarot.LivarotError, match="out: there is no folder"):
        cli_fit.command(**TABLE, out=tmp_path / "no" / "m")
    with pytest.raises(livarot.LivarotError, match="there is no file"):
        cli_fit.command(**(TABLE | {"table": Path("nothing.csv")}))
    with pytest.raises(livarot.LivarotError, match="there is no column 'now'"):
        cli_fit.command(**TABLE, state="now")


def test_formulas_choices_clusters_and_weights(tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"trip": np.repeat(np.arange(300), 3), "price": rng.uniform(1.0, 5.0, 900)})
    table["mode"], table["known"] = np.tile(["bus", "car", "rail"], 300), np.tile([0.0, 0.2, 0.1], 300)
    u = -table.price + table.known + rng.gumbel(size=900)
    table["taken"] = (u == u.groupby(table.trip).transform("max")).astype(int)
    table["who"], table["w"] = table.trip // 4, 1.0 + table.trip % 3
    table.to_csv(tmp_path / "trips.csv.gz", index=False)
    options = {"choice": "trip", "chosen": "taken", "offset": "known", "cluster": "who", "weights": "w"}
    cli_fit.command(
        table=tmp_path / "trips.csv.gz", formula="~ price + mode", reference=["mode=car"], as_json=True, **options
    )
    found = json.loads(capsys.readouterr().out)
    fit = MNLTransition(formula="~ price + mode", reference={"mode": "car"}, **options).fit(table)
    assert [row["column"] for row in found["coefficients"]] == ["price", "mode[bus]", "mode[rail]"]
    np.testing.assert_allclose([row["std err"] for row in found["coefficients"]], np.sqrt(np.diag(fit.covariance_)))
    assert found["facts"]["Covariance"] == "cluster" and found["facts"]["Clusters"] == 75
    with pytest.raises(LivarotError, match="reference"):
        cli_fit.command(table=tmp_path / "trips.csv.gz", formula="~ price", reference=["mode"], **options)


def test_plan_for_a_profile(tmp_path, capsys):
    rng = np.random.default_rng(0)
    log = pd.DataFrame({"state": rng.choice(["ill", "well"], 400), "action": rng.choice(["a", "b"], 400)})
    log["age"], log["sex"] = rng.uniform(30.0, 80.0, 400), rng.choice(["f", "m"], 400)
    log["next_state"] = np.where(rng.random(400) < 0.3 + 0.3 * (log.action == "a"), "well", "ill")
    log.to_csv(tmp_path / "log.csv", index=False)
    model = {"formula": "~ next_state * (age + sex) + action:next_state", "reachable": "all"}
    cli_fit.command(table=tmp_path / "log.csv", out=tmp_path / "m", **model)
    plan = {"reward": "well=1,ill=0", "horizon": 4, "start": "ill", "at": "age=60,sex=f"}
    cli_plan.command(model=tmp_path / "m", **plan, out=tmp_path / "stored.csv")
    cli_plan.command(model=tmp_path / "log.csv", **plan, **model, out=tmp_path / "fitted.csv")
    stored, fresh = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("stored", "fitted"))
    pd.testing.assert_frame_equal(stored, fresh)
    assert set(stored.action) == {"a"}
    with pytest.raises(LivarotError, match="at: 'x' is not a number"):
        cli_plan.command(model=tmp_path / "m", **plan | {"at": "age=x,sex=f"})
    with pytest.raises(LivarotError, match="at: has no value for 'sex'"):
        cli_plan.command(model=tmp_path / "m", **plan | {"at": "age=50"})
