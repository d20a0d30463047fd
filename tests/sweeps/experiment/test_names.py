"""Names of cells and the wording of failures: short, different, in the order of the experiment."""

import pytest

from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.names import (
    MAX_VALUE,
    agent_names,
    cell_name,
    cell_names,
    distinct,
    environment_names,
    natural,
    planned_cells,
    reason,
    shortened,
)
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment


def planned(agents, environments=None, episodes=3):
    """Cells by their keys, and the experiment that asks for them."""
    environments = environments or [EnvironmentSpec(name="hard-chain", settings={"horizon": 4})]
    experiments = [Experiment(environments=environments, agents=agents, episodes=episodes, seeds=1)]
    return planned_cells(experiments), experiments


def agents_of(*agents, **more):
    return agent_names(*planned(list(agents), **more))[1]


def test_labels_are_used_and_kept_apart():
    agents = [
        AgentSpec(name="livarot", settings={"beta_scale": [0.01, 0.5]}, label="Ours"),
        AgentSpec(name="uniform", label="Chance"),
    ]
    environments = [EnvironmentSpec(name="hard-chain", settings={"horizon": 4}, label="Chain")]
    cells, experiments = planned(agents, environments)
    assert agent_names(cells, experiments)[1] == ["Ours (beta_scale=0.01)", "Ours (beta_scale=0.5)", "Chance"]
    assert {str(name) for name in environment_names(cells, experiments).values()} == {"Chain"}


def test_one_label_for_two_agents_is_told_apart_by_their_names():
    same = [AgentSpec(name=name, label="same") for name in ("psrl", "livarot")]
    assert agents_of(*same) == ["same (psrl)", "same (livarot)"]


def test_presets_are_told_by_their_names():
    found = agents_of(
        AgentSpec(name="livarot", preset="theory"),
        AgentSpec(name="livarot", preset="paper"),
        AgentSpec(name="livarot", preset="paper", settings={"beta_scale": 0.5}),
        AgentSpec(name="livarot"),
        AgentSpec(name="ucrl-mnl-ol", preset="paper"),  # which is its default
        AgentSpec(name="thompson-livarot"),
        episodes=[3, 5],  # one of the theory's settings is the number of episodes
    )
    assert found == [
        "livarot (theory)",
        "livarot (paper, beta_scale=0.01)",
        "livarot (paper, beta_scale=0.5)",
        "livarot",
        "ucrl-mnl-ol (paper)",
        "thompson-livarot",
    ]


def test_settings_that_are_a_preset_s_need_no_experiment_to_be_told_so():
    cells = [Cell.of("hard-chain", {"horizon": 4}, "livarot", {}, 3, preset) for preset in (None, "paper")]
    assert agent_names({cell.key: cell for cell in cells}, [])[1] == ["livarot", "livarot (paper)"]


def test_environments_are_told_apart_by_their_settings():
    worlds = [EnvironmentSpec(name="hard-chain", settings={"horizon": [10, 5], "gap": [0.1, 0.05]}, label="chain")]
    cells, experiments = planned([AgentSpec(name="uniform")], worlds)
    names = [str(name) for name in environment_names(cells, experiments).values()]
    told = [f"chain (gap={gap}, horizon={h})" for gap in ("0.05", "0.1") for h in (5, 10)]
    assert sorted(names, key=natural) == told
    families = environment_names(cells, experiments, "horizon")
    assert {str(name) for name in families.values()} == {"chain (gap=0.05)", "chain (gap=0.1)"}


def test_agents_without_a_setting_have_one_name():
    cells, experiments = planned([AgentSpec(name="livarot", settings={"beta_scale": [0.1, 0.2], "reg": [1.0, 2.0]})])
    named, order = agent_names(cells, experiments, "beta_scale")
    assert order == ["livarot (reg=1)", "livarot (reg=2)"] and len(named) == 4


@pytest.mark.parametrize("width", [20, 33, 50])
def test_long_names_lose_their_middle_between_words(width):
    name = "a rather long name of an agent (beta_scale=0.05, step_size=1)"
    short = shortened(name, width)
    head, tail = short.split("…")
    assert len(short) <= width and name.startswith(head) and name.endswith(tail) and tail
    assert name[len(head)] in " ,(" and name[-len(tail) - 1] in " ,("


def test_shortened_names_are_different():
    start, end = "the same words at the beginning ", " and many of the same words at the end"
    names = [f"{start}{middle}{end}" for middle in ("first", "second", "third")]
    found = distinct([*names, names[0], "x" * 200, "x" * 300], 30)
    assert found[0] == found[3] and len(set(found)) == 5
    assert ["first" in found[0], "second" in found[1], "third" in found[2]] == [True, True, True]


@pytest.mark.parametrize(
    ("learners", "told"),
    [
        ([{"name": "uniform"}], ["uniform"]),
        ([{"name": "livarot", "preset": "paper"}], ["livarot (paper)"]),
        ([{"name": "livarot", "settings": {"reg": [1.0, 2.5]}}], ["livarot (reg=1)", "livarot (reg=2.5)"]),
        (
            [
                {
                    "name": "livarot",
                    "label": "mine",
                    "settings": {
                        "rule": {"name": "joint-maximum", "solver": {"name": "frank-wolfe", "n_iter": [5, 6]}}
                    },
                }
            ],
            [f"mine (rule.solver.n_iter={n})" for n in (5, 6)],
        ),
        (
            [{"name": "livarot", "settings": {"kappa": ["none", 3.0], "printed_radius": [True, False]}}],
            [f"livarot (kappa={k}, printed_radius={p})" for k in ("none", "3") for p in ("true", "false")],
        ),
        ([{"name": "livarot", "label": "red \x1b[31m\nline"}], ["red  [31m line"]),
    ],
)
def test_a_cell_is_one_line_for_a_terminal(learners, told):
    names = cell_names(*planned(learners, episodes=10))
    assert sorted(names.values()) == sorted(f"hard-chain {one} T=10" for one in told)


def test_the_number_of_episodes_of_an_environment_is_told():
    worlds = [{"name": "hard-chain", "settings": {"n_episodes": "$episodes"}}]
    names = cell_names(*planned([{"name": "uniform"}], worlds, [5, 6]))
    assert list(names.values()) == [f"hard-chain (n_episodes={n}) uniform T={n}" for n in (5, 6)]


def test_what_is_not_registered_is_left_out():
    unknown, known = (planned([{"name": name}])[1][0] for name in ("elsewhere", "uniform"))
    assert list(cell_names(planned_cells([unknown, known]), [unknown, known]).values()) == ["hard-chain uniform T=3"]


def test_a_cell_by_itself():
    cell = Cell.of("hard-chain", {"horizon": 7, "gap": 0.1}, "livarot", {"reg": 2.0}, 10)
    assert cell_name(cell) == "hard-chain (gap=0.1, horizon=7) livarot (reg=2) T=10"
    strange = cell_name(Cell("elsewhere", {"b": "x" * 500, "a": [1]}, "unknown", {}, 3))
    assert strange.startswith("elsewhere (a=[1], b=x") and strange.endswith("x) unknown T=3")
    assert len(strange) < MAX_VALUE + 50


def test_reasons():
    assert reason("") == reason(" \n") == "no message"
    assert reason("Traceback ...\n  File x\nValueError: a\n\n") == "ValueError: a"
    assert reason("the worker died 3 times; killed\nFatal Python error\n  File x") == "the worker died 3 times; killed"
    assert reason("failed in another driver") == "failed in another driver"
