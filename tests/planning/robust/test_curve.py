"""Robust values over a range of radii: each point is a plan, in the user's units."""

import numpy as np
import pytest

import livarot
from tests.support.terms import random_case


def test_a_robustness_curve_is_its_plans():
    pytest.importorskip("pandas")
    mdp, _ = random_case(2, costs=True)
    curve = livarot.robustness_curve(mdp, [0.0, 0.2])
    best = livarot.solve(mdp)
    assert curve.value[0] == curve.nominal_value[0] == best.start_value and curve.changed[0] == 0
    assert curve.value[1] == livarot.solve_robust(mdp, radius=0.2).start_value
    worst = livarot.evaluate_robust(mdp, best.policy, radius=0.2)
    assert curve.nominal_value[1] == float(mdp.problem.start @ worst[0]) <= curve.value[1] + 1e-12
    frame = curve.to_frame()
    assert list(frame.columns) == ["radius", "robust cost", "cost of the nominal policy", "changed"]
    assert frame["robust cost"].tolist() == [-curve.value[0], -curve.value[1]]
    for wrong in ([-0.1], [], [[0.1]], [float("nan")]):
        with pytest.raises(livarot.LivarotError, match="radii"):
            livarot.robustness_curve(mdp, wrong)


def test_more_doubt_is_never_better():
    mdp, _ = random_case(1)
    curve = livarot.robustness_curve(mdp, np.linspace(0.0, 1.0, 6))
    assert (np.diff(curve.value) <= 1e-9).all() and curve.value[-1] < curve.value[0] - 1.0
    assert (curve.nominal_value <= curve.value + 1e-9).all()
    plain = livarot.solve(mdp).policy
    reach = mdp.problem.reachable[:-1]
    assert curve.changed.tolist() == [int((own != plain)[reach].sum()) for own in curve.policy] and curve.changed.any()
    assert list(curve.to_frame().columns)[1] == "robust value"


def test_at_most_eight_radii_are_shown():
    mdp, _ = random_case(1)
    curve = livarot.robustness_curve(mdp, np.linspace(0.0, 1.0, 20))
    lines = repr(curve).splitlines()
    assert len(lines) == 10 and lines[2].split()[:2] == ["0", f"{curve.value[0]:.6g},"]
    assert lines[-1].split()[:2] == ["1", f"{curve.value[-1]:.6g},"] and curve._repr_html_().count("<tr>") == 9
