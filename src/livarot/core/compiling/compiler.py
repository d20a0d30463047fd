"""How numba compiles kernels and their parts: fewer steps than it takes by itself, for the same machine code.

A *kernel* is what Python calls (:func:`livarot.core.compiling.jit.jit`), a *part* what only compiled functions call
(:func:`livarot.core.compiling.inner.inner`).  numba would optimise every function by itself, then again within each of
its callers, and keep machine code of all of them: for kernels built of small functions, that takes most of the compile
time.  Here a part is translated once; a kernel is linked with all parts that it reaches, each of them once, and
optimised together with them.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import gc
import operator
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar

from llvmlite.binding import create_pass_builder, create_pipeline_tuning_options
from numba.core import types
from numba.core.cgutils import alloca_once
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, LoweringPass, register_pass
from numba.core.datamodel.packer import ArgPacker
from numba.core.ir import Assign
from numba.core.lowering import Lower
from numba.core.typed_passes import (
    BaseNativeLowering,
    DumpParforDiagnostics,
    InlineOverloads,
    NativeLowering,
    NopythonRewrites,
    NoPythonSupportedFeatureValidation,
    NopythonTypeInference,
)
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FindLiterallyCalls,
    InlineClosureLikes,
    InlineInlinables,
    IRProcessing,
    LiteralPropagationSubPipelinePass,
    LiteralUnroll,
    MakeFunctionToJitFunction,
    RewriteSemanticConstants,
    WithLifting,
)


class _Unoptimised(JITCodeLibrary):
    """The code of a function: only what is linked together is optimised."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


