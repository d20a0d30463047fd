"""``livarot fit`` and ``livarot plan``: from a table to a policy table."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot.cli import fit as cli_fit
from livarot.data import MNLTransition, load_fit

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
