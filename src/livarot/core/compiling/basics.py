"""The smaller and the larger of two numbers, new arrays, and a range check of integers, in a few instructions.

numba knows all of them, but compiles a function for each combination of types, which takes longer than a kernel's own
part.  ``min`` and ``max`` of two numbers are extended here, with the same results (the first of equal numbers, and the
first where they do not compare); other calls are left to numba.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import signature

from livarot.core.views import ViewType, define, pointer_and_shape, size_of


def new_floats(*shape: int) -> Any:
    """A new array of floats, not initialised."""
    return np.empty(shape)


def new_integers(*shape: int) -> Any:
    """A new array of 64-bit integers, not initialised."""
    return np.empty(shape, dtype=np.int64)


def all_below(array: Any, limit: int) -> bool:
    """Does 0 <= x < limit hold for all entries of a flat view of 32-bit integers?"""
    return bool(((array >= 0) & (array < limit)).all())


# ------------------------------------------------------------------------------ for the compiler


def _type_two(*kinds: Any) -> Any:
    if len(kinds) != 2:
        return None
    if types.float64 in kinds:
        fits = all(kind == types.float64 or isinstance(kind, types.Integer) for kind in kinds)
        return signature(types.float64, types.float64, types.float64) if fits else None
    fits = all(isinstance(kind, types.Integer) and getattr(kind, "signed", False) for kind in kinds)
    wide = types.int64 if types.int64 in kinds else kinds[0]
    return signature(wide, wide, wide) if fits and (wide == types.int64 or kinds[0] == kinds[1]) else None


def _chosen(sign: str) -> Any:
    def emit(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        compare = builder.fcmp_ordered if sig.return_type == types.float64 else builder.icmp_signed
        return builder.select(compare(sign, args[1], args[0]), args[1], args[0])

    return emit


define(max, _type_two, _chosen(">"), types.Number, types.Number)
define(min, _type_two, _chosen("<"), types.Number, types.Number)


def _arrays_of(item: Any) -> Any:
    def typer(*shape: Any) -> Any:
        whole = shape and all(isinstance(length, types.Integer) for length in shape)
        return signature(types.Array(item, len(shape), "C"), *[types.int64] * len(shape)) if whole else None

    return typer


def _emit_new(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """As numba does it, without its check for overflow: lengths are those of arrays that exist."""
    made = context.make_array(sig.return_type)(context, builder)
    strides = [ir.Constant(ir.IntType(64), 8)]
    for length in args[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    block = context.nrt.meminfo_alloc_aligned(builder, builder.mul(size_of(builder, args), strides[-1]), 64)
    made.meminfo, made.parent = block, cgutils.get_null_value(made.parent.type)
    made.data = builder.bitcast(context.nrt.meminfo_data(builder, block), made.data.type)
    made.nitems, made.itemsize = size_of(builder, args), strides[-1]
    made.shape, made.strides = cgutils.pack_array(builder, args), cgutils.pack_array(builder, strides)
    return made._getvalue()


_SIDE_BY_SIDE = 16


def _type_below(array: Any, limit: Any) -> Any:
    fits = array == ViewType(types.int32, 1) and isinstance(limit, types.Integer)
    return signature(types.boolean, array, types.int32) if fits else None


def _emit_below(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, (length,) = pointer_and_shape(context, builder, sig.args[0], args[0])
    wide = ir.VectorType(data.type.pointee, _SIDE_BY_SIDE)
    blocks = builder.lshr(length, length.type(_SIDE_BY_SIDE.bit_length() - 1))
    limits = ir.Constant(wide, ir.Undefined)
    for at in range(_SIDE_BY_SIDE):
        limits = builder.insert_element(limits, args[1], ir.Constant(ir.IntType(32), at))
    good = cgutils.alloca_once_value(
        builder, ir.Constant(ir.VectorType(ir.IntType(1), _SIDE_BY_SIDE), [1] * _SIDE_BY_SIDE)
    )
    rest = cgutils.alloca_once_value(builder, cgutils.true_bit)
    with cgutils.for_range(builder, blocks) as loop:  # a negative number is large without its sign
        x = builder.load(builder.gep(builder.bitcast(data, wide.as_pointer()), [loop.index]), align=4)
        builder.store(builder.and_(builder.load(good), builder.icmp_unsigned("<", x, limits)), good)
    done = builder.mul(blocks, length.type(_SIDE_BY_SIDE))
    with cgutils.for_range(builder, length, start=done) as loop:
        x = builder.load(builder.gep(data, [loop.index]))
        builder.store(builder.and_(builder.load(rest), builder.icmp_unsigned("<", x, args[1])), rest)
    bits = builder.bitcast(builder.load(good), ir.IntType(_SIDE_BY_SIDE))
    return builder.and_(builder.icmp_unsigned("==", bits, bits.type(-1)), builder.load(rest))


define(all_below, _type_below, _emit_below)
define(new_floats, _arrays_of(types.float64), _emit_new)
define(new_integers, _arrays_of(types.int64), _emit_new)
