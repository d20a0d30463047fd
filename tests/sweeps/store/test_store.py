"""The store: what is written comes back, damaged files are noticed and set aside, the index can be rebuilt."""

import hashlib
import math
import os
import random
import shutil
import sqlite3
import struct

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import livarot
from livarot import LivarotError
from livarot.running.result import COLUMNS
from livarot.sweeps.driver import sweep
from livarot.sweeps.keys import Cell
from livarot.sweeps.store import housekeeping
from livarot.sweeps.store.provenance import provenance
from livarot.sweeps.store.records import Damaged, decode, encode, encode_block, read_head, summaries_of, summary_of
from livarot.sweeps.store.store import Store
from tests.sweeps.conftest import EXPERIMENT


def numbers(store):
    return {cell.key: store.result(cell) for cell in store.cells()}


def test_what_comes_back_is_what_run_gives(filled):
    with Store(filled) as store:
        assert len(store.cells()) == 4
        for cell, result in store.results():
            mdp = cell.model()
            wanted = livarot.run(mdp, cell.learner(mdp), 30, seed=range(5))
            assert result.seeds.tolist() == list(range(5))
            assert (result.agent, result.settings, result.horizon) == (wanted.agent, wanted.settings, wanted.horizon)
            assert result.facts == wanted.facts
            for name in COLUMNS:
                assert np.array_equal(result.columns[name].filled(np.nan), wanted.columns[name].filled(np.nan), True)
                assert np.array_equal(
                    np.ma.getmaskarray(result.columns[name]), np.ma.getmaskarray(wanted.columns[name])
                )
            assert (result.stage_bits is None) == (wanted.stage_bits is None)
            if wanted.stage_bits is not None:
                assert np.array_equal(result.stage_bits, wanted.stage_bits)


def test_the_table(filled):
    with Store(filled) as store:
        table = store.table()
        assert len(table) == 20
        row = table[(table.agent == "livarot") & (table.seed == 2)].iloc[0]
        record = store.read(row.key)
        assert row.regret == record.columns["regret"].sum()
        assert row.sigma_bar == np.sqrt(record.columns["variance"].mean())
        assert (table.seconds > 0).all()
        assert table[table.agent == "uniform"].covered.isna().all()


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


def test_provenance_says_what_and_not_where(filled):
    import getpass
    import socket

    head = read_head(next((filled / "runs").glob("*.parquet")))
    assert head["provenance"] == provenance()
    text = str(head)
    for private in (socket.gethostname(), os.path.expanduser("~"), os.getcwd(), str(filled)):
        assert private not in text
    assert f"'{getpass.getuser()}'" not in text
    assert head["content"]["environment"]["settings"]["gap"] == 0.1


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


# ---------------------------------------------------------------- damage
def harm(data, draw, kind):
    data = bytearray(data)
    if kind == 0:
        del data[draw.randrange(len(data)) :]
    elif kind == 1:
        first = draw.randrange(len(data))
        data[first : first + 64] = bytes(len(data[first : first + 64]))
    else:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(data)


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


def test_a_damaged_file_is_set_aside_and_only_its_run_repeated(store):
    before = {p.name: p.read_bytes() for p in (store.path / "runs").glob("*.parquet")}
    draw = random.Random(3)
    hurt = draw.sample(sorted(before), 3)
    for kind, name in enumerate(hurt):
        path = store.path / "runs" / name
        stat = path.stat()
        path.write_bytes(harm(before[name], draw, kind))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # a bad disk does not change the date
    report = sweep(EXPERIMENT, store.path, backend="sequential")
    assert (report.before, report.done) == (17, 3)
    assert {p.name: p.read_bytes() for p in (store.path / "runs").glob("*.parquet")} == before
    assert {p.name[:64] for p in (store.path / "corrupt").iterdir()} == {name[:64] for name in hurt}


def test_reading_a_damaged_run_refuses_it(store):
    cell = store.cells()[0]
    path = store.run_path(cell.run(0).key)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(Damaged, match="is damaged"):
        store.result(cell)
    assert not path.exists()
    assert store.result(cell).seeds.tolist() == [1, 2, 3, 4]


