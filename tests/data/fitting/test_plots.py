"""Figures of a fit: what is drawn is what the fit says, at the values that were asked for."""

import numpy as np
import pandas as pd
import pytest

from livarot.data import plot_coefficients, plot_probabilities, probability_interval
from livarot.errors import LivarotError
from tests.support.machine_logs import fitted, with_covariates

plt = pytest.importorskip("matplotlib.pyplot")
WHERE = {"state": "worn", "action": "run"}


@pytest.fixture(scope="module")
def fit():
    return with_covariates()


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_coefficients(fit):
    names = [label.get_text() for label in plot_coefficients(fit).get_yticklabels()]
    assert sorted(names) == sorted(fit.columns_)
    _, own = plt.subplots()
    assert plot_coefficients(fit, ax=own) is own


def test_curves_are_predictions_and_bands_their_intervals(fit):
    ages = np.array([0.5, 1.0, 2.5])
    axes = plot_probabilities(fit, "age", **WHERE, at={"kind": "saw"}, values=ages, level=0.8)
    rows = pd.DataFrame({"age": ages, "kind": "saw"} | WHERE)
    p, table = fit.predict_proba(rows), probability_interval(fit, rows, 0.8)
    assert [line.get_label() for line in axes.lines] == [s for s in fit.states_ if s in ("used", "worn", "broken")]
    assert axes.get_legend().get_title().get_text() == "80 % bands"
    for line, band in zip(axes.lines, axes.collections, strict=True):
        label = line.get_label()
        np.testing.assert_array_equal(line.get_xdata(), ages)
        np.testing.assert_allclose(line.get_ydata(), p[:, fit.states_.index(label)], rtol=1e-12)
        own = table[table.next_state == label]
        drawn = band.get_paths()[0].vertices[:, 1]
        assert (drawn.min(), drawn.max()) == pytest.approx((own.lower.min(), own.upper.max()))


def test_by_default_the_range_that_was_observed(fit):
    axes = plot_probabilities(fit, "age", **WHERE, at={"kind": "drill"})
    x = axes.lines[0].get_xdata()
    assert (x[0], x[-1], axes.get_xlabel()) == (0.0, 3.0, "age")


def test_refusals(fit):
    for call, message in (
        (lambda: plot_probabilities(fit, "kind", **WHERE), "'kind' is not a numeric covariate; .*are 'age'"),
        (lambda: plot_probabilities(fitted(100), "age", **WHERE), "numeric covariates are none"),
        (lambda: plot_probabilities(fit, "age", **WHERE, at={"kind": "saw"}, values=[]), "values: is empty"),
    ):
        with pytest.raises(LivarotError, match=message):
            call()
