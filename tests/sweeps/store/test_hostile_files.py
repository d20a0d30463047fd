"""Files in a store that livarot did not write: named or set aside, never waited for, never read without bounds."""

import json
import os
import shutil
import time

import pytest

from livarot import LivarotError
from livarot.report.read_runs import read_runs
from livarot.storage import load_tensors, save_tensors
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.keys import canonical
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store import housekeeping, tables
from livarot.sweeps.store.index import DriverLock
from livarot.sweeps.store.store import Store
from tests.sweeps.conftest import EXPERIMENT

KEY = "0" * 64


def deep(path):
    path.write_text("[" * 100_000 + "]" * 100_000)


def deep_in_a_note(path):
    path.write_text('{"attempts": 1, "traceback": "", "content": ' + '{"a":' * 50_000 + "0" + "}" * 50_000 + "}")


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def terminal(path):
    path.symlink_to("/dev/tty")


def dangling(path):
    path.symlink_to("nowhere")


def huge(path):
    path.touch()
    os.truncate(path, 1 << 40)


def folder(path):
    path.mkdir()


def noise(path):
    path.write_bytes(bytes(range(256)) * 10)


FORMS = [deep, deep_in_a_note, pipe, device, terminal, dangling, huge, folder, noise]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@pytest.mark.parametrize(
    "name", [f"specs/{KEY}.json", f"failed/{KEY}.json", f"runs/{KEY}.parquet", "corrupt/x", "checkpoints/{}"]
)
def test_a_hostile_file_changes_nothing(store, tmp_path, name, form):
    cell = store.cells()[0]
    form(store.path / name.format(f"{cell.key[:32]}-0.safetensors"))
    store.run_path(cell.run(0).key).unlink()  # so that there is something to do
    assert len(read_runs(store).runs) == 4
    found = housekeeping.status(store, verify=True)
    assert (found.planned, found.done, found.failed) == (20, 19, 0)
    assert tables.export(store, tmp_path / "all.csv").rows == 570
    report = sweep(EXPERIMENT, store.path, backend="sequential")
    assert (report.before, report.done) == (19, 1)
    housekeeping.collect(store)
    assert housekeeping.status(store).done == 20


@pytest.mark.timeout(60)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_hostile_marker_is_refused(store, form):
    store.close()
    (store.path / "livarot-store.json").unlink()
    form(store.path / "livarot-store.json")
    for create in (False, True):
        with pytest.raises(LivarotError, match=r"not a store|cannot be read|is a link|is not a file"):
            Store(store.path, create=create)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_hostile_notes_of_running_tasks(store, form):
    lock = DriverLock(store.path / "drivers")
    place = store.path / "running" / lock.token
    place.mkdir()
    (place / "0.json").write_text(json.dumps({"episodes": 5, "pid": 1}))
    (place / "2.json").write_text(json.dumps({"episodes": "many", "pid": 1}))
    (place / "3.json").write_text(json.dumps({"episodes": [], "pid": "../../secret"}))
    form(place / "1.json")
    found = housekeeping.status(store)
    assert (found.drivers, found.episodes_under_way) == (1, 5)
    lock.release()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("form", [pipe, device, dangling, folder], ids=lambda form: form.__name__)
@pytest.mark.parametrize("name", ["drivers/guard", "index.sqlite", "index.sqlite-wal"])
def test_hostile_locks_and_indices_are_refused(store, name, form):
    store.close()
    (store.path / name).unlink(missing_ok=True)
    form(store.path / name)
    with pytest.raises(LivarotError, match=r"is a link|is not a file"):
        sweep(EXPERIMENT, store.path, backend="sequential")


@pytest.mark.parametrize("name", [b"\xff\xfe", b"\x1b[2J", b"\xff" * 32 + b"0" * 32])
def test_names_that_are_not_text(store, tmp_path, caplog, name):
    """They are listed, named in warnings with characters that any terminal can show, or left alone."""
    for place in (b"runs/%s.parquet", b"failed/%s.json", b"specs/%s.json", b"corrupt/%s", b"drivers/%s.lock"):
        path = os.path.join(os.fsencode(store.path), place % name)
        with open(path, "wb") as file:
            file.write(b"{}")
    found = housekeeping.status(store, verify=True)
    assert (found.planned, found.done, found.failed, found.damaged) == (20, 20, 0, 1)
    assert tables.export(store, tmp_path / "all.csv") == (600, [])
    assert sweep(EXPERIMENT, store.path, backend="sequential").before == 20
    assert housekeeping.collect(store).files == 1
    assert caplog.messages
    assert all(message.isprintable() and message.encode() for message in caplog.messages)


def test_a_folder_whose_name_is_not_text(filled, tmp_path):
    path = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"\xff\xfe"))
    shutil.copytree(filled, path)
    for name in ("all.csv", "all.parquet"):
        with Store(path) as store:
            assert tables.export(store, store.path / name).rows == 600
    assert sweep(EXPERIMENT, path, backend="sequential").before == 20


@pytest.mark.timeout(60)
def test_a_forged_index_that_never_ends(store):
    """An index may hold any SQL: one with a trigger that counts for ever when a run is added is rebuilt."""
    store.sync()
    forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    trigger = f"CREATE TRIGGER slow AFTER INSERT ON runs BEGIN SELECT count(*) FROM ({forever}); END"  # noqa: S608
    store.index._connection.execute("DELETE FROM runs")
    store.index._connection.execute(trigger)
    store.close()
    assert len(store.table()) == 20


