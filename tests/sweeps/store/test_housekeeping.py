"""Stores as a whole: status, merge, and removing what nobody needs."""

import os

import pytest

from livarot import LivarotError
from livarot.sweeps.driver import sweep
from livarot.sweeps.store import housekeeping
from livarot.sweeps.store.store import Store
from tests.sweeps.conftest import EXPERIMENT


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


def test_status_looks_at_the_files_once(store, monkeypatch):
    store.sync()
    looked = []
    for name in ("scandir", "listdir"):
        read = getattr(os, name)
        monkeypatch.setattr(os, name, lambda path, read=read: looked.append(str(path)) or read(path))
    assert housekeeping.status(store).done == 20
    assert looked.count(str(store.path / "runs")) == 1


def test_a_run_in_the_index_under_a_cell_that_is_not_there(store):
    store.sync()
    store.index._connection.execute("UPDATE runs SET cell = 'x' WHERE seed = 1")
    assert housekeeping.status(store).done == 20
    assert [len(store.seeds(cell)) for cell in store.cells()] == [5, 5, 5, 5]


def test_gc_does_not_guess_what_a_damaged_spec_asked_for(store):
    (spec,) = (store.path / "specs").iterdir()
    text = spec.read_text()
    for damage in (text.replace('"seeds":5', '"seeds":1'), text[:-3], "[]"):
        spec.write_text(damage)
        with pytest.raises(LivarotError, match="is damaged: what it asked for is not known"):
            housekeeping.collect(store, unplanned=True)
        housekeeping.collect(store)
        assert len(store.stored()) == 20
    spec.write_text(text)
    assert housekeeping.collect(store, unplanned=True).files == 0


def test_files_that_are_not_notes_of_failures_are_left_out(store):
    for name, text in (("0" * 64, "[]"), ("1" * 64, "{}"), ("2" * 64, "{")):
        (store.path / "failed" / f"{name}.json").write_text(text)
    assert store.failures() == {}
    assert housekeeping.status(store).failed == 0
