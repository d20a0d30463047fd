"""The lane: W numbers side by side, used like one number.

A kernel written for one small problem solves W of them at a time when its numbers are lanes: ``+ - * /`` and the
comparisons act on each of the W numbers alone, a comparison gives a *mask*, and :func:`where` chooses by it.  A float
counts as W equal numbers.  So the source reads like the mathematics of one problem, and the same source serves floats.

    z = offset[i]
    for k in range(m):
        z += y[i, k] * x[k]
    top = maximum(top, z)

A lane is a value (an LLVM vector): what happens to a copy does not change the original.  Arrays of lanes are float64
arrays whose last axis has W numbers, seen through :func:`lanes`: ``lanes(a)[i, k]`` is the lane ``a[i, k, :]``.
:func:`take` and :func:`put` gather and scatter a lane from W places of a flat view (:mod:`livarot.core.views`).

Every lane is computed by the same operations whatever its neighbours are, without fused or reordered arithmetic, so
results do not depend on how problems were grouped, nor on the width of the machine's registers (LLVM splits vectors).

*Spare lanes.*  Where fewer than W problems are left, the spare lanes repeat the last problem: they are computed twice,
to the same bits, and may be written twice.  No kernel needs a mask for them.

*Without the compiler* (NUMBA_DISABLE_JIT=1) lanes are small NumPy arrays and the functions below run as they stand, so
that a debugger, a coverage tool or a reader can follow a kernel.
"""

# mypy: disable-error-code="no-untyped-call, no-untyped-def, misc"

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typeconv.castgraph import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, lower_cast, models, register_model, type_callable
from numpy.typing import NDArray

from livarot.core.inner import inner
from livarot.core.views import ViewType, make_view

W = 8

# ------------------------------------------------------------------------------ in Python: arrays of W numbers


class Lane(np.ndarray[Any, Any]):
    """W numbers side by side (or W truth values: a mask); never changed in place."""

    def __iadd__(self, other: Any) -> Any:
        return self + other

    def __isub__(self, other: Any) -> Any:
        return self - other

    def __imul__(self, other: Any) -> Any:
        return self * other

    def __itruediv__(self, other: Any) -> Any:
        return self / other


