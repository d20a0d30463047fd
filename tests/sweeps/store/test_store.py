"""The store: what is written comes back, damaged files are noticed and set aside, the index can be rebuilt."""

import os
import random
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

import livarot
from livarot import LivarotError
from livarot.running.result import COLUMNS
from livarot.sweeps.driver import sweep
from livarot.sweeps.store.records import Damaged
from livarot.sweeps.store.store import Store
from tests.support.stores import harm
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


# ---------------------------------------------------------------- damage


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


# ---------------------------------------------------------------- the whole store


def test_what_is_not_a_store_is_refused(tmp_path):
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