# ---------------------------------------------------------------- checkpoints with a right digest
@pytest.mark.parametrize(
    "change",
    [
        lambda tensors, header: header.pop("episode"),
        lambda tensors, header: header.update(episode=10**9),
        lambda tensors, header: header.update(episode="x"),
        lambda tensors, header: header.update(episode=3),
        lambda tensors, header: tensors.pop("seeds"),
        lambda tensors, header: tensors.pop("bits"),
        lambda tensors, header: tensors.pop("column.regret"),
        lambda tensors, header: tensors.pop(next(name for name in tensors if name.startswith("state."))),
        lambda tensors, header: tensors.update(bits=tensors["bits"][:, :, :0]),
        lambda tensors, header: tensors.update(bits=tensors["bits"][0, 0]),
        lambda tensors, header: tensors.update(
            {name: array.ravel() for name, array in tensors.items() if name.startswith("state.")}
        ),
    ],
)
def test_a_forged_checkpoint_costs_the_episodes_and_nothing_else(filled, tmp_path, monkeypatch, change):
    class Interrupted(Exception):
        pass

    def save(path, tensors, **rest):
        save_tensors(path, tensors, **rest)
        raise Interrupted

    from livarot.sweeps.store import checkpoint

    monkeypatch.setattr(checkpoint, "save_tensors", save)
    chosen = EXPERIMENT.model_copy(update={"agents": [AgentSpec(name="livarot")]})
    sweep(chosen, tmp_path, backend="sequential", checkpoint_episodes=20)
    monkeypatch.undo()
    paths = list((tmp_path / "checkpoints").glob("*.safetensors"))
    assert paths
    for path in paths:
        tensors, header = load_tensors(path, kind="checkpoint")
        change(tensors, header)
        save_tensors(path, tensors, kind="checkpoint", header=header)
    for path in (tmp_path / "runs").iterdir():
        path.unlink()
    report = sweep(chosen, tmp_path, backend="sequential")
    assert (report.done, report.failed) == (10, {})
    whole = {path.name: path.read_bytes() for path in (filled / "runs").iterdir()}
    made = {path.name: path.read_bytes() for path in (tmp_path / "runs").iterdir()}
    assert len(made) == 10
    assert made.items() <= whole.items()


# ---------------------------------------------------------------- experiments
@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 100_000 + " = 1",
        "[" + "a." * 100_000 + "a]",
        "x = {" + "a." * 100_000 + "a = 1}",
        '"a"' + '."a"' * 100_000 + " = 1",
        "a = ['''x'''', {b" + ".b" * 100_000 + " = 1}, '']",
        "x = " + "[" * 100_000,
        "x = " + "{a=" * 100_000,
    ],
    ids=lambda text: text[:12],
)
def test_deep_toml_is_refused_at_once(text):
    begin = time.monotonic()
    with pytest.raises(LivarotError, match="nested more than 64 deep"):
        Experiment.from_toml(text)
    assert time.monotonic() - begin < 2.0


def test_brackets_and_dots_in_strings_and_comments_do_not_count():
    label = "[{." * 60
    text = f"""
name = "{label}" # {label}
episodes = 10
seeds = 1
[[environments]]
name = "hard-chain" # "{label}
label = '{label}'
settings = {{ gap = [{", ".join(f"0.{n:03d}" for n in range(1, 101))}] }}
[[agents]]
name = "uniform"
"""
    experiment = Experiment.from_toml(text)
    assert len(experiment.cells()) == 100
    assert experiment.environments[0].label == label


def grid(n_gaps, n_scales, **rest):
    return Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"gap": [1e-6 * n for n in range(1, n_gaps + 1)]})],
        agents=[AgentSpec(name="livarot", settings={"beta_scale": [1e-3 * n for n in range(1, n_scales + 1)]})],
        **{"episodes": 10, "seeds": 1} | rest,
    )


@pytest.mark.timeout(60)
def test_a_stored_spec_of_a_million_cells_is_not_expanded(store):
    large = grid(1000, 1000)
    (store.path / "specs" / f"{large.key}.json").write_text(large.model_dump_json(exclude_defaults=True))
    begin = time.monotonic()
    found = housekeeping.status(store)
    assert time.monotonic() - begin < 5.0
    assert found.planned == 20
    assert len(found.unregistered) == 1
    assert "1000000 combinations" in found.unregistered[0]


@pytest.mark.timeout(60)
def test_settings_that_multiply_are_counted_before_they_are_made():
    nested = {name: {"x": list(range(1000))} for name in "abcd"}
    experiment = Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings=nested)],
        agents=[AgentSpec(name="uniform")],
        episodes=1,
        seeds=1,
    )
    with pytest.raises(LivarotError, match="1000000000000 combinations"):
        experiment.cells()


def test_the_key_of_a_cell_is_that_of_its_content():
    """It does not depend on how its text was put together."""
    import hashlib

    for cell in [*grid(3, 2, episodes=[10, 20]).cells(), *EXPERIMENT.cells()]:
        assert cell.key == hashlib.sha256(canonical(cell.content()).encode()).hexdigest()
        assert cell.text == canonical(cell.content())
        run = cell.run(7)
        assert run.key == hashlib.sha256(canonical(cell.content(7)).encode()).hexdigest()
