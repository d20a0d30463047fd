"""The documents are true: what they name exists, their links lead somewhere, no module and no reading is missing."""

import ast
import importlib
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

import livarot

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "livarot"
DOCS = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
CHECKED = ("design.md", "numerics.md", "notation.md", "paper_map.md")

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]*(?:::\w+)?|[a-z_]+\.py")
DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def tokens(text: str) -> list[str]:
    """The texts in backticks outside of code blocks, without the arguments of a call."""
    return sorted({re.sub(r"\(.*\)$", "", t) for t in re.findall(r"`([^`\n]+)`", FENCE.sub("", text))})


def has(thing: object, name: str) -> bool:
    """Is it an attribute, or a field of a class?"""
    return hasattr(thing, name) or (inspect.isclass(thing) and name in inspect.get_annotations(thing))


@cache
def classes() -> dict[str, type]:
    """The classes of the package by their names."""
    found = {}
    for module in pkgutil.walk_packages(livarot.__path__, "livarot."):
        if not module.name.endswith("__main__"):
            for name, thing in vars(importlib.import_module(module.name)).items():
                if inspect.isclass(thing) and thing.__module__ == module.name:
                    found[name] = thing
    return found


@cache
def functions(path: Path) -> set[str]:
    return {x.name for x in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(x, ast.FunctionDef)}


def path_exists(token: str) -> bool:
    """A path in the project or in the package, and the function after ``::`` in it."""
    name, _, function = token.partition("::")
    for base in (ROOT, PACKAGE):
        if (base / name).exists():
            return not function or function in functions(base / name)
    return False


def name_exists(token: str) -> bool:
    """``livarot.module.name.attribute``, or ``Class.attribute`` of a class of the package."""
    first, *rest = token.split(".")
    if first != "livarot":
        return len(rest) == 1 and has(classes()[first], rest[0])
    thing: object = livarot
    for at, part in enumerate(rest):
        try:  # a module, even where a function of the same name hides it
            thing = importlib.import_module(".".join(("livarot", *rest[: at + 1])))
        except ModuleNotFoundError:
            if not has(thing, part):
                return False
            thing = getattr(thing, part, None)
    return True


def slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")


def missing(text: str) -> list[str]:
    found = []
    for token in tokens(text):
        if PATH.fullmatch(token):
            found += [] if path_exists(token) else [token]
        elif DOTTED.fullmatch(token) and (token.startswith("livarot.") or token.split(".")[0] in classes()):
            found += [] if name_exists(token) else [token]
    return found


@pytest.mark.parametrize("name", CHECKED)
def test_what_is_named_exists(name):
    assert missing(DOCS[name]) == []


def test_the_check_itself():
    good = (
        "`livarot.run` `livarot.running.run.run` `livarot.agents.livarot.Livarot.n_explore` `Livarot.paper()` "
        "`Plan.upper` `RunResult.sigma_bar` `core/mnl.py` `storage.py` `tests/` `tests/test_docs.py` "
        "`tests/test_docs.py::test_the_check_itself` `algo:learning routine 2` `h/2` `x = 1` `value[horizon]`"
    )
    assert missing(good) == ["h/2"]  # what looks like a path is one
    bad = "`livarot.runs` `livarot.core.mnl.sofmax` `Plan.lower` `core/mln.py` `tests/test_docs.py::test_that`"
    assert len(missing(bad)) == 5
    assert missing("```\n`core/mln.py`\n```") == []


@pytest.mark.parametrize("name", DOCS)
def test_links(name):
    for link in LINK.findall(DOCS[name]):
        target, _, anchor = link.partition("#")
        if "://" in link:
            continue
        path = (ROOT / "docs" / target).resolve() if target else ROOT / "docs" / name
        assert path.is_file(), link
        if anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(slug, headings), link


def test_the_design_names_every_room():
    named = {token.rstrip("/").removesuffix(".py") for token in tokens(DOCS["design.md"])}
    rooms = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("__init__.py")} - {"."}
    assert {room for room in rooms if not room.startswith("studies/")} - named == set()


def test_every_reading_is_there_once():
    rows = re.findall(r"^\| (E\d+) \|", DOCS["paper_map.md"], re.MULTILINE)
    assert rows == [f"E{number}" for number in range(1, 44)]
    cited = set()
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]:
        cited |= set(re.findall(r"\bE[1-9]\d?\b", path.read_text(encoding="utf-8")))
    assert cited <= set(rows)


def test_a_row_has_as_many_cells_as_its_table():
    for name in CHECKED:
        for table in re.findall(r"(?:^\|.*\n)+", DOCS[name], re.MULTILINE):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
            assert len(widths) == 1, table.splitlines()[0]


def test_the_how_to_of_gymnasium_prints_what_it_says(capsys):
    """Every Python block, in one namespace; a text block is what the block before it prints."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", DOCS["gymnasium.md"], re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == ["python", "text"] * 6
    namespace = {}
    for (_, code), (_, printed) in zip(blocks[::2], blocks[1::2], strict=True):
        exec(compile(code, "gymnasium.md", "exec"), namespace)  # noqa: S102
        assert capsys.readouterr().out == printed
