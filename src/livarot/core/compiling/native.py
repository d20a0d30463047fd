"""Functions that compiled code calls by their address.

A loop that calls a function by its address is compiled once, whatever it calls; the function is compiled by itself, for
one combination of types, when its address is first asked for, and kept on disk like a kernel
(:mod:`livarot.core.compiling.jit`).  There it is found by a digest of its code and of all that its code names
(:func:`code_of`): functions made by one factory differ in what they close over, and must not be mistaken for each
other.
"""
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import hashlib
import os
from functools import cached_property
from types import BuiltinFunctionType, CodeType, ModuleType
from typing import Any
from uuid import uuid4

import numpy as np
from numba import config, njit
from numba.core import cgutils
from numba.core.typing.templates import Signature

from livarot.core.compiling.compiler import KernelCompiler
from livarot.core.compiling.jit import Kernel, KernelCache


class Native:
    """A function with an address; Python calls the function itself, not its compiled form.

    ``kinds`` are the types of its arguments; its files are named after ``module`` and ``name``.
    """

    def __init__(self, function: Kernel, kinds: tuple[Any, ...], module: str, name: str, digest: str) -> None:
        self.function, self.kinds, self.digest = function, kinds, digest
        function.__module__, function.__qualname__ = module, name

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __index__(self) -> int:
        return 0 if config.DISABLE_JIT else self.address  # type: ignore[attr-defined]

    @cached_property
    def address(self) -> int:
        """Where the function's machine code is, after compiling it or loading it from the cache."""
        options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": KernelCompiler}
        compiled: Any = njit(nogil=True, error_model="numpy", **options)(self.function)
        compiled._cache = _DigestCache(self.function, self.digest)
        self.function.__qualname__ += f"_{self.digest}"  # machine code is named after it, and names must differ too
        compiled.compile(self.kinds)
        (found,) = compiled.overloads.values()
        self._kept = compiled  # keeps the machine code alive as long as its address
        return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))


class _DigestCache(KernelCache):
    """A cache that finds machine code by a digest; numba's own looks at the bytecode of the function alone."""

    def __init__(self, function: Kernel, digest: str) -> None:
        super().__init__(function)
        self._digest = digest

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple(), self._digest


def emit_call(context: Any, builder: Any, sig: Signature, address: Any, args: list[Any]) -> Any:
    """The instructions that call the function at an address, which has that signature; errors are passed on."""
    kind = context.call_conv.get_function_type(sig.return_type, sig.args)
    function = builder.inttoptr(address, kind.as_pointer())
    status, result = context.call_conv.call_function(builder, function, sig.return_type, sig.args, args)
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return result


def digest_of(*parts: Any) -> str:
    """A shortened SHA-256 of what decides the machine code of the parts: functions, or values that they name."""
    return hashlib.sha256(repr([code_of(part) for part in parts]).encode()).hexdigest()[:16]


def code_of(part: Any, seen: tuple[Any, ...] = ()) -> Any:
    """What decides the machine code of a function: its code, what it names, and the code of the functions it names.

    What cannot be compared gets a random mark: the function is then compiled once more, but never mistaken for another.
    """
    function = getattr(part, "py_func", part)
    if any(function is one for one in seen):
        return ""
    if isinstance(part, int | float | str | type | BuiltinFunctionType | None):
        return repr(part)
    if isinstance(part, np.ndarray):
        return part.dtype.str, part.shape, part.tobytes()
    if isinstance(part, tuple):
        return type(part).__qualname__, [code_of(x, seen) for x in part]
    if isinstance(part, ModuleType):
        file = getattr(part, "__file__", None)
        stat = os.stat(file) if file and os.path.exists(file) else None
        return part.__name__, stat and (stat.st_size, stat.st_mtime_ns)
    code = getattr(function, "__code__", None)
    if code is None:
        return uuid4().hex
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    named = [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    return [_plain(code), *(code_of(x, (*seen, function)) for x in [*cells, *named])]


def _plain(code: CodeType) -> Any:
    constants = [_plain(x) if isinstance(x, CodeType) else x for x in code.co_consts]
    return code.co_code, constants, code.co_names, code.co_varnames
