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

Each of the W numbers is computed by the same operations whatever its neighbours are, without fused or reordered
arithmetic, so results do not depend on how problems were grouped, nor on the width of the machine's registers (LLVM
splits vectors).

*Spare lanes.*  Where fewer than W problems are left, the spare lanes repeat the last problem: they are computed twice,
to the same bits, and may be written twice.  No kernel needs a mask for them.

*Without the compiler* (NUMBA_DISABLE_JIT=1) lanes are small NumPy arrays and the functions below run as they stand, so
that a debugger, a coverage tool or a reader can follow a kernel.
"""

# mypy: disable-error-code="no-untyped-call, no-untyped-def, misc"

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typeconv.castgraph import Conversion
from numba.core.typing.templates import signature
from numba.extending import lower_cast, models, register_model
from numpy.typing import NDArray

from livarot.core.compiling.inner import inner
from livarot.core.views import ViewType, check_bounds, define, make_view, pointer_and_shape, size_of, viewed

W = 8

# ------------------------------------------------------------------------------ in Python: arrays of W numbers


class Lane(np.ndarray[Any, Any]):
    """W numbers side by side (or W truth values: a mask); never changed in place."""

    __iadd__, __isub__ = np.ndarray.__add__, np.ndarray.__sub__  # type: ignore[assignment]
    __imul__, __itruediv__ = np.ndarray.__mul__, np.ndarray.__truediv__  # type: ignore[assignment]


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
    """array[places[l] + shift] = x in lane l; where several lanes have the same place, the last one is kept."""
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


# ------------------------------------------------------------------------------ for the compiler: LLVM vectors

_DOUBLE, _INT64 = ir.DoubleType(), ir.IntType(64)
_NUMBERS, _INTEGERS, _TRUTHS = (ir.VectorType(item, W) for item in (_DOUBLE, _INT64, ir.IntType(1)))
_FIRST, _ZEROS = ir.Constant(ir.IntType(32), 0), ir.Constant(ir.VectorType(ir.IntType(32), W), [0] * W)


class _Vector(types.Type):
    """A type that a scalar of its kind converts to, so that ``total = 0.0; total += lane`` is a lane throughout."""

    def __init__(self, name: str, scalar: type[types.Type]) -> None:
        self.scalar = scalar
        super().__init__(name=f"{name}{W}")

    def can_convert_from(self, typingctx: Any, other: types.Type) -> Any:
        return Conversion.safe if isinstance(other, self.scalar) else None

    def unify(self, typingctx: Any, other: types.Type) -> Any:
        return self if isinstance(other, self.scalar) else None


_lane, _mask = _Vector("Lane", types.Number), _Vector("Mask", types.Boolean)
LANE: types.Type = _lane  # for signatures


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _NUMBERS if kind == _lane else _TRUTHS)


@lower_cast(types.Number, _lane)
@lower_cast(types.Boolean, _mask)
def _repeated(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    """W times the same."""
    vector = context.get_value_type(target)
    scalar = context.cast(builder, value, source, types.float64 if target == _lane else types.boolean)
    undefined = ir.Constant(vector, ir.Undefined)
    return builder.shuffle_vector(builder.insert_element(undefined, scalar, _FIRST), undefined, _ZEROS)


Emit = Callable[..., Any]


def _is_number(*kinds: Any) -> bool:
    return all(kind == _lane or isinstance(kind, types.Number) for kind in kinds)


def _numbers(*kinds: Any) -> Any:
    """Lanes if one of the arguments is a lane, floats otherwise."""
    common = _lane if _lane in kinds else types.float64
    return signature(common, *[common] * len(kinds)) if _is_number(*kinds) else None


def _lanes_to(result: Any) -> Emit:
    """Operators on lanes, or on a lane and a number."""
    return lambda *kinds: signature(result, *[_lane] * len(kinds)) if _lane in kinds and _is_number(*kinds) else None


def _masks_to(result: Any) -> Emit:
    """Operators on masks; in functions of this module a truth value counts as a mask."""
    return lambda *kinds: (
        signature(result, *[_mask] * len(kinds))
        if all(kind == _mask or isinstance(kind, types.Boolean) for kind in kinds)
        and (result != _mask or _mask in kinds)
        else None
    )


def _plain(emit: Emit) -> Emit:
    """Instructions that follow from the values alone."""
    return lambda context, builder, sig, args: emit(builder, *args)


def _instruction(name: str) -> Emit:
    return _plain(lambda builder, *x: getattr(builder, name)(*x))


def _comparison(sign: str) -> Emit:
    # "!=" holds where numbers do not compare, as in Python
    return _plain(lambda b, x, y: (b.fcmp_unordered if sign == "!=" else b.fcmp_ordered)(sign, x, y))


for _name, _made in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul"), ("truediv", "fdiv")):
    for _operator in (getattr(operator, _name), getattr(operator, f"i{_name}")):
        define(_operator, _lanes_to(_lane), _instruction(_made), _lane, _lane)
define(operator.neg, _lanes_to(_lane), _instruction("fneg"), _lane)
for _name, _sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!=")):
    define(getattr(operator, _name), _lanes_to(_mask), _comparison(_sign), _lane, _lane)
for _operator, _made in ((operator.and_, "and_"), (operator.or_, "or_")):
    define(_operator, _masks_to(_mask), _instruction(_made), _mask, _mask)
define(operator.invert, _masks_to(_mask), _instruction("not_"), _mask)


def _chosen(sign: str) -> Emit:
    return _plain(lambda b, x, y: b.select(b.fcmp_ordered(sign, x, y), x, y))


def _intrinsic(name: str) -> Emit:
    def emit(builder: Any, x: Any) -> Any:
        kind = ir.FunctionType(x.type, [x.type])
        suffix = f"v{W}f64" if x.type == _NUMBERS else "f64"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.{suffix}"), [x])

    return _plain(emit)


def _type_where(mask: Any, a: Any, b: Any) -> Any:
    common = _lane if mask == _mask else getattr(_numbers(a, b), "return_type", None)
    fits = _is_number(a, b) and (mask == _mask or isinstance(mask, types.Boolean))
    return signature(common, mask, common, common) if fits else None


define(maximum, _numbers, _chosen(">"))
define(minimum, _numbers, _chosen("<"))
define(sqrt, _numbers, _intrinsic("sqrt"))
define(absolute, _numbers, _intrinsic("fabs"))
define(where, _type_where, _instruction("select"))
define(lane, lambda x: signature(_lane, _lane) if _is_number(x) else None, _plain(lambda b, x: x))


def _repeated_like(kind: Any, number: Any) -> Any:
    """A constant: one number, or W of them where ``kind`` is a vector."""
    return ir.Constant(kind, [number] * W if isinstance(kind, ir.VectorType) else number)


def _bits(builder: Any, x: Any) -> Any:
    return builder.bitcast(x, _INTEGERS if x.type == _NUMBERS else _INT64)


def _emit_power(builder: Any, p: Any, t: Any) -> Any:
    bits = _bits(builder, t)
    shifted = builder.shl(bits, _repeated_like(bits.type, 52))
    return builder.bitcast(builder.add(shifted, _bits(builder, p)), p.type)


def _emit_exponent(builder: Any, x: Any) -> Any:
    bits = _bits(builder, x)
    half, shift = (_repeated_like(bits.type, number) for number in (ROOT_HALF_BITS, 52))
    return builder.sitofp(builder.ashr(builder.sub(bits, half), shift), x.type)


def _on_bits(emit: Emit) -> Emit:
    """A mask as a number of W bits."""
    return _plain(lambda builder, mask: emit(builder, builder.bitcast(mask, ir.IntType(W))))


define(times_power_of_two, _numbers, _plain(_emit_power))
define(exponent_of, _numbers, _plain(_emit_exponent))
define(any_of, _masks_to(types.boolean), _on_bits(lambda b, x: b.icmp_unsigned("!=", x, x.type(0))))
define(all_of, _masks_to(types.boolean), _on_bits(lambda b, x: b.icmp_unsigned("==", x, x.type(-1))))
define(count_of, _masks_to(types.int64), _on_bits(lambda b, x: b.zext(b.ctpop(x), _INT64)))


def _type_number(x: Any, at: Any) -> Any:
    return signature(types.float64, _lane, types.int64) if x == _lane and isinstance(at, types.Integer) else None


def _type_with(x: Any, at: Any, number: Any) -> Any:
    fits = x == _lane and isinstance(at, types.Integer) and isinstance(number, types.Number)
    return signature(_lane, _lane, types.int64, types.float64) if fits else None


define(number_in, _type_number, _instruction("extract_element"))
define(with_number, _type_with, _plain(lambda b, x, at, number: b.insert_element(x, number, at)))


def polynomial(*coefficients: float) -> Callable[[Any], Any]:
    """x -> (..(c_0 x + c_1) x + ..) x + c_n, lane by lane and in this order."""

    def value(x: Any) -> Any:
        total: Any = coefficients[0]
        for c in coefficients[1:]:
            total = total * x + c
        return total

    def emit(builder: Any, x: Any) -> Any:
        total, *rest = (_repeated_like(x.type, c) for c in coefficients)
        for c in rest:
            total = builder.fadd(builder.fmul(total, x), c)
        return total

    define(value, _numbers, _plain(emit))
    return value


_taylor = polynomial(*[1.0 / math.factorial(k) for k in range(12, -1, -1)])


@inner
def exp(x):
    """e^x for x <= 0 (clamped at -700), to 4e-16 relative.

    e^x = 2^k e^r with k = round(x / log 2), |r| <= log(2)/2 and a Taylor polynomial of degree 12.
    """
    x = maximum(x, -700.0)
    t = x * 1.4426950408889634 + ROUNDER
    k = t - ROUNDER
    r = x - k * 0.6931471803691238 - k * 1.9082149292705877e-10
    return times_power_of_two(_taylor(r), t)


# ------------------------------------------------------------------------------ lanes in memory


def _type_lanes(numbers: Any) -> Any:
    seen = viewed(numbers)
    return ViewType(_lane, seen.ndim - 1) if seen and seen.dtype == types.float64 and seen.ndim > 1 else None


def _emit_lanes(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, shape = pointer_and_shape(context, builder, sig.args[0], args[0])
    return make_view(context, builder, sig.return_type, data, shape[:-1])


def _type_numbers(array: Any) -> Any:
    return ViewType(types.float64, 1) if isinstance(array, ViewType) and array.dtype == _lane else None


def _emit_numbers(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, shape = pointer_and_shape(context, builder, sig.args[0], args[0])
    return make_view(context, builder, sig.return_type, data, [size_of(builder, [*shape, _INT64(W)])])


def _is_flat(kind: Any, *items: Any) -> bool:
    return isinstance(kind, ViewType) and kind.ndim == 1 and kind.dtype in items


def _type_load(array: Any, first: Any) -> Any:
    fits = _is_flat(array, types.float64) and isinstance(first, types.Integer)
    return signature(_lane, array, types.int64) if fits else None


def _emit_load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, (length,) = pointer_and_shape(context, builder, sig.args[0], args[0])
    check_bounds(context, builder, builder.add(args[1], _INT64(W - 1)), length)
    return builder.load(builder.bitcast(builder.gep(data, [args[1]]), _NUMBERS.as_pointer()), align=8)


def _scattered(result: Any) -> Emit:
    def typer(array: Any, places: Any, shift: Any, *x: Any) -> Any:
        fits = _is_flat(array, types.float64, types.int64, types.int32) and _is_flat(places, types.int64, types.int32)
        fits = fits and isinstance(shift, types.Integer) and _is_number(*x)
        return signature(result, array, places, types.int64, *[_lane] * len(x)) if fits else None

    return typer


def _pointers(context: Any, builder: Any, sig: Any, args: Any) -> list[Any]:
    """Where the W numbers of :func:`take` or :func:`put` lie."""
    data, (length,) = pointer_and_shape(context, builder, sig.args[0], args[0])
    places, pointers = pointer_and_shape(context, builder, sig.args[1], args[1])[0], []
    for at in range(W):
        place = builder.load(builder.gep(places, [_INT64(at)]))
        index = builder.add(context.cast(builder, place, sig.args[1].dtype, types.int64), args[2])
        check_bounds(context, builder, index, length)
        pointers.append(builder.gep(data, [index]))
    return pointers


def _emit_take(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    found = ir.Constant(_NUMBERS, ir.Undefined)
    for at, pointer in enumerate(_pointers(context, builder, sig, args)):
        number = context.cast(builder, builder.load(pointer), sig.args[0].dtype, types.float64)
        found = builder.insert_element(found, number, _INT64(at))
    return found


def _emit_put(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    for at, pointer in enumerate(_pointers(context, builder, sig, args)):
        number = builder.extract_element(args[3], _INT64(at))
        builder.store(context.cast(builder, number, types.float64, sig.args[0].dtype), pointer)
    return context.get_dummy_value()


define(lanes, _type_lanes, _emit_lanes)
define(numbers_of, _type_numbers, _emit_numbers)
define(load_lane, _type_load, _emit_load)
define(take, _scattered(_lane), _emit_take)
define(put, _scattered(types.none), _emit_put)
