"""How hot loops are compiled, in one place.

``error_model="numpy"``: a division by zero branch in every ``/`` would keep loops from being vectorised.
``fastmath`` stays off and nothing runs in parallel inside a kernel, so that results do not depend on how the
work was split; ``nogil`` lets threads run different seeds side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compile a module-level function; the machine code is cached on disk."""
    compiled: F = njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled
