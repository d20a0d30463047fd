"""Functions that only compiled functions call.

numba optimises every function by itself, then again within each of its callers, and keeps machine code of all of them:
for kernels built of small functions, that takes most of the compile time.  A function made by :func:`inner`
is translated once and optimised only as a part of the functions that Python calls (:func:`livarot.core.jit.jit`).
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config, njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, LoweringPass, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering, InlineOverloads, NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes, IRProcessing

from livarot.core.jit import Kernel


class _PartLibrary(JITCodeLibrary):
    """The code of a function that is only a part of others: it is optimised and turned into machine code with them."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=True)
class _BeforeLowering(FunctionPass):
    _name = "livarot_part_library"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _AfterLowering(LoweringPass):
    _name = "livarot_part_function"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        # numba wants a builtin method by which callers know the function; this one raises if Python calls it
        entry = {"compiled functions only": None}.__getitem__
        state["cr"] = state["cr"]._replace(cfunc=entry)
        state.targetctx.insert_user_function(entry, state["cr"].fndesc, [state.library])
        return False


class _PartLower(Lower):
    """Lowering that treats a tuple of views as plain numbers: there are no references to count in it."""

    def incref(self, typ: Any, val: Any) -> None:
        if self.context.data_model_manager[typ].contains_nrt_meminfo():
            super().incref(typ, val)

    def decref(self, typ: Any, val: Any) -> None:
        if self.context.data_model_manager[typ].contains_nrt_meminfo():
            super().decref(typ, val)


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(BaseNativeLowering):
    _name = "livarot_part_lowering"  # type: ignore[assignment]
    lowering_class = _PartLower


# the first is replaced by the passes above; the others serve array expressions, closures and overloads: not used here
_LEFT_OUT = (NativeLowering, NopythonRewrites, InlineClosureLikes, InlineOverloads)


class _PartCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(_BeforeLowering, IRProcessing)
        pipeline.add_pass_after(_PartLowering, NativeLowering)
        pipeline.passes = [each for each in pipeline.passes if each[0] not in _LEFT_OUT]
        pipeline.add_pass_after(_AfterLowering, _PartLowering)
        pipeline.finalize()
        return [pipeline]


def inner(function: Kernel) -> Kernel:
    """A function for compiled callers: no wrapper for Python, no machine code of its own, nothing on disk.

    With ``NUMBA_DISABLE_JIT=1`` it stays Python, as silent about divisions by zero as when compiled.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # set when numba is imported
        return np.errstate(all="ignore")(function)
    options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _PartCompiler}
    compiled: Kernel = njit(nogil=True, error_model="numpy", **options)(function)
    return compiled
