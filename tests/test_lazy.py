"""Public names are listed before they are imported, and imported when they are used."""

import importlib
import sys

import pytest

INIT = """
from livarot.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
"""
STUB = """
from . import inside as inside
from .inside import answer as answer
from .inside import Thing
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "lazy_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").write_text(INIT)
    (folder / "__init__.pyi").write_text(STUB)
    (folder / "inside.py").write_text("answer = 42\nclass Thing: pass\n")
    for name in ("unlisted", "_private"):
        (folder / f"{name}.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("lazy_of_a_test")
    for name in [name for name in sys.modules if name.startswith("lazy_of_a_test")]:
        del sys.modules[name]


def test_names_of_the_stub_are_imported_when_they_are_used(package):
    assert package.__all__ == ["answer", "inside"]  # an import without "as" is not public
    assert "answer" in dir(package) and "lazy_of_a_test.inside" not in sys.modules
    assert package.answer == 42 and "answer" in vars(package)
    assert package.inside is sys.modules["lazy_of_a_test.inside"]


def test_other_modules_are_found_and_what_is_not_there_is_not(package):
    assert package.unlisted.x == 1
    for name in ("nothing", "_private"):
        with pytest.raises(AttributeError, match=f"module 'lazy_of_a_test' has no attribute '{name}'"):
            getattr(package, name)


def test_a_star_leaves_out_what_needs_a_missing_extra(package, tmp_path, monkeypatch):
    (tmp_path / "lazy_of_a_test" / "__init__.pyi").write_text(STUB + "from .heavy import most as most\n")
    (tmp_path / "lazy_of_a_test" / "heavy.py").write_text("import gymnasium\nmost = 1\n")
    del sys.modules["lazy_of_a_test"]
    monkeypatch.setitem(sys.modules, "gymnasium", None)  # as if it were not installed
    found: dict[str, object] = {}
    exec("from lazy_of_a_test import *", found)  # noqa: S102
    assert found["answer"] == 42 and "most" not in found
    with pytest.raises(ImportError, match=r"pip install 'livarot\[gym\]'"):
        _ = sys.modules["lazy_of_a_test"].most


def test_other_failures_of_a_star_are_told(package, tmp_path, monkeypatch):
    (tmp_path / "lazy_of_a_test" / "__init__.pyi").write_text(STUB + "from .heavy import most as most\n")
    (tmp_path / "lazy_of_a_test" / "heavy.py").write_text("import nowhere_to_be_found\n")
    del sys.modules["lazy_of_a_test"]
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        exec("from lazy_of_a_test import *", {})  # noqa: S102
