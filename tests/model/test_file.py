"""Models in files."""

import json
import time

import numpy as np
import pytest

import livarot
from livarot import MNLMDP, LivarotError, envs
from livarot.storage import load_tensors
from tests.support.altered import change, refused
from tests.support.models import assert_same_problem, random_model, to_mdp


@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_a_model_comes_back_from_its_file_bit_for_bit(tmp_path, kind):
    model = random_model(np.random.default_rng(11), d=6, kind=kind, offsets=True)
    mdp = to_mdp(model, shared=kind == "partial", param_bound=9.0, normalise=kind == "dense")
    path = tmp_path / "model.safetensors"
    mdp.save(path)
    again = MNLMDP.load(path)
    assert_same_problem(mdp, again)
    assert again.problem._header() == mdp.problem._header()
    for name, array in mdp.problem._tensors().items():
        assert again.problem._tensors()[name].tobytes() == array.tobytes(), name
    other = tmp_path / "again.safetensors"
    again.save(other)
    assert other.read_bytes() == path.read_bytes()
    np.testing.assert_array_equal(livarot.solve(again).q, livarot.solve(mdp).q)


def test_a_damaged_file_is_refused(tmp_path):
    mdp = livarot.envs.river_swim(4, 3)
    path = tmp_path / "model.safetensors"
    mdp.save(path)
    whole = path.read_bytes()
    for damage in (whole[:-8], whole[:100], b"", whole[:-1] + bytes([whole[-1] ^ 1]), b"x" * len(whole)):
        path.write_bytes(damage)
        with pytest.raises(LivarotError) as caught:
            MNLMDP.load(path)
        assert caught.value.argument == "path"
    result = tmp_path / "run.safetensors"
    livarot.run(mdp, livarot.agents.Uniform(), 2).save(result)
    with pytest.raises(LivarotError, match="not 'mnlmdp'"):
        MNLMDP.load(result)
    with pytest.raises(LivarotError):
        MNLMDP.load(tmp_path / "absent.safetensors")


MDP = envs.river_swim(4, 5)


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
