"""Runs: exact numbers, no NaN, and the same bits however the work is split."""

import importlib
import threading
from collections import Counter

import matplotlib as mpl
import numpy as np
import pytest

import livarot
from livarot import LivarotError, agents, envs
from livarot.agents import UCRLMNLOL, Livarot, Oracle, Uniform
from livarot.running.result import COLUMNS, RunResult
from tests.support.models import random_model, to_mdp
from tests.support.runs import LEARNERS, RAGGED, RIVER, ids

mpl.use("Agg")


def raw(result):
    """Every number and mask of a result, as bytes per seed."""
    out = []
    for r in range(len(result.seeds)):
        parts = [int(result.seeds[r]).to_bytes(16, "little")]
        for name in COLUMNS:
            column = result.columns[name][r]
            parts += [np.ma.getmaskarray(column).tobytes(), np.ma.filled(column, 0.0).tobytes()]
        out.append(b"".join(parts))
    return out


# ---------------------------------------------------------------- what is reported
@pytest.mark.parametrize("agent", LEARNERS, ids=ids)
@pytest.mark.parametrize("mdp", [RIVER, RAGGED], ids=["river", "ragged"])
def test_shapes_masks_and_no_nan(mdp, agent):
    result = livarot.run(mdp, agent, 12, seed=[4, 9, 11])
    assert result.n_episodes == 12
    assert result.seeds.tolist() == [4, 9, 11]
    assert result.agent == agent.name
    assert result.settings == repr(agent)
    assert result.horizon == mdp.problem.horizon
    for name in COLUMNS:
        column = result.columns[name]
        assert column.shape == (3, 12)
        assert not np.isnan(column.compressed()).any()
    for name in ("regret", "realised_regret", "variance"):
        assert type(getattr(result, name)) is np.ndarray
        assert np.isfinite(getattr(result, name)).all()
        assert not np.ma.getmaskarray(result.columns[name]).any()
    assert result.covered.dtype == bool
    assert result.sigma_bar.shape == (3,)
    assert np.array_equal(result.cumulative_regret, np.cumsum(result.regret, axis=1))
    assert np.array_equal(result.cumulative_realised_regret, np.cumsum(result.realised_regret, axis=1))
    assert result.regret.min() >= -1e-12
    assert result.regret.max() <= mdp.problem.horizon
    assert np.all(result.variance >= 0)


# ---------------------------------------------------------------- the same bits
@pytest.mark.parametrize("agent", LEARNERS, ids=ids)
@pytest.mark.parametrize("mdp", [RIVER, RAGGED], ids=["river", "ragged"])
def test_workers_and_grouping_change_nothing(mdp, agent):
    seeds = [3, 1, 4, 15, 9]
    whole = raw(livarot.run(mdp, agent, 14, seed=seeds))
    for workers in (2, 3, 8):
        assert raw(livarot.run(mdp, agent, 14, seed=seeds, workers=workers)) == whole
    for r, seed in enumerate(seeds):
        assert raw(livarot.run(mdp, agent, 14, seed=seed)) == whole[r : r + 1]
    more = raw(livarot.run(mdp, agent, 14, seed=[7, *seeds, 8]))
    assert more[1:6] == whole
    assert raw(livarot.run(mdp, agent, 14, seed=seeds[::-1])) == whole[::-1]


def test_many_seeds_over_several_batches_of_lanes():
    agent = Livarot(beta_scale=0.5, reg=1.0)
    whole = raw(livarot.run(RAGGED, agent, 6, seed=range(70)))
    for seed in (0, 31, 63, 64, 69):
        assert raw(livarot.run(RAGGED, agent, 6, seed=seed)) == whole[seed : seed + 1]
    assert raw(livarot.run(RAGGED, agent, 6, seed=range(70), workers=3)) == whole


