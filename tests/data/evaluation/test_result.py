"""What an evaluation shows of itself: a table, text, HTML and a figure."""

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot.data import Interval, PolicyEvaluation

ESTIMATES = {"behaviour": Interval(1.0, 0.1, 0.8, 1.2), "doubly robust": Interval(2.0, 0.25, 1.5, 2.5)}


def made(lost=()):
    table = pd.DataFrame({"state": [s for s, _ in lost], "action": [a for _, a in lost], "steps": 3, "first_step": 1})
    return PolicyEvaluation(ESTIMATES, 0.9, 40, np.array([40.0, 12.3]), table.set_index(["state", "action"]), "counts")


def test_the_table_and_one_estimate():
    frame = made().to_frame()
    assert list(frame.index) == list(ESTIMATES) and list(frame.columns) == list(Interval._fields)
    assert frame.loc["doubly robust"].tolist() == [2.0, 0.25, 1.5, 2.5]
    assert made()["behaviour"] == ESTIMATES["behaviour"]
    with pytest.raises(livarot.LivarotError, match="there is no 'magic'; it has 'behaviour', 'doubly robust'"):
        made()["magic"]


def test_texts():
    told = repr(made())
    assert (
        "doubly robust" in told
        and "90 % intervals; behaviour counts; effective sample size 12.3 of 40 episodes" in told
    )
    assert "no overlap" not in told
    odd = made([("<b>", "run"), ("worn", "run")])
    assert "no overlap: 2 (state, action), such as 'run' in '<b>'" in repr(odd)
    page = odd._repr_html_()
    assert "<table" in page and "<b>" not in page


def test_the_figure():
    axes = made().plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == list(ESTIMATES)
    assert "90 % interval" in axes.get_xlabel()
    assert made().plot(axes) is axes
