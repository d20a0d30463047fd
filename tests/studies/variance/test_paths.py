"""sigma_bar along the learner's path: closed forms of the waiting room, and the ratios of runs."""

import math

import numpy as np
import pytest

import livarot
from livarot.agents import AdaptiveLivarot, Uniform
from livarot.studies.runner import Contender, Runner
from livarot.studies.variance import paths
from livarot.studies.variance.paths import PROBLEMS, mean_and_error, run_paths, waiting_room
from livarot.theory import sigma_bar, sigma_bar_limit, sigma_bar_star, sigma_bar_star_limit
from livarot.theory.audits.facts import sigma_bar_worst


@pytest.mark.parametrize("horizon", [3, 10, 20])
def test_the_waiting_room_attains_both_limits(horizon):
    """pi* tosses at once, which is the most that pi* can have; who waits has the most of any trajectory."""
    mdp = waiting_room(horizon, 1e-3)
    solution = livarot.solve(mdp)
    assert solution.policy[:-1, 0].tolist() == [1] * (horizon - 1)
    loss = solution.value[:-1, 0] - solution.q[:, 0, 0]
    assert loss[:-1] == pytest.approx(1e-3, abs=1e-12) and loss[-1] == pytest.approx(0.0, abs=1e-12)
    assert sigma_bar_star(mdp) == pytest.approx(sigma_bar_star_limit(horizon), abs=1e-12)
    waits = np.zeros((1, horizon + 1), dtype=np.int64)
    assert sigma_bar(mdp, waits) == pytest.approx(sigma_bar_limit(horizon), abs=1e-12)
    assert sigma_bar_worst(mdp) == pytest.approx(sigma_bar_limit(horizon), abs=1e-12)
    ratio = (sigma_bar_limit(horizon) / sigma_bar_star_limit(horizon)) ** 2
    assert ratio == pytest.approx(horizon * (2 * horizon - 1) / (6 * (horizon - 1)), rel=1e-12)


def test_the_ratios_are_those_of_the_runs(monkeypatch):
    chosen = {key: PROBLEMS[key] for key in ("chain-10", "park", "waiting-room")}
    monkeypatch.setattr(paths, "PROBLEMS", chosen)
    contenders = [
        Contender("uniform", "uniform policy", Uniform()),
        Contender("adaptive", "Adaptive", AdaptiveLivarot()),
    ]
    found = run_paths(Runner(1, 1, None), contenders, 3, 40)
    assert [path.key for path in found] == list(chosen)
    for path in found:
        models = chosen[path.key][1](range(3))
        result = livarot.run(models, Uniform(), 40, seed=range(3))
        star = [sigma_bar_star(mdp) for mdp in models] if isinstance(models, list) else sigma_bar_star(models)
        assert path.ratio["uniform"] == pytest.approx(result.sigma_bar / star, rel=1e-12)
        assert path.late["uniform"] == pytest.approx(np.sqrt(result.variance[:, -4:].mean(axis=1)) / star, rel=1e-12)
        for ratio in (*path.ratio.values(), *path.late.values()):
            assert (ratio <= path.ceiling + 1e-9).all()
    assert found[-1].summary()["agents"]["uniform"]["ratio"]["mean"] > 1.2
    assert found[-1].summary()["optimal"] == pytest.approx(sigma_bar_star_limit(20))


def test_mean_and_error():
    assert mean_and_error(np.array([1.0, 3.0])) == {
        "mean": 2.0,
        "standard_error": pytest.approx(math.sqrt(2) / math.sqrt(2)),
    }
    assert mean_and_error(np.array([5.0]))["standard_error"] == 0.0
