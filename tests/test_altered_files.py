"""Files that are well-formed and wrong are refused, or do no harm: models, results, fits, states of agents."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import livarot
from livarot import LivarotError, agents, envs
from livarot.data import labels_of, load_fit, save_fit
from livarot.running.loop import Replicas
from livarot.storage import load_tensors, save_tensors
from livarot.sweeps.keys import Cell
from livarot.sweeps.store import checkpoint
from tests.support.altered import GOOD
from tests.support.machine_logs import fitted
from tests.support.models import random_model, to_mdp

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


def refused(load, path):
    """The refusal, in one line that names the file, within a second."""
    begin = time.process_time()
    with pytest.raises(LivarotError) as caught:
        load(path)
    assert time.process_time() - begin < 1.0
    assert str(path) in str(caught.value) and caught.value.argument == "path"
    return str(caught.value)


def change(path, kind, tensors=None, header=None, drop=()):
    old, head = load_tensors(path, kind=kind)
    kept = {name: array for name, array in (old | (tensors or {})).items() if name not in drop}
    rest = {name: value for name, value in (head | (header or {})).items() if name not in drop}
    save_tensors(path, kept, kind=kind, header=rest)


# ---------------------------------------------------------------- models


@pytest.fixture
def model(tmp_path):
    MDP.save(tmp_path / "model")
    return tmp_path / "model"


def test_each_tensor_of_a_model_is_needed_and_has_its_type(model, tmp_path):
    whole, _ = load_tensors(model, kind="mnlmdp")
    for name, array in whole.items():
        MDP.save(model)
        change(model, "mnlmdp", drop=[name])
        if name == "labels":
            assert livarot.MNLMDP.load(model).problem.actions is None
        else:
            assert f"tensor {name!r} is missing" in refused(livarot.MNLMDP.load, model)
        for dtype in {np.dtype(x) for x in ("float64", "int32", "int64", "bool")} - {array.dtype}:
            MDP.save(model)
            change(model, "mnlmdp", {name: array.astype(dtype)})
            assert f"tensor {name!r} has dtype {dtype}" in refused(livarot.MNLMDP.load, model)


@pytest.mark.parametrize(
    ("tensors", "header", "said"),
    [
        ({"next_state": lambda x: x + 1}, {}, "tensor 'next_state' has 4"),
        ({"next_state": lambda x: x[::-1].copy()}, {}, "next_states"),
        ({"row_start": lambda x: np.append(0, x[:-1])}, {}, "do not fit together"),
        ({"feat_start": lambda x: x + 1}, {}, "do not fit together"),
        ({"pair_block": lambda x: x * 0}, {}, "do not fit together"),
        ({"gram_start": lambda x: x * 2}, {}, "do not fit together"),
        ({"reward": lambda x: x + 1}, {}, "tensor 'reward' has"),
        ({"start": lambda x: x / 2}, {}, "start: sums to 0.5"),
        ({"feat": lambda x: x * 9}, {}, "features: have a norm above 1"),
        ({"theta": lambda x: x * 9}, {}, "exceeds param_bound"),
        ({"theta": lambda x: x[:1]}, {}, "theta: has shape"),
        ({"more": lambda x: np.zeros(2)}, {}, "tensor 'more' does not belong there"),
        ({}, {"n_states": 10**30}, "header has n_states"),
        ({}, {"horizon": 2**31 - 1}, "tensor 'stage_table' has shape (5,)"),
        ({}, {"shared_parameter": "yes"}, "header has shared_parameter"),
        ({}, {"param_bound": -1.0}, "header has param_bound"),
        ({}, {"more": 1}, "header entry 'more' does not belong there"),
    ],
)
def test_what_is_wrong_with_a_model_is_said(model, tensors, header, said):
    whole, _ = load_tensors(model, kind="mnlmdp")
    change(model, "mnlmdp", {name: f(whole.get(name)) for name, f in tensors.items()}, header)
    assert said in refused(livarot.MNLMDP.load, model)


def test_a_huge_file_is_refused_before_its_numbers_are_read(model):
    change(model, "mnlmdp", drop=["theta"])
    data = model.read_bytes()
    length = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + length])
    size = 3 * 2**30
    head["theta"] = {"dtype": "F64", "shape": [size // 8], "data_offsets": [0, size]}
    text = json.dumps(head).encode()
    with open(model, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + size)  # sparse: takes no space
    begin = time.perf_counter()
    assert "tensor 'theta' has shape" in refused(livarot.MNLMDP.load, model)
    assert time.perf_counter() - begin < 1.0


@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_every_kind_of_model_is_still_read(tmp_path, kind):
    for shared in (False, True):
        mdp = to_mdp(random_model(np.random.default_rng(3), d=5, kind=kind, one_table=shared), shared=shared)
        mdp.save(tmp_path / "model")
        assert livarot.MNLMDP.load(tmp_path / "model").problem.fingerprint == mdp.problem.fingerprint


def test_labels_survive_a_file(tmp_path):
    mdp = fitted(200).to_mdp({"new": 1.0}, 4, "new", unseen="sink")
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
AGENTS = [agents.Livarot(), agents.UCRLMNL(), agents.UCBVI(), agents.PSRL(), agents.RareSwitching(), agents.Uniform()]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("told", [True, False])
def test_the_state_of_another_problem_is_refused(tmp_path, agent, told):
    path = tmp_path / "state"
    for other in OTHERS:
        livarot.save_state(path, agent, agent.init(other.problem, 2), other.problem if told else None)
        with pytest.raises(LivarotError, match="another problem" if told else "does not hold what it should"):
            livarot.load_state(path, agent, MDP.problem)
        state = livarot.LearnState(agent.init(other.problem), 0, other.problem.fingerprint if told else None)
        with pytest.raises(LivarotError, match=r"^state: "):
            livarot.Online(agent, MDP.problem, state=state)


def test_a_problem_of_the_same_sizes_is_told_apart_by_its_fingerprint(tmp_path, caplog):
    other = livarot.MNLMDP.from_arrays(
        5, 4, 2, outcomes=MDP.problem.rows.outcomes, next_state=MDP.problem.rows.next_state,
        features=np.concatenate([MDP.problem.rows.features(p) for p in range(8)]), offset=MDP.problem.rows.offset,
        reward=MDP.problem.reward * 0.5, start=MDP.problem.start, theta=MDP.theta,
    )  # fmt: skip
    assert other.problem.fingerprint != MDP.problem.fingerprint
    agent, path = agents.Livarot(), tmp_path / "state"
    livarot.save_state(path, agent, agent.init(other.problem), other.problem)
    with pytest.raises(LivarotError, match=r"^problem: .* another problem"):
        livarot.load_state(path, agent, MDP.problem)
    livarot.save_state(path, agent, agent.init(other.problem))  # as earlier versions did
    with caplog.at_level("INFO"):
        livarot.load_state(path, agent, MDP.problem)
    assert "does not say which problem" in caplog.text


def test_fingerprints_are_of_the_content_only():
    again = envs.river_swim(4, 5)
    livarot.solve(again)
    assert again.problem.fingerprint == MDP.problem.fingerprint
    assert len({other.problem.fingerprint for other in OTHERS}) == len(OTHERS)


@pytest.mark.parametrize("state", [3, None, (1, 2, 3), agents.UCBVI().init(MDP.problem)])
def test_what_is_not_a_state_of_the_agent_is_refused(state):
    with pytest.raises(LivarotError, match=r"^state: "):
        livarot.Online(agents.Livarot(), MDP.problem, state=livarot.LearnState(state))
    if state is not None:
        with pytest.raises(LivarotError, match=r"^state: "):
            livarot.Online(agents.Livarot(), MDP.problem, state=state)
