"""Curves of sigma_bar over the horizon: closed forms and slopes."""

import json

import numpy as np
import pytest

from livarot.studies.variance import sigma_curves
from livarot.theory.variance import hard_chain_sigma_bar


def test_curves_of_the_chain_are_the_closed_forms(monkeypatch):
    monkeypatch.setattr(sigma_curves, "HORIZONS", (3, 10, 20))
    curves = {curve.key: curve for curve in sigma_curves.sigma_curves(2)}
    for row, horizon in enumerate((3, 10, 20)):
        p = 1.5 / horizon
        assert curves["hard-chain"].optimal[row] == pytest.approx(hard_chain_sigma_bar(horizon, p), rel=1e-12)
        never = hard_chain_sigma_bar(horizon, p, never_falls=True)
        assert curves["hard-chain"].worst[row] == pytest.approx(never, rel=1e-12)
        for curve in curves.values():
            assert np.all(curve.optimal[row] <= curve.worst[row] + 1e-15)
            assert np.all(curve.optimal[row] <= 0.5 / np.sqrt(horizon))
    # robustness against a chain whose good state the adversary avoids leaves less variance
    assert np.all(curves["kl-robust-chain"].optimal < curves["hard-chain"].optimal)
    json.dumps([curve.summary() for curve in curves.values()], allow_nan=False)


def test_slopes_of_the_curves():
    h = (4, 8, 16, 32)
    numbers = np.array([[2.0 / x**1.5] for x in h])
    found = sigma_curves.Curve("k", "label", h, numbers, 3 * numbers).summary()
    assert found["optimal"]["slope"] == pytest.approx(-1.5) and found["worst"]["slope"] == pytest.approx(-1.5)
