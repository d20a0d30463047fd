"""Sweeps: the same bits whatever the workers, engine, order, grouping, shards and the rest of the grid."""

import itertools
import pickle
import random

import pytest

from livarot import LivarotError
from livarot.sweeps import driver as module
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store.store import Store
from livarot.sweeps.tasks import Part, Task, cut, plan
from livarot.sweeps.worker import execute
from tests.support.stores import experiment, files


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """The files of an undisturbed sweep."""
    path = tmp_path_factory.mktemp("calm")
    assert sweep(experiment(), path, backend="sequential").complete
    return files(path)


@pytest.mark.parametrize(("backend", "workers", "group"), [("loky", 2, 1), ("loky", 3, 64), ("sequential", 1, 1)])
def test_same_files_whatever_the_engine(calm, tmp_path, backend, workers, group):
    assert sweep(experiment(), tmp_path, backend=backend, workers=workers, group=group).complete
    assert files(tmp_path) == calm


def test_a_task_is_sent_without_what_can_be_computed():
    cell = Cell.of("hard-chain", {"horizon": 3, "gap": 0.1}, "uniform", {}, 10)
    keys = [cell.run(seed).key for seed in range(1000)]
    assert cell.run(5).key is cell.run(5).key
    sent = pickle.dumps(cell)
    assert len(sent) < 2000
    back = pickle.loads(sent)  # noqa: S301 (ours, as joblib does)
    assert back == cell
    assert [back.run(seed).key for seed in range(1000)] == keys


def test_order_does_not_count(calm, tmp_path, monkeypatch):
    draw = random.Random(0)

    def shuffled(*args):
        return draw.sample(found := cut(*args), len(found))

    monkeypatch.setattr(module, "cut", shuffled)
    assert sweep(experiment(), tmp_path, backend="sequential", group=3).complete
    assert files(tmp_path) == calm


def test_checkpoints_change_nothing(calm, tmp_path):
    assert sweep(experiment(), tmp_path, backend="sequential", checkpoint_episodes=5).complete
    assert files(tmp_path) == calm
    assert not list((tmp_path / "checkpoints").iterdir())


def test_a_larger_grid_keeps_what_is_there(calm, tmp_path):
    """Another agent, more seeds, another horizon: the old runs are neither changed nor computed again."""
    small = experiment(agents=("uniform",), seeds=2, horizons=(3,))
    assert sweep(small, tmp_path, backend="sequential").done == 2
    inodes = {p.name: p.stat().st_ino for p in (tmp_path / "runs").iterdir()}
    report = sweep(experiment(), tmp_path, backend="sequential")
    assert (report.before, report.done) == (2, 14)
    assert files(tmp_path) == calm
    assert {p.name: p.stat().st_ino for p in (tmp_path / "runs").iterdir() if p.name in inodes} == inodes
    report = sweep(experiment(), tmp_path, backend="sequential")
    assert (report.before, report.done, report.complete) == (16, 0, True)


def test_shards_are_a_partition(calm, tmp_path):
    whole = [run.key for run in experiment(seeds=7).runs()]
    for parts in (1, 2, 3, 5, 50):
        found = [
            cell.run(seed).key
            for part in range(1, parts + 1)
            for cell, seeds in plan(experiment(seeds=7), (part, parts))
            for seed in seeds
        ]
        assert sorted(found) == sorted(whole)
    for part in (3, 1, 2):
        assert sweep(experiment(), tmp_path, backend="sequential", shard=(part, 3)).complete
    assert files(tmp_path) == calm


def test_a_checkpoint_of_a_killed_worker_is_used(calm, tmp_path):
    """A task stopped in the middle, then the same seeds cut in another way."""
    store = Store(tmp_path, create=True)
    (tmp_path / "running" / "driver").mkdir()
    (cell, seeds), *_ = plan(experiment())
    from livarot.running.loop import Replicas
    from livarot.sweeps.store import checkpoint

    mdp = cell.model()
    half = Replicas([mdp], cell.learner(mdp), cell.episodes, seeds)
    half.advance(13)
    checkpoint.save(tmp_path / "checkpoints", cell, half)
    seen = []
    advance = Replicas.advance
    try:
        Replicas.advance = lambda self, *rest: (seen.append(self.episode), advance(self, *rest))[1]
        outcome = execute(Task(0, str(tmp_path), "driver", (Part(cell, seeds[1:3]),)))
    finally:
        Replicas.advance = advance
    assert outcome.verdict == "done"
    assert seen == [13]
    assert files(tmp_path).items() <= calm.items()
    assert len(files(tmp_path)) == 2
    store.close()


