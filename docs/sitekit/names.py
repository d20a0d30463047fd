"""The public names, from the stubs that Python, editors and type checkers read."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from types import ModuleType
from typing import NamedTuple

PACKAGES = {
    "livarot": "Models, plans and runs",
    "livarot.agents": "Agents",
    "livarot.envs": "Environments",
    "livarot.theory": "Theory",
    "livarot.data": "Data",
    "livarot.infinite": "Infinite horizon",
    "livarot.experiments": "Experiments",
    "livarot.lanes": "Functions of rules",
}
COMMENT = re.compile(r"^    (\w+): .*?  # (.+)$", re.MULTILINE)  # beside the field of a dataclass or a named tuple


class Name(NamedTuple):
    """A public name: ``package.name``, the object, and the first package that lists the same object."""

    package: str
    name: str
    thing: object
    home: str

    @property
    def path(self) -> str:
        return f"{self.package}.{self.name}"


def public_names() -> list[Name]:
    """Every public name, package by package; an object that two packages list is at home in the first."""
    homes: dict[int, str] = {}
    found = []
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, ModuleType):
                continue  # a package, which has a page of its own
            home = homes.setdefault(id(thing), f"{package}.{name}")
            found.append(Name(package, name, thing, home))
    return found


def kind(thing: object) -> str:
    """The directive of autodoc that documents it."""
    if inspect.isclass(thing):
        return "autoexception" if issubclass(thing, BaseException) else "autoclass"
    return "autofunction" if inspect.isroutine(thing) else "autodata"


def summary(thing: object) -> str:
    """The first sentence of its docstring, or its first paragraph if that is shorter."""
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    first = re.match(r".*?[^. ]{2}\.(?= |$)", text)
    return (first.group() if first else text).rstrip(":")


class Field(NamedTuple):
    """A field of a class: how it is declared, and the comment beside it."""

    name: str
    declared: str  # name: type = default
    meaning: str


def fields_of(thing: object) -> list[Field]:
    """The fields of a dataclass or a named tuple."""
    if not inspect.isclass(thing):
        return []
    if dataclasses.is_dataclass(thing):
        names = [each.name for each in dataclasses.fields(thing) if each.init and not each.name.startswith("_")]
        defaults = {each.name: each.default for each in dataclasses.fields(thing)}
    else:
        names, defaults = list(getattr(thing, "_fields", ())), dict(getattr(thing, "_field_defaults", {}))
    notes: dict[str, object] = {}
    comments: dict[str, str] = {}
    for each in reversed(thing.__mro__[:-1]):
        notes |= inspect.get_annotations(each)
        try:
            comments |= dict(COMMENT.findall(inspect.getsource(each)))
        except (OSError, TypeError):
            continue
    return [Field(name, _declared(name, notes.get(name), defaults), comments.get(name, "")) for name in names]


def _declared(name: str, note: object, defaults: dict[str, object]) -> str:
    kind_of = note if isinstance(note, str) else getattr(note, "__forward_arg__", getattr(note, "__name__", ""))
    told = repr(defaults[name]) if name in defaults else ""
    return name + (f": {kind_of}" if kind_of else "") + (f" = {told}" if told and "<" not in told else "")


def mathematics(thing: object) -> str:
    """The docstring of the module that defines it, if it says more than a line or two."""
    module = inspect.getmodule(thing)
    text = inspect.getdoc(module) or ""
    return text if module is not None and module.__name__.startswith("livarot.") and len(text) > 300 else ""