def test_a_run_under_another_s_name_is_damage(store):
    one, two = (store.run_path(store.cells()[0].run(seed).key) for seed in (0, 1))
    shutil.copy(one, two)
    with pytest.raises(Damaged, match="another run"):
        store.read(two.stem)


def test_hostile_files_are_refused(store, tmp_path):
    """Foreign files, a bomb, a head of another version, strange names: one line each, and nothing else happens."""
    import pyarrow as pa

    path = store.run_path("0" * 64)
    for data in (b"", b"PAR1", b"PAR1" * 100, os.urandom(1000), b"PAR1" + b"\xff" * 100 + b"\xff\xff\xff\x7fPAR1"):
        path.write_bytes(data)
        with pytest.raises(LivarotError):
            store.read("0" * 64)
        assert not path.exists()
    bomb = pa.table({"episode": pa.array(np.zeros(3_000_000, dtype=np.int32))})
    pq.write_table(bomb, path, compression="zstd")
    with pytest.raises(LivarotError):
        store.read("0" * 64)
    for name in ("x.parquet", "../x.parquet", ".hidden.parquet", "A" * 64 + ".parquet"):
        assert name not in store.stored()


# ---------------------------------------------------------------- the index
def test_the_index_can_be_made_again(store):
    before = store.table().drop(columns=["seconds", "finished"])
    store.close()
    for path in store.path.glob("index.sqlite*"):
        path.unlink()
    assert store.sync().added == 20
    assert store.table().drop(columns=["seconds", "finished"]).equals(before)
    assert store.rebuild().added == 20


def test_a_damaged_index_is_made_again(store):
    """Whatever is flipped in it, the table is right."""
    wanted = store.table().drop(columns=["seconds", "finished"])
    store.index._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    path = store.path / "index.sqlite"
    whole = path.read_bytes()
    draw = random.Random(5)
    for trial in range(60):
        for extra in store.path.glob("index.sqlite-*"):
            extra.unlink()
        path.write_bytes(harm(whole, draw, trial % 5))
        found = store.table().drop(columns=["seconds", "finished"])
        assert found.equals(wanted)
        store.close()


def test_without_sqlite_the_files_answer(store, monkeypatch):
    """A folder where the index cannot be written: it is kept in memory."""
    from livarot.sweeps.store import index

    store.close()
    connect = sqlite3.connect

    def refuse(path, **options):
        if str(path) != ":memory:":
            raise sqlite3.OperationalError("unable to open database file")
        return connect(path, **options)

    monkeypatch.setattr(index.sqlite3, "connect", refuse)
    assert len(store.table()) == 20
    assert sweep(EXPERIMENT, store.path, backend="sequential").before == 20


def test_a_row_changed_by_hand_is_noticed(store):
    store.close()
    with sqlite3.connect(store.path / "index.sqlite") as connection:
        connection.execute("UPDATE runs SET regret = 0 WHERE seed = 1")
    connection.close()
    table = store.table()
    assert (table.regret > 0).all()
    assert table.seconds.isna().all()  # rebuilt from the files


# ---------------------------------------------------------------- the whole store
def test_status_counts(store):
    found = housekeeping.status(store)
    assert (found.planned, found.done, found.failed, found.damaged, found.drivers) == (20, 20, 0, 0, 0)
    store.run_path(store.cells()[0].run(0).key).unlink()
    found = housekeeping.status(store)
    assert (found.planned, found.done) == (20, 19)
    larger = EXPERIMENT.model_copy(update={"seeds": 7})
    store.add_spec(larger)
    assert housekeeping.status(store).planned == 28