def test_progress_is_told(tmp_path):
    seen = []
    sweep(experiment(), tmp_path, backend="sequential", observer=seen.append)
    assert seen[0].planned == 16 and seen[0].done == 0
    assert seen[-1].done == 16
    assert seen[-1].episodes == seen[-1].episodes_planned == 16 * 24
    assert all(a.done <= b.done for a, b in itertools.pairwise(seen))


@pytest.mark.parametrize("backend", ["sequential", "loky"])
def test_an_observer_is_told_of_each_finished_run_once(tmp_path, backend):
    seen = []
    sweep(experiment(), tmp_path, backend=backend, workers=2, group=3, observer=seen.append)
    told = [run for now in seen for run in now.finished]
    with Store(tmp_path) as store:
        table = store.table()
    assert len(told) == 16 == len(table)
    regret = sorted((one.environment, one.agent, one.seed, one.regret, one.realised_regret) for one in told)
    columns = ["environment", "agent", "seed", "regret", "realised_regret"]
    assert regret == sorted(table[columns].itertuples(index=False, name=None))
    sweep(experiment(), tmp_path, backend=backend, observer=seen.append)  # nothing is left to do
    assert sum(len(now.finished) for now in seen) == 16


def test_environments_are_tried_before_any_work(tmp_path):
    wrong = Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": [3, 4], "gap": [0.1, 0.9]})],
        agents=[AgentSpec(name="uniform")],
        episodes=5,
        seeds=1,
    )
    with pytest.raises(LivarotError, match="gap"):
        sweep(wrong, tmp_path, backend="sequential")
    assert not list(tmp_path.iterdir())  # not even the folders of a store
    bandit = experiment(agents=("uniform", "ofu-mnl-pp"))
    with pytest.raises(LivarotError, match=r"agent 'ofu-mnl-pp' in environment 'hard-chain': .* defined for one"):
        sweep(bandit, tmp_path, backend="sequential")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"workers": 0}, "workers"),
        ({"group": 0}, "group"),
        ({"shard": (0, 2)}, "shard"),
        ({"shard": (3, 2)}, "shard"),
        ({"backend": "threads"}, "choose one of"),
        ({"backend": "loky", "address": "tcp://127.0.0.1:1"}, "address"),
    ],
)
def test_bad_options(tmp_path, options, says):
    with pytest.raises(LivarotError, match=says):
        sweep(experiment(), tmp_path, **({"backend": "sequential"} | options))


def test_agents_that_call_exit_fail_and_nothing_else(tmp_path, monkeypatch):
    from livarot.agents import Uniform

    plan = Uniform.plan

    def leave(self, problem, state, rng):
        if 2 in rng._seeds:
            raise SystemExit(4)
        return plan(self, problem, state, rng)

    monkeypatch.setattr(Uniform, "plan", leave)
    report = sweep(experiment(agents=["uniform"], horizons=[3]), tmp_path, backend="sequential")
    assert (report.done, len(report.failed)) == (3, 1)
    assert "SystemExit: 4" in next(iter(report.failed.values()))


def test_zero_has_one_sign(tmp_path):
    signs = Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": 3, "gap": 0.1})],
        agents=[
            AgentSpec(name="certainty-equivalent"),
            AgentSpec(name="livarot", settings={"beta_scale": [0.0, -0.0]}),
        ],
        episodes=5,
        seeds=2,
    )
    assert len(signs.cells()) == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"checkpoint_seconds": float("nan")}, "checkpoint_seconds"),
        ({"checkpoint_seconds": -1.0}, "checkpoint_seconds"),
        ({"backend": "slurm"}, "no 'slurm'; choose one of"),
        ({"address": "tcp://x"}, "takes no address"),
    ],
)
def test_nonsense_is_refused_even_if_nothing_is_left_to_do(tmp_path, options, says):
    small = experiment(agents=["uniform"], horizons=[3], seeds=1)
    assert sweep(small, tmp_path, backend="sequential").complete
    with pytest.raises(LivarotError, match=says):
        sweep(small, tmp_path, **options)
