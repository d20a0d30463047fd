"""Notes of failures and of experiments: written, read, left out where they are damaged."""

import json

import pytest

from livarot import LivarotError
from livarot.sweeps.store.store import Store
from tests.sweeps.conftest import EXPERIMENT


@pytest.fixture
def empty(tmp_path):
    with Store(tmp_path / "store", create=True) as store:
        yield store


def test_a_failure_is_noted_and_cleared(empty):
    one, two = (EXPERIMENT.cells()[0].run(seed) for seed in (1, 2))
    empty.fail(one, attempts=3, traceback="Traceback: no")
    empty.fail(two, attempts=1, traceback="Traceback: nor this")
    notes = empty.failures()
    assert {key: (note["attempts"], note["traceback"]) for key, note in notes.items()} == {
        one.key: (3, "Traceback: no"),
        two.key: (1, "Traceback: nor this"),
    }
    assert notes[one.key]["content"] == one.cell.content(1)
    empty.clear_failures([one.key, "no such key"])
    assert set(empty.failures()) == {two.key}


def test_a_note_under_another_name_is_not_believed(empty):
    run = EXPERIMENT.cells()[0].run(1)
    empty.fail(run, attempts=1, traceback="")
    path = empty.path / "failed" / f"{run.key}.json"
    path.rename(path.with_name("0" * 64 + ".json"))
    path.with_name("1" * 64 + ".json").write_text(json.dumps({"attempts": 1}))
    assert empty.failures() == {}


def test_experiments_are_stored_once_and_come_back(empty):
    for _ in range(2):
        empty.add_spec(EXPERIMENT)
    assert [one.key for one in empty.specs()] == [EXPERIMENT.key] == [one.key for one in empty.require_specs()]


def test_a_damaged_experiment_is_left_out_unless_all_are_needed(empty, caplog):
    empty.add_spec(EXPERIMENT)
    (empty.path / "specs" / "damaged.json").write_text("{")
    assert [one.key for one in empty.specs()] == [EXPERIMENT.key]
    with pytest.raises(LivarotError, match=r"damaged.json' is damaged: what it asked for is not known"):
        empty.require_specs()
