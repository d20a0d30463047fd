"""The files of the study of sigma_bar, and that the document says what the command finds."""

import csv
import io
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from livarot import LivarotError
from livarot.studies.variance import report
from livarot.studies.variance.experiment import CONTENDERS, FAMILIES, RESCALED, run_study

DOCUMENT = Path(__file__).parents[3] / "docs" / "variance.md"


@pytest.fixture(scope="module")
def study():
    return run_study(n_seeds=2, n_episodes=6)


@pytest.fixture(scope="module")
def files(study):
    return report.files(study)


def test_every_file_is_there_and_equal_studies_give_equal_bytes(study, files, tmp_path):
    kinds = ("png", "pdf")
    figures = {f"{name}.{kind}" for name in ("regret_sigma_bar", "sigma_bar", "sigma_bar_paths") for kind in kinds}
    assert files.keys() == figures | {"README.txt", "summary.json", "regret.csv", "tables.md"}
    written = report.write_files(study, tmp_path / "a" / "b")
    assert {path.name: path.read_bytes() for path in written} == files
    assert files["sigma_bar.png"].startswith(b"\x89PNG") and files["sigma_bar.pdf"].startswith(b"%PDF")
    assert json.loads(files["summary.json"]) == study.summary()


def test_the_table_has_a_line_per_run_and_seed(study, files):
    lines = list(csv.DictReader(io.StringIO(files["regret.csv"].decode())))
    members = sum(map(len, FAMILIES.values()))
    assert len(lines) == 2 * (members * len(CONTENDERS) + len(FAMILIES["spread"]) * len(RESCALED))
    for line in lines[:: len(lines) // 20]:
        which = next(m for m in FAMILIES[line["family"]] if f"{m.sigma_bar:.10g}" == line["sigma_bar"])
        assert float(line["exact_regret"]) == pytest.approx(study.regret[which, line["agent"]][int(line["seed"])])


def test_the_text_has_the_numbers_of_the_summary(study):
    text = " ".join(report.text(study).split())
    slope = study.summary()["families"]["spread"]["agents"]["livarot"]["slope"]
    assert f"LIVAROT has slope {slope:.2f}" in text
    assert "2 seeds" in text and "T = 6" in text


def test_no_line_runs_through_the_names_of_the_slopes(study):
    figure = report.regret_figure(study)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for axes in figure.axes:
        boxes = [text.get_window_extent(canvas.get_renderer()) for text in axes.texts]
        ends = [
            axes.transData.transform((max(line.get_xdata()), 1.0))[0] for line in axes.lines if len(line.get_xdata())
        ]
        assert len(boxes) == 2 and not boxes[0].overlaps(boxes[1])
        assert all(max(ends) + 3.0 < box.x0 and box.x1 < axes.bbox.x1 + 1.0 for box in boxes)


def test_one_seed_has_no_errors():
    one = run_study(n_seeds=1, n_episodes=3)
    assert "± 0" in report.markdown(one) and "one seed" in report.text(one)
    report.regret_figure(one)


def test_a_folder_that_cannot_be_is_refused(study):
    for folder in (os.devnull, f"{os.devnull}/below"):
        with pytest.raises(LivarotError, match="out"):
            report.write_files(study, folder)


def numbers_of(document):
    """The part of the document that the command writes."""
    return document.partition("## Numbers")[2].partition("\n## ")[0]


def cells(text):
    """The tables of a document as rows of cells."""
    return [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_the_document_has_the_command_s_tables(study):
    """Same rows and columns; what stands in them is compared by the slow test."""
    document, made = cells(numbers_of(DOCUMENT.read_text(encoding="utf-8"))), cells(report.markdown(study))
    assert [(row[0], len(row)) for row in document] == [(row[0], len(row)) for row in made]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_document_s_numbers_are_the_command_s():
    """Every number of the tables within a tenth of itself or 0.03."""
    found = run_study(workers=2)
    text = numbers_of(DOCUMENT.read_text(encoding="utf-8"))
    assert f"T = {found.n_episodes}, {found.n_seeds} seeds" in text
    number = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
    for row, made in zip(cells(text), cells(report.markdown(found)), strict=True):
        old, new = (np.array([float(x) for x in number.findall(" ".join(part[1:]))]) for part in (row, made))
        assert len(old) == len(new), (row, made)
        assert np.all(np.abs(old - new) <= np.maximum(0.03, 0.1 * np.abs(new))), (row, made)
