"""Tasks: every run once, enough for all workers, short ones together, and what is done stays done."""

import inspect
import pickle

from hypothesis import given
from hypothesis import strategies as st

from livarot.cli import sweep as command
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.tasks import GROUP, SHORT, Part, Task, cut, join, plan


def cells(count, episodes=10, horizon=3):
    return [
        Cell.of("hard-chain", {"horizon": horizon, "gap": 0.1}, "livarot", {"reg": 1.0 + i}, episodes)
        for i in range(count)
    ]


def experiment(**wished):
    settings = {"horizon": [3, 4], "gap": 0.1}
    names = [AgentSpec(name="livarot"), AgentSpec(name="uniform")]
    return Experiment(environments=[EnvironmentSpec(name="hard-chain", settings=settings)], agents=names, **wished)


def test_cells_are_cut_for_all_workers():
    planned = plan(experiment(episodes=24, seeds=40))
    assert max(len(seeds) for _, seeds in cut(planned, 1, 64)) == 40
    assert len(cut(planned, 2, 64)) == 4
    assert len(cut(planned, 16, 64)) == 4 * 8
    assert max(len(seeds) for _, seeds in cut(planned, 2, 5)) == 5
    long = plan(experiment(episodes=10**6, seeds=40))
    assert max(len(seeds) for _, seeds in cut(long, 1, 64)) == 4  # memory


@given(
    counts=st.lists(st.integers(1, 60), min_size=1, max_size=30),
    workers=st.integers(1, 9),
    group=st.integers(1, 130),
    episodes=st.sampled_from([1, 200, 5000, 10**6]),
)
def test_every_run_is_in_one_task(counts, workers, group, episodes):
    planned = [Part(cell, tuple(range(n))) for cell, n in zip(cells(len(counts), episodes), counts, strict=True)]
    parts = cut(planned, workers, group)
    tasks = join(parts, workers, group)
    assert [part for task in tasks for part in task] == parts
    found = sorted(run.key for part in parts for run in part.runs)
    assert found == sorted(run.key for part in planned for run in part.runs)
    for task in tasks:
        assert sum(len(part.seeds) for part in task) <= group
        if len(task) > 1:
            assert sum(part.cost for part in task) <= SHORT
    total = sum(part.cost for part in parts)
    assert all(len(task) == 1 or sum(part.cost for part in task) <= total / (2 * workers) for task in tasks)


def test_short_cells_are_joined_and_the_last_tasks_are_small():
    parts = [Part(cell, tuple(range(40))) for cell in cells(50, 200, 5)]
    sizes = [len(task) for task in join(parts, 2, GROUP)]
    assert sum(sizes) == 50
    assert sizes[0] == 3  # 120 runs
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-4:] == [1, 1, 1, 1]
    assert len(sizes) < 30
    assert join(parts, 2, 40) == [(part,) for part in parts]
    assert join([Part(cell, (1,)) for cell in cells(5, 10**6)], 1, GROUP) == [
        (Part(cell, (1,)),) for cell in cells(5, 10**6)
    ]
    assert join([], 2, 128) == []


def test_the_command_has_the_same_group():
    assert inspect.signature(command.run).parameters["group"].default == GROUP
    assert inspect.signature(sweep).parameters["group"].default == GROUP


def test_a_task_is_sent_without_its_keys():
    task = Task(0, "x", "y", tuple(Part(cell, tuple(range(40))) for cell in cells(3)))
    assert len(task.keys) == 120 and task.episodes == 1200
    assert len(pickle.dumps(task)) < 4000
