"""How hot loops are compiled, in one place.

``error_model="numpy"``: a branch for division by zero in every ``/`` would keep loops from being vectorised.
``fastmath`` stays off and nothing runs in parallel inside a kernel, so that results do not depend on how the
work was split; ``nogil`` lets threads run different seeds side by side.

Machine code is kept in numba's cache folder.  It depends on the source of a kernel and of all it calls, so it belongs
to one state of the sources (:func:`read_sources`): after an edit the kernels in the folder of that module, and in the
layers above it, are compiled again, into the same files.  Each file carries its SHA-256: a kernel whose file is damaged
in any way is compiled again, with a warning that names the folder.  Files in that folder are code, and numba reads them
with pickle: only its owner should be able to write there.
"""
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import contextlib
import hashlib
import logging
import multiprocessing
import os
import threading
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numba import config, njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

import livarot.core.compiling.basics  # noqa: F401 (kernels use its min and max)
from livarot.core.compiling.compiler import KernelCompiler

Kernel = Callable[..., Any]

logger = logging.getLogger(__name__)
PACKAGE = str(Path(__file__).parents[2])
LAYERS = (  # of folders, from below; imports point down, so kernels depend on their own folder and on those below
    ("",),  # modules outside any folder
    ("system",),
    ("core",),
    ("model",),
    ("planning", "estimation", "confidence", "simulation"),
    ("theory",),
    ("agents", "envs", "infinite"),
    ("running", "data"),
)
FIRST_RUN = 7  # CPU seconds that a first livarot.run compiles (benchmarks/cold.py)
NOTICE = "compiling, about %d s for a first livarot.run, once (livarot warmup compiles everything ahead)"

_compiling = threading.Lock()
counts: Counter[str] = Counter()  # functions "compiled" and "loaded" in this process, per combination of types


def folders_of(module: str) -> list[str]:
    """The folders of the package that kernels of a module can depend on: all of them if it is a user's module."""
    package, own = (*module.split("."), "")[:2]
    below: list[str] = []
    for layer in LAYERS:
        if package == "livarot" and own in layer:
            return [*below, own]
        below += layer
    return below


def read_sources(folder: str) -> bytes:
    """SHA-256 of the sources in a folder: contents, not times.  For all folders it takes a few milliseconds."""
    digest = hashlib.sha256()
    for place, below, files in os.walk(os.path.join(PACKAGE, folder)):
        below[:] = sorted(set(below) - {"__pycache__"}) if folder else []
        for name in sorted(files):
            if name.endswith(".py"):
                with open(os.path.join(place, name), "rb", buffering=0) as file:
                    content = file.read()
                digest.update(f"{place.removeprefix(PACKAGE)} {name} {len(content)}\n".encode() + content)
    return digest.digest()


first_read = cache(read_sources)  # the folder as it was when the first kernel that may depend on it was defined


class _Names(CompileResultCacheImpl):
    """Files are named after their functions, without the line number, which an edit above would change."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return str(super().get_filename_base(fullname, abiflags)).replace(f"-{self._lineno}.py", ".py")


class _CheckedFiles(IndexDataCacheFile):
    """numba's files, with a SHA-256 of the machine code and of its sources at their end (numba ignores it)."""

    def _digest(self, whole: bytes) -> bytes:
        return hashlib.sha256(self._source_stamp[1] + whole).digest()

    def _save_data(self, name: str, data: Any) -> None:
        whole = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(whole + self._digest(whole))

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            whole = file.read()
        if self._digest(whole[:-32]) != whole[-32:]:
            raise ValueError(f"{name} does not match its SHA-256")
        return super()._load_data(name)


class KernelCache(FunctionCache):
    """numba's cache of a function; files that cannot be read or written cost a compilation, not the computation."""

    _impl_class = _Names

    def __init__(self, function: Kernel) -> None:
        super().__init__(function)
        self._folders = folders_of(function.__module__)
        ours = function.__module__.split(".")[0] == "livarot"  # contents say it all; older numbas look at times
        own = () if ours else self._impl.locator.get_source_stamp()
        stamp = own, b"".join(map(first_read, self._folders))
        self._cache_file = _CheckedFiles(self.cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = None
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:  # a damaged pickle can raise anything
            why = f"{type(error).__name__}: {error}"
            logger.warning("compiling again, since numba's cache in %s cannot be read (%s)", self.cache_path, why)
            with contextlib.suppress(Exception):
                self.flush()
        counts["compiled" if found is None else "loaded"] += 1
        if found is None and counts["compiled"] == 1:
            _tell()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            if all(read_sources(folder) == first_read(folder) for folder in self._folders):  # not edited since
                super().save_overload(sig, data)
        except Exception as error:
            logger.warning("numba's cache in %s cannot be written (%s)", self.cache_path, error)


def _tell() -> None:
    """Say, before the first compilation of a process, that it will take a while.

    The level is INFO, since nothing is wrong.  But a first call that is silent for so long looks as if it hung, and a
    notebook or a script without a logging setup shows no records of a library.  There the line goes to standard error,
    as unhandled warnings do in Python; worker processes leave it to the process that started them.
    """
    logger.info(NOTICE, FIRST_RUN)
    above = (logging.getLogger("livarot"), logging.getLogger())
    unheard = all(isinstance(handler, logging.NullHandler) for one in above for handler in one.handlers)
    if unheard and logging.lastResort and multiprocessing.current_process().name == "MainProcess":
        record = logger.makeRecord(logger.name, logging.INFO, __file__, 0, f"livarot: {NOTICE}", (FIRST_RUN,), None)
        logging.lastResort.handle(record)


def jit(function: Kernel) -> Kernel:
    """Compile a module-level function; the machine code is cached on disk.

    With ``NUMBA_DISABLE_JIT=1`` it stays Python, and as silent about divisions by zero as when compiled.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set when numba is imported
        return np.errstate(all="ignore")(function)
    options: Any = {"no_cfunc_wrapper": True, "pipeline_class": KernelCompiler}  # never called through a C pointer
    compiled: Any = njit(nogil=True, error_model="numpy", **options)(function)
    setattr(compiled, "_cache", KernelCache(function))  # noqa: B010 (numba's annotations do not declare it)
    return cast("Kernel", compiled)


def compile_only(kernel: Any, *types: Any) -> None:
    """Compile a kernel for these types of arguments; for any other types it raises a TypeError from now on.

    So it can be handed arguments from outside: numba checks their types anyway, faster than Python would.
    """
    with _compiling:
        if not config.DISABLE_JIT and types not in kernel.overloads:  # type: ignore[attr-defined]
            kernel.disable_compile(False)
            kernel.compile(types)
            kernel.disable_compile()
