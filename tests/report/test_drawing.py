"""Figures as bytes: equal figures give equal bytes, and matplotlib's settings stay as they were."""

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from livarot.report.drawing import STYLE, render


@pytest.mark.parametrize(("kind", "first"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_equal_figures_give_equal_bytes(kind, first):
    def drawn(y):
        figure = Figure()
        figure.subplots().plot([0, 1], [0, y])
        return render(figure, kind)

    before = dict(mpl.rcParams)
    assert drawn(1).startswith(first)
    assert drawn(1) == drawn(1) != drawn(2)
    assert dict(mpl.rcParams) == before and mpl.rcParams["font.size"] != STYLE["font.size"]