def test_merge_takes_what_is_missing_and_refuses_contradictions(filled, tmp_path):
    parts = [Store(tmp_path / name, create=True) for name in ("one", "two")]
    for part, shard in zip(parts, ((1, 2), (2, 2)), strict=True):
        sweep(EXPERIMENT, part.path, backend="sequential", shard=shard)
    with Store(tmp_path / "whole", create=True) as whole:
        assert housekeeping.merge(whole, parts) == 20
        assert housekeeping.merge(whole, parts) == 0
        wanted = {p.name: p.read_bytes() for p in (filled / "runs").glob("*.parquet")}
        assert {p.name: p.read_bytes() for p in (whole.path / "runs").glob("*.parquet")} == wanted
        assert [spec.key for spec in whole.specs()] == [EXPERIMENT.key]
        with pytest.raises(LivarotError, match="into itself"):
            housekeeping.merge(whole, [Store(whole.path)])
        key = next(iter(whole.stored()))
        record = whole.read(key)
        changed = {name: column + 1.0 for name, column in record.columns.items()}
        run = next(run for run in EXPERIMENT.runs() if run.key == key)
        Store(parts[0].path).put(run, changed, record.bits)
        with pytest.raises(LivarotError, match="other numbers"):
            housekeeping.merge(whole, [Store(parts[0].path)])


@pytest.mark.parametrize("name", ["all.parquet", "all.CSV"])
def test_export(store, tmp_path, name):
    import pandas as pd

    assert housekeeping.export(store, tmp_path / name) == (600, [])
    table = pd.read_parquet(tmp_path / name) if name.endswith("parquet") else pd.read_csv(tmp_path / name)
    assert len(table) == 600
    one = table[(table.agent == "livarot") & (table.seed == 1) & table.environment_settings.str.contains('"horizon":4')]
    assert np.array_equal(one.episode, np.arange(1, 31))
    cell = next(c for c in store.cells() if c.agent == "livarot" and c.environment_settings["horizon"] == 4)
    assert np.array_equal(one.regret, store.result(cell, [1]).regret[0])
    assert table[table.agent == "uniform"].covered.isna().all()
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == [name]
    with pytest.raises(LivarotError, match="neither"):
        housekeeping.export(store, tmp_path / "all.xls")


def test_gc_removes_what_nobody_needs(store):
    (store.path / "corrupt" / "x.parquet").write_bytes(b"123")
    (store.path / "runs" / ".livarot-0.tmp").write_bytes(b"12345")
    (store.path / "checkpoints" / f"{store.cells()[0].key[:32]}-0.safetensors").write_bytes(b"1")
    assert housekeeping.collect(store, dry_run=True) == (3, 9)
    assert housekeeping.collect(store) == (3, 9)
    assert housekeeping.collect(store) == (0, 0)
    spec = next((store.path / "specs").iterdir())
    spec.unlink()
    store.add_spec(EXPERIMENT.model_copy(update={"seeds": 3}))
    assert housekeeping.collect(store, unplanned=True).files == 8
    assert len(store.stored()) == 12


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(LivarotError, match="is not a store"):
        Store(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(LivarotError, match="cannot make"):
        Store(tmp_path / "file" / "store", create=True)
    with pytest.raises(LivarotError, match=r"is not a store and not empty \('file' is there\)"):
        Store(tmp_path, create=True)
    with pytest.raises(LivarotError, match="is empty"):
        Store("", create=True)
    store = tmp_path / "store"
    store.mkdir()
    (store / "runs").mkdir()  # a process died while creating it
    (store / ".hidden").write_text("x")
    Store(store, create=True).close()
    (store / "livarot-store.json").write_text('{"schema": 99}')
    with pytest.raises(LivarotError, match="upgrade"):
        Store(store)


def test_status_looks_at_the_files_once(store, monkeypatch):
    store.sync()
    looked = []
    for name in ("scandir", "listdir"):
        read = getattr(os, name)
        monkeypatch.setattr(os, name, lambda path, read=read: looked.append(str(path)) or read(path))
    assert housekeeping.status(store).done == 20
    assert looked.count(str(store.path / "runs")) == 1


def test_a_row_changed_by_hand_is_noticed_whoever_reads_it(store):
    """Also by readers of one cell, which do not look at the files."""
    cell = store.cells()[0]
    store.index._connection.execute("UPDATE runs SET seed = seed + 10 WHERE seed = 1")
    assert store.seeds(cell) == [0, 1, 2, 3, 4]


def test_a_run_in_the_index_under_a_cell_that_is_not_there(store):
    store.sync()
    store.index._connection.execute("UPDATE runs SET cell = 'x' WHERE seed = 1")
    assert housekeeping.status(store).done == 20
    assert [len(store.seeds(cell)) for cell in store.cells()] == [5, 5, 5, 5]
