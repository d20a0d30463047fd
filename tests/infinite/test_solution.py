"""What solvers of stationary models give back: names, frames, pictures, and the units that were given."""

import numpy as np
import pytest

import livarot
from livarot.infinite import InfiniteMDP, solve
from livarot.infinite.solution import Policy, worth_at_start

STATES, ACTIONS = ["new", ("worn", 1), "gone"], ["rest", "work"]
P = np.array([[[0.9, 0.1, 0.0], [0.5, 0.3, 0.2]], [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0] * 3] * 2])
PAY = {("new", "rest"): 1.0, ("new", "work"): 20.0, (("worn", 1), "rest"): -3.0}
OWN = {"terminal": ["gone"], "discount": 0.9, "states": STATES, "actions": ACTIONS}


def model(**terms):
    return InfiniteMDP.from_transitions(P, **(OWN | terms))


def test_names_come_back():
    found = solve(model(reward=PAY))
    assert found.policy[("worn", 1)] == "rest" and found.policy["gone"] is None
    assert found["new"] == found.policy["new"] and found.start_value == found.value[0] == -found.cost[0]
    assert len(found.plot().axes) == 1
    table = found.to_frame()
    assert table["state"].tolist() == STATES and table["action"].tolist()[1:] == ["rest", None]
    assert len(repr(found).splitlines()) <= 12 and "<table>" in found._repr_html_()
    assert len(repr(model(reward=PAY)).splitlines()) <= 12
    with pytest.raises(livarot.LivarotError, match="'old'"):
        found.policy["old"]
    assert model(reward=PAY, start="gone").problem.start.tolist() == [0.0, 0.0, 1.0]


def test_a_policy_is_an_array_too():
    policy = solve(model(reward=PAY)).policy
    assert policy.tolist() == [1, 0, -1] and policy[0] == 1 and policy[np.int64(2)] == -1
    assert policy[policy >= 0].tolist() == [1, 0]
    with pytest.raises(livarot.LivarotError, match="a part of a policy has no names of states"):
        policy[:2].action("new")
    unnamed = InfiniteMDP.from_transitions(P, reward=0.0, terminal=[2], discount=0.9)
    numbers = Policy.of(unnamed.problem, np.array([1, 0, 1], dtype=np.int32))
    assert [numbers.action(s) for s in range(3)] == [1, 0, None]


def test_costs_are_shown_as_costs():
    paid, charged = solve(model(reward=PAY)), solve(model(cost={pair: -pay for pair, pay in PAY.items()}))
    np.testing.assert_array_equal(charged.to_frame()["cost"], -paid.value)
    np.testing.assert_array_equal(charged.cost, -charged.value)
    assert "cost" not in paid.to_frame() and f"value {paid.value[0]:.8g}, work" in repr(paid)
    assert f"cost {-paid.value[0]:.8g}, work" in repr(charged) and "the end" in repr(charged)
    line = charged.plot().axes[0].lines[0]
    np.testing.assert_array_equal(line.get_ydata(), -paid.value)


def test_only_the_first_states_are_listed():
    found = solve(InfiniteMDP.from_transitions(np.eye(40)[:, None], reward=np.arange(40.0), discount=0.5))
    assert "35 more" in repr(found) and len(repr(found).splitlines()) == 8


def test_the_value_at_the_start_ignores_other_states():
    problem = model(reward=PAY, start=[0.25, 0.75, 0.0]).problem
    assert worth_at_start(problem, np.array([4.0, 8.0, np.nan])) == 7.0
