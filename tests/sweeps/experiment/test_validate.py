"""What is refused before any work, and what is only noted."""

import logging
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from livarot import LivarotError, agents, envs
from livarot.agents.controls import Uniform
from livarot.sweeps.experiment import validate as checks
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.spec import Experiment
from livarot.sweeps.experiment.validate import check_cells, notes, usable_folder
from livarot.sweeps.store.store import Store


@pytest.fixture
def own_names(monkeypatch):
    """Names that are registered for one test."""
    for registry in (agents.registry, envs.registry):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))


def test_each_environment_is_built_once_and_each_agent_begins_once(own_names):
    built, begun = [], []

    def chain(horizon: int = 3):
        built.append(horizon)
        return envs.hard_chain(horizon, gap=0.1)

    @dataclass(frozen=True)
    class Begins(Uniform):
        name: ClassVar[str] = "begins"

        flavour: int = 0

        def init(self, problem, n_replicas=1):
            begun.append((problem.horizon, self.flavour))
            return super().init(problem, n_replicas)

        def plan(self, problem, state, rng):
            raise AssertionError("nothing is played")

    envs.registry.register("own-chain", chain, "a chain")
    agents.registry.register("begins", Begins, "counts its beginnings")
    experiment = Experiment(
        episodes=[5, 10],
        seeds=3,
        environments=[{"name": "own-chain", "settings": {"horizon": [3, 4]}}],
        agents=[{"name": "begins", "settings": {"flavour": [0, 1]}}, {"name": "oracle"}],
    )
    check_cells(experiment.cells())
    assert sorted(built) == [3, 4]
    assert sorted(begun) == [(3, 0), (3, 1), (4, 0), (4, 1)]


def test_the_cell_is_named():
    with pytest.raises(LivarotError) as caught:
        check_cells([Cell.of("hard-chain", {"gap": 0.1}, "ofu-mnl-pp", {"reg": 3.0}, 10)])
    assert str(caught.value).startswith(
        "agent 'ofu-mnl-pp' in environment 'hard-chain': with gap=0.1, reg=3: problem: "
    )
    with pytest.raises(LivarotError, match="environment 'hard-chain': with horizon=-5: horizon: must be"):
        check_cells([Cell.of("hard-chain", {"horizon": -5}, "uniform", {}, 10)])


def test_a_defect_is_left_to_the_runs(own_names, caplog):
    """The traceback of a run says more than one line could."""

    def broken(size: int = 1):
        return 1 // 0

    @dataclass(frozen=True)
    class Broken(Uniform):
        name: ClassVar[str] = "broken"

        def init(self, problem, n_replicas=1):
            raise ZeroDivisionError

    envs.registry.register("broken", broken, "a defect")
    agents.registry.register("broken", Broken, "a defect")
    with caplog.at_level(logging.WARNING):
        check_cells([Cell.of("broken", {}, "uniform", {}, 10), Cell.of("hard-chain", {}, "broken", {}, 10)])
    assert [record.message.split(";")[0] for record in caplog.records] == [
        "environment broken cannot be built",
        "agent broken cannot begin",
    ]


def test_more_parameters_leave_less_room(monkeypatch):
    """A row has a word of coverage bits for every 32 parameters."""
    cell = Cell.of("hard-chain", {"horizon": 40, "gap": 0.01}, "uniform", {}, 10)
    assert cell.model().problem.n_parameters == 40
    monkeypatch.setattr(checks, "MAX_BYTES", 10 * (60 + 8))
    check_cells([cell])
    with pytest.raises(LivarotError, match=r"11 episodes in environment 'hard-chain' .* at most 10 here"):
        check_cells([cell, replace(cell, episodes=11)])


@pytest.mark.parametrize(
    ("settings", "episodes", "noted"),
    [
        ({}, 50, ["the runs have 50"]),
        ({}, [50, 1000, 70], ["the runs have 50, 70"]),
        ({}, 1000, []),
        ({"n_episodes": "$episodes"}, [50, 70], []),
        ({"n_episodes": 1000}, 50, []),
        ({"gap": 0.1}, 50, []),
    ],
)
def test_a_problem_for_another_number_of_episodes(settings, episodes, noted):
    world = {"name": "hard-chain", "settings": settings}
    found = notes(Experiment(episodes=episodes, seeds=1, environments=[world], agents=[{"name": "uniform"}]))
    assert len(found) == len(noted)
    assert all(text in line for text, line in zip(noted, found, strict=True))


def test_folders_for_a_store(tmp_path):
    with Store(tmp_path / "store", create=True):
        pass
    (tmp_path / "store" / "notes.txt").write_text("mine")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / ".gitignore").write_text("*")
    for name in ("store", "hidden", "absent"):
        assert usable_folder(tmp_path / name) == tmp_path / name
    (tmp_path / "hidden" / "data.csv").write_text("x")
    for name, says in (("hidden", "not a store of livarot"), ("store/notes.txt", "not a folder")):
        with pytest.raises(LivarotError, match=says):
            usable_folder(tmp_path / name)
    with pytest.raises(LivarotError, match="empty"):
        usable_folder(" ")
