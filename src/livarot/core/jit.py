"""How hot loops are compiled, in one place.

``error_model="numpy"``: a division by zero branch in every ``/`` would keep loops from being vectorised.
``fastmath`` stays off and nothing runs in parallel inside a kernel, so that results do not depend on how the
work was split; ``nogil`` lets threads run different seeds side by side.

Machine code is kept in numba's cache folder, each file with its SHA-256: what is damaged there, in whatever way, is
compiled again, with a warning that names the folder.  Files in that folder are code, and numba reads them with pickle:
nobody but its owner should be able to write there.
"""
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import config, njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

Kernel = Callable[..., Any]

logger = logging.getLogger(__name__)
_MARK = b"livarot sha256 "
_TAIL = len(_MARK) + 32


class _CheckedFiles(IndexDataCacheFile):
    """numba's files, machine code with its SHA-256 behind it (numba itself would read past it)."""

    def _save_data(self, name: str, data: Any) -> None:
        whole = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(whole + _MARK + hashlib.sha256(whole).digest())

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            whole = file.read()
        known = whole[-_TAIL:].startswith(_MARK)  # not in files that numba wrote by itself
        if known and _MARK + hashlib.sha256(whole[:-_TAIL]).digest() != whole[-_TAIL:]:
            raise ValueError(f"{name} does not match its SHA-256")
        return super()._load_data(name)


class _Cache(FunctionCache):
    """numba's cache of a function; what cannot be read or written there does not keep anybody from computing."""

    def __init__(self, function: Kernel) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFiles(self.cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # a damaged pickle can raise anything
            why = f"{type(error).__name__}: {error}"
            logger.warning("compiling again, since numba's cache in %s cannot be read (%s)", self.cache_path, why)
            with contextlib.suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:
            logger.warning("numba's cache in %s cannot be written (%s)", self.cache_path, error)


def jit(function: Kernel) -> Kernel:
    """Compile a module-level function; the machine code is cached on disk.

    With ``NUMBA_DISABLE_JIT=1`` it stays Python, and as silent about divisions by zero as when compiled.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set when numba is imported
        return np.errstate(all="ignore")(function)
    compiled: Any = njit(nogil=True, error_model="numpy")(function)
    setattr(compiled, "_cache", _Cache(function))  # noqa: B010 (numba's types do not tell of it)
    return cast("Kernel", compiled)
