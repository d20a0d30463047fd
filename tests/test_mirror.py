"""Every module with logic has its own test file, at the same place below tests/ as below src/livarot/.

The few exceptions are tested in another file, which is named here with the reason.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "livarot"

COMPILED = "inner functions that are compiled into one kernel only, and tested through it against the twins"
ELSEWHERE = {
    "planning/optimistic/ascent.py": ("planning/optimistic/test_hard_inner.py", COMPILED),
    "planning/optimistic/starts.py": ("planning/optimistic/test_hard_inner.py", COMPILED),
    "planning/optimistic/choice.py": ("planning/optimistic/test_inner_maximum.py", COMPILED),
    "planning/optimistic/loops/pairs.py": ("planning/optimistic/test_plan.py", COMPILED),
    "planning/optimistic/loops/replicas.py": ("planning/optimistic/test_plan.py", COMPILED),
    "estimation/seen.py": ("estimation/test_omd.py", COMPILED),
    "model/terms/rewards.py": ("planning/test_terms.py", "forms of rewards, tested with the plans that they give"),
    "model/building/long_arrays.py": (
        "planning/test_terms.py",
        "rows without those of missing actions, tested likewise",
    ),
    "board/__main__.py": ("browser/test_board.py", "a process of its own, tested through the pages it serves"),
    "cli/__init__.py": ("cli/test_app.py", "the console script, four lines around the app"),
}


def has_logic(source: str) -> bool:
    """Does a module define a function, or a class with a method that does something?"""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return True
        if isinstance(node, ast.ClassDef) and any(isinstance(x, ast.FunctionDef) for x in ast.walk(node)):
            return True
    return False


def home_of(module: str) -> str:
    """Where the tests of a module belong, as a path below tests/; those of a package are named after it."""
    path = Path(module)
    name = path.parent.name if path.stem == "__init__" else path.stem
    return (path.parent / f"test_{name}.py").as_posix()


MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("X = 1\nfrom typing import NamedTuple\nclass A(NamedTuple):\n    x: int", False),
        ("class A(Exception):\n    pass", False),
        ("def f():\n    return 1", True),
        ("class A:\n    def f(self):\n        return 1", True),
    ],
)
def test_logic_is_seen(source, found):
    assert has_logic(source) == found


@pytest.mark.parametrize(
    ("module", "tests"),
    [("core/mnl.py", "core/test_mnl.py"), ("board/__init__.py", "board/test_board.py"), ("lazy.py", "test_lazy.py")],
)
def test_where_tests_belong(module, tests):
    assert home_of(module) == tests


@pytest.mark.parametrize("module", MODULES)
def test_every_module_with_logic_has_its_test_file(module):
    if has_logic((PACKAGE / module).read_text(encoding="utf-8")):
        where = ELSEWHERE[module][0] if module in ELSEWHERE else home_of(module)
        assert (TESTS / where).is_file(), f"write the tests of {module} in tests/{where}"


def test_nothing_is_excepted_without_need():
    assert [module for module in ELSEWHERE if module not in MODULES or (TESTS / home_of(module)).exists()] == []
