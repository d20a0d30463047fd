"""What a report calls its agents and environments: short, different, in the order of the experiment."""

import tracemalloc

import pytest

from livarot.report.labels import agent_names, distinct, environment_names, family_names, shortened
from livarot.report.read_runs import natural, read_runs
from livarot.sweeps.keys import Cell
from livarot.sweeps.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store.store import Store
from tests.support.stores import fill, store_of


def runs_of(path, agents, environments=None, episodes=3):
    experiment = Experiment(
        environments=environments or [EnvironmentSpec(name="hard-chain", settings={"horizon": 4})],
        agents=agents,
        episodes=episodes,
        seeds=1,
    )
    return read_runs(store_of(path, experiment))


def agents_of(path, *agents, **more):
    return agent_names(runs_of(path, list(agents), **more))[1]


def test_labels_are_used_and_kept_apart(tmp_path):
    agents = [
        AgentSpec(name="livarot", settings={"beta_scale": [0.01, 0.5]}, label="Ours"),
        AgentSpec(name="uniform", label="Chance"),
    ]
    environments = [EnvironmentSpec(name="hard-chain", settings={"horizon": 4}, label="Chain")]
    runs = runs_of(tmp_path / "a", agents, environments)
    assert agent_names(runs)[1] == ["Ours (beta_scale=0.01)", "Ours (beta_scale=0.5)", "Chance"]
    assert {str(name) for name in environment_names(runs).values()} == {"Chain"}


def test_one_label_for_two_agents_is_told_apart_by_their_names(tmp_path):
    same = [AgentSpec(name=name, label="same") for name in ("psrl", "livarot")]
    assert agents_of(tmp_path / "a", *same) == ["same (psrl)", "same (livarot)"]


def test_presets_are_told_by_their_names(tmp_path):
    found = agents_of(
        tmp_path / "a",
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


def test_settings_that_are_a_preset_s_need_no_experiment_to_be_told_so(tmp_path):
    with Store(tmp_path / "store", create=True) as store:
        for preset in (None, "paper"):
            fill(store, Cell.of("hard-chain", {"horizon": 4}, "livarot", {}, 3, preset), 1.0, 1)
    assert agent_names(read_runs(tmp_path / "store"))[1] == ["livarot", "livarot (paper)"]


def test_environments_are_in_the_order_of_their_numbers(tmp_path):
    worlds = [EnvironmentSpec(name="hard-chain", settings={"horizon": [10, 5], "gap": [0.1, 0.05]}, label="chain")]
    runs = runs_of(tmp_path / "a", [AgentSpec(name="uniform")], worlds)
    names = [str(name) for name in environment_names(runs).values()]
    assert names == [f"chain (gap={gap}, horizon={h})" for gap in ("0.05", "0.1") for h in (5, 10)]
    assert sorted(names, key=natural) == names
    assert list(dict.fromkeys(map(str, family_names(runs).values()))) == ["chain (gap=0.05)", "chain (gap=0.1)"]


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


def test_a_run_takes_little_more_memory_than_its_curves(tmp_path):
    """What runs have in common is kept once: with 10^5 of them it would be most of the memory."""
    experiment = Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": 4, "gap": 0.1})],
        agents=[AgentSpec(name="livarot")],
        episodes=100,
        seeds=200,
    )
    store_of(tmp_path / "store", experiment)
    read_runs(tmp_path / "store")  # imports and caches
    taken = []
    for _ in range(3):  # other threads of the process, and imports on first use, take memory too
        tracemalloc.start()
        runs = read_runs(tmp_path / "store")
        taken.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    curves = sum(run.curves.nbytes for found in runs.runs.values() for run in found)
    assert curves == 200 * 3 * 100 * 8
    assert min(taken) < 1.6 * curves
