"""A plugin's sources are part of a run: runs of edited ones are reported, and computed again on request."""

import subprocess
import sys

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from livarot import LivarotError
from livarot.cli import sweep as commands
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.sources import source_of
from livarot.sweeps.store import housekeeping
from livarot.sweeps.store.records import encode_again
from livarot.sweeps.store.store import Store
from tests.support.plugin import experiment

runner = CliRunner()
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
commands.register(app)


def regrets(store):
    with Store(store) as opened:
        return opened.table().regret.to_numpy()


def bytes_of(store):
    return {path.name: path.read_bytes() for path in (store / "runs").iterdir()}


CHANGES = {
    "the plugin": ("plugin_of_a_test.py", "chosen()] = 1.0", "1 - chosen()] = 1.0"),
    "its helper": ("helper_of_a_test.py", "return 0", "return 1"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_edited_plugin_is_said_kept_and_recomputed_on_request(plugin, tmp_path, caplog, change):
    store = tmp_path / "store"
    first = plugin.sweep(store)
    assert (first.done, first.stale) == (4, {})
    before, files = regrets(store), bytes_of(store)
    assert plugin.sweep(store).stale == {} and not caplog.records
    plugin.edit(*change)
    kept = plugin.sweep(store)
    assert (kept.before, kept.done, kept.complete, list(kept.stale.values())) == (4, 0, True, [4])
    assert "4 stored runs were made by other sources than those here: chain-of-a-test" in caplog.text
    assert "--stale recompute" in caplog.text
    assert bytes_of(store) == files
    with Store(store) as opened:
        assert [line.stale for line in housekeeping.status(opened).cells] == [4]
    again = plugin.sweep(store, stale="recompute")
    assert (again.before, again.done, again.complete, list(again.stale.values())) == (0, 4, True, [4])
    assert not np.array_equal(regrets(store), before)
    plugin.sweep(tmp_path / "fresh")
    assert bytes_of(store) == bytes_of(tmp_path / "fresh")
    caplog.clear()
    assert plugin.sweep(store, stale="recompute").before == 4 and not caplog.records
    with Store(store) as opened:
        assert housekeeping.status(opened).stale == 0


def test_an_index_made_again_knows_the_sources(plugin, tmp_path):
    store = tmp_path / "store"
    plugin.sweep(store)
    plugin.edit(*CHANGES["its helper"])
    plugin.load()
    with Store(store) as opened:
        assert housekeeping.status(opened).stale == housekeeping.status(opened).stale == 4
        opened.rebuild()
        assert housekeeping.status(opened).stale == 4
        opened.index._connection.execute("UPDATE sources SET plugin = 'x'")
        assert housekeeping.status(opened).stale == 4


def test_runs_of_an_earlier_livarot_are_of_unknown_sources(plugin, tmp_path, caplog):
    store = tmp_path / "store"
    plugin.sweep(store)
    with Store(store) as opened:
        for key in opened.stored():
            record = opened.read(key)
            del record.provenance["plugin"]
            opened.run_path(key).write_bytes(encode_again(record))
        found = housekeeping.status(opened)
        assert (found.done, found.stale, found.unknown_sources) == (4, 0, 4)
    report = plugin.sweep(store, stale="recompute")
    assert (report.before, report.stale) == (4, {}) and not caplog.records


def test_a_recomputation_that_is_cut_short_goes_on(plugin, tmp_path):
    """Old files stay until their new ones are complete, and what was computed again is not computed a third time."""
    store = tmp_path / "store"
    plugin.sweep(store)
    plugin.edit(*CHANGES["its helper"])
    part = plugin.sweep(store, stale="recompute", shard=(1, 2))
    assert (part.planned, part.done) == (2, 2) and len(bytes_of(store)) == 4
    rest = plugin.sweep(store, stale="recompute")
    assert (rest.before, rest.done, list(rest.stale.values())) == (2, 2, [2])


@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_processes_note_the_same_sources(plugin, tmp_path, monkeypatch, backend):
    if backend == "dask":
        pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", f"{plugin.folder}:{':'.join(sys.path)}")
    plugin.sweep(tmp_path / "one")
    plugin.sweep(tmp_path / "two", backend=backend, workers=2, imports=["plugin_of_a_test"])
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")


def test_workers_with_other_sources_are_refused(plugin, tmp_path, monkeypatch):
    """The file is edited after the driver has imported it and before its workers do."""
    monkeypatch.setenv("PYTHONPATH", f"{plugin.folder}:{':'.join(sys.path)}")
    plugin.load()
    source_of(experiment().cells()[0])
    plugin.edit(*CHANGES["its helper"])
    options = {"backend": "loky", "workers": 1, "imports": ["plugin_of_a_test"]}
    with pytest.raises(LivarotError, match="other sources of 'fixed-of-a-test' in 'chain-of-a-test' than this process"):
        sweep(experiment(), tmp_path / "store", **options)
    assert not bytes_of(tmp_path / "store")


def test_the_commands_say_so(plugin, tmp_path):
    spec, store = tmp_path / "mine.toml", tmp_path / "store"
    spec.write_text(experiment().to_toml())

    def call(*words):
        plugin.load()
        return runner.invoke(app, [str(word) for word in words])

    run = ["run", spec, "--store", store, "--backend", "sequential", "--import", "plugin_of_a_test"]
    assert call(*run).exit_code == 0
    assert "sources" not in call("status", store, "--check").output
    plugin.edit(*CHANGES["its helper"])
    status = call("status", store)
    assert status.exit_code == 0 and "4 of      4, 4 by other sources" in status.output
    assert "4 runs were made by other sources than those here; livarot run FILE.toml --stale recompute" in status.output
    assert call("status", store, "--check").exit_code == 1
    assert call(*run).exit_code == 0
    dry = call(*run, "--dry-run", "--stale", "recompute")
    assert "4 stored runs were made by other sources" in dry.output and "0 stored, 4 to run" in dry.output
    assert "4 stored, 0 to run" in call(*run, "--dry-run").output
    assert call(*run, "--stale", "never").exit_code == 2
    assert call(*run, "--stale", "recompute").exit_code == 0
    assert "sources" not in call("status", store, "--check").output


def test_bad_wishes_are_refused(tmp_path):
    with pytest.raises(LivarotError, match="stale: 'no' is not one of"):
        sweep(experiment("uniform", "hard-chain"), tmp_path / "store", backend="sequential", stale="no")
    assert not (tmp_path / "store").exists()


def test_a_warning_reaches_who_runs_the_command(plugin, tmp_path):
    """From outside, in new processes."""
    spec, store = tmp_path / "mine.toml", tmp_path / "store"
    spec.write_text(experiment(seeds=2).to_toml())
    words = ["run", str(spec), "--store", str(store), "--workers", "1", "--import", "plugin_of_a_test"]

    def call():
        command = [sys.executable, "-m", "livarot", *words]
        return subprocess.run(command, cwd=plugin.folder, capture_output=True, text=True, timeout=300, check=True)

    assert "sources" not in call().stderr
    plugin.edit(*CHANGES["its helper"])
    assert "2 stored runs were made by other sources than those here" in call().stderr
    words += ["--stale", "recompute"]
    assert "they are computed again" in call().stderr
    assert "sources" not in call().stderr
