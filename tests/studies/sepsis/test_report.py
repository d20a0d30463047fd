"""The files and the text of the sepsis study."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from livarot.studies.sepsis import report
from livarot.studies.sepsis.experiment import Curve, SepsisStudy

installed = pytest.mark.skipif(find_spec("icu_sepsis") is None, reason="needs the package icu-sepsis")


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