def test_longer_runs_begin_with_the_shorter_ones():
    """Past the block of uniforms that is drawn at once (256 episodes)."""
    mdp = envs.hard_chain(3, gap=0.2)
    for agent in (Livarot(), Uniform()):
        long, short = (livarot.run(mdp, agent, n, seed=[0, 5]) for n in (600, 300))
        for name in COLUMNS:
            one, other = (
                np.ma.filled(long.columns[name][:, :300], 0.0),
                np.ma.filled(short.columns[name], 0.0),
            )
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("agent", [Livarot(), Livarot(n_explore=4), UCRLMNLOL(), Uniform()], ids=ids)
def test_one_model_per_seed(agent, workers):
    """Each seed in its own model is that seed alone in that model."""
    chains = [envs.hard_chain(5, gap=0.2, seed=s) for s in range(5)]
    whole = raw(livarot.run(chains, agent, 10, seed=range(5), workers=workers))
    for s, chain in enumerate(chains):
        assert raw(livarot.run(chain, agent, 10, seed=s)) == whole[s : s + 1]
    assert len({w[16:] for w in whole}) > 1 or agent.name == "uniform"


def test_a_model_equal_in_content_counts_as_the_same_problem():
    twins = [envs.river_swim(4, 6), envs.river_swim(4, 6)]
    assert twins[0].problem is not twins[1].problem
    assert raw(livarot.run(twins, Livarot(), 5, seed=[0, 1])) == raw(livarot.run(RIVER, Livarot(), 5, seed=[0, 1]))


def test_two_runs_in_threads_do_not_disturb_each_other():
    alone = [raw(livarot.run(RIVER, Livarot(beta_scale=b), 20, seed=range(3))) for b in (0.05, 0.4)]
    found = [None, None]

    def work(i, b):
        found[i] = raw(livarot.run(RIVER, Livarot(beta_scale=b), 20, seed=range(3)))

    threads = [threading.Thread(target=work, args=x) for x in ((0, 0.05), (1, 0.4))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == alone


def test_the_global_generator_and_the_model_are_left_alone():
    mdp = to_mdp(random_model(np.random.default_rng(2)))
    before = {k: v.copy() for k, v in (mdp.problem._tensors() | {"theta": mdp.theta}).items()}
    np.random.seed(3)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    livarot.run(mdp, Livarot(n_explore=2), 6, seed=range(3), workers=2)
    livarot.run(mdp, Uniform(), 6)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    for name, array in (mdp.problem._tensors() | {"theta": mdp.theta}).items():
        np.testing.assert_array_equal(array, before[name])


# ---------------------------------------------------------------- results
@pytest.fixture(scope="module")
def explored():
    return livarot.run(RIVER, Livarot(n_explore=4), 9, seed=[2, 5])


def test_a_result_comes_back_from_its_file(explored, tmp_path):
    path = tmp_path / "run.safetensors"
    explored.save(path)
    again = RunResult.load(path)
    assert raw(again) == raw(explored)
    assert (again.agent, again.settings, again.horizon) == (
        explored.agent,
        explored.settings,
        explored.horizon,
    )
    second = tmp_path / "again.safetensors"
    livarot.run(RIVER, Livarot(n_explore=4), 9, seed=[2, 5], workers=2).save(second)
    assert second.read_bytes() == path.read_bytes()  # files can be compared by their hashes
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(LivarotError):
        RunResult.load(path)


def test_a_long_table(explored):
    table = explored.to_pandas()
    assert table.shape == (18, 3 + len(COLUMNS))
    assert table["seed"].tolist() == [2] * 9 + [5] * 9
    assert table["episode"].tolist() == list(range(1, 10)) * 2
    assert set(table["agent"]) == {"livarot"}
    np.testing.assert_array_equal(table["regret"].to_numpy(dtype=float), explored.regret.reshape(-1))
    for name in ("optimism_gap", "optimism_loss", "inner_gap", "covered"):
        assert table[name].isna().tolist() == ([True] * 4 + [False] * 5) * 2
        assert not np.isnan(table[name].dropna().to_numpy(dtype=float)).any()
    assert str(table["covered"].dtype) == "boolean"
    assert not table[["regret", "realised_regret", "variance"]].isna().any().any()


def test_a_plot(explored):
    axes = explored.plot()
    (line,) = axes.get_lines()
    np.testing.assert_allclose(line.get_ydata(), explored.cumulative_regret.mean(axis=0))
    assert line.get_xdata().tolist() == list(range(1, 10))
    same = explored.plot(axes, realised=True, label="realised")
    assert same is axes
    assert [x.get_label() for x in axes.get_lines()] == ["livarot", "realised"]
    assert axes.get_xlabel() == "episode"
    assert axes.get_ylabel() == "cumulative regret (realised)\nmean and 10-90 % of seeds"
    axes.figure.clear()


# ---------------------------------------------------------------- progress and errors
@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_replica_episodes(workers):
    lock, done = threading.Lock(), []

    def progress(n):
        with lock:
            done.append(n)

    livarot.run(RIVER, Uniform(), 7, seed=range(5), workers=workers, progress=progress)
    assert sum(done) == 35


@pytest.mark.parametrize("workers", [1, 2])
def test_what_progress_raises_ends_the_run(workers):
    class Enough(Exception):
        pass

    def progress(n):
        raise Enough

    with pytest.raises(Enough):
        livarot.run(RIVER, Uniform(), 5000, seed=range(4), workers=workers, progress=progress)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: livarot.run(RIVER, Uniform(), 0), "n_episodes"),
        (lambda: livarot.run(RIVER, Uniform(), 5, workers=-1), "workers"),
        (lambda: livarot.run(RIVER, Uniform(), 5, seed="7"), "seed"),
        (lambda: livarot.run([], Uniform(), 5), "mdp"),
        (lambda: livarot.run([RIVER, RAGGED], Uniform(), 5, seed=[0, 1]), "mdp"),
        (lambda: livarot.run(RIVER, Oracle(np.zeros((3, 4), int)), 5), "policy"),
    ],
)
def test_bad_input(call, argument):
    with pytest.raises(LivarotError) as caught:
        call()
    assert caught.value.argument == argument


