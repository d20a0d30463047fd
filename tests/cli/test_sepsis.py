"""The command of the sepsis study."""

from functools import partial
from importlib.util import find_spec

import pytest

from livarot.cli import sepsis as cli
from livarot.studies.sepsis import experiment

installed = pytest.mark.skipif(find_spec("icu_sepsis") is None, reason="needs the package icu-sepsis")


@installed
def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(experiment, "sepsis_study", partial(experiment.sepsis_study, horizon=3))
    cli.command(quick=True, out=tmp_path / "r", n_seeds=1, n_patients=1, workers=1)
    shown = capsys.readouterr()
    assert "no medical advice" in shown.out
    assert "5 files in" in shown.out
    assert "sepsis: 100 % of 4 plans" in shown.err
    assert (tmp_path / "r" / "sepsis.png").exists()
