"""What the files of all studies share."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from livarot.studies.writing import COLOUR, DASHES, MARKER, WIDTH, contents, filled, seeds_told, spread


def test_paragraphs_are_filled_and_hyphens_are_not_broken():
    text = filled(["word " * 40, "UCRL-MNL-OL " * 20])
    assert max(map(len, text.splitlines())) <= WIDTH and text.endswith("\n")
    assert all(not line.endswith("-") for line in text.splitlines()) and text.count("\n\n") == 1


def test_numbers_of_seeds():
    assert (seeds_told(1), seeds_told(7)) == ("one seed", "7 seeds")
    assert spread(np.array([3.0])) == 0.0
    assert spread(np.array([1.0, 2.0, 4.0])) == pytest.approx(np.sqrt(7.0 / 3.0))


def test_every_contender_has_a_colour_a_dash_and_a_marker():
    assert COLOUR.keys() == DASHES.keys() == MARKER.keys()


def test_equal_studies_give_equal_bytes():
    def made():
        figure = Figure()
        figure.subplots().plot([0, 1], [1, 0])
        return contents("text\n", {"b": 1.0}, {"t.csv": "x\n"}, {"f": figure})

    found = made()
    assert list(found) == ["README.txt", "summary.json", "t.csv", "f.png", "f.pdf"]
    assert json.loads(found["summary.json"]) == {"b": 1.0} and found == made()
    with pytest.raises(ValueError, match="not JSON compliant"):
        contents("", {"b": float("nan")}, {}, {})
