"""How objects are shown: twelve lines of bounded width, safe in HTML, in the units that were given."""

import numpy as np
import pytest

import livarot
from livarot.model.shown import MOST, WIDEST, cut, html_of, problem_lines, text_of


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
