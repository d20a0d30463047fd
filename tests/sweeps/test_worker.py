"""What a worker does with a task: what is computed is stored, whatever happens to the rest."""

import shutil

import pytest

from livarot import agents
from livarot.sweeps import driver, worker
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store.store import Store
from livarot.sweeps.tasks import Part, Task
from livarot.sweeps.worker import notes_of


@pytest.fixture
def misbehaving(monkeypatch):
    """Agents registered for these tests only: other tests try every registered agent."""
    monkeypatch.setattr(agents.registry, "_entries", dict(agents.registry._entries))
    from tests.faults import plugin

    for one in (plugin.Poison, plugin.Slow):
        if one.name not in agents.registry:
            agents.registry.register(one.name, one, "for a test")


def experiment(**wished):
    settings = {"horizon": [3, 4], "gap": 0.1}
    names = [AgentSpec(name="livarot"), AgentSpec(name="uniform")]
    return Experiment(environments=[EnvironmentSpec(name="hard-chain", settings=settings)], agents=names, **wished)


@pytest.fixture
def store(tmp_path, misbehaving):
    with Store(tmp_path, create=True) as opened:
        (tmp_path / "running" / "driver").mkdir()
        yield opened


def task_of(store, *named, seeds=(1, 2, 3)):
    parts = [
        Part(Cell.of("hard-chain", {"horizon": 3, "gap": 0.1}, name, settings, 5), seeds) for name, settings in named
    ]
    return Task(0, str(store.path), "driver", tuple(parts))


POISON = ("test-poison", {"victim": 3, "how": "raise"})


SLOW = ("test-slow", {"delay": 0.01})


def stored(store):
    return {store.read(key).run.cell.agent for key in store.stored()}


def test_what_was_computed_before_an_exception_is_stored(store):
    task = task_of(store, ("uniform", {}), POISON, SLOW)
    outcome = worker.execute(task)
    assert outcome.verdict == "failed" and "poisoned" in outcome.message
    assert set(outcome.entries) == {run.key for run in task.parts[0].runs} == store.stored().keys()
    assert all(entry.seconds > 0 for entry in outcome.entries.values())


def test_what_was_computed_before_the_wish_to_stop_is_stored(store, monkeypatch):
    task = task_of(store, ("uniform", {}), SLOW)
    advance = worker._advance

    def stopping(*args):
        advance(*args)
        (task.marker.parent / worker.STOP).touch()

    monkeypatch.setattr(worker, "_advance", stopping)
    assert worker.execute(task).verdict == "stopped"
    assert stored(store) == {"uniform"}
    assert not task.marker.exists()


@pytest.mark.parametrize(("patience", "writes"), [(0.0, [3, 3, 3]), (60.0, [9])])
def test_parts_wait_for_each_other_a_short_time(store, monkeypatch, patience, writes):
    seen = []
    put_all = Store.put_all

    def counted(self, blocks):
        found = put_all(self, blocks)
        seen.append(len(found))
        return found

    monkeypatch.setattr(worker, "TOGETHER", patience)
    monkeypatch.setattr(Store, "put_all", counted)
    assert worker.execute(task_of(store, ("uniform", {}), SLOW, ("livarot", {}))).verdict == "done"
    assert seen == writes


@pytest.mark.usefixtures("misbehaving")
@pytest.mark.parametrize("backend", ["sequential", "loky"])
def test_an_exception_costs_its_neighbours_nothing(tmp_path, backend):
    """Many short cells, one of which has a seed that raises: that run has failed, all others are stored."""
    cells_of = {"flavour": list(range(12)), "delay": 0.0}
    sick = Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": 3, "gap": 0.1})],
        agents=[
            AgentSpec(name="test-slow", settings=cells_of),
            AgentSpec(name="test-poison", settings={"victim": 3, "how": "raise", "episode": [2, 3]}),
        ],
        episodes=5,
        seeds=4,
    )
    report = sweep(sick, tmp_path, backend=backend, workers=2, imports=["tests.faults.plugin"])
    assert len(report.failed) == 2
    assert (report.planned, report.done, report.deaths) == (56, 54, 0)
    with Store(tmp_path) as opened:
        assert {note["content"]["seed"] for note in opened.failures().values()} == {3}
        table = opened.table()
        assert len(table) == 54 and (table.seconds > 0).all()  # noted when stored: a file found later has no seconds


def one_task(parts, *_):
    return [tuple(parts)]


@pytest.mark.usefixtures("misbehaving")
def test_parts_after_the_one_that_raised_are_tried_too(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "join", one_task)
    sick = Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": 3, "gap": 0.1})],
        agents=[
            AgentSpec(name="uniform"),
            AgentSpec(name="test-poison", settings={"victim": 3, "how": "raise"}),
            AgentSpec(name="test-slow", settings={"flavour": [0, 1], "delay": 0.0}),
        ],
        episodes=5,
        seeds=4,
    )
    report = sweep(sick, tmp_path, backend="sequential", imports=["tests.faults.plugin"])
    assert (report.planned, report.done, len(report.failed)) == (16, 15, 1)


def test_what_another_driver_stores_meanwhile_is_not_computed_again(tmp_path, monkeypatch):
    """Its file appears after the plan was made, and before the task is handed out."""
    monkeypatch.setattr(driver, "join", one_task)
    wanted = experiment(episodes=5, seeds=2)
    assert sweep(wanted, tmp_path / "other", backend="sequential").complete
    ready = sorted((tmp_path / "other" / "runs").iterdir())[:3]
    claim = driver._Sweep._claim

    def late(self, keys):
        for path in ready:
            shutil.copy(path, tmp_path / "store" / "runs" / path.name)
        return claim(self, keys)

    computed = []
    execute = worker._execute
    monkeypatch.setattr(driver._Sweep, "_claim", late)
    monkeypatch.setattr(worker, "_execute", lambda task, *rest: (computed.extend(task.keys), execute(task, *rest)))
    report = sweep(wanted, tmp_path / "store", backend="sequential")
    assert report.complete and report.done == 8
    assert len(computed) == 5
    assert not {path.stem for path in ready} & set(computed)


def test_a_task_of_several_cells_says_how_far_it_is(store, monkeypatch):
    seen = []
    monkeypatch.setattr(worker, "BEAT", 0.0)
    monkeypatch.setattr(worker, "_mark", lambda task, episodes: seen.append(episodes))
    task = task_of(store, ("uniform", {}), SLOW)
    assert worker.execute(task).verdict == "done"
    assert seen == sorted(seen) and seen[0] == 0 and seen[-1] == task.episodes == 30
    assert 15 in seen and len(seen) > 3


def test_tasks_whose_driver_leaves_have_no_notes(tmp_path, monkeypatch):
    assert notes_of(tmp_path / "gone") == []
    folder = tmp_path / "driver"
    folder.mkdir()
    (folder / "0.json").write_text('{"episodes": 5, "pid": 1, "seeds": 2}')
    for name, text in (("1.json", "{"), ("2.json", "[]"), ("3.json", "{}"), ("stop", "")):
        (folder / name).write_text(text)
    assert [note["episodes"] for note in notes_of(folder)] == [5]
    read = worker.read_regular
    monkeypatch.setattr(worker, "read_regular", lambda path, limit: (path.unlink(), read(path, limit))[1])
    assert notes_of(folder) == []