class LaneArray:
    """An array of lanes over a float64 array whose last axis has W numbers."""

    def __init__(self, numbers: NDArray[np.float64]) -> None:
        self.numbers = numbers

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape[:-1]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: Any) -> Any:
        found = self.numbers[index]
        return found.copy().view(Lane) if found.ndim == 1 else LaneArray(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.numbers[index] = value

    def reshape(self, shape: tuple[int, ...]) -> LaneArray:
        return LaneArray(self.numbers.reshape((*shape, W)))


def lanes(numbers: Any) -> Any:
    """A C-contiguous float64 array (..., W) as an array of lanes (...)."""
    return LaneArray(numbers)


def numbers_of(array: Any) -> Any:
    """The numbers of a flat array of lanes, one after the other: number l of lane i is at i W + l."""
    return array.numbers.reshape(-1)


def lane(x: Any) -> Any:
    """W times the same number (a lane stays as it is)."""
    return x if isinstance(x, Lane) else np.full(W, x, dtype=np.float64).view(Lane)


def where(mask: Any, a: Any, b: Any) -> Any:
    """a where the mask holds, b elsewhere."""
    if isinstance(mask, Lane):
        return np.where(mask, a, b).view(Lane)
    return a if mask else b


def maximum(a: Any, b: Any) -> Any:
    """The larger number, lane by lane (b where they do not compare)."""
    return where(a > b, a, b)


def minimum(a: Any, b: Any) -> Any:
    """The smaller number, lane by lane (b where they do not compare)."""
    return where(a < b, a, b)


def sqrt(x: Any) -> Any:
    """The square root, lane by lane."""
    return np.sqrt(x)


def absolute(x: Any) -> Any:
    """|x|, lane by lane."""
    return np.abs(x)


def any_of(mask: Any) -> bool:
    """Does the mask hold in some lane?"""
    return bool(np.any(mask))


def all_of(mask: Any) -> bool:
    """Does the mask hold in every lane?"""
    return bool(np.all(mask))


def count_of(mask: Any) -> int:
    """In how many lanes does the mask hold?"""
    return int(np.sum(mask))


def take(array: Any, places: Any, shift: Any) -> Any:
    """The lane of array[places[0] + shift], ..., array[places[W - 1] + shift]: flat array, W places."""
    return np.asarray(array[places + shift], dtype=np.float64).view(Lane)


def load_lane(array: Any, first: int) -> Any:
    """The lane of W neighbours: array[first], ..., array[first + W - 1] of a flat array of floats."""
    return array[first : first + W].copy().view(Lane)


def put(array: Any, places: Any, shift: Any, x: Any) -> None:
    """array[places[l] + shift] = x in lane l; of lanes with one place the last one stays."""
    for number, place in zip(np.broadcast_to(x, W), places, strict=True):
        array[place + shift] = number


def number_in(x: Any, at: int) -> float:
    """The number in one lane."""
    return float(x[at])


def with_number(x: Any, at: int, number: float) -> Any:
    """The lane with one of its numbers replaced."""
    made = x.copy()
    made[at] = number
    return made


def times_power_of_two(p: Any, t: Any) -> Any:
    """p 2^k, where k is the integer in the low bits of t = 1.5 2^52 + k."""
    bits = (np.asarray(t).view(np.int64) << np.int64(52)) + np.asarray(p).view(np.int64)
    made = np.asarray(bits).view(np.float64)
    return made.view(Lane) if isinstance(p, Lane) else np.float64(made)


def exponent_of(x: Any) -> Any:
    """k with x = m 2^k and m from sqrt(1/2) to sqrt(2), for normal x > 0."""
    k = np.asarray((np.asarray(x).view(np.int64) - ROOT_HALF_BITS) >> np.int64(52)).astype(np.float64)
    return k.view(Lane) if isinstance(x, Lane) else np.float64(k)


ROOT_HALF_BITS = int(np.float64(np.sqrt(0.5)).view(np.int64))
ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer kept in the low bits


@inner
def exp(x):
    """e^x for x <= 0 (clamped at -700), to 4e-16 relative.

    e^x = 2^k e^r with k = round(x / log 2), |r| <= log(2)/2 and a Taylor polynomial of degree 12.
    """
    x = maximum(x, -700.0)
    t = x * 1.4426950408889634 + ROUNDER
    k = t - ROUNDER
    r = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    p = r * (1.0 / 479001600.0) + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return times_power_of_two(p, t)


# ------------------------------------------------------------------------------ for the compiler: LLVM vectors

_DOUBLE, _INT64 = ir.DoubleType(), ir.IntType(64)
_NUMBERS = ir.VectorType(_DOUBLE, W)
_INTEGERS = ir.VectorType(_INT64, W)
_TRUTHS = ir.VectorType(ir.IntType(1), W)
_ZEROS = ir.Constant(ir.VectorType(ir.IntType(32), W), [0] * W)


class _Vector(types.Type):
    """A type that a scalar of its kind converts to, so that ``total = 0.0; total += lane`` is a lane throughout."""

    scalar: type[types.Type]

    def can_convert_from(self, typingctx: Any, other: types.Type) -> Any:
        return Conversion.safe if isinstance(other, self.scalar) else None

    def unify(self, typingctx: Any, other: types.Type) -> Any:
        return self if isinstance(other, self.scalar) else None


class _LaneType(_Vector):
    scalar = types.Number

    def __init__(self) -> None:
        super().__init__(name=f"Lane{W}")


class _MaskType(_Vector):
    scalar = types.Boolean

    def __init__(self) -> None:
        super().__init__(name=f"Mask{W}")


_lane, _mask = _LaneType(), _MaskType()


@register_model(_LaneType)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _NUMBERS)


@register_model(_MaskType)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _TRUTHS)


