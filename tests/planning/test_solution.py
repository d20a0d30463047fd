"""Solutions as people read them: names, frames, pictures, short displays; and runs in the user's units."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import livarot
from livarot.planning.solution import PlainSolution, runs_of
from tests.support.terms import random_case

NAMES = {"states": ["new", ("worn", 1), "gone"], "actions": ["keep", "sell"]}


def machine(**changed):
    def features(h, s, a):
        return None if s == 0 and a == 1 else ([0, 1, 2], [[0.1], [0.2 + 0.6 * a], [-0.3]])

    given = {"cost": np.arange(18.0).reshape(3, 2, 3) * 10.0, "terminal": "gone", "discount": 0.9} | NAMES | changed
    return livarot.MNLMDP.from_function(4, 3, 2, features=features, theta=[0.4], **given)


def test_names_of_decisions():
    mdp = machine()
    found = livarot.solve(mdp)
    for h in range(4):
        assert found.action(h, "new") == NAMES["actions"][found.policy[h, 0]] == "keep"
        assert found.action(h, ("worn", 1)) == NAMES["actions"][found.policy[h, 1]]
    assert found["gone"] == (None,) * 4 and found.action(0, "gone") is None
    assert found[("worn", 1)] == found.decisions[("worn", 1)] and list(found.decisions) == NAMES["states"]
    assert len(found.decisions) == 3 and "gone" in repr(found.decisions)
    for wrong in ("old", 7, None):
        with pytest.raises(livarot.LivarotError, match="not a name"):
            found.decisions[wrong]
    with pytest.raises(livarot.LivarotError, match="out of range"):
        found.action(4, "new")


def test_it_is_still_a_tuple_of_four_arrays():
    found = livarot.solve(machine())
    value, q, policy, variance = found
    assert found[0] is value is found.value and found[1:3] == (q, policy) and variance.shape == policy.shape
    assert isinstance(found, tuple) and found._fields == ("value", "q", "policy", "variance")
    for other in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):  # noqa: S301 (our own bytes)
        assert np.array_equal(other.value, value) and other.start_value == found.start_value
    assert found._replace(value=value + 1.0).problem is found.problem
    assert type(found.normalised) is PlainSolution and found.normalised.value.min() >= 0.0


def test_frames_say_cost_where_costs_were_given():
    pytest.importorskip("pandas")
    mdp = machine()
    found = livarot.solve(mdp)
    frame = found.to_frame()
    assert list(frame.columns) == ["stage", "state", "action", "cost"] and len(frame) == 12
    np.testing.assert_array_equal(frame["cost"].to_numpy().reshape(4, 3), -found.value[:-1])
    assert frame["action"].tolist()[2::3] == [None] * 4 and frame["state"].tolist()[:3] == NAMES["states"]
    plain = livarot.solve(livarot.envs.river_swim(4, 6)).to_frame()
    assert (
        list(plain.columns) == ["stage", "state", "action", "value"] and plain["action"].isin(["left", "right"]).all()
    )
    robust = livarot.solve_robust(mdp, radius=0.1)
    assert (robust.to_frame()["cost"] >= frame["cost"] - 1e-9).all()


def test_pictures(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curve = livarot.robustness_curve(machine(), [0.0, 0.1, 0.4])
    for figure in (livarot.solve(machine()).plot(), curve.plot(), livarot.solve(livarot.envs.river_swim(40, 9)).plot()):
        figure.canvas.draw()
        assert len(figure.axes) >= 2
        plt.close(figure)


def test_displays_have_at_most_twelve_lines():
    mdp, _ = random_case(0, n_states=9, n_actions=5)
    run = livarot.run(mdp, livarot.agents.Uniform(), 3, seed=[0, 1])
    tuned = livarot.tune(mdp, livarot.agents.Livarot, {"beta_scale": [0.1, 0.2]}, 3, seeds=[1001])
    curve = livarot.robustness_curve(mdp, np.linspace(0, 1, 30))
    for thing in (mdp, mdp.problem, livarot.solve(mdp), run, tuned, curve, livarot.solve_robust(mdp, radius=0.1)):
        assert 2 <= len(repr(thing).splitlines()) <= 12
        assert all(len(line) <= 110 for line in repr(thing).splitlines())
        assert thing._repr_html_().startswith("<table>")
    assert runs_of(("a", "a", "b")) == "a x 2, b"


def test_a_run_is_in_the_users_units(tmp_path):
    mdp, _ = random_case(4, costs=True)
    run = livarot.run(mdp, livarot.agents.Livarot(), 12, seed=[0, 1])
    scale = mdp.problem.units.scale
    assert scale > 2.0
    for name in ("regret", "realised_regret", "optimism_gap", "optimism_loss"):
        np.testing.assert_array_equal(getattr(run, name), scale * getattr(run.normalised, name))
    np.testing.assert_array_equal(run.variance, run.normalised.variance)
    first = livarot.simulate(mdp, livarot.solve(mdp).policy, 12, seed=0).states[:, 0]
    worth = livarot.solve(mdp).value[0, first]
    assert (np.abs(run.realised_regret[0]) <= np.abs(worth) + 4 * 70.0).all()
    run.save(tmp_path / "run.safetensors")
    back = livarot.RunResult.load(tmp_path / "run.safetensors")
    assert back.units == run.units and np.array_equal(back.regret, run.regret)
    audited = livarot.theory.audit(run)
    assert audited.regret["mean"] == pytest.approx(run.normalised.regret.sum(axis=1).mean())
    plain = livarot.run(livarot.envs.river_swim(4, 6), livarot.agents.Uniform(), 3)
    assert plain.normalised is plain and "units" not in repr(plain)


def test_a_solution_unpacks_and_knows_its_problem():
    mdp = livarot.envs.river_swim(4, 5)
    found = livarot.solve(mdp)
    value, q, policy, variance = found
    assert found.problem.same_as(mdp.problem) and value.shape == (6, 4) and variance.shape == (5, 4)
    np.testing.assert_array_equal(found.normalised.value, value)  # rewards in [0, 1] already
    changed = found._replace(policy=policy * 0)
    assert (changed.policy == 0).all() and changed.normalised is changed and changed.q is q
