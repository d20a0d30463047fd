"""The sepsis demonstration: deterministic, honest lines, files complete; learning itself is marked slow."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import livarot
from livarot.cli import sepsis as cli
from livarot.studies.sepsis import report
from livarot.studies.sepsis.experiment import Curve, SepsisStudy, replan_times, sepsis_study

installed = pytest.mark.skipif(find_spec("icu_sepsis") is None, reason="needs the package icu-sepsis")


@pytest.fixture(scope="module")
def study():
    """Two seeds, four patients, three treatments each: the shape of the real study."""
    calls = []
    found = sepsis_study(2, 4, horizon=3, radii=(0.01, 0.1), progress=lambda done, total: calls.append((done, total)))
    return found, calls


def test_replan_times():
    assert replan_times(1).tolist() == [0, 1]
    assert replan_times(2).tolist() == [0, 1, 2]
    times = replan_times(1000)
    assert times[0] == 0
    assert times[-1] == 1000
    assert len(times) == 21
    assert (np.diff(times) >= 1).all()
    assert (times[5:] <= np.ceil(1.5 * times[4:-1])).all()


def test_lost_patients_by_hand():
    curve = Curve(4, np.array([0, 1, 3]), np.array([[0.5, 0.6, 0.9]]), np.zeros((1, 3)), np.zeros((1, 4)))
    assert curve.lost(0.8) == pytest.approx([0.3 + 2 * 0.2])  # one patient with the first plan, two with the second


@installed
def test_the_study(study):
    found, calls = study
    assert calls[0] == (0, 20)
    assert calls[-1] == (20, 20)
    assert found.seeds == (0, 1)
    assert [curve.dim for curve in found.curves] == [4, 5]
    for curve in found.curves:
        assert curve.patients.tolist() == [0, 1, 2, 3, 4]
        assert curve.survival.shape == (2, 5)
        assert (curve.survival <= found.optimum + 1e-12).all()
        assert (curve.survival > 0).all()
        assert np.ptp(curve.survival[:, 0]) == 0.0  # all seeds begin with the same plan
        assert (curve.belief[:, 0] >= found.optimum - 0.2).all()
    assert found.random < found.nominal < found.optimum
    assert all(value <= found.optimum + 1e-12 for _, value in found.robust)


@installed
def test_workers_and_grouping_change_nothing(study):
    again = sepsis_study(1, 4, horizon=3, radii=(), first_seed=1, dims=(4,), workers=2)
    both = sepsis_study(2, 4, horizon=3, radii=(), dims=(4,), workers=2)
    assert np.array_equal(again.curves[0].survival[0], study[0].curves[0].survival[1])
    assert np.array_equal(both.curves[0].survival, study[0].curves[0].survival)
    assert np.array_equal(both.curves[0].theta, study[0].curves[0].theta)


@installed
def test_files(study, tmp_path):
    written = report.write_files(study[0], tmp_path / "out")
    assert sorted(path.name for path in written) == [
        "README.txt",
        "sepsis.pdf",
        "sepsis.png",
        "summary.json",
        "survival.csv",
    ]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["survival"]["optimum"] == study[0].optimum
    assert summary["learned"][1]["dim"] == 5
    lines = (tmp_path / "out" / "survival.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 2 * 5
    text = (tmp_path / "out" / "README.txt").read_text()
    assert "not medical advice" in text
    assert all((tmp_path / "out" / name).stat().st_size > 2000 for name in ("sepsis.png", "sepsis.pdf"))
    again = report.write_files(study[0], tmp_path / "again")
    assert [Path(path).read_bytes() for path in written] == [Path(path).read_bytes() for path in again]


def test_the_text_says_only_what_holds():
    curve = Curve(4, np.array([0, 1, 2]), np.array([[0.4, 0.9, 0.5]]), np.zeros((1, 3)), np.zeros((1, 4)))
    study = SepsisStudy((0,), 2, 20, (3.0, -2.0, 1.0, -1.0), "agent", 0.9, 0.7, 0.5, ((0.1, 0.6),), (curve,))
    told = " ".join(report.text(study).split())
    assert "stays above" not in told  # above the nominal optimum once, but not for good
    assert "closes -100.0 %" in told
    assert "radius 0.1) 0.6000 of the patients survive" in told


@installed
def test_the_command(tmp_path, capsys):
    cli.command(quick=True, out=tmp_path / "r", n_seeds=1, n_patients=1, workers=1, horizon=3)
    shown = capsys.readouterr()
    assert "no medical advice" in shown.out
    assert "5 files in" in shown.out
    assert "sepsis: 100 % of 4 plans" in shown.err
    assert (tmp_path / "r" / "sepsis.png").exists()


def test_bad_input(tmp_path):
    for options in ({"n_seeds": 0}, {"n_patients": 0}, {"workers": 0}, {"dims": (3,)}, {"dims": ()}):
        with pytest.raises(livarot.LivarotError, match=next(iter(options))):
            sepsis_study(**options)
    (tmp_path / "file").write_text("")
    with pytest.raises(livarot.LivarotError, match="not a folder"):
        cli.command(quick=True, out=tmp_path / "file", n_seeds=1, n_patients=1, workers=1)


@installed
@pytest.mark.slow
def test_livarot_closes_the_gap():
    found = sepsis_study(2, 128, radii=(), dims=(4,), first_seed=50)
    last = found.curves[0].survival[:, -1]
    assert (last > found.nominal + 0.8 * (found.optimum - found.nominal)).all()