class _PartLibrary(_Unoptimised):
    """The code of a part, without that of the parts it calls and without machine code."""

    def finalize(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = "linkonce_odr"  # several kernels have it; what is inlined everywhere is dropped
        self._finalize_dynamic_globals()
        self._shared_module, self._finalized = self._final_module, True


class _KernelLibrary(_Unoptimised):
    """The code of a kernel and of all that it reaches."""

    def _reached(self) -> Iterator[Any]:
        waiting, seen = list(self._linking_libraries), set()
        while waiting:
            library = waiting.pop()
            if library not in seen:
                seen.add(library)
                yield library
                if isinstance(library, _PartLibrary):
                    waiting += library._linking_libraries

    def _optimize_final_module(self) -> None:
        """Once, and without unrolling or vectorising loops: lanes are vectors already, and code would double.

        A part is of no use outside the kernel: what is called in one place only is inlined there, however long it is.
        """
        for function in self._final_module.functions:
            if function.linkage.name == "linkonce_odr":
                function.linkage = "internal"
        options = create_pipeline_tuning_options(speed_level=3)
        options.loop_unrolling = options.loop_interleaving = False
        options.loop_vectorization = options.slp_vectorization = False
        builder = create_pass_builder(self._codegen._tm, options)
        builder.getModulePassManager().run(self._final_module, builder)

    def finalize(self) -> None:
        self._linking_libraries = list(self._reached())
        super().finalize()


@register_pass(mutates_CFG=False, analysis_only=True)
class _KernelBeforeLowering(FunctionPass):
    _name = "livarot_kernel_library"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = _KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _PartBeforeLowering(FunctionPass):
    _name = "livarot_part_library"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _PartAfterLowering(LoweringPass):
    _name = "livarot_part_function"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        # numba wants a builtin method by which callers know the function; this one raises if Python calls it
        entry = {"compiled functions only": None}.__getitem__
        state["cr"] = state["cr"]._replace(cfunc=entry)
        state.targetctx.insert_user_function(entry, state["cr"].fndesc, [state.library])
        return False


class _Typing:
    """numba's typing context, which remembers what its builtin functions and attributes give for which types.

    Type inference asks for each of them several times per function, and numba tries all candidates each time.  The
    objects of a question are kept with the answer: answers are found by their ids, which must not be used again.
    """

    def __init__(self, context: Any) -> None:
        self._context, self._known = context, dict[tuple[Any, ...], tuple[Any, ...]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def _remembered(self, ask: Callable[..., Any], *about: Any) -> Any:
        key = (ask.__name__, *map(id, about))
        if key not in self._known:
            self._known[key] = ask(*about), about
        return self._known[key][0]

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        def ask(func: Any, *args: Any) -> Any:
            return self._context.resolve_function_type(func, args, {})

        if isinstance(func, types.Dispatcher):  # one translation for all constants; they are known when it is inlined
            args = tuple(map(types.unliteral, args))
        plain = isinstance(func, types.Function) and not kws
        return self._remembered(ask, func, *args) if plain else self._context.resolve_function_type(func, args, kws)

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        return self._remembered(self._context.resolve_setitem, target, index, value)

    def resolve_getattr(self, kind: Any, name: str) -> Any:
        return self._remembered(self._context.resolve_getattr, kind, name)


_typing = cache(_Typing)


@register_pass(mutates_CFG=True, analysis_only=False)
class _TypeInference(NopythonTypeInference):
    _name = "livarot_type_inference"

    def run_pass(self, state: Any) -> Any:
        context = state.typingctx
        state.typingctx = _typing(context)
        try:
            return super().run_pass(state)
        finally:
            state.typingctx = context


class _Whole:
    """How a NamedTuple is handed to a function: as it is, and not taken apart into its numbers and put together again,
    which is half of all instructions that numba emits for functions of NamedTuples."""

    def __init__(self, model: Any) -> None:
        self.get_argument_type = model.get_value_type

    def as_argument(self, builder: Any, value: Any) -> Any:
        return value

    from_argument = as_argument


class _Models:
    """numba's models of types, as arguments."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def lookup(self, kind: Any) -> Any:
        model = self._manager.lookup(kind)
        return _Whole(model) if isinstance(kind, types.BaseNamedTuple) else model


class _Functions:
    """``get_function`` of a lowering context, which remembers what numba found for which types.

    numba looks for it among all candidates, and reads its signature, at every call.
    """

    _known: ClassVar[dict[tuple[int, ...], tuple[Any, ...]]] = {}

    def __init__(self, context: Any) -> None:
        self._context, self._ask = context, context.get_function

    def __call__(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        about = fn, sig.return_type, sig.recvr, *sig.args  # kept with the answer, so that it keeps its id
        key = tuple(map(id, about))
        if key not in self._known:
            self._known[key] = self._ask(fn, sig, _firstcall), about
        found = self._known[key][0]
        made = object.__new__(type(found))
        made.__dict__.update(found.__dict__, _context=self._context)
        return made


class _PlainLower(Lower):
    """Lowering to fewer instructions where no references are counted: numbers, lanes, views and tuples of them.

    A variable that is assigned once, before all its uses, needs no memory of its own: it is a name for a value.
    """

    def init(self) -> None:
        super().init()
        models = _Models(self.context.data_model_manager)
        self.context.get_arg_packer = cache(lambda kinds: ArgPacker(models, kinds))
        self.context.get_function = _Functions(self.context)
        self._counted_types: dict[Any, bool] = {}
        if not self.func_ir.func_id.is_generator:
            self._singly_assigned_vars |= {
                name for name in self._named_values() if not self._counted(self.typeof(name))
            }

    def _counted(self, kind: Any) -> bool:
        """Does a value of this type hold references?"""
        found = self._counted_types.get(kind)
        if found is None:
            found = self._counted_types[kind] = self.context.data_model_manager[kind].contains_nrt_meminfo()
        return found

    def _named_values(self) -> Iterator[str]:
        """Variables with one assignment, in a block that dominates, and stands before, all blocks that use it."""
        assigned, lifetime, home = Counter[str](), self.func_ir.variable_lifetime, {}
        for at, block in self.blocks.items():
            for each in block.find_insts(Assign):
                assigned[each.target.name] += 1
                home[each.target.name] = at
        users: dict[str, set[int]] = {}
        for at, names in lifetime.usedefs.usemap.items():
            for name in names:
                users.setdefault(name, set()).add(at)
        dominators = lifetime.cfg.dominators()
        for name, at in home.items():
            if assigned[name] == 1 and all(at in dominators[user] and at < user for user in users.get(name, ())):
                yield name

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """As numba's own, which tries constant operands first: only powers know them."""
        if op in (operator.pow, operator.ipow):
            return super().lower_binop(resty, expr, op)
        return self._operated(op, (expr.lhs, expr.rhs), self.fndesc.calltypes[expr], resty)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        return self._operated(operator.getitem, (value, index), signature, resty)

    def _operated(self, op: Any, variables: tuple[Any, Any], signature: Any, resty: Any) -> Any:
        typing = _typing(self.context.typing_context)
        kind = typing.resolve_value_type(op)
        function = self.context.get_function(kind, typing.resolve_function_type(kind, signature.args, {}))
        values = [self._cast_var(x, kind) for x, kind in zip(variables, signature.args, strict=True)]
        return self.context.cast(self.builder, function(self.builder, values), signature.return_type, resty)

    def storevar(self, value: Any, name: Any, argidx: Any = None) -> None:
        if self._counted(self.typeof(name)) or name in self._singly_assigned_vars:
            super().storevar(value, name, argidx)
        else:
            self.builder.store(value, self.getvar(name))  # nothing to release in what it replaces

    def delvar(self, name: Any) -> None:
        if self._counted(self.typeof(name)):
            super().delvar(name)

    def alloca_lltype(self, name: Any, lltype: Any, datamodel: Any = None) -> Any:
        return alloca_once(self.builder, lltype, name=name, zfill=False)

    def incref(self, typ: Any, val: Any) -> None:
        if self._counted(typ):
            super().incref(typ, val)

    def decref(self, typ: Any, val: Any) -> None:
        if self._counted(typ):
            super().decref(typ, val)


class _PartLower(_PlainLower):
    def pre_block(self, block: Any) -> None:
        self._cur_ir_block = block  # numba's own looks for exceptions that are caught: a user's rule may, parts do not


@register_pass(mutates_CFG=True, analysis_only=False)
class _KernelLowering(BaseNativeLowering):
    _name = "livarot_kernel_lowering"  # type: ignore[assignment]
    lowering_class = _PlainLower


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(BaseNativeLowering):
    _name = "livarot_part_lowering"  # type: ignore[assignment]
    lowering_class = _PartLower


def _replaced(pipeline: Any, *passes: tuple[Any, Any]) -> None:
    """Each first pass of a pipeline by the second one, or by nothing."""
    for old, new in passes:
        if new is not None:
            pipeline.add_pass_after(new, old)
        pipeline.passes = [each for each in pipeline.passes if each[0] is not old]


# for array expressions, closures, overloads, contexts and literal values, which parts do not have
_LEFT_OUT = [
    (each, None)
    for each in (
        DeadBranchPrune,
        DumpParforDiagnostics,
        FindLiterallyCalls,
        InlineClosureLikes,
        InlineInlinables,
        InlineOverloads,
        LiteralPropagationSubPipelinePass,
        LiteralUnroll,
        MakeFunctionToJitFunction,
        NopythonRewrites,
        NoPythonSupportedFeatureValidation,
        RewriteSemanticConstants,
        WithLifting,
    )
]


class PartCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(_PartBeforeLowering, IRProcessing)
        pipeline.add_pass_after(_PartAfterLowering, NativeLowering)
        _replaced(pipeline, (NativeLowering, _PartLowering), (NopythonTypeInference, _TypeInference), *_LEFT_OUT)
        pipeline.finalize()
        return [pipeline]


class KernelCompiler(CompilerBase):
    """The compiler of kernels.  Python's garbage collector waits meanwhile: it would take a tenth of the time."""

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(_KernelBeforeLowering, IRProcessing)
        _replaced(pipeline, (NativeLowering, _KernelLowering), (NopythonTypeInference, _TypeInference))
        pipeline.finalize()
        return [pipeline]

    def compile_extra(self, func: Any) -> Any:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if collecting:
                gc.enable()
