"""Cells and failures in words."""

import pytest

from livarot.sweeps.keys import Cell
from livarot.sweeps.names import LONGEST, cell_name, cell_names, reason
from livarot.sweeps.spec import Experiment


def experiment(world, learner, episodes=10):
    return Experiment(environments=[world], agents=[learner], episodes=episodes, seeds=1)


@pytest.mark.parametrize(
    ("learner", "told"),
    [
        ({"name": "uniform"}, ["uniform"]),
        (
            {"name": "livarot", "settings": {"step_size": 2.0, "beta_scale": 0.1}},
            ["livarot(step_size=2.0, beta_scale=0.1)"],
        ),
        (
            {"name": "livarot", "settings": {"beta_scale": [0.1, 0.2]}},
            ["livarot(beta_scale=0.1)", "livarot(beta_scale=0.2)"],
        ),
        ({"name": "livarot", "preset": "paper"}, ["livarot:paper"]),
        ({"name": "livarot", "preset": "paper", "settings": {"reg": 1}}, ["livarot:paper(reg=1)"]),
        ({"name": "livarot", "label": "mine", "settings": {"reg": 1.0}}, ["mine"]),
        (
            {"name": "livarot", "label": "mine", "settings": {"reg": [1.0, 2.0], "n_explore": 3}},
            ["mine(reg=1.0)", "mine(reg=2.0)"],
        ),
        (
            {
                "name": "livarot",
                "label": "mine",
                "settings": {"rule": {"name": "joint-maximum", "solver": [{"name": "frank-wolfe", "n_iter": [5, 6]}]}},
            },
            [f"mine(rule=joint-maximum(solver=frank-wolfe(n_iter={n})))" for n in (5, 6)],
        ),
        (
            {"name": "livarot", "settings": {"kappa": "none", "printed_radius": True}},
            ["livarot(kappa=none, printed_radius=true)"],
        ),
        ({"name": "livarot", "label": "red \x1b[31m\nline"}, ["red  [31m line"]),
    ],
)
def test_a_cell_as_it_was_written(learner, told):
    names = cell_names([experiment({"name": "hard-chain", "settings": {"gap": 0.1}}, learner)])
    assert list(names.values()) == [f"hard-chain(gap=0.1) {one} T=10" for one in told]


def test_the_number_of_episodes_is_told_as_such():
    names = cell_names(
        [experiment({"name": "hard-chain", "settings": {"n_episodes": "$episodes"}}, {"name": "uniform"}, [5, 6])]
    )
    assert list(names.values()) == [f"hard-chain(n_episodes={n}) uniform T={n}" for n in (5, 6)]


def test_what_is_not_registered_is_left_out():
    unknown = experiment({"name": "hard-chain"}, {"name": "elsewhere"})
    known = experiment({"name": "hard-chain"}, {"name": "uniform"})
    assert list(cell_names([unknown, known]).values()) == ["hard-chain uniform T=10"]


def test_a_cell_without_an_experiment():
    cell = Cell.of("hard-chain", {"horizon": 7, "gap": 0.1}, "livarot", {"reg": 2.0}, 10)
    assert cell_name(cell) == "hard-chain(gap=0.1, horizon=7) livarot(reg=2.0) T=10"
    strange = Cell("elsewhere", {"b": "x" * 500, "a": [1]}, "unknown", {}, 3)
    assert cell_name(strange) == f"elsewhere(a=[1], b={'x' * (LONGEST - 3)}...) unknown T=3"


def test_reasons():
    assert reason("") == reason(" \n") == "no message"
    assert reason("Traceback ...\n  File x\nValueError: a\n\n") == "ValueError: a"
    assert reason("the worker died 3 times; killed\nFatal Python error\n  File x") == "the worker died 3 times; killed"
    assert reason("failed in another driver") == "failed in another driver"
