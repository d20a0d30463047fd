"""The commands of the studies: from end to end, and folders that cannot be written."""

import io
from functools import partial
from importlib.util import find_spec

import pytest
from rich.console import Console

from livarot import LivarotError
from livarot.cli import progress, studies


def test_reproduce_from_end_to_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(studies.paper, "reproduce", partial(studies.paper.reproduce, n_episodes=20))
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    studies.reproduce(quick=True, out=tmp_path / "out", n_seeds=2, workers=2)
    printed = capsys.readouterr()
    assert printed.err.splitlines()[0] == "reproduce: compiling what is not compiled yet"
    assert "reproduce: 100 % of 960 episodes" in printed.err
    assert "uniform policy" in printed.out and "locked in" in printed.out
    assert (tmp_path / "out" / "README.txt").read_text() in printed.out
    assert f"{len(list((tmp_path / 'out').iterdir()))} files in" in printed.out.splitlines()[-1]


def test_the_table_without_unicode():
    console = Console(file=io.StringIO(), width=100)
    lines = [[kind, "5", "1.00 ± 0.10", "1", "1", "1", "1", "1"] for kind in ("exact", "realised")]
    console.print(studies.paper_table("gap", lines, "+-"))
    assert "1.00 +- 0.10" in console.file.getvalue()


def test_the_study_of_variance_from_end_to_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(studies.families, "run_study", partial(studies.families.run_study, n_episodes=5))
    studies.variance(quick=True, out=tmp_path / "out", n_seeds=2, workers=1)
    printed = capsys.readouterr()
    assert "10 files in" in printed.out.splitlines()[-1] and len(list((tmp_path / "out").iterdir())) == 10
    assert (tmp_path / "out" / "README.txt").read_text() in printed.out
    assert "variance: drawing the figures" in printed.err


@pytest.mark.skipif(find_spec("icu_sepsis") is None, reason="needs the package icu-sepsis")
def test_the_hospital_from_end_to_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(studies.hospital, "sepsis_study", partial(studies.hospital.sepsis_study, horizon=3))
    monkeypatch.setattr(progress, "SECONDS", 0.0)
    studies.sepsis(quick=True, out=tmp_path / "r", n_seeds=1, n_patients=1, workers=1)
    shown = capsys.readouterr()
    assert "not medical advice" in shown.out
    assert "5 files in" in shown.out
    assert "sepsis: 100 % of 4 plans" in shown.err
    assert (tmp_path / "r" / "sepsis.png").exists()


@pytest.mark.parametrize("study", [studies.reproduce, studies.variance, partial(studies.sepsis, n_patients=1)])
def test_a_bad_folder_is_refused_before_the_work(tmp_path, study):
    (tmp_path / "file").touch()
    with pytest.raises(LivarotError, match="not a folder"):
        study(quick=True, out=tmp_path / "file", n_seeds=2, workers=1)