def _repeated(builder: Any, scalar: Any, kind: Any) -> Any:
    """A vector of W equal numbers."""
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, undefined, _ZEROS)


@lower_cast(types.Number, _LaneType)
def _number_to_lane(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return _repeated(builder, context.cast(builder, value, source, types.float64), _NUMBERS)


@lower_cast(types.Boolean, _MaskType)
def _bool_to_mask(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return _repeated(builder, builder.trunc(value, ir.IntType(1)) if value.type.width > 1 else value, _TRUTHS)


def _is_number(kind: Any) -> bool:
    return isinstance(kind, _LaneType | types.Number)


def _has_lane(*kinds: Any) -> bool:
    return all(map(_is_number, kinds)) and any(isinstance(kind, _LaneType) for kind in kinds)


Emit = Callable[..., Any]


def _operation(operation: Any, emit: Emit, result: Any, kinds: tuple[Any, ...]) -> None:
    """An operator on lanes, or on a lane and a number."""

    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            return signature(result, *args) if len(args) == len(kinds) and _has_lane(*args) else None

    infer_global(operation)(Template)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vectors = [context.cast(builder, x, kind, _lane) for x, kind in zip(args, sig.args, strict=True)]
        return emit(builder, *vectors)

    if len(kinds) == 1:
        lower_builtin(operation, _LaneType)(lower)
    else:
        for pair in ((_LaneType, _LaneType), (_LaneType, types.Number), (types.Number, _LaneType)):
            lower_builtin(operation, *pair)(lower)


def _arithmetic(name: str) -> Emit:
    return lambda builder, *x: getattr(builder, name)(*x)


def _comparison(sign: str) -> Emit:
    if sign == "!=":  # holds where numbers do not compare, as in Python
        return lambda builder, a, b: builder.fcmp_unordered(sign, a, b)
    return lambda builder, a, b: builder.fcmp_ordered(sign, a, b)


for _name, _instruction in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul"), ("truediv", "fdiv")):
    _operation(getattr(operator, _name), _arithmetic(_instruction), _lane, (0, 0))
    _operation(getattr(operator, f"i{_name}"), _arithmetic(_instruction), _lane, (0, 0))
_operation(operator.neg, _arithmetic("fneg"), _lane, (0,))
for _name, _sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!=")):
    _operation(getattr(operator, _name), _comparison(_sign), _mask, (0, 0))


def _mask_operation(operation: Any, instruction: str, count: int) -> None:
    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            masks = len(args) == count and all(isinstance(kind, _MaskType) for kind in args)
            return signature(_mask, *args) if masks else None

    infer_global(operation)(Template)
    lower_builtin(operation, *[_MaskType] * count)(
        lambda context, builder, sig, args: getattr(builder, instruction)(*args)
    )


_mask_operation(operator.and_, "and_", 2)
_mask_operation(operator.or_, "or_", 2)
_mask_operation(operator.invert, "not_", 1)


def _function(function: Callable[..., Any], typer: Callable[..., Any]) -> Callable[[Emit], Emit]:
    """Register the compiled form of one of the Python functions above: its result type and its instructions."""
    type_callable(function)(lambda context: typer)

    def register(emit: Emit) -> Emit:
        lower_builtin(function, types.VarArg(types.Any))(emit)
        return emit

    return register


def _numbers_to(result: Any) -> Callable[..., Any]:
    """lane for lanes, the float type for floats."""

    def typer(*kinds: Any) -> Any:
        if _has_lane(*kinds):
            return result
        return types.float64 if all(isinstance(kind, types.Number) for kind in kinds) else None

    return typer


def _one(a: Any) -> Any:
    return _numbers_to(_lane)(a)


def _two(a: Any, b: Any) -> Any:
    return _numbers_to(_lane)(a, b)


def _choice(mask: Any, a: Any, b: Any) -> Any:
    if isinstance(mask, _MaskType):
        return _lane if _is_number(a) and _is_number(b) else None
    return _numbers_to(_lane)(a, b) if isinstance(mask, types.Boolean) else None


def _common(context: Any, builder: Any, sig: Any, args: Any) -> list[Any]:
    """All arguments as the result's type."""
    return [context.cast(builder, x, kind, sig.return_type) for x, kind in zip(args, sig.args, strict=True)]


@_function(where, _choice)
def _emit_where(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    a, b = (context.cast(builder, args[n], sig.args[n], sig.return_type) for n in (1, 2))
    truth = (
        args[0] if isinstance(sig.args[0], _MaskType) else context.cast(builder, args[0], sig.args[0], types.boolean)
    )
    return builder.select(truth, a, b)


@_function(maximum, _two)
def _emit_maximum(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    a, b = _common(context, builder, sig, args)
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@_function(minimum, _two)
def _emit_minimum(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    a, b = _common(context, builder, sig, args)
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _call(builder: Any, name: str, x: Any) -> Any:
    suffix = f"v{W}f64" if isinstance(x.type, ir.VectorType) else "f64"
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(x.type, [x.type]), f"llvm.{name}.{suffix}"
    )
    return builder.call(function, [x])


@_function(sqrt, _one)
def _emit_sqrt(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _call(builder, "sqrt", _common(context, builder, sig, args)[0])


@_function(absolute, _one)
def _emit_absolute(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _call(builder, "fabs", _common(context, builder, sig, args)[0])


@_function(lane, lambda x: _lane if _is_number(x) else None)
def _emit_lane(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return context.cast(builder, args[0], sig.args[0], _lane)


@_function(times_power_of_two, _two)
def _emit_power(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    p, t = _common(context, builder, sig, args)
    vector = isinstance(p.type, ir.VectorType)
    whole = _INTEGERS if vector else _INT64
    shift = ir.Constant(whole, [52] * W) if vector else ir.Constant(whole, 52)
    bits = builder.add(builder.shl(builder.bitcast(t, whole), shift), builder.bitcast(p, whole))
    return builder.bitcast(bits, p.type)


@_function(exponent_of, _one)
def _emit_exponent(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    x = _common(context, builder, sig, args)[0]
    vector = isinstance(x.type, ir.VectorType)
    whole = _INTEGERS if vector else _INT64
    half, shift = (ir.Constant(whole, [n] * W if vector else n) for n in (ROOT_HALF_BITS, 52))
    return builder.sitofp(builder.ashr(builder.sub(builder.bitcast(x, whole), half), shift), x.type)


def _on_mask(result: Any) -> Callable[..., Any]:
    return lambda mask: result if isinstance(mask, _MaskType | types.Boolean) else None


def _as_bits(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.bitcast(context.cast(builder, args[0], sig.args[0], _mask), ir.IntType(W))


@_function(any_of, _on_mask(types.boolean))
def _emit_any(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    bits = _as_bits(context, builder, sig, args)
    return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))


@_function(all_of, _on_mask(types.boolean))
def _emit_all(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    bits = _as_bits(context, builder, sig, args)
    return builder.icmp_unsigned("==", bits, ir.Constant(bits.type, -1))


@_function(count_of, _on_mask(types.int64))
def _emit_count(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.zext(builder.ctpop(_as_bits(context, builder, sig, args)), _INT64)


@_function(
    number_in, lambda x, at: types.float64 if isinstance(x, _LaneType) and isinstance(at, types.Integer) else None
)
def _emit_number(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.extract_element(args[0], context.cast(builder, args[1], sig.args[1], types.int64))


def _type_with(x: Any, at: Any, number: Any) -> Any:
    return _lane if isinstance(x, _LaneType) and isinstance(at, types.Integer) and _is_number(number) else None


@_function(with_number, _type_with)
def _emit_with(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    number = context.cast(builder, args[2], sig.args[2], types.float64)
    return builder.insert_element(args[0], number, context.cast(builder, args[1], sig.args[1], types.int64))


def _lanes_type(numbers: Any) -> Any:
    fits = isinstance(numbers, types.Array | ViewType) and numbers.dtype == types.float64 and numbers.ndim > 1
    packed = isinstance(numbers, ViewType) or (fits and numbers.layout == "C")
    return ViewType(_lane, numbers.ndim - 1) if fits and packed else None


@_function(lanes, _lanes_type)
def _emit_lanes(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    if isinstance(sig.args[0], ViewType):
        source = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    else:
        source = context.make_array(sig.args[0])(context, builder, args[0])
    shape = cgutils.unpack_tuple(builder, source.shape, sig.args[0].ndim)[:-1]
    return make_view(context, builder, sig.return_type, builder.bitcast(source.data, _NUMBERS.as_pointer()), shape)


@_function(
    numbers_of,
    lambda array: ViewType(types.float64, 1) if isinstance(array, ViewType) and array.dtype == _lane else None,
)
def _emit_numbers(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    source = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    count = ir.Constant(_INT64, W)
    for length in cgutils.unpack_tuple(builder, source.shape, sig.args[0].ndim):
        count = builder.mul(count, length)
    return make_view(context, builder, sig.return_type, builder.bitcast(source.data, _DOUBLE.as_pointer()), [count])


def _is_flat(kind: Any, *items: Any) -> bool:
    return isinstance(kind, ViewType) and kind.ndim == 1 and kind.dtype in items


def _places_fit(array: Any, places: Any, shift: Any) -> bool:
    return (
        _is_flat(array, types.float64, types.int64, types.int32)
        and _is_flat(places, types.int64, types.int32)
        and isinstance(shift, types.Integer)
    )


def _pointers(context: Any, builder: Any, sig: Any, args: Any) -> list[Any]:
    """Where the W numbers of :func:`take` or :func:`put` lie."""
    array, places = (cgutils.create_struct_proxy(sig.args[n])(context, builder, args[n]) for n in (0, 1))
    shift = context.cast(builder, args[2], sig.args[2], types.int64)
    pointers = []
    for at in range(W):
        place = builder.load(builder.gep(places.data, [ir.Constant(_INT64, at)]))
        index = builder.add(context.cast(builder, place, sig.args[1].dtype, types.int64), shift)
        if context.enable_boundscheck:
            cgutils.do_boundscheck(context, builder, index, builder.extract_value(array.shape, 0))
        pointers.append(builder.gep(array.data, [index]))
    return pointers


def _type_neighbours(array: Any, first: Any) -> Any:
    return _lane if _is_flat(array, types.float64) and isinstance(first, types.Integer) else None


@_function(load_lane, _type_neighbours)
def _emit_load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    array = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
    first = context.cast(builder, args[1], sig.args[1], types.int64)
    if context.enable_boundscheck:
        last = builder.add(first, ir.Constant(_INT64, W - 1))
        cgutils.do_boundscheck(context, builder, last, builder.extract_value(array.shape, 0))
    return builder.load(builder.bitcast(builder.gep(array.data, [first]), _NUMBERS.as_pointer()), align=8)


@_function(take, lambda array, places, shift: _lane if _places_fit(array, places, shift) else None)
def _emit_take(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    found = ir.Constant(_NUMBERS, ir.Undefined)
    for at, pointer in enumerate(_pointers(context, builder, sig, args)):
        number = context.cast(builder, builder.load(pointer), sig.args[0].dtype, types.float64)
        found = builder.insert_element(found, number, ir.Constant(ir.IntType(32), at))
    return found


@_function(
    put, lambda array, places, shift, x: types.none if _places_fit(array, places, shift) and _is_number(x) else None
)
def _emit_put(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    vector = context.cast(builder, args[3], sig.args[3], _lane)
    for at, pointer in enumerate(_pointers(context, builder, sig, args)):
        number = builder.extract_element(vector, ir.Constant(ir.IntType(32), at))
        builder.store(context.cast(builder, number, types.float64, sig.args[0].dtype), pointer)
    return context.get_dummy_value()
