"""How hot loops are compiled, in one place.

``error_model="numpy"``: a division by zero branch in every ``/`` would keep loops from being vectorised.
``fastmath`` stays off and nothing runs in parallel inside a kernel, so that results do not depend on how the
work was split; ``nogil`` lets threads run different seeds side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config, njit

Kernel = Callable[..., Any]


def jit(function: Kernel) -> Kernel:
    """Compile a module-level function; the machine code is cached on disk.

    With ``NUMBA_DISABLE_JIT=1`` it stays Python, and as silent about divisions by zero as when compiled.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set when numba is imported
        return np.errstate(all="ignore")(function)
    compiled: Kernel = njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled
