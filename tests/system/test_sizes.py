"""What would not fit into memory is refused before any of it is allocated, with a readable size."""

import re
import time
import tracemalloc

import numpy as np
import pytest

import livarot
from livarot import LivarotError, agents, envs, infinite
from livarot.sweeps.experiment.spec import Experiment
from livarot.sweeps.experiment.validate import check_cells
from livarot.system.sizes import memory_limit

MDP = envs.hard_chain(3, gap=0.1)


def refused(make):
    """The error; raised at once, with hardly any memory used."""
    tracemalloc.start()
    before = time.process_time()
    try:
        with pytest.raises(LivarotError) as caught:
            make()
        assert time.process_time() - before < 1.0
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    return caught.value


def swept(environment, **settings):
    experiment = Experiment(
        environments=[{"name": environment, "settings": settings}], agents=[{"name": "uniform"}], episodes=1, seeds=1
    )
    check_cells(experiment.cells())


@pytest.mark.parametrize(
    ("make", "argument", "words"),
    [
        (lambda: envs.hard_chain(5, dim=40), "dim", r"2\^39 actions would take .* TiB"),
        (lambda: envs.hard_chain(5, dim=400), "dim", r"2\^399 actions"),
        (lambda: envs.park_two_state(dim=40), "dim", "TiB"),
        (lambda: envs.hard_chain(10**7), "horizon", "PiB"),
        (lambda: envs.random_mdp(10**6), "n_states", "would take .* TiB"),
        (lambda: envs.deep_sea(10**6), "size", r"more than 10\^18 bytes"),
        (lambda: envs.river_swim(10**9), "n_states", "TiB"),
        (lambda: envs.kl_robust(10**9), "n_states", "TiB"),
        (lambda: envs.mnl_bandit(10**12), "n_arms", "TiB"),
        (lambda: envs.six_arms(10**12), "horizon", "TiB"),
        (lambda: envs.machine_maintenance(2 * 10**9), "horizon", "GiB"),
        (lambda: envs.Drifting.rotation(MDP, 10**12), "n_episodes", "TiB"),
        (lambda: livarot.run(MDP, agents.Uniform(), 10**12), "n_episodes", "TiB"),
        (lambda: livarot.run(MDP, agents.Uniform(), 10**9, seed=range(100)), "n_episodes", "TiB"),
        (lambda: livarot.simulate(MDP, np.zeros((3, 5), dtype=int), 10**12), "n_episodes", "TiB"),
        (lambda: agents.Livarot().init(MDP.problem, 10**12), "n_replicas", "TiB"),
        (lambda: agents.Livarot(n_explore=10**12).init(MDP.problem), "n_explore", "TiB"),
        (lambda: livarot.Ellipsoid.ball(10**7, 1.0), "dim", "PiB"),
        (lambda: swept("hard-chain", horizon=100_000), "horizon", "hard-chain.*GiB"),
        (lambda: swept("hard-chain", horizon=2_000_000_000), "horizon", "hard-chain"),
        (lambda: swept("six-arms", horizon=2_000_000_000), "horizon", "six-arms.*GiB"),
        (lambda: swept("random", n_states=1_000_000), "n_states", "random.*TiB"),
    ],
)
def test_too_large(make, argument, words):
    error = refused(make)
    assert error.argument == argument
    assert re.search(words, str(error)), str(error)
    assert "LIVAROT_MAX_BYTES" in str(error) or "2^399" in str(error)


def test_steps_without_an_end():
    endless = infinite.InfiniteMDP.from_mdp(envs.park_two_state(3, 3))
    still = infinite.FixedPolicy(np.zeros(2, dtype=int))
    assert refused(lambda: infinite.run_infinite(endless, still, 10**12)).argument == "n_steps"
    assert refused(lambda: infinite.UCMNLK(discount=1 - 1e-12).init(endless.problem)).argument == "tol"


def test_the_limit_can_be_moved(monkeypatch):
    assert 0 < memory_limit() < 2**60
    monkeypatch.setenv("LIVAROT_MAX_BYTES", "100000")
    assert memory_limit() == 100_000
    with pytest.raises(LivarotError, match=r"horizon: .* more than the 97\.7 KiB allowed"):
        envs.hard_chain(100)
    monkeypatch.setenv("LIVAROT_MAX_BYTES", "10000000")
    assert envs.hard_chain(100).problem.horizon == 100
    for wrong in ("much", "-1", "0", "1.5"):
        monkeypatch.setenv("LIVAROT_MAX_BYTES", wrong)
        with pytest.raises(LivarotError, match=r"LIVAROT_MAX_BYTES: .* is not a number of bytes"):
            envs.hard_chain(3)
