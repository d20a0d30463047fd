"""A small experiment and a store of its runs."""

import shutil
import sys

import pytest

from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store.store import Store
from tests.support.plugin import MODULES, Plugin

EXPERIMENT = Experiment(
    name="small",
    environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": [3, 4], "gap": 0.1})],
    agents=[AgentSpec(name="livarot"), AgentSpec(name="uniform")],
    episodes=30,
    seeds=5,
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A store with twenty runs, not to be changed."""
    path = tmp_path_factory.mktemp("filled") / "store"
    report = sweep(EXPERIMENT, path, backend="sequential")
    assert (report.done, report.before, report.complete) == (20, 0, True)
    return path


@pytest.fixture
def store(filled, tmp_path):
    shutil.copytree(filled, tmp_path / "store")
    with Store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Plugin(folder, monkeypatch)
    for name in MODULES:
        sys.modules.pop(name, None)
