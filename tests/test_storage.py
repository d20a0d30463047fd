"""What was written is read back exactly; what was damaged, cut, renamed or made by others is refused."""

import hashlib
import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open
from safetensors.numpy import save as encode

from livarot import storage
from livarot.errors import LivarotError
from livarot.storage import load_tensors, save_tensors

DTYPES = [np.float64, np.int32, np.int64, np.bool_]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def sample() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "theta": rng.normal(size=(3, 4)),
        "next_state": rng.integers(0, 9, size=7, dtype=np.int32),
        "row_start": np.arange(5, dtype=np.int64),
        "covered": np.array([[True, False, True]]),
        "scalar": np.array(2.5),
        "empty": np.zeros((0, 4)),
    }


HEADER = {"horizon": 3, "note": 'η = 1e-5, "quoted" \\ \n \x1f', "nested": {"a": [1, 2.5e-07, None, True]}}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.livarot"
    save_tensors(path, sample(), kind="mdp", header=HEADER)
    return path


def refused(path, kind="mdp") -> str:
    """The message of the refusal, which must be one line and of bounded length."""
    with pytest.raises(LivarotError) as caught:
        load_tensors(path, kind=kind)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 600 + len(str(path))
    return message


def with_metadata(path, change, tensors=None) -> None:
    """Write a well-formed file, the sample's unless `tensors` are given, with the fields of `change`."""
    fields = {"digest": "0" * 64, "header": {}, "kind": "mdp", "schema": storage.SCHEMA, "version": "0"}
    text = json.dumps(fields | change, sort_keys=True, separators=(",", ":"))
    path.write_bytes(encode(tensors or sample(), metadata={"livarot": text}))


def flips_are_detected(path, bits) -> None:
    whole = path.read_bytes()
    for bit in bits:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(damaged)
        refused(path)


# Round trips


def test_what_is_saved_is_loaded(saved):
    tensors, header = load_tensors(saved, kind="mdp")
    assert header == HEADER
    assert list(tensors) == sorted(sample())
    for name, array in sample().items():
        assert tensors[name].dtype == array.dtype
        assert tensors[name].shape == array.shape
        assert tensors[name].tobytes() == array.tobytes()
        assert tensors[name].flags.writeable
        assert tensors[name].flags.c_contiguous


@settings(max_examples=60, deadline=None)
@given(
    tensors=st.dictionaries(
        st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8),
        st.sampled_from(DTYPES).flatmap(lambda t: hnp.arrays(t, hnp.array_shapes(min_dims=0, min_side=0))),
        max_size=4,
    ),
    header=st.dictionaries(st.text(), JSON, max_size=4),
)
def test_any_content_survives(tmp_path_factory, tensors, header):
    path = tmp_path_factory.mktemp("any") / "x"
    save_tensors(path, tensors, kind="any", header=header)
    loaded, read = load_tensors(path, kind="any")
    assert read == header
    assert loaded.keys() == tensors.keys()
    for name in tensors:
        np.testing.assert_array_equal(loaded[name], tensors[name], strict=True)
        assert loaded[name].tobytes() == tensors[name].tobytes()  # -0.0 and the payload of a NaN too


def test_the_bytes_depend_on_the_content_only(tmp_path, saved):
    tensors = sample()
    tensors["theta"] = np.asfortranarray(tensors["theta"])
    tensors["row_start"] = np.repeat(tensors["row_start"], 2)[::2].astype(">i8")
    again = dict(reversed(tensors.items()))
    save_tensors(tmp_path / "again", again, kind="mdp", header=dict(reversed(HEADER.items())))
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_the_bytes_are_the_same_in_another_process(tmp_path, saved):
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); import test_storage as t; "
        "t.save_tensors(sys.argv[1], t.sample(), kind='mdp', header=t.HEADER)"
    )
    for seed in ("1", "2"):
        command = [sys.executable, "-c", code, str(tmp_path / seed), os.path.dirname(__file__)]
        subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": seed})
        assert (tmp_path / seed).read_bytes() == saved.read_bytes()


def test_the_file_is_plain_safetensors(saved):
    with safe_open(saved, framework="np") as file:
        assert list(file.metadata()) == ["livarot"]
        np.testing.assert_array_equal(file.get_tensor("theta"), sample()["theta"])


