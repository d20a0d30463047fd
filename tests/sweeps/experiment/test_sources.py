"""Which sources a run depends on."""

import importlib
import sys

from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.sources import source_of
from livarot.sweeps.store.provenance import provenance
from livarot.sweeps.store.store import Store
from tests.support.plugin import experiment


def test_only_what_makes_a_run_counts(plugin, tmp_path):
    """Neither built-in things besides the plugin nor files that it does not import count."""
    store = tmp_path / "store"
    plugin.sweep(store, experiment(agent="uniform", world="hard-chain"))
    with Store(store) as opened:
        assert all(opened.read(key).provenance == provenance() for key in opened.stored())
    cell, own = experiment(agent="uniform", world="hard-chain").cells()[0], experiment().cells()[0]
    assert source_of(cell) is None and len(source_of(own)) == 16
    assert source_of(experiment(agent="uniform").cells()[0]) == source_of(own)  # the environment alone
    before = source_of(own)
    plugin.write("notes_of_a_test.py", "x = 1\n")
    plugin.load()
    assert source_of(own) == before
    plugin.edit("helper_of_a_test.py", "return 0", "import notes_of_a_test; return 0")
    plugin.load()
    with_notes = source_of(own)
    plugin.write("notes_of_a_test.py", "x = 2\n")
    plugin.load()
    assert len({before, with_notes, source_of(own)}) == 3


def test_an_agent_inside_another_counts(plugin):
    plugin.load()
    inner = {"name": "fixed-of-a-test"}
    wrapped = Cell("hard-chain", {"horizon": 3}, "rare-switching", {"agent": inner}, 10)
    assert source_of(wrapped) == source_of(experiment().cells()[0])


def test_packages_count_with_their_relative_imports(plugin, tmp_path):
    package = plugin.folder / "package_of_a_test"
    (package / "deep").mkdir(parents=True)
    for name, text in {
        "__init__.py": "",
        "numbers.py": "x = 1\n",
        "unused.py": "x = 1\n",
        "deep/__init__.py": "from ..numbers import x\n",
        "deep/agent.py": "from livarot import agents\nfrom livarot.agents import Uniform\nfrom . import sibling\n"
        'agents.registry.register("deep-of-a-test", lambda: Uniform(), "deep")\n',
        "deep/sibling.py": "def later():\n    import package_of_a_test.lazy\n",
        "lazy.py": "",
    }.items():
        (package / name).write_text(text)

    def found():
        for name in [name for name in sys.modules if name.startswith("package_of_a_test")]:
            del sys.modules[name]
        plugin.load()
        importlib.import_module("package_of_a_test.deep.agent")
        return source_of(Cell("hard-chain", {}, "deep-of-a-test", {}, 10))

    seen = [found()]
    assert found() == seen[0]
    for name in ("__init__.py", "numbers.py", "deep/__init__.py", "deep/agent.py", "deep/sibling.py", "lazy.py"):
        with (package / name).open("a") as file:
            file.write("# edited\n")
        seen.append(found())
    assert len(set(seen)) == 7
    (package / "unused.py").write_text("x = 2\n")
    assert found() == seen[-1]
