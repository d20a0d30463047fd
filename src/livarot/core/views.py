"""Views: what compiled functions hand to each other in place of arrays.

A view is an address and a shape (C order, up to three axes).  It does not own its memory, so passing it on, keeping it
in a NamedTuple or taking a part of it costs nothing, where an array's references would be counted every time; the array
belongs to the Python code that called the kernel, or to a variable that outlives the view.

>>> import numpy as np
>>> v = view(np.arange(6.0).reshape(2, 3))
>>> float(v[1, 2]), len(v), v.shape
(5.0, 2, (2, 3))

``v[i]`` of a view with more axes is a view, ``part(v, first, count)`` some entries of a flat one, and
``matrix(v, first, n, m)`` n * m entries of a flat one as a matrix.  Indices count from the front; NUMBA_BOUNDSCHECK=1
has them checked.  Without the compiler views are the arrays themselves.
"""

# mypy: disable-error-code="no-untyped-call, attr-defined, union-attr"

from __future__ import annotations

import operator
from array import array
from copy import deepcopy
from functools import cache, reduce
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    Signature,
    infer_getattr,
    signature,
)
from numba.extending import (
    NativeValue,
    lower_builtin,
    lower_getattr,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.numpy_support import from_dtype


def view(array: Any) -> Any:
    """The view of a C-contiguous array."""
    return array


def part(flat: Any, first: Any, count: Any) -> Any:
    """``count`` entries of a flat view, from ``first`` on."""
    return flat[first : first + count]


def matrix(flat: Any, first: Any, n: Any, m: Any) -> Any:
    """n * m entries of a flat view, from ``first`` on, as an (n, m) view."""
    return flat[first : first + n * m].reshape((n, m))


def flat(array: Any) -> Any:
    """All entries of a view, one after the other."""
    return array.reshape(-1)


# ------------------------------------------------------------------------------ for the compiler

_INT = ir.IntType(64)


def define(function: Any, typer: Any, emit: Any, *kinds: Any) -> None:
    """The compiled form of a Python function: what it gives for which types, and its instructions.

    ``typer`` is called with the types of the arguments.  It gives None (they do not fit), the type of the result, or a
    signature with the types that the arguments are converted to first.  For functions that numba knows already,
    ``kinds`` are the types that they are extended to.
    """

    class Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            found = typer(*args)
            return found if found is None or isinstance(found, Signature) else signature(found, *args)

    typing, ours = cpu_target.typing_context, types.Function(Template)
    if known := typing._lookup_global(function):  # other code has been compiled in this process before
        typing._remove_global(function)
    typing._insert_global(function, ours.augment(known) if known else ours)  # numba tries them in order: ours first
    lower_builtin(function, *(kinds or [types.VarArg(types.Any)]))(emit)


class ViewType(types.Type):
    """The type of views: what they hold and the number of axes."""

    def __init__(self, dtype: types.Type, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(name=f"View({dtype}, {ndim})")

    @property
    def key(self) -> tuple[types.Type, int]:
        return self.dtype, self.ndim


@register_model(ViewType)
class _ViewModel(models.StructModel):
    def __init__(self, manager: Any, kind: ViewType) -> None:
        members = [("data", types.CPointer(kind.dtype)), ("shape", types.UniTuple(types.int64, kind.ndim))]
        super().__init__(manager, kind, members)


def make_view(context: Any, builder: Any, kind: ViewType, data: Any, shape: list[Any]) -> Any:
    """A view of that type from a pointer and its lengths."""
    made = ir.Constant(context.get_value_type(kind), ir.Undefined)
    made = builder.insert_value(made, builder.bitcast(data, made.type.elements[0]), 0)
    for axis, length in enumerate(shape):
        made = builder.insert_value(made, length, [1, axis])
    return made


def pointer_and_shape(context: Any, builder: Any, kind: Any, value: Any) -> tuple[Any, list[Any]]:
    """Pointer and lengths of a view or an array."""
    if isinstance(kind, ViewType):
        return builder.extract_value(value, 0), [builder.extract_value(value, [1, axis]) for axis in range(kind.ndim)]
    found = context.make_array(kind)(context, builder, value)
    return found.data, cgutils.unpack_tuple(builder, found.shape, kind.ndim)


def size_of(builder: Any, shape: list[Any]) -> Any:
    """The product of the lengths."""
    return reduce(builder.mul, shape)


def check_bounds(context: Any, builder: Any, index: Any, length: Any) -> None:
    """With NUMBA_BOUNDSCHECK=1: raise an IndexError unless 0 <= index < length."""
    if context.enable_boundscheck:
        cgutils.do_boundscheck(context, builder, index, length)


def viewed(array: Any) -> Any:
    """The type of the view of an array or a view; None for anything else."""
    packed = isinstance(array, types.Array) and array.layout == "C" and array.ndim <= 3
    return ViewType(array.dtype, array.ndim) if packed or isinstance(array, ViewType) else None


def _emit_view(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return make_view(context, builder, sig.return_type, *pointer_and_shape(context, builder, sig.args[0], args[0]))


def _emit_flat(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, shape = pointer_and_shape(context, builder, sig.args[0], args[0])
    return make_view(context, builder, sig.return_type, data, [size_of(builder, shape)])


def _type_some(flat: Any, first: Any, *lengths: Any) -> Any:
    whole = all(isinstance(kind, types.Integer) for kind in (first, *lengths))
    if not (whole and isinstance(flat, ViewType) and flat.ndim == 1):
        return None
    return signature(ViewType(flat.dtype, len(lengths)), flat, *[types.int64] * (1 + len(lengths)))


def _emit_some(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, (length,) = pointer_and_shape(context, builder, sig.args[0], args[0])
    end = builder.add(args[1], size_of(builder, args[2:]))
    check_bounds(context, builder, end, builder.add(length, ir.Constant(_INT, 1)))
    return make_view(context, builder, sig.return_type, builder.gep(data, [args[1]]), args[2:])


define(view, viewed, _emit_view)
define(flat, lambda array: ViewType(array.dtype, 1) if isinstance(array, ViewType) else None, _emit_flat)
define(part, _type_some, _emit_some)
define(matrix, _type_some, _emit_some)


def _left(array: Any, index: Any) -> int:
    """How many axes of a view are left when it is indexed; -1 if it cannot be."""
    whole = index if isinstance(index, types.BaseTuple) else [index]
    fits = isinstance(array, ViewType) and all(isinstance(kind, types.Integer) for kind in whole)
    return array.ndim - len(whole) if fits and 0 < len(whole) <= array.ndim else -1


def _type_get(array: Any, index: Any) -> Any:
    left = _left(array, index)
    return None if left < 0 else ViewType(array.dtype, left) if left else array.dtype


def _type_set(array: Any, index: Any, value: Any) -> Any:
    return signature(types.none, array, index, array.dtype) if _left(array, index) == 0 else None


def _place(context: Any, builder: Any, sig: Any, args: Any) -> tuple[Any, list[Any]]:
    """Pointer to what an index names, and the lengths of the axes left."""
    data, shape = pointer_and_shape(context, builder, sig.args[0], args[0])
    many = isinstance(sig.args[1], types.BaseTuple)
    kinds = list(sig.args[1]) if many else [sig.args[1]]
    values = cgutils.unpack_tuple(builder, args[1], len(kinds)) if many else [args[1]]
    indices = [context.cast(builder, value, kind, types.int64) for value, kind in zip(values, kinds, strict=True)]
    for index, length in zip(indices, shape, strict=False):
        check_bounds(context, builder, index, length)
    flat, left = indices[0], shape[len(indices) :]
    for index, length in zip(indices[1:], shape[1:], strict=False):
        flat = builder.add(builder.mul(flat, length), index)
    return builder.gep(data, [size_of(builder, [flat, *left])]), left


def _align(kind: Any) -> int:
    return int(kind.bitwidth) // 8 if isinstance(kind, types.Integer | types.Float) else 8


def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    pointer, left = _place(context, builder, sig, args)
    if left:
        return make_view(context, builder, sig.return_type, pointer, left)
    return builder.load(pointer, align=_align(sig.return_type))


def _set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    pointer, _ = _place(context, builder, sig, args)
    builder.store(args[2], pointer, align=_align(sig.args[0].dtype))
    return context.get_dummy_value()


def _emit_len(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return pointer_and_shape(context, builder, sig.args[0], args[0])[1][0]


define(operator.getitem, _type_get, _get, ViewType, types.Any)
define(operator.setitem, _type_set, _set, ViewType, types.Any, types.Any)
define(len, lambda array: types.intp if isinstance(array, ViewType) else None, _emit_len, ViewType)


@infer_getattr
class _ViewAttributes(AttributeTemplate):
    key = ViewType

    def resolve_shape(self, kind: ViewType) -> Any:
        return types.UniTuple(types.int64, kind.ndim)


@lower_getattr(ViewType, "shape")
def _shape(context: Any, builder: Any, kind: ViewType, value: Any) -> Any:
    return builder.extract_value(value, 1)


# ------------------------------------------------------------------------------ many arrays as one argument


class Bundle(array):  # type: ignore[type-arg]
    """A NamedTuple of C-contiguous arrays, numbers and further NamedTuples, as one argument of a kernel.

    Handing twenty arrays to a compiled function costs microseconds each time; a bundle is made once and costs as much
    as one array.  :func:`opened` gives the same NamedTuple back, with views in place of the arrays.  Whatever has an
    ``__index__`` is stored as that whole number: another bundle, for instance, as its address.

    A bundle is an array of addresses, lengths and numbers, with a class for each combination of types: numba knows the
    type of a buffer by its class, without looking at attributes, which would take as long as the call.
    """

    fields: Any  # the arrays stay alive as long as the bundle does
    _numba_type_: BundleType

    def __new__(cls, fields: Any) -> Bundle:
        entries: list[int] = []
        made: Any = array.__new__(_bundle_class(_listed(fields, entries)), "q", entries)
        made.fields = fields
        return cast("Bundle", made)

    def __index__(self) -> int:
        return int(self.buffer_info()[0])

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return Bundle, (self.fields,)  # a copy lists the addresses of its own arrays

    def __copy__(self) -> Bundle:
        return Bundle(self.fields)

    def __deepcopy__(self, memo: Any) -> Bundle:
        return Bundle(deepcopy(self.fields, memo))


class BundleType(types.Type):
    """The type of bundles: that of the NamedTuple of views it opens to."""

    def __init__(self, content: types.Type) -> None:
        self.content = content
        super().__init__(name=f"Bundle({content})")


def _listed(item: Any, entries: list[int]) -> Any:
    """A description of an item, from which its type follows; its addresses, lengths and numbers go to ``entries``.

    A NamedTuple that is bundled again and again may keep its own as ``listing`` (:func:`listing_of`).
    """
    if isinstance(item, tuple):
        kept = getattr(item, "listing", None)
        if kept is None:
            return type(item), *[_listed(field, entries) for field in item]
        entries.extend(kept[1])
        return kept[0]
    if isinstance(item, np.ndarray):
        if not item.flags.c_contiguous:
            raise ValueError("a bundle takes C-contiguous arrays only")
        entries.append(item.__array_interface__["data"][0])
        entries.extend(item.shape)
        return item.dtype, item.ndim
    if isinstance(item, float):
        entries.append(int(np.float64(item).view(np.int64)))
        return float
    entries.append(operator.index(item))
    return int


def listing_of(fields: Any) -> tuple[Any, list[int]]:
    """What a bundle lists of a NamedTuple: valid as long as its arrays are where they are, so not for a copy of it."""
    entries: list[int] = []
    return _listed(fields, entries), entries


@cache
def _bundle_class(listed: Any) -> type[Bundle]:
    return type("Bundle", (Bundle,), {"_numba_type_": BundleType(_opened_type(listed))})


@typeof_impl.register(Bundle)
def _typeof_bundle(bundle: Bundle, _: Any) -> BundleType:
    return bundle._numba_type_


def _opened_type(listed: Any) -> types.Type:
    """The type of an item as :func:`opened` gives it."""
    if listed in (int, float):
        return types.int64 if listed is int else types.float64
    if isinstance(listed[0], np.dtype):
        return ViewType(from_dtype(listed[0]), listed[1])
    made: types.Type = types.BaseTuple.from_types([_opened_type(field) for field in listed[1:]], listed[0])
    return made


@register_model(BundleType)
class _BundleModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: BundleType) -> None:
        super().__init__(manager, kind, _INT.as_pointer())


@unbox(BundleType)
def _unbox_bundle(kind: BundleType, bundle: Any, c: Any) -> Any:
    buffer = c.pyapi.alloca_buffer()
    c.pyapi.get_buffer(bundle, buffer)
    pointer = c.builder.load(c.builder.bitcast(buffer, _INT.as_pointer().as_pointer()))  # the first field of the buffer
    c.pyapi.release_buffer(buffer)
    return NativeValue(pointer)


def opened(bundle: Any) -> Any:
    """The NamedTuple of views that a bundle holds."""
    return bundle.fields


def _emit_opened(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    read = 0

    def entry() -> Any:
        nonlocal read
        read += 1
        return builder.load(builder.gep(args[0], [ir.Constant(_INT, read - 1)]))

    def build(kind: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            return context.make_tuple(builder, kind, [build(field) for field in kind])
        if isinstance(kind, ViewType):
            data = builder.inttoptr(entry(), _INT.as_pointer())
            return make_view(context, builder, kind, data, [entry() for _ in range(kind.ndim)])
        return builder.bitcast(entry(), ir.DoubleType()) if kind == types.float64 else entry()

    return build(sig.return_type)


define(opened, lambda bundle: bundle.content if isinstance(bundle, BundleType) else None, _emit_opened)
