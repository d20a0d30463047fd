"""The public names of a package, each imported when it is first used.

They are listed once, in the stub ``__init__.pyi`` that editors and type checkers read, one per line:

    from .problem import MNLMDP as MNLMDP      the name MNLMDP of the module .problem
    from . import envs as envs                 the module .envs

Modules of a package that are not listed are found too (``livarot.agents.base``), as if they had been imported.

``from package import *`` leaves out the names that need an extra which is not installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable

from livarot.extras import all_there, extra_of, extras_explained


def attach(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of the package whose ``__init__.py`` is `file`; ``__all__`` is found by them."""
    with open(f"{file.removesuffix('.py')}.pyi", encoding="utf-8") as stub:
        lines = re.findall(r"^from (\S+) import (\w+) as \2$", stub.read(), re.MULTILINE)
    homes = {name: importlib.util.resolve_name(module, package) for module, name in lines}
    this = sys.modules[package]

    def find(name: str) -> object:
        if name == "__all__":
            found: object = sorted(homes) if all_there() else [name for name in sorted(homes) if usable(name)]
        elif (home := homes.get(name, package)) != package:
            with extras_explained(extra_of(home)):
                found = getattr(importlib.import_module(home), name)
        elif not name.startswith("_") and importlib.util.find_spec(f"{package}.{name}"):
            with extras_explained():
                found = importlib.import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=this)
        setattr(this, name, found)
        return found

    def usable(name: str) -> bool:
        try:
            getattr(this, name)
        except ImportError as error:
            if type(error).__name__ != "MissingExtra":  # its module imports NumPy
                raise
            return False
        return True

    return find, lambda: sorted({*vars(this), *homes, "__all__"})
