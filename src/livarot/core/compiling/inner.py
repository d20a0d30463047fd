"""Functions that only compiled functions call.

A function made by :func:`inner` is translated once, and optimised only as a part of the functions that Python calls
(:mod:`livarot.core.compiling.compiler`).
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config, njit

from livarot.core.compiling.compiler import PartCompiler
from livarot.core.compiling.jit import Kernel


def inner(function: Kernel) -> Kernel:
    """A function for compiled callers: no wrapper for Python, no machine code of its own, nothing on disk.

    With ``NUMBA_DISABLE_JIT=1`` it stays Python, as silent about divisions by zero as when compiled.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set when numba is imported
        return np.errstate(all="ignore")(function)
    options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": PartCompiler}
    compiled: Kernel = njit(nogil=True, error_model="numpy", **options)(function)
    return compiled