# Damage


def test_random_bit_flips_in_a_larger_file_are_all_detected(tmp_path):
    path = tmp_path / "larger"
    large = {"values": np.random.default_rng(1).normal(size=(100, 50)), "seen": np.ones(500, dtype=bool)}
    save_tensors(path, sample() | large, kind="mdp", header=HEADER)
    flips_are_detected(path, random.Random(20).sample(range(8 * path.stat().st_size), 200))


@pytest.mark.slow
def test_every_bit_flip_is_detected(saved):
    flips_are_detected(saved, range(8 * saved.stat().st_size))


def test_every_truncation_and_every_appendix_is_detected(saved):
    whole = saved.read_bytes()
    for length in range(len(whole)):
        saved.write_bytes(whole[:length])
        refused(saved)
    for appendix in (b"\0", b" ", whole):
        saved.write_bytes(whole + appendix)
        refused(saved)


def test_zeroed_and_shuffled_blocks_are_detected(saved):
    whole = saved.read_bytes()
    draw = random.Random(21)
    for _ in range(100):
        start = draw.randrange(len(whole) - 16)
        for block in (bytes(16), draw.randbytes(16)):
            saved.write_bytes(whole[:start] + block + whole[start + 16 :])
            if saved.read_bytes() != whole:
                refused(saved)


def test_garbage_is_refused(tmp_path):
    path = tmp_path / "garbage"
    draw = random.Random(22)
    head = b'{"__metadata__":{"livarot":"%s"}}'
    texts = [
        b"",
        b"[" * 10**5,
        b'{\\"a\\":' * 10**4,
        b"9" * 10**5,
        b"NaN",
        b'{\\"kind\\":1,\\"kind\\":2}',
        b"\xff",
    ]
    contents = [len(h := head % text).to_bytes(8, "little") + h for text in texts]
    contents += [len(h).to_bytes(8, "little") + h for h in (b"[]", b"null", b"{}", b"[" * 10**5, b"\xff")]
    contents += [draw.randbytes(draw.randrange(200)) for _ in range(200)]
    contents += [b"PK\x03\x04" + bytes(100), b"\x80\x04\x95" + bytes(100), b"\x93NUMPY" + bytes(100)]
    for content in contents:
        path.write_bytes(content)
        refused(path)


@pytest.mark.parametrize(
    "value", ["1e999", "-1e999", '"\\ud800"', "[" * 800 + "]" * 800, "1.50", "1E5", "[ ]", "0" * 9]
)
@pytest.mark.parametrize("field", ["header", "kind", "version", "digest"])
def test_json_that_livarot_never_writes_is_refused(tmp_path, field, value):
    path = tmp_path / "x"
    fields = {"digest": '""', "header": "{}", "kind": '"mdp"', "schema": "1", "version": '"0"'} | {field: value}
    text = "{" + ",".join(f'"{key}":{fields[key]}' for key in sorted(fields)) + "}"
    head = json.dumps({"__metadata__": {"livarot": text}}).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head)
    refused(path)


def test_a_long_wrong_name_makes_a_short_message(tmp_path, saved):
    whole = saved.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    head = json.loads(whole[8 : 8 + length])
    head["n" * 10**5] = {"dtype": "F64", "shape": [3], "data_offsets": [0, 8]}
    text = json.dumps(head).encode()
    saved.write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + length :])
    refused(saved)


def test_a_plain_safetensors_file_is_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    for metadata in (None, {}, {"format": "np"}):
        path.write_bytes(encode(sample(), metadata=metadata))
        assert "not written by livarot" in refused(path)


def test_types_that_are_not_ours_are_refused(tmp_path):
    with_metadata(tmp_path / "x", {}, {"a": np.zeros(3, np.float32)})
    assert "type that livarot does not write" in refused(tmp_path / "x")


