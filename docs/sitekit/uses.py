"""Where a public name is used: examples and pages that show it, functions that return it, the guide of its package."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from sitekit.names import Name

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "examples" / "gallery"
LISTS = ("index", "paper_map", "changelog", "contributing", "start", "guide", "explanation", "project")
GUIDES = {
    "livarot": "tutorial",
    "livarot.agents": "agents",
    "livarot.envs": "environments",
    "livarot.theory": "theory",
    "livarot.data": "data",
    "livarot.infinite": "infinite",
    "livarot.experiments": "experiments",
    "livarot.lanes": "adding_an_agent",
}
PARTS = {  # by modules
    "livarot.planning.optimistic": "optimism",
    "livarot.planning.robust": "robust",
    "livarot.envs.gymnasium": "gymnasium",
    "livarot.report": "report",
}
PATH = re.compile(r"livarot(?:\.\w+)+")
FROM = re.compile(r"from (livarot[\w.]*) import (\([^)]*\)|[^\n]*)")
PART = re.compile(r"(?<![\w.])(\w+)((?:\.\w+)+)")


def words(text: str) -> set[str]:
    """The paths of names in a text: in full, imported, or through a package that was imported."""
    found = set(PATH.findall(text))
    imported = {}
    for module, names in FROM.findall(text):
        for name in re.sub(r"#[^\n]*|[()\n]", " ", names).split(","):
            original, _, alias = name.strip().partition(" as ")
            if original:
                imported[alias.strip() or original.strip()] = f"{module}.{original.strip()}"
    found |= set(imported.values())
    found |= {imported[first] + rest for first, rest in PART.findall(text) if first in imported}
    return found


def sources() -> list[tuple[Path, str]]:
    """The examples of the gallery and the pages, each with a link to it."""
    examples = [
        (path, f":doc:`/gallery/{path.relative_to(GALLERY).with_suffix('').as_posix()}`")
        for path in sorted(GALLERY.rglob("plot_*.py"))
    ]
    pages = sorted((ROOT / "docs").glob("*.md"))
    return examples + [(path, f":doc:`/{path.stem}`") for path in pages if path.stem not in LISTS]


def shown(names: list[Name]) -> dict[str, list[str]]:
    """The examples and pages in which each name stands."""
    found: dict[str, list[str]] = {name.path: [] for name in names}
    for path, link in sources():
        text = words(path.read_text(encoding="utf-8"))
        for name in names:
            if any(word == name.path or word.startswith(f"{name.path}.") for word in text):
                found[name.path].append(link)
    return found


def makers(names: list[Name]) -> dict[str, list[str]]:
    """What returns an object of each class, and what else has to do with it, as links; by the path of the class."""
    found: dict[str, dict[str, str]] = {name.path: {} for name in names}
    classes = [name for name in names if inspect.isclass(name.thing) and name.home == name.path]
    ours = [name for name in names if name.home == name.path]
    for returned in (True, False):
        for name in ours:
            how = "returned by" if returned else "part of" if inspect.isclass(name.thing) else "taken by"
            for note, scope in annotations(name.thing, returned=returned):
                for other in classes:
                    named = scope.get(other.name) is other.thing and re.search(rf"\b{other.name}\b", note)
                    if named and other.path != name.path and (returned or not found[other.path]):
                        found[other.path].setdefault(name.path, how)
    return {path: [f"{how} :py:obj:`{maker} <{maker}>`" for maker, how in made.items()] for path, made in found.items()}


def annotations(thing: object, *, returned: bool) -> list[tuple[str, dict[str, object]]]:
    """What a function, or the methods of a class, return, or what they take; with the names known there."""
    members = [thing]
    if inspect.isclass(thing):
        members = [each for key, each in vars(thing).items() if not key.startswith("_")]
    notes: list[tuple[str, dict[str, object]]] = []
    for each in members:
        function = inspect.unwrap(getattr(each, "fget", None) or getattr(each, "__func__", each))
        if inspect.isfunction(function):
            given = function.__annotations__.items()
            notes += [(str(note), function.__globals__) for key, note in given if (key == "return") == returned]
    if inspect.isclass(thing) and not returned:
        scope = vars(inspect.getmodule(thing))
        notes += [(str(note), scope) for note in inspect.get_annotations(thing).values()]
    return notes


def guide(name: Name) -> str:
    """The page that introduces what a name belongs to."""
    module = getattr(inspect.getmodule(name.thing), "__name__", name.package)
    finer = [page for start, page in PARTS.items() if module.startswith(start)]
    return finer[0] if finer else GUIDES[name.package]


def uses(names: list[Name]) -> dict[str, list[str]]:
    """Links for each name, never none: where it stands, else what returns it, else the guide of its package."""
    direct, made = shown(names), makers(names)
    out = {}
    for name in names:
        links = list(direct[name.path] or direct[name.home])
        if not links:
            links = made[name.home][:3]
            for maker in [PATH.findall(link)[-1] for link in links]:
                links = [*links, *(link for link in direct[maker][:3] if link not in links)]
        if not any(":doc:" in link for link in links):
            links.append(f":doc:`/{guide(name)}`, the guide")
        out[name.path] = links
    return out
