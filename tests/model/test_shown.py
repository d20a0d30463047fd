"""How objects are shown: twelve lines of bounded width, safe in HTML, in the units that were given."""

from typing import NamedTuple

import numpy as np
import pytest

import livarot
from livarot.model.shown import MOST, WIDEST, compact, cut, html_of, problem_lines, text_of


def build(**terms):
    def features(h, s, a):
        return None if (s, a) == (0, 1) else ([0, 1, 2], [[0.1], [0.2], [-0.3]])

    return livarot.MNLMDP.from_function(2, 3, 2, features=features, theta=[0.6], param_bound=2.0, **terms)


def test_lines_are_bounded():
    many = {f"line {k}": "x" * 300 for k in range(40)}
    lines = text_of("title " * 60, many).splitlines()
    assert len(lines) == MOST and {len(line) for line in lines} == {WIDEST}
    assert all(line.endswith("...") for line in lines) and html_of("t", many).count("<tr>") == MOST - 1
    assert cut("a\nb") == "a b" and cut("y" * WIDEST) == "y" * WIDEST and cut("y" * (WIDEST + 1)).endswith("...")
    assert text_of("alone", {}) == "alone"


def test_html_is_escaped():
    found = html_of("<b>", {"<script>": "1 < 2 & 3"})
    assert "<script>" not in found
    assert "&lt;script&gt;" in found and "1 &lt; 2 &amp; 3" in found and "<b>&lt;b&gt;</b>" in found


@pytest.mark.parametrize(("name", "told"), [("reward", "-5 to 40 a step"), ("cost", "-5 to 40 a step")])
def test_what_is_paid_is_told_as_it_was_given(name, told):
    """The pair that does not exist is not in the range."""
    mdp = build(**{name: np.array([[40.0, np.nan], [-5.0, 0.0], [3.0, 4.0]])})
    lines = problem_lines(mdp.problem, mdp.theta)
    assert lines[f"{name}s"] == told and lines["available"] == "83% of all (stage, state, action)"
    assert lines["sizes"] == "2 stages, 3 states, 2 actions, 15 transitions"
    assert lines["parameter"].startswith("1 numbers, ") and "|theta| <= 2, at most 0.6 in truth" in lines["parameter"]


def test_rewards_of_the_next_state_are_in_the_range():
    mdp = build(reward=lambda h, s, a, to: 10.0 * s + to, discount=0.5, terminal_reward=[1.0, 2.0, 3.0])
    told = problem_lines(mdp.problem)["rewards"]
    assert told == "0 to 22 a step, depending on the next state, others at the end, discounted by 0.5"


def test_names_and_ends():
    mdp = build(reward=[[0.5, 0.0], [0.5, 0.5], [0.0, 0.0]], terminal=["c"], states=list("abc"), actions=["stay", "go"])
    lines = problem_lines(mdp.problem)
    assert (lines["states"], lines["actions"], lines["terminal"]) == ("a, b, c", "stay, go", "1 states: c")
    many = livarot.envs.river_swim(20, 4).with_labels(states=[f"s{k}" for k in range(20)]).problem
    assert problem_lines(many)["states"].endswith("s11, ...") and "in truth" not in problem_lines(many)["parameter"]


class Pair(NamedTuple):
    left: object
    right: object = None


def test_a_compact_named_tuple_stays_one():
    made = compact(Pair)
    assert made is Pair and Pair(1, 2) == (1, 2) and [*Pair(3)] == [3, None] and Pair(1)._replace(left=2).left == 2
    assert repr(Pair(np.zeros((2, 3)))) == "Pair: left (2, 3) 0 to 0"
    assert repr(Pair({}, 3)) == "Pair: left dict, right 3"
    page = Pair("<b>", [np.nan, 1.0])._repr_html_()
    assert "&lt;b&gt;" in page and "(2,) 1 to 1" in page


@pytest.mark.parametrize(
    "odd", [[[1], [2, 3]], object(), "x" * 400, np.array(["a"]), [None], np.zeros(0), np.nan, True]
)
def test_whatever_it_holds_it_is_shown_in_two_lines(odd):
    lines = repr(compact(Pair)(odd, odd)).splitlines()
    assert 1 <= len(lines) <= 2 and max(map(len, lines)) <= WIDEST


def test_no_result_prints_its_arrays():
    """Two lines for what holds arrays, with a table in notebooks."""
    mdp = livarot.envs.river_swim(6, 20)
    state = livarot.agents.Livarot().init(mdp.problem, 2)
    plan = livarot.agents.Livarot().plan(mdp.problem, state, livarot.agents.AgentRandom(range(2)))
    best = livarot.inner_max([[1.0], [0.0]], [1.0, 0.0], livarot.Ellipsoid([0.0], [[1.0]], 2.0))
    endless = livarot.infinite.InfiniteMDP.from_mdp(livarot.envs.park_two_state())
    found = {
        "Estimate": state.estimate,
        "Plan": plan,
        "PessimisticPlan": livarot.pessimistic_plan(mdp.problem, state.estimate, 0.5),
        "Episodes": livarot.simulate(mdp, livarot.solve(mdp).policy, 3),
        "InnerMax": best,
        "Gaps": livarot.theory.gaps(mdp),
        "Gain": livarot.infinite.evaluate(endless, [7, 0]),
        "Paths": livarot.infinite.simulate(endless, [7, 0], 40, 5),
    }
    for name, thing in found.items():
        assert repr(thing).startswith(f"{name}: ") and len(repr(thing).splitlines()) <= 2, name
        assert max(map(len, repr(thing).splitlines())) <= WIDEST and thing._repr_html_().startswith("<table>")
    assert repr(found["Episodes"]) == "Episodes: states (3, 21), actions (3, 20), choices (3, 20)"
    assert repr(best).startswith("InnerMax: value 0.880797, theta (1,) 2 to 2, probabilities (2,) 0.119203 to 0.880797")