def test_a_truth_value_is_zero_or_one(tmp_path):
    path = tmp_path / "x"
    save_tensors(path, {"a": np.array([2, 1], np.uint8).view(np.bool_)}, kind="mdp", header={})
    assert "neither 0 nor 1" in refused(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "agent"}, "holds 'agent', not 'mdp'"),
        ({"schema": 2, "version": "9.1"}, "schema 2, written by livarot '9.1'"),
        ({"schema": 0}, "is damaged"),
        ({"schema": True}, "is damaged"),
        ({"schema": "1"}, "is damaged"),
        ({"header": []}, "is damaged"),
        ({"digest": None}, "does not match its SHA-256"),
        ({"extra": 1}, "is damaged"),
        ({}, "does not match its SHA-256"),
    ],
)
def test_wrong_metadata_is_named(tmp_path, change, message):
    path = tmp_path / "x"
    with_metadata(path, change)
    assert message in refused(path)


def test_a_newer_schema_says_upgrade(tmp_path):
    with_metadata(tmp_path / "x", {"schema": 7})
    assert refused(tmp_path / "x").endswith("; upgrade livarot")


def test_what_is_not_a_file_is_refused_at_once(tmp_path):
    assert "there is no file" in refused(tmp_path / "missing")
    assert "is not a file" in refused(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "is not a file" in refused(tmp_path / "pipe")
    assert "is not a file" in refused("/dev/zero")
    (tmp_path / "file").touch()
    assert "cannot read" in refused(tmp_path / "file" / "x")
    assert "cannot read" in refused(tmp_path / ("n" * 300))
    assert "null character" in refused("a\0b")
    assert "must be a path" in refused(3)


def test_limits_hold_before_anything_is_read(tmp_path):
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(storage.MAX_FILE_BYTES + 1)  # sparse: takes no space
    assert "the limit is" in refused(tmp_path / "huge")
    with open(tmp_path / "head", "wb") as file:
        file.write((storage.MAX_HEAD_BYTES + 1).to_bytes(8, "little"))
        file.truncate(10 * storage.MAX_HEAD_BYTES)
    assert "its head would have 1000001 bytes" in refused(tmp_path / "head")


# What is not written


@pytest.mark.parametrize(
    "header",
    [
        {"x": float("nan")},
        {"x": float("inf")},
        {"x": (1, 2)},
        {1: "x"},
        {"x": {2: 3}},
        {"x": object()},
        {"x": np.arange(3)},
        {"x": "\ud800"},
        {"x": "y" * 10**6},
        [1, 2],
        None,
    ],
)
def test_a_header_that_would_not_come_back_is_refused(tmp_path, header):
    with pytest.raises(LivarotError, match=r"^header: "):
        save_tensors(tmp_path / "x", {}, kind="mdp", header=header)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "tensors",
    [
        {"a": np.zeros(3, np.float32)},
        {"a": np.zeros(3, np.complex128)},
        {"a": np.array([object()])},
        {"a": np.array(["x"])},
        {"a": [1.0]},
        {"": np.zeros(3)},
        {"__metadata__": np.zeros(3)},
        {"a\n": np.zeros(3)},
        {1: np.zeros(3)},
        {"a": np.broadcast_to(np.zeros(1), (2**29,))},  # 4 GiB, if it were copied first
    ],
)
def test_tensors_that_cannot_be_stored_are_refused(tmp_path, tensors):
    with pytest.raises(LivarotError, match=r"^tensors: "):
        save_tensors(tmp_path / "x", tensors, kind="mdp", header={})
    assert os.listdir(tmp_path) == []


def test_a_head_too_long_to_load_is_not_written(tmp_path):
    tensors = {f"{i:0200d}": np.zeros(1) for i in range(5000)}
    with pytest.raises(LivarotError, match="the limit is 1000000"):
        save_tensors(tmp_path / "x", tensors, kind="mdp", header={})


def test_inputs_are_left_alone(tmp_path):
    tensors, header = sample(), json.loads(json.dumps(HEADER))
    for array in tensors.values():
        array.flags.writeable = False
    save_tensors(tmp_path / "x", tensors, kind="mdp", header=header)
    assert header == HEADER
    assert list(tensors) == list(sample())


def test_the_digest_is_of_the_written_content(saved):
    """The layout in the module's text, computed from it afresh."""
    with safe_open(saved, framework="np") as file:
        fields = json.loads(file.metadata()["livarot"])
    digest = fields.pop("digest")

    def canonical(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    content = canonical(fields).encode()
    for name, array in sorted(sample().items()):
        content += f"\n{canonical([name, str(array.dtype), list(array.shape)])}\n".encode() + array.tobytes()
    assert digest == hashlib.sha256(content).hexdigest()
