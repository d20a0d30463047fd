"""Imports point downwards only, and siblings do not import each other.

Every import counts, also inside a function or under TYPE_CHECKING.  The list of layers is that of docs/design.md.
"""

import ast
from pathlib import Path

import pytest

from docs.img import draw_rooms
from livarot.core.compiling import jit

ROOT = Path(__file__).parents[1]
DESIGN = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
LAYERS = [*map(set, reversed(draw_rooms.layers(DESIGN))), {"__init__", "__main__"}]
PACKAGE = ROOT / "src" / "livarot"
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FILES = sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")])


def part(path: Path) -> str:
    """The package's first-level part that holds `path`: a folder or a module."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_parts(tree: ast.AST, package: tuple[str, ...]) -> set[str]:
    """The first-level parts that the module imports; `package` is the dotted name of its folder.

    `import livarot` and `from livarot import name`, where the name is not a part, count as ``__init__``.
    """
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = base + tuple((node.module or "").split(".") if node.module else ())
            names = [(*module, alias.name) for alias in node.names]
        else:
            continue
        for name in names:
            if name[0] == "livarot":
                known = len(name) > 1 and (name[1] in LEVEL or (PACKAGE / f"{name[1]}.py").exists())
                found.add(name[1] if known else "__init__")
    return found


def allowed(importer: str, imported: str) -> bool:
    top = len(LAYERS)  # a part without a layer is reported by a test of its own
    return importer == imported or LEVEL.get(imported, top) < LEVEL.get(importer, top)


@pytest.mark.parametrize(
    ("source", "package", "parts"),
    [
        ("import numpy, livarot.core.mnl", ("livarot",), {"core"}),
        ("from livarot import core", ("livarot",), {"core"}),
        ("from livarot import MNLMDP", ("livarot", "cli"), {"__init__"}),
        ("import livarot", ("livarot", "cli"), {"__init__"}),
        ("from .problem import Problem", ("livarot", "core"), {"core"}),
        ("from ..errors import bad", ("livarot", "core"), {"errors"}),
        ("from .. import errors", ("livarot", "core"), {"errors"}),
        ("def f():\n    from livarot.errors import bad", ("livarot",), {"errors"}),
        ("from livarot_other import x", ("livarot",), set()),
    ],
)
def test_the_reader_of_imports(source, package, parts):
    assert imported_parts(ast.parse(source), package) == parts


def test_the_rule_itself():
    assert allowed("core", "errors")
    assert allowed("core", "core")
    assert not allowed("errors", "core")
    assert not allowed("planning", "estimation")
    assert not allowed("agents", "__init__")


def test_every_part_has_a_layer():
    unknown = {part(path) for path in FILES} - LEVEL.keys()
    assert not unknown, f"decide in which layer {sorted(unknown)} belong, and add them to docs/design.md"


def test_the_cache_of_machine_code_knows_the_same_layers():
    folders = [{name for name in names if (PACKAGE / name).is_dir()} for names in LAYERS]
    parts = [names for names in folders if names]
    cached = [set(names) for names in jit.LAYERS[1:]]
    assert cached == parts[: len(cached)]
    assert parts[len(cached) :] == [
        {"sweeps"},
        {"report"},
        {"studies"},
        {"experiments"},
        {"cli", "board"},
    ]  # no kernels there


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_down(path):
    package = ("livarot", *path.relative_to(PACKAGE).parent.parts)
    imports = imported_parts(ast.parse(path.read_text(encoding="utf-8")), package)
    wrong = {name for name in imports if not allowed(part(path), name)}
    assert not wrong, f"livarot.{part(path)} may not import {sorted(wrong)}"


def test_the_picture_is_drawn_from_that_list():
    assert (ROOT / "docs" / "img" / "rooms.svg").read_text(encoding="utf-8") == draw_rooms.draw(DESIGN)
