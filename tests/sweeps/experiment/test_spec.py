"""Experiments as files: grids, keys, and what is refused."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livarot import LivarotError
from livarot.sweeps.experiment.spec import (
    MAX_EPISODES,
    MAX_SEED,
    AgentSpec,
    EnvironmentSpec,
    Experiment,
    SeedRange,
    variants,
)
from livarot.sweeps.store.records import MAX_BYTES

TEXT = """
name = "comparison"
episodes = [50, 100]
seeds = 4

[[environments]]
name = "hard-chain"
settings = { horizon = [3, 4], gap = 0.1 }

[[environments]]
name = "river-swim"
label = "river"
settings.horizon = 5

[[agents]]
name = "livarot"
preset = "paper"
settings.beta_scale = [0.01, 0.05]
settings.rule = { name = "joint-maximum", solver = { name = "frank-wolfe", n_iter = [5, 10] } }

[[agents]]
name = "uniform"

[[agents]]
name = "oracle"
"""


def test_a_file_and_the_same_objects():
    experiment = Experiment.from_toml(TEXT)
    same = Experiment(
        name="comparison",
        episodes=[50, 100],
        seeds=SeedRange(first=0, count=4),
        environments=[
            EnvironmentSpec(name="hard-chain", settings={"horizon": [3, 4], "gap": 0.1}),
            EnvironmentSpec(name="river-swim", settings={"horizon": 5}),
        ],
        agents=[
            AgentSpec(
                name="livarot",
                preset="paper",
                settings={
                    "beta_scale": [0.01, 0.05],
                    "rule": {"name": "joint-maximum", "solver": {"name": "frank-wolfe", "n_iter": [5, 10]}},
                },
            ),
            AgentSpec(name="uniform"),
            AgentSpec(name="oracle"),
        ],
    )
    assert len(experiment.cells()) == 2 * 3 * (4 + 2)
    assert [run.key for run in experiment.runs()] == [run.key for run in same.runs()]
    assert len({run.key for run in experiment.runs()}) == 36 * 4
    again = Experiment.from_toml(experiment.to_toml())
    assert again == experiment
    assert again.key == experiment.key


def test_episodes_can_be_a_setting():
    experiment = Experiment.from_toml(
        'episodes = [50, 60]\nseeds = 1\n[[environments]]\nname = "hard-chain"\nsettings.n_episodes = "$episodes"\n'
        '[[agents]]\nname = "uniform"'
    )
    assert [cell.environment_settings["n_episodes"] for cell in experiment.cells()] == [50, 60]


BASE = 'episodes = 10\nseeds = 2\n[[environments]]\nname = "hard-chain"\n[[agents]]\nname = "livarot"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BASE.replace("seeds", "sedes"), "did you mean 'seeds'"),
        (BASE + "setings = {}", "did you mean 'settings'"),
        (BASE.replace("hard-chain", "hard-chian"), "did you mean 'hard-chain'"),
        (BASE + "settings = { beta_scal = 1.0 }", "did you mean 'beta_scale'"),
        (BASE + "settings = { beta_scale = 'big' }", "beta_scale"),
        (BASE + "settings = { beta_scale = nan }", "finite"),
        (BASE + "settings = { beta_scale = inf }", "finite"),
        (BASE + "settings = { printed_radius = 1 }", "must be bool"),
        (BASE + "settings = { n_explore = 1.5 }", "must be"),
        (BASE + "settings = { n_explore = true }", "must be"),
        (BASE + "settings = { beta_scale = [] }", "empty list"),
        (BASE + "settings = { rule = { name = 'joint-max' } }", "did you mean 'joint-maximum'"),
        (BASE + "settings = { rule = { solver = 1 } }", "needs the name of a component"),
        (BASE + "settings = { rule = 'joint-maximum' }", "rule"),
        (BASE + "preset = 'papr'", "has no preset"),
        (BASE + "preset = '__init__'", "has no preset"),
        (BASE + "preset = 'init'", "has no preset"),
        (BASE.replace("episodes = 10", "episodes = 0"), "episodes"),
        (BASE.replace("episodes = 10", "episodes = '10'"), "episodes"),
        (BASE.replace("episodes = 10", "episodes = true"), "episodes"),
        (BASE.replace("episodes = 10", "episodes = []"), "empty"),
        (BASE.replace("seeds = 2", "seeds = [-1]"), "seeds"),
        (BASE.replace("seeds = 2", "seeds = 1000001"), "seeds"),
        (BASE.replace("seeds = 2", "seeds = {count = 2, start = 1}"), "unknown key 'start'; known: first, count"),
        (BASE.replace("seeds = 2", "seeds = 2\nzzz = 1"), "unknown key 'zzz'; known: name, environments, agents"),
        ("episodes = 10\nseeds = 2\nagents = []\nenvironments = []", "environments"),
        ("episodes = 10", "environments"),
        ("", "environments"),
        ("= 3", "not TOML"),
        ("a = " + "[" * 50_000, "not TOML"),
        ("a = " + "1" * 200_000, "not TOML"),
        (BASE.replace("seeds = 2", "seeds = 2\nx = 1979-05-27"), "unknown key 'x'"),
        (BASE + "settings = { when = 1979-05-27 }", "spec"),
    ],
)
def test_what_is_refused(text, says):
    with pytest.raises(LivarotError) as caught:
        Experiment.from_toml(text).runs()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2000


CODE = [
    "os:system",
    "os.system",
    "livarot.agents.livarot:Livarot",
    "livarot.agents.Livarot",
    "__import__('os')",
    "mnl/HardChain-v0",
    "gymnasium:CartPole-v1",
    "../agents/livarot",
    "file:agent.py",
    "",
    "livarot\0",
    "LIVAROT",
    " livarot",
    "_entries",
    "register",
]


@pytest.mark.parametrize("name", CODE)
@pytest.mark.parametrize("kind", ["environments", "agents", "component", "preset", "key"])
def test_a_file_cannot_name_code(name, kind):
    """Registered names only; nothing is imported."""
    import sys

    before = set(sys.modules)
    spec = {
        "episodes": 10,
        "seeds": 1,
        "environments": [{"name": "hard-chain"}],
        "agents": [{"name": "livarot"}],
    }
    if kind in ("environments", "agents"):
        spec[kind] = [{"name": name}]
    elif kind == "component":
        spec["agents"] = [{"name": "livarot", "settings": {"rule": {"name": name}}}]
    elif kind == "preset":
        spec["agents"] = [{"name": "livarot", "preset": name}]
    else:
        spec["agents"] = [{"name": "livarot", "_target_": name}]
    with pytest.raises(LivarotError):
        Experiment(**spec).runs()
    assert set(sys.modules) == before


PARTS = {"environments": [{"name": "hard-chain"}], "agents": [{"name": "uniform"}]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[-1]", "element 1 of the list is -1; a seed is a whole number from 0 to 2^63 - 1"),
        ("[4, 99999999999999999999]", "element 2 of the list is 99999999999999999999; a seed is a whole number"),
        ("[0, 'a']", "element 2 of the list is 'a'"),
        ("[true]", "element 1 of the list is True"),
        ("[]", "the list is empty; write a number of seeds"),
        ("{first = 3}", "count is missing; write { first = 3, count = 20 }"),
        ("{first = 3, count = 0}", "count is 0; it is a whole number from 1 to 1000000"),
        ("{first = -1, count = 2}", "first is -1; a seed is a whole number"),
        ("{first = 9223372036854775806, count = 4}", "the last of them would be 9223372036854775809"),
        ("0", "0 is not a number of seeds; give one from 1 to 1000000"),
        ("true", "True is neither number, list nor table"),
        ("'3'", "'3' is neither number, list nor table"),
        ("1.0", "1.0 is neither number, list nor table"),
    ],
)
def test_seeds_are_refused_in_words(text, says):
    with pytest.raises(LivarotError) as caught:
        Experiment.from_toml(BASE.replace("seeds = 2", f"seeds = {text}"))
    assert str(caught.value).startswith(f"seeds: {says}")


def test_seeds_of_python_and_numpy():
    def seeds(given):
        return Experiment(episodes=np.int64(5), seeds=given, **PARTS).seed_list()

    assert seeds(range(3)) == seeds(np.int64(3)) == seeds(np.arange(3)) == seeds((0, 1, 2)) == [0, 1, 2]
    assert seeds(range(7, 1, -2)) == [7, 5, 3]
    assert seeds([np.uint8(4), 4, 2]) == [4, 2]
    assert seeds(SeedRange(first=np.int64(2), count=2)) == seeds({"first": 2, "count": np.int64(2)}) == [2, 3]
    assert seeds({"first": MAX_SEED - 3, "count": 4})[-1] == MAX_SEED
    assert all(type(seed) is int for seed in seeds(np.arange(3)))
    experiment = Experiment(episodes=[np.int64(5)], seeds=np.arange(3), **PARTS)
    assert Experiment.from_toml(experiment.to_toml()).key == experiment.key
    for wrong in ([], (), range(0), np.array([]), np.array(3.0), np.array([[1]]), range(0, 10**9, 2), None):
        with pytest.raises(LivarotError, match="seeds"):
            seeds(wrong)
    with pytest.raises(ValueError, match="last seed"):
        SeedRange(first=MAX_SEED, count=2)


def test_a_run_fits_into_a_file():
    assert MAX_EPISODES * 64 <= MAX_BYTES < (MAX_EPISODES + 1) * 64
    assert Experiment(episodes=MAX_EPISODES, seeds=1, **PARTS).episodes == MAX_EPISODES
    for count, says in (
        (MAX_EPISODES + 1, f"episodes: got {MAX_EPISODES + 1}, more than a file can hold; at most {MAX_EPISODES}"),
        (
            [10, 10**9],
            f"episodes: element 2 of the list is 1000000000, more than a file can hold; at most {MAX_EPISODES}",
        ),
    ):
        with pytest.raises(LivarotError) as caught:
            Experiment(episodes=count, seeds=1, **PARTS)
        assert str(caught.value) == says


def test_what_was_written_stays_with_its_cell():
    experiment = Experiment.from_toml(TEXT)
    found = experiment.combinations()
    assert [one.cell.key for one in found] == [cell.key for cell in experiment.cells()]
    assert found[0].world.name == "hard-chain" and found[0].given == {"horizon": 3, "gap": 0.1}
    assert found[0].learner.preset == "paper" and found[0].wished["beta_scale"] == 0.01


def test_too_many_runs_are_refused_before_they_are_listed():
    many = {"name": "livarot", "settings": {f"x{i}": list(range(10)) for i in range(30)}}
    base = {"episodes": 10, "seeds": 1, "environments": [{"name": "hard-chain"}]}
    with pytest.raises(LivarotError, match="combinations"):
        Experiment(**base, agents=[many]).cells()
    grid = {"name": "livarot", "settings": {"beta_scale": [i / 1000 for i in range(1, 1001)]}}
    with pytest.raises(LivarotError, match="runs"):
        Experiment(**(base | {"seeds": 1001}), agents=[grid]).cells()


def test_a_large_file_is_refused(tmp_path):
    path = tmp_path / "large.toml"
    path.write_bytes(b"#" * (1 << 21))
    with pytest.raises(LivarotError, match="bytes"):
        Experiment.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(LivarotError, match="UTF-8"):
        Experiment.load(path)
    with pytest.raises(LivarotError, match="cannot read"):
        Experiment.load(tmp_path / "absent.toml")


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    )
)
def test_anything_else_is_taken_or_refused(value):
    """Whatever a settings table holds is accepted, or refused with a `LivarotError`."""
    for kind in ("environments", "agents"):
        spec = {"episodes": 10, "seeds": 1, "environments": [{"name": "hard-chain"}], "agents": [{"name": "livarot"}]}
        spec[kind][0]["settings"] = {"reg": value} if kind == "agents" else {"gap": value}
        with contextlib.suppress(LivarotError):
            Experiment(**spec).runs()


def test_variants_of_nested_tables():
    assert variants({"a": [1, [2, 3]], "b": 4}) == [{"a": 1, "b": 4}, {"a": 2, "b": 4}, {"a": 3, "b": 4}]


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[3] / "examples").glob("*.toml")), ids=lambda p: p.name)
def test_the_examples_can_be_run(path):
    assert len(Experiment.load(path).runs()) >= 100


def test_the_page_s_example_can_be_run():
    page = (Path(__file__).parents[3] / "docs" / "experiments.md").read_text()
    text = page.split("```toml")[1].split("```")[0]
    assert len(Experiment.from_toml(text).runs()) == 2 * 2 * 2 * 40