def test_seeds_of_many_kinds():
    one = raw(livarot.run(RIVER, Uniform(), 3, seed=[0, 6]))
    assert raw(livarot.run(RIVER, Uniform(), 3, seed=np.array([0, 6]))) == one
    assert raw(livarot.run(RIVER, Uniform(), 3, seed=range(0, 12, 6))) == one
    assert raw(livarot.run(RIVER, Uniform(), 3, seed=np.int64(6))) == one[1:]
    assert agents.make("uniform").name == "uniform"


@pytest.mark.parametrize(("terms", "expected"), [(1, 3), (10**12, 1)])
def test_small_problems_stay_on_one_thread(monkeypatch, terms, expected):
    monkeypatch.setattr(importlib.import_module("livarot.running.run"), "THREAD_TERMS", terms)
    seen = set()
    livarot.run(RIVER, Uniform(), 40, seed=range(3), workers=3, progress=lambda n: seen.add(n))
    assert seen == {3 // expected}  # replicas that one call of progress counts


def test_a_theta_that_is_not_contiguous():
    mdp = envs.hard_chain(5, gap=0.1)
    strided = np.asfortranarray(np.repeat(mdp.theta, 2, axis=1))[:, ::2]
    other = livarot.MNLMDP(mdp.problem, strided)
    found, expected = (livarot.run(m, livarot.agents.Livarot(), 20, seed=3) for m in (other, mdp))
    assert np.array_equal(found.regret, expected.regret)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_what_is_done(workers, monkeypatch):
    """The episodes that all seeds have played are those of a run of that length."""
    from livarot.running import run as module

    monkeypatch.setattr(module, "THREAD_TERMS", 1)
    mdp, agent = livarot.envs.hard_chain(4, gap=0.1), livarot.agents.Livarot()
    together, seen = threading.Barrier(workers, timeout=60.0), Counter()

    def stop(count):
        seen[threading.get_ident()] += 1
        if seen[threading.get_ident()] == 1:
            together.wait()  # until every thread has played an episode
        if sum(seen.values()) >= 30 * workers:
            raise KeyboardInterrupt

    with pytest.raises(livarot.Interrupted, match=r"of 500 episodes, which are in \.result") as found:
        livarot.run(mdp, agent, 500, seed=[0, 1], workers=workers, progress=stop)
    kept = found.value.result
    assert 0 < kept.n_episodes < 500
    assert np.array_equal(kept.regret, livarot.run(mdp, agent, kept.n_episodes, seed=[0, 1]).regret)


def test_ctrl_c_before_the_first_episode_keeps_nothing():
    class Stopped(livarot.agents.Uniform):
        def plan(self, problem, state, rng):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as found:
        livarot.run(livarot.envs.hard_chain(3), Stopped(), 5)
    assert not isinstance(found.value, livarot.Interrupted)
