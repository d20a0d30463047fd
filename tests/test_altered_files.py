"""Files that are well-formed and wrong are refused, or do no harm: models, results, fits, states of agents."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import livarot
from livarot import agents, envs
from livarot.data import labels_of, load_fit, save_fit
from livarot.running.loop import Replicas
from livarot.storage import load_tensors
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.store import checkpoint
from tests.support.altered import GOOD, change, refused
from tests.support.machine_logs import ONLY_NEW, fitted

MDP = envs.river_swim(4, 5)
SCRIPT = Path(__file__).parent / "support" / "altered.py"
ROOT = Path(__file__).parents[1]


def ends_of(folder, every):
    command = [sys.executable, str(SCRIPT), str(folder), str(every)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return dict(map(json.loads, done.stdout.splitlines()))


def harmless(found):
    wrong = {name: end for name, end in found.items() if end not in GOOD}
    assert not wrong, wrong


def test_a_sample_of_altered_files_does_no_harm(tmp_path):
    found = ends_of(tmp_path, 61)
    assert len(found) > 100
    harmless(found)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_altered_file_does_harm(tmp_path):
    found = ends_of(tmp_path, 1)
    assert len(found) > 6000
    harmless(found)


# ---------------------------------------------------------------- models


def test_labels_survive_a_file(tmp_path):
    mdp = fitted(200).to_mdp(ONLY_NEW, 4, "new", unseen="sink", terminal="broken")
    mdp.save(tmp_path / "model")
    again = livarot.MNLMDP.load(tmp_path / "model")
    assert labels_of(again) == labels_of(mdp)
    assert (again.problem.states, again.problem.actions) == (mdp.problem.states, mdp.problem.actions)
    again.save(tmp_path / "twice")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "twice").read_bytes()


# ---------------------------------------------------------------- results and fits


@pytest.mark.parametrize(
    ("tensors", "header", "said"),
    [
        ({"regret": lambda x: x * np.nan}, {}, "'regret' has nan"),
        ({"regret": lambda x: x + 50.0}, {}, "'regret' has"),
        ({"regret": lambda x: x - 1.0}, {}, "'regret' has"),
        ({"variance": lambda x: x + 1.0}, {}, "'variance' has"),
        ({"regret.mask": lambda x: ~x}, {}, "'regret' is masked"),
        ({"covered": lambda x: x / 2}, {}, "neither 0 nor 1"),
        ({"covered": lambda x: 1 - x}, {}, "coverage per stage"),
        ({"stage_bits": lambda x: x | 64}, {}, "coverage per stage"),
        ({"stage_bits": lambda x: np.concatenate((x, x), axis=2)}, {}, "2 words of coverage, expected 1"),
        ({"seeds": lambda x: x[:1]}, {}, "has shape"),
        ({"seeds": lambda x: -x}, {}, "tensor 'seeds' has -"),
        ({}, {"horizon": 6}, "another horizon"),
        ({}, {"facts": {"problem": {}}}, "is missing"),
        ({}, {"facts": []}, "its header has facts"),
    ],
)
def test_what_is_wrong_with_a_result_is_said(tmp_path, tensors, header, said):
    path = tmp_path / "run"
    livarot.run(MDP, agents.Livarot(beta_scale=9.0), 4, seed=[3, 4]).save(path)
    whole, _ = load_tensors(path, kind="run-result")
    change(path, "run-result", {name: f(whole[name]) for name, f in tensors.items()}, header)
    assert said in refused(livarot.RunResult.load, path)


def test_what_is_wrong_with_a_fit_is_said(tmp_path):
    path = tmp_path / "fit"
    words = np.frombuffer(b"[" * 100_000, dtype=np.uint8).astype(np.int32)
    for tensors, said in [
        ({"log_row": lambda x: np.where(x == x[0], (x + 1) % 3, x)}, "rows that its log never chose"),
        ({"start": lambda x: x * 2}, "partition"),
        ({"next_state": lambda x: x + 9}, "tensor 'next_state' has"),
        ({"covariance": lambda x: -x}, "negative diagonal"),
        ({"words": lambda x: words}, "nested more than 64 deep"),
        ({"words": lambda x: x + 200}, "tensor 'words' has"),
        ({"numbers": lambda x: x * np.nan}, "log_likelihood has nan"),
    ]:
        save_fit(path, fitted(200))
        whole, _ = load_tensors(path, kind="mnl-transition")
        change(path, "mnl-transition", {name: f(whole[name]) for name, f in tensors.items()})
        assert said in refused(load_fit, path)


# ---------------------------------------------------------------- states and checkpoints


@pytest.mark.parametrize(
    ("tensors", "header", "drop"),
    [
        ({}, {}, ["state.estimate.gram"]),
        ({}, {}, ["episode"]),
        ({}, {"episode": 10**30}, []),
        ({}, {"episode": "3"}, []),
        ({"bits": lambda x: x[:1]}, {}, []),
        ({"state.estimate.theta": lambda x: x * np.nan}, {}, []),
        ({"state.estimate.gram": lambda x: x[:, :, 1:].copy()}, {}, []),
        ({"state.history.pairs": lambda x: x + 10**6}, {}, []),
        ({"column.regret": lambda x: x.astype(np.int64)}, {}, []),
    ],
)
def test_a_checkpoint_that_is_wrong_costs_its_episodes_only(tmp_path, tensors, header, drop):
    cell = Cell.of("river-swim", {"n_states": 4, "horizon": 5}, "ucrl-mnl", {}, 6)

    def replicas():
        mdp = cell.model()
        return Replicas([mdp], cell.learner(mdp), cell.episodes, [3, 5])

    first = replicas()
    first.advance(3)
    assert checkpoint.save(tmp_path, cell, first)
    assert checkpoint.restore(tmp_path, cell, replicas()) == 3
    (path,) = tmp_path.iterdir()
    whole, _ = load_tensors(path, kind="checkpoint")
    change(path, "checkpoint", {name: f(whole[name]) for name, f in tensors.items()}, header, drop)
    assert checkpoint.restore(tmp_path, cell, replicas()) == 0
    assert not path.exists()


OTHERS = [envs.river_swim(6, 5), envs.river_swim(4, 3), envs.hard_chain(5), envs.river_swim(4, 9)]


def test_fingerprints_are_of_the_content_only():
    again = envs.river_swim(4, 5)
    livarot.solve(again)
    assert again.problem.fingerprint == MDP.problem.fingerprint
    assert len({other.problem.fingerprint for other in OTHERS}) == len(OTHERS)
