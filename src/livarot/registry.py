"""Names for things that can be built: agents, environments, experiments.

A registry maps a name to a factory. A name is data: it is looked up, never imported, so a configuration file
can choose among what is registered and nothing else.  What installed packages offer as entry points is registered too:

    [project.entry-points."livarot.agents"]     # in the pyproject.toml of such a package
    my-agent = "my_package.agents:MyAgent"

>>> shapes: Registry[tuple[int, ...]] = Registry("shape")
>>> shapes.register("square", lambda side=1: (side, side), "two equal sides")
>>> shapes.make("square", side=3)
(3, 3)
>>> shapes.make("squre")
Traceback (most recent call last):
    ...
livarot.errors.LivarotError: shape: no 'squre'; did you mean 'square'? Registered: square
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import logging
import os
import re
import reprlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, NoReturn, TypeVar

from livarot.errors import LivarotError, bad

__all__ = ["Registry", "import_modules"]

T = TypeVar("T")
logger = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_KEYWORD_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, eq=False)
class _Entry(Generic[T]):
    load: Callable[[], Callable[..., T]]
    summary: str
    registered_by: str  # the module that called `register`

    @cached_property
    def factory(self) -> Callable[..., T]:
        return self.load()

    @cached_property
    def parameters(self) -> tuple[inspect.Parameter, ...] | None:
        """The parameters of the factory; None for built-in callables that have no signature."""
        try:
            return tuple(inspect.signature(self.factory).parameters.values())
        except ValueError:
            return None


class Registry(Generic[T]):
    """Factories by name, listed in alphabetical order; `noun` says in messages what is registered.

    `group` names the entry points that add to it.  They are looked up when the names are listed or a name is not known,
    and a package is imported when its factory is used.
    """

    def __init__(self, noun: str, group: str | None = None) -> None:
        self.noun = noun
        self._group = group  # None once its entry points are here
        self._entries: dict[str, _Entry[T]] = {}
        self._told: set[str] = set()  # names of which a warning said that they cannot be loaded

    def register(self, name: str, factory: Callable[..., T], summary: str) -> None:
        """Add `factory` under `name` (letters, digits, ``-`` and ``_``), with a summary of one line."""
        if not callable(factory):
            raise bad(self.noun, f"the factory of {reprlib.repr(name)} cannot be called")
        self._add(name, lambda: factory, summary)

    def register_later(self, name: str, load: Callable[[], Callable[..., T]], summary: str) -> None:
        """The same for a factory that `load` returns when it is first needed, so registering a name imports nothing."""
        self._add(name, load, summary)

    def _add(self, name: str, load: Callable[[], Callable[..., T]], summary: str) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise bad(
                self.noun,
                f"{reprlib.repr(name)} is not a name",
                cure="use letters, digits, '-' and '_', beginning with a letter or digit",
            )
        if name in self._entries:
            raise bad(self.noun, f"{name!r} is registered already", cure="choose another name")
        caller = sys._getframe(2).f_globals.get("__name__", "")
        self._entries[name] = _Entry(load, " ".join(summary.split()), caller)

    def _add_installed(self) -> None:
        """Register the entry points of installed packages, once; a name that is taken stays what it is."""
        group, self._group = self._group, None
        for point in entry_points(group=group) if group else ():
            package = point.dist.name if point.dist else point.value
            if point.name in self._entries or not _NAME.fullmatch(point.name):
                why = "is registered already" if point.name in self._entries else "is not a name"
                logger.warning("%s: %r of the package %s is left out: it %s", self.noun, point.name, package, why)
                continue
            load: Callable[[], Callable[..., T]] = partial(_loaded, self.noun, point)
            self._entries[point.name] = _Entry(load, f"from the package {package}", point.module)

    def make(self, name: str, /, **kwargs: Any) -> T:
        """Call the factory of `name` with `kwargs`, after checking that it takes them."""
        self.check_keywords(name, kwargs)
        return self._entry(name).factory(**kwargs)

    def names(self) -> tuple[str, ...]:
        self._add_installed()
        return tuple(sorted(self._entries))

    def loadable(self) -> tuple[str, ...]:
        """The names whose factories can be loaded, which this does.

        Each of the others is named in a warning, once: a package that does not work must not hide those that do.
        """
        found = []
        for name in self.names():
            try:
                self.factory(name)
            except LivarotError as error:
                if name not in self._told:
                    self._told.add(name)
                    logger.warning("%s; it is left out", error)
            else:
                found.append(name)
        return tuple(found)

    def summary(self, name: str) -> str:
        return self._entry(name).summary

    def factory(self, name: str) -> Callable[..., T]:
        return self._entry(name).factory

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and name not in self._entries:
            self._add_installed()
        return isinstance(name, str) and name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __repr__(self) -> str:
        return f"Registry({self.noun!r}: {', '.join(self.names()) or 'empty'})"

    def _entry(self, name: str) -> _Entry[T]:
        if name not in self:
            self._refuse(f"no {reprlib.repr(name)}", name, self.names(), "Registered")
        return self._entries[name]

    def check_keywords(self, name: str, kwargs: Mapping[str, Any]) -> None:
        """Refuse arguments that the factory of `name` does not take, and calls that lack those it needs."""
        parameters = self._entry(name).parameters
        if parameters is None:
            return
        known = [p.name for p in parameters if p.kind in _KEYWORD_KINDS]
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            for keyword in kwargs:
                if keyword not in known:
                    self._refuse(f"{name!r} takes no {reprlib.repr(keyword)}", keyword, known, "It takes")
        required = [p.name for p in parameters if p.kind in _KEYWORD_KINDS and p.default is p.empty]
        missing = [keyword for keyword in required if keyword not in kwargs]
        if missing:
            raise bad(self.noun, f"{name!r} needs {', '.join(missing)}", cure="give a value for each")

    def _refuse(self, problem: str, wrong: object, known: Sequence[str], label: str) -> NoReturn:
        close = difflib.get_close_matches(str(wrong)[:100], known, n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        tail = label if close else label[0].lower() + label[1:]
        raise bad(self.noun, problem, cure=f"{hint}{tail}: {', '.join(known) or 'nothing'}")


def _loaded(noun: str, point: EntryPoint) -> Any:
    """What an entry point names; a failure is one line."""
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # whatever that package does
        said = f"{type(error).__name__}: {str(error)[:200] or 'no message'}"
        raise bad(noun, f"{point.name!r} ({point.value}) cannot be loaded ({said})") from error
    if not callable(found):
        raise bad(noun, f"{point.name!r} ({point.value}) cannot be called", cure="name a class or a function")
    return found


def import_modules(names: Sequence[str]) -> None:
    """Import modules that register agents or environments, from the current folder first; a failure is one line."""
    if names and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # in the workers too: they inherit it
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise bad("import", f"{name!r} needs a module that is not there: {error.name!r}") from error
            cure = "write its name without .py" if name.endswith(".py") else "it must be in this folder or installed"
            raise bad("import", f"there is no module {name!r}", cure=cure) from error
        except (Exception, SystemExit) as error:  # whatever that module does
            said = str(error) or "no message"
            raise bad("import", f"{name!r} cannot be imported ({type(error).__name__}: {said[:200]})") from error
