"""A store may come from anybody: nothing outside of it is touched, and what a copy did not keep is made again."""

import os
import shutil

import pytest

from livarot import LivarotError
from livarot.report.read_runs import read_runs
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.spec import Experiment
from livarot.sweeps.store import housekeeping, tables
from livarot.sweeps.store.store import Store
from tests.sweeps.conftest import EXPERIMENT

FOLDERS = ("runs", "failed", "corrupt", "checkpoints", "specs", "drivers", "running")
OLD = 10**9  # seconds


@pytest.fixture
def precious(filled, tmp_path):
    """A folder of somebody else, with names of all kinds that a store deletes, writes or moves."""
    folder = tmp_path / "precious"
    shutil.copytree(filled / "runs", folder)  # runs of another store
    damaged = next(folder.glob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-9])
    cell = EXPERIMENT.cells()[0]
    names = ("a.json", "x.parquet", f"{cell.key[:32]}-0.safetensors", ".livarot-0.tmp", "0123.lock", ".0.new", "0.json")
    for name in (*names, f"{cell.run(0).key}.json"):
        (folder / name).write_text(name)
        os.utime(folder / name, (OLD, OLD))
    (folder / "thesis").mkdir()
    (folder / "thesis" / "text").write_text("years of work")
    return folder


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def replace_by_link(place, target):
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


MORE = EXPERIMENT.model_copy(update={"seeds": 6})
ACTIONS = {
    "sweep": lambda path, _: sweep(MORE, path, backend="sequential"),
    "status": lambda path, _: housekeeping.status(Store(path)),
    "gc": lambda path, _: housekeeping.collect(Store(path), unplanned=True),
    "export": lambda path, out: tables.export(Store(path), out / "all.csv"),
    "merge from": lambda path, out: housekeeping.merge(Store(out / "whole", create=True), [Store(path)]),
    "merge into": lambda path, out: housekeeping.merge(Store(path), [Store(out / "whole", create=True)]),
    "report": lambda path, _: read_runs(path),
    "index": lambda path, _: Store(path).rebuild(),
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_is_a_link_is_refused(store, precious, tmp_path, name, action):
    store.close()
    before = contents(precious)
    replace_by_link(store.path / name, precious)
    with pytest.raises(LivarotError, match=f"{name}' is a link"):
        ACTIONS[action](store.path, tmp_path)
    assert contents(precious) == before


@pytest.mark.parametrize("action", ["sweep", "status", "gc"])
@pytest.mark.parametrize("name", ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm", "livarot-store.json"])
def test_a_file_of_the_store_that_is_a_link_is_refused(store, tmp_path, name, action):
    store.close()
    target = tmp_path / "precious.sqlite"
    shutil.copy(store.path / ("livarot-store.json" if name.endswith("json") else "index.sqlite"), target)
    before = target.read_bytes()
    replace_by_link(store.path / name, target)
    with pytest.raises(LivarotError, match=f"{name}' is a link"):
        ACTIONS[action](store.path, tmp_path)
    assert target.read_bytes() == before


@pytest.mark.parametrize("name", ["runs", "failed", "corrupt", "checkpoints", "drivers", "running"])
def test_a_link_that_comes_when_the_store_is_open(store, precious, name):
    store.sync()
    before = contents(precious)
    replace_by_link(store.path / name, precious)
    with pytest.raises(LivarotError, match=f"{name}' is a link"):
        housekeeping.collect(store, unplanned=True)
    assert contents(precious) == before


def test_the_guard_of_a_store_is_not_a_link(store, tmp_path):
    target = tmp_path / "not there yet"
    replace_by_link(store.path / "drivers" / "guard", target)
    with pytest.raises(LivarotError, match="guard' is a link"):
        housekeeping.collect(store)
    assert not target.exists()


def test_links_in_the_folders_are_removed_and_not_followed(store, precious):
    before = contents(precious)
    (store.path / "running" / "0123456789abcdef").symlink_to(precious)
    (store.path / "corrupt" / "link").symlink_to(precious / "a.json")
    (store.path / "checkpoints" / f"{store.cells()[0].key[:32]}-0.safetensors").symlink_to(precious / "a.json")
    assert housekeeping.collect(store).files == 2
    assert not list((store.path / "running").iterdir())
    assert contents(precious) == before


def test_a_store_may_be_named_by_a_link(store, tmp_path):
    """That link is the user's choice, and not part of an archive."""
    store.close()
    (tmp_path / "name").symlink_to(store.path)
    for action in ("sweep", "status", "gc", "report"):
        ACTIONS[action](tmp_path / "name", tmp_path)


# ---------------------------------------------------------------- folders that are missing
@pytest.mark.parametrize("action", ACTIONS)
def test_empty_folders_that_a_copy_did_not_keep(store, tmp_path, action):
    store.close()
    for name in FOLDERS:
        if name not in ("runs", "specs"):
            shutil.rmtree(store.path / name)
    ACTIONS[action](store.path, tmp_path)
    with Store(store.path) as opened:
        assert housekeeping.status(opened).done >= 20


def test_a_damaged_file_is_set_aside_where_there_is_no_place_for_it(store):
    shutil.rmtree(store.path / "corrupt")
    path = next((store.path / "runs").glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-9])
    assert store.sync(verify=True).damaged == 1
    assert [p.name[:64] for p in (store.path / "corrupt").iterdir()] == [path.stem]


def test_folders_that_vanish_in_the_middle_of_a_sweep(filled, tmp_path):
    """With failures to note, checkpoints to write and runs to store, after each task."""
    experiment = Experiment(**EXPERIMENT.model_dump() | {"name": "other"})

    def tidy(_):
        for name in ("failed", "corrupt", "checkpoints", "running", "specs"):
            shutil.rmtree(tmp_path / "store" / name, ignore_errors=True)

    report = sweep(experiment, tmp_path / "store", backend="sequential", group=2, checkpoint_episodes=7, observer=tidy)
    assert (report.done, report.failed) == (20, {})
    files = {path.name: path.read_bytes() for path in (filled / "runs").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "store" / "runs").iterdir()} == files
