"""The file of a run: equal runs give equal bytes, and every damage is noticed."""

import hashlib
import math
import os
import random
import struct

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from livarot import LivarotError
from livarot.running.result import COLUMNS
from livarot.sweeps.experiment.keys import Cell, canonical, digest
from livarot.sweeps.store import housekeeping, records
from livarot.sweeps.store.records import decode, encode, encode_block, read_head, summaries_of, summary_of
from tests.support.stores import harm


@pytest.mark.parametrize("words", [0, 1, 3])
@pytest.mark.parametrize("episodes", [1, 9, 3000, 50_000])
def test_files_made_together_are_those_made_alone(tmp_path, episodes, words):
    """Every number comes back, whatever is missing, and a run's bytes do not depend on the runs written with it."""
    draw = np.random.default_rng(episodes)
    cell = Cell.of("hard-chain", {"horizon": 3, "gap": 0.1}, "uniform", {}, episodes)
    holes = np.array([[0.0], [0.5], [1.0], [0.0], [0.5]])
    runs = [cell.run(seed) for seed in range(len(holes))]
    columns = {name: draw.normal(size=(len(runs), episodes)) ** 2 for name in COLUMNS}
    for name in ("optimism_gap", "inner_gap", "covered"):
        columns[name][draw.random((len(runs), episodes)) < holes] = -np.nan
    bits = draw.integers(-(2**31), 2**31, (len(runs), episodes, words)).astype(np.int32)
    summaries = summaries_of(columns)
    together = encode_block(runs, columns, bits, summaries)
    for row, (run, data) in enumerate(zip(runs, together, strict=True)):
        own = {name: column[row].copy() for name, column in columns.items()}
        assert summaries[row] == summary_of(own)
        assert data == encode(run, own, bits[row])
        record = decode(tmp_path / "x", data)
        assert (record.run, record.summary) == (run, summaries[row])
        assert all(np.array_equal(record.columns[name], own[name], equal_nan=True) for name in COLUMNS)
        assert np.array_equal(record.bits, bits[row, :, :0] if np.isnan(own["covered"]).all() else bits[row])
    assert encode_block([], columns, bits, []) == []


@given(
    runs=st.integers(1, 70), episodes=st.integers(1, 700), seed=st.integers(0, 99), holes=st.sampled_from([0.0, 0.3])
)
def test_totals_of_a_run_do_not_depend_on_its_company(runs, episodes, seed, holes):
    draw = np.random.default_rng(seed)
    columns = {name: draw.normal(size=(runs, episodes)) ** 2 for name in COLUMNS}
    columns["inner_gap"][draw.random((runs, episodes)) < holes] = np.nan
    for row, found in enumerate(summaries_of(columns)):
        one = {name: column[row].copy() for name, column in columns.items()}
        gaps = one["inner_gap"][~np.isnan(one["inner_gap"])]
        assert found == {
            "covered": one["covered"].mean(),
            "inner_gap": gaps.max() if len(gaps) else None,
            "optimism_gap": one["optimism_gap"].min(),
            "realised_regret": one["realised_regret"].sum(),
            "regret": one["regret"].sum(),
            "sigma_bar": math.sqrt(one["variance"].mean()),
        }


def test_the_digest_is_that_of_every_number(filled):
    """Loop by loop from what any reader sees: names, little-endian numbers, one NaN for what is missing, bits."""
    for path in (filled / "runs").glob("*.parquet"):
        table, total = pq.read_table(path), hashlib.sha256()
        for name in COLUMNS:
            values = [math.nan if value is None else value for value in table[name].to_pylist()]
            total.update(f"{name}\n".encode() + struct.pack(f"<{len(values)}d", *values))
        for name in table.column_names[1 + len(COLUMNS) :]:
            total.update(b"stages\n" + struct.pack(f"<{table.num_rows}i", *table[name].to_pylist()))
        assert read_head(path)["columns"] == total.hexdigest()


def test_any_parquet_reader_can_read_a_run(filled):
    table = pq.read_table(next((filled / "runs").glob("*.parquet")))
    assert table.column_names[:4] == ["episode", "regret", "realised_regret", "variance"]
    assert table.num_rows == 30


def test_equal_runs_have_equal_bytes():
    cell = Cell.of("hard-chain", {"horizon": 3, "gap": 0.1}, "livarot", {}, 20)
    from livarot.running.loop import STAGES, Replicas

    files = []
    for seeds in ([4], [1, 4], [4, 7, 9]):
        mdp = cell.model()
        replicas = Replicas([mdp], cell.learner(mdp), 20, seeds)
        replicas.advance(20)
        found = {name: column[seeds.index(4)] for name, column in replicas.found().items()}
        files.append(encode(cell.run(4), found, found[STAGES]))
    assert files[0] == files[1] == files[2]


def test_three_hundred_damages_none_silent(filled, tmp_path):
    """Bit flips, cuts, zeroed blocks: refused, or no number has changed (a flip in an unused byte)."""
    path = sorted((filled / "runs").glob("*.parquet"))[0]
    whole, right = path.read_bytes(), decode(path)
    draw = random.Random(7)
    refused = 0
    for trial in range(300):
        data = harm(whole, draw, trial % 5)
        if data == whole:
            continue
        victim = tmp_path / path.name
        victim.write_bytes(data)
        try:
            found = decode(victim)
        except LivarotError:
            refused += 1
            continue
        assert found.run == right.run
        assert found.provenance == right.provenance and found.summary == right.summary
        assert found.bits.tobytes() == right.bits.tobytes()
        assert all(found.columns[name].tobytes() == right.columns[name].tobytes() for name in COLUMNS)
    assert refused > 250


def test_other_bytes_than_the_index_knows_are_damage(store):
    """A flip in a place that no reader looks at: the numbers are right, but the file is not what was written."""
    store.sync()
    path = next((store.path / "runs").iterdir())
    whole, accepted = path.read_bytes(), 0
    for place in range(len(whole) - 40, len(whole) - 8):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            decode(path)
        except LivarotError:
            continue
        accepted += 1
        os.utime(path, ns=(0, 0))
        assert store.sync(verify=True).damaged == 1
        assert not path.exists()
        store.sync()
        path.write_bytes(whole)
        assert store.sync(verify=True).added == 1
    assert accepted  # there are such places


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("summary", {}),
        ("summary", []),
        ("words", -1),
        ("words", "1"),
        ("content", {}),
        ("provenance", 3),
        ("file", "x"),
    ],
)
def test_forged_heads_are_damage(store, monkeypatch, part, value):
    """The digest is right, the content is not."""
    key = next(iter(store.stored()))
    record = store.read(key)

    def forged(run, columns, summary, words, made_by):
        head = {"columns": columns, "content": run.cell.content(run.seed), "file": 1, "words": words}
        head |= {"provenance": record.provenance, "summary": summary, part: value}
        return canonical(head | {"digest": digest(head)})

    monkeypatch.setattr(records, "_head_text", forged)
    store.run_path(key).write_bytes(encode(record.run, record.columns, record.bits))
    monkeypatch.undo()
    assert store.sync(verify=True).damaged == 1
    assert housekeeping.status(store).done == 19
