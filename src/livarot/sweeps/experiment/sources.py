"""Sources of plugins: a run of an agent or environment that is not livarot's own depends on code outside of livarot.

That code is hashed into the provenance of the run: the module that defines the agent, environment or component (and,
for a `functools.partial`, the one that registers it), and all that it imports, directly or not, from its own folder
(for an installed module: from its own distribution).  Imports are read from the sources and not from ``sys.modules``,
so the hash is the same in every process, whatever else it has imported and whether an import inside a function has
happened yet.  Other libraries, data files and modules whose names are computed do not count.  livarot's own sources
have a separate hash, and a run of built-in things has no hash of plugins.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.metadata
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from livarot import agents, envs
from livarot.sweeps.experiment.keys import Cell, components

Name = tuple[str, ...]  # of a module, by its parts


def source_of(cell: Cell) -> str | None:
    """The hash of the plugin sources that a cell's runs are made by; None if there are none.

    Files are hashed only when they are first asked for, as modules are loaded only once.

    >>> source_of(Cell.of("hard-chain", {}, "livarot", {}, 10)) is None
    True
    """
    files = set().union(*(_files(entry) for entry in _entries(cell)))
    if not files:
        return None
    return hashlib.sha256(repr(sorted(files)).encode()).hexdigest()[:16]


def sources_of(cells: Iterable[Cell]) -> dict[str, str]:
    """The hashes by the key of each cell that has one."""
    return {cell.key: found for cell in cells if (found := source_of(cell)) is not None}


def _entries(cell: Cell) -> Iterator[Any]:
    """The registry entries of all that a cell names: the environment, the agent, and the agent's components."""
    if cell.environment in envs.registry:
        yield envs.registry._entry(cell.environment)
    yield from _named({**cell.agent_settings, "name": cell.agent})


def _named(settings: Mapping[str, Any]) -> Iterator[Any]:
    for registry in (agents.registry, components):
        if settings.get("name") in registry:
            yield registry._entry(settings["name"])
    for value in settings.values():
        if isinstance(value, dict):
            yield from _named(value)


@cache  # by the entry itself: there are as many as things registered
def _files(entry: Any) -> frozenset[tuple[str, str]]:
    """Name and SHA-256 of each file that makes what is registered; nothing for livarot's own."""
    factory, names = entry.factory, set()
    while isinstance(factory, partial):  # what it fixes was written where it is registered
        names.add(entry.registered_by)
        factory = factory.func
    names.add(str(getattr(factory, "__module__", "")))
    found: dict[Path, str] = {}
    for place in map(_place, sorted(names)):
        if place is not None:
            _collect(place, found)
    return frozenset((name, hashlib.sha256(path.read_bytes()).hexdigest()) for path, name in found.items())


class _Place(NamedTuple):
    """Where a module is: the folder that its name begins in, and its name."""

    root: Path
    name: Name


def _place(name: str) -> _Place | None:
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file is None or name.partition(".")[0] == "livarot":
        return None
    path = Path(file)
    spec = getattr(module, "__spec__", None)
    parts = tuple((spec.name if spec is not None else name).split("."))
    for root in path.parents:
        if _file(root, parts) == path:
            return _Place(root, parts)
    return _Place(path.parent, (path.stem,))  # a script, or a module that was loaded by its path


def _file(root: Path, name: Name) -> Path | None:
    place = root.joinpath(*name)
    for path in (place / "__init__.py", place.with_name(f"{name[-1]}.py")):
        if path.is_file():
            return path
    return None


def _collect(start: _Place, found: dict[Path, str]) -> None:
    """Add the file of a module and those of all it imports from the same folder or distribution."""
    root, whole = start
    siblings = _siblings(root, whole[0])
    waiting = [whole]
    seen: set[Name] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name[0] == "livarot" or (siblings is not None and name[0] not in siblings):
            continue
        seen.add(name)
        if len(name) > 1:
            waiting.append(name[:-1])  # importing a module runs its package
        path = _file(root, name)
        if path is not None:
            found[path] = path.relative_to(root).as_posix()
            waiting += _imports(path, name if path.name == "__init__.py" else name[:-1])


def _siblings(root: Path, top: str) -> set[str] | None:
    """The first parts of names that belong to a module; None: all of its folder, which holds no libraries."""
    libraries = {Path(sysconfig.get_path(kind)) for kind in ("stdlib", "purelib", "platlib")}
    if root not in libraries and root.name not in ("site-packages", "dist-packages"):
        return None
    owners = importlib.metadata.packages_distributions()
    mine = set(owners.get(top, ()))
    return {top} | {name for name, theirs in owners.items() if mine & set(theirs)}


def _imports(path: Path, package: Name) -> list[Name]:
    """All names that a file imports, as they may be names of modules; what cannot be read imports nothing."""
    found: list[Name] = []
    with contextlib.suppress(SyntaxError, ValueError, RecursionError):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                found += [tuple(alias.name.split(".")) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                above = package[: len(package) - node.level + 1] if node.level else ()
                base = (*above, *(node.module.split(".") if node.module else ()))
                found += [base, *((*base, alias.name) for alias in node.names)]
    return [name for name in found if name]
