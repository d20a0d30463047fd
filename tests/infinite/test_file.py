"""Stationary models in files: what comes back, and what is refused."""

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.infinite import InfiniteMDP, bus_engine, solve
from livarot.infinite.file import KIND
from livarot.storage import load_tensors, save_tensors
from tests.support.stationary import random_table, to_model, with_features


def models():
    table, ends = random_table(np.random.default_rng(0), ends=2, scale=1e5)
    names = {"states": list("abcde"), "actions": ["x", "y", "z"]}
    return {
        "table": to_model(table, {"abcde"[s]: pay for s, pay in ends.items()}, discount=0.9, **names),
        "features": with_features(np.random.default_rng(1)),
        "bus": bus_engine(20),
        "episodic": InfiniteMDP.from_mdp(envs.park_two_state()),
    }


@pytest.mark.parametrize("name", models())
def test_what_is_saved_comes_back(name, tmp_path):
    mdp = models()[name]
    mdp.save(tmp_path / "model.safetensors")
    again = InfiniteMDP.load(tmp_path / "model.safetensors")
    assert repr(again) == repr(mdp) and again.problem.stage.states == mdp.problem.stage.states
    for gamma in (0.5, 0.9):
        a, b = solve(again, gamma), solve(mdp, gamma)
        assert a.value.tobytes() == b.value.tobytes() and (a.policy == b.policy).all()
    again.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()


def altered(path, **changes):
    from livarot.infinite.file import LAYOUT

    tensors, header = load_tensors(path, kind=KIND, layout=LAYOUT)
    for name, change in changes.items():
        (header if name in header else tensors)[name] = change
    save_tensors(path, tensors, kind=KIND, header=header)


def test_altered_files_are_refused(tmp_path):
    mdp, path = models()["table"], tmp_path / "model.safetensors"
    ends = mdp.problem.terms.terminal
    elsewhere = mdp.problem.rows.next_state.copy()
    first = mdp.problem.rows.row_start[np.flatnonzero(ends)[0] * 3]
    elsewhere[first] = (elsewhere[first] + 1) % 5
    for changes in (
        {"ends": ~ends},
        {"ends": np.zeros(5, dtype=bool) | (np.arange(5) == np.flatnonzero(~ends)[0]) | ends},
        {"next_state": elsewhere},
        {"pair_reward": np.zeros((5, 2))},
        {"end_reward": np.full(5, np.inf)},
        {"discount": 1.5},
    ):
        mdp.save(path)
        altered(path, **changes)
        with pytest.raises(livarot.LivarotError):
            InfiniteMDP.load(path)
    mdp.stage.save(path)
    with pytest.raises(livarot.LivarotError):
        InfiniteMDP.load(path)
