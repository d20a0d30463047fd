"""The command that tunes an agent."""

import json

import pytest

import livarot
from livarot.cli import tune as cli_tune


def test_the_command(capsys):
    options = {"env": "hard-chain-fixed", "agent": "livarot", "n_episodes": 5, "settings": ["horizon=4"]}
    cli_tune.command(grid=["beta_scale=0.01,0.1", "reg=null,3"], as_json=True, **options)
    found = json.loads(capsys.readouterr().out)
    assert found["env"] == "hard-chain-fixed" and len(found["points"]) == 4 and found["points"][0]["reg"] is None
    cli_tune.command(grid=["reg=1,3"], **options)
    printed = capsys.readouterr().out
    assert "regret of livarot" in printed and "best: Livarot(" in printed
    for grid in (["reg"], ["reg="], ["=1"], ["reg=1", "reg=2"]):
        with pytest.raises(livarot.LivarotError) as error:
            cli_tune.command(grid=grid, **options)
        assert error.value.argument == "grid"
