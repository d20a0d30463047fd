"""Views: what compiled functions hand to each other in place of arrays.

A view is an address and a shape (C order, up to three axes).  It does not own its memory, so passing it on, keeping it
in a NamedTuple or taking a part of it costs nothing, where an array's references would be counted every time; the array
belongs to whoever called the kernel from Python, or to a variable that outlives the view.

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
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import NativeValue, lower_builtin, lower_getattr, models, register_model, type_callable, unbox
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
    made = cgutils.create_struct_proxy(kind)(context, builder)
    made.data = data
    made.shape = cgutils.pack_array(builder, shape)
    return made._getvalue()


def _opened(context: Any, builder: Any, kind: ViewType, value: Any) -> tuple[Any, list[Any]]:
    """Pointer and lengths of a view."""
    found = cgutils.create_struct_proxy(kind)(context, builder, value)
    return found.data, cgutils.unpack_tuple(builder, found.shape, kind.ndim)


@type_callable(view)
def _type_view(context: Any) -> Any:
    def typer(array: Any) -> Any:
        if isinstance(array, ViewType):
            return array
        plain = isinstance(array, types.Array) and array.layout == "C" and array.ndim <= 3
        return ViewType(array.dtype, array.ndim) if plain else None

    return typer


@lower_builtin(view, ViewType)
def _view_view(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return args[0]


@lower_builtin(view, types.Array)
def _view_array(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    array = context.make_array(sig.args[0])(context, builder, args[0])
    shape = cgutils.unpack_tuple(builder, array.shape, sig.args[0].ndim)
    return make_view(context, builder, sig.return_type, array.data, shape)


def _integers(kind: Any) -> int:
    """How many indices an index is; 0 if it is none."""
    if isinstance(kind, types.Integer):
        return 1
    whole = isinstance(kind, types.BaseTuple) and all(isinstance(item, types.Integer) for item in kind)
    return len(kind) if whole else 0


@infer_global(operator.getitem)
class _TypeGet(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if not isinstance(args[0], ViewType):
            return None
        count = _integers(args[1])
        if not 0 < count <= args[0].ndim:
            return None
        left = args[0].ndim - count
        return signature(ViewType(args[0].dtype, left) if left else args[0].dtype, *args)


@infer_global(operator.setitem)
class _TypeSet(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], ViewType) and _integers(args[1]) == args[0].ndim:
            return signature(types.none, args[0], args[1], args[0].dtype)
        return None


def _place(context: Any, builder: Any, sig: Any, args: Any) -> tuple[Any, list[Any]]:
    """Pointer to what an index names, and the lengths of the axes left."""
    data, shape = _opened(context, builder, sig.args[0], args[0])
    kinds = [sig.args[1]] if isinstance(sig.args[1], types.Integer) else list(sig.args[1])
    values = [args[1]] if isinstance(sig.args[1], types.Integer) else cgutils.unpack_tuple(builder, args[1], len(kinds))
    flat = None
    for axis, length in enumerate(shape):
        if axis < len(kinds):
            index = context.cast(builder, values[axis], kinds[axis], types.int64)
            if context.enable_boundscheck:
                cgutils.do_boundscheck(context, builder, index, length)
            flat = index if flat is None else builder.add(builder.mul(flat, length), index)
        else:
            flat = builder.mul(flat, length)
    return builder.gep(data, [flat]), shape[len(kinds) :]


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


for _index in (types.Integer, types.BaseTuple):
    lower_builtin(operator.getitem, ViewType, _index)(_get)
    lower_builtin(operator.setitem, ViewType, _index, types.Any)(_set)


@infer_global(len)
class _TypeLen(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.intp, *args) if isinstance(args[0], ViewType) else None


@lower_builtin(len, ViewType)
def _len(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _opened(context, builder, sig.args[0], args[0])[1][0]


@infer_getattr
class _ViewAttributes(AttributeTemplate):
    key = ViewType

    def resolve_shape(self, kind: ViewType) -> Any:
        return types.UniTuple(types.int64, kind.ndim)


@lower_getattr(ViewType, "shape")
def _shape(context: Any, builder: Any, kind: ViewType, value: Any) -> Any:
    return cgutils.pack_array(builder, _opened(context, builder, kind, value)[1])


@type_callable(part)
def _type_part(context: Any) -> Any:
    def typer(flat: Any, first: Any, count: Any) -> Any:
        fits = isinstance(flat, ViewType) and flat.ndim == 1 and _integers(first) == _integers(count) == 1
        return flat if fits else None

    return typer


@type_callable(matrix)
def _type_matrix(context: Any) -> Any:
    def typer(flat: Any, first: Any, n: Any, m: Any) -> Any:
        fits = isinstance(flat, ViewType) and flat.ndim == 1 and all(_integers(k) == 1 for k in (first, n, m))
        return ViewType(flat.dtype, 2) if fits else None

    return typer


def _some(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, (length,) = _opened(context, builder, sig.args[0], args[0])
    first, *shape = (
        context.cast(builder, x, kind, types.int64) for x, kind in zip(args[1:], sig.args[1:], strict=True)
    )
    if context.enable_boundscheck:
        end = first
        count = shape[0] if len(shape) == 1 else builder.mul(*shape)
        end = builder.add(first, count)
        cgutils.do_boundscheck(context, builder, end, builder.add(length, ir.Constant(_INT, 1)))
    return make_view(context, builder, sig.return_type, builder.gep(data, [first]), shape)


lower_builtin(part, ViewType, types.Integer, types.Integer)(_some)
lower_builtin(matrix, ViewType, types.Integer, types.Integer, types.Integer)(_some)


@type_callable(flat)
def _type_flat(context: Any) -> Any:
    return lambda array: ViewType(array.dtype, 1) if isinstance(array, ViewType) else None


@lower_builtin(flat, ViewType)
def _flat(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, shape = _opened(context, builder, sig.args[0], args[0])
    count = shape[0]
    for length in shape[1:]:
        count = builder.mul(count, length)
    return make_view(context, builder, sig.return_type, data, [count])


# ------------------------------------------------------------------------------ many arrays as one argument


class Bundle:
    """A NamedTuple of C-contiguous arrays, whole numbers and further NamedTuples, as one argument of a kernel.

    Handing twenty arrays to a compiled function costs microseconds each time; a bundle is made once and costs as much
    as one number.  :func:`opened` gives the same NamedTuple back, with views in place of the arrays.
    """

    def __init__(self, fields: Any) -> None:
        self.fields = fields  # the arrays stay alive as long as the bundle does
        entries: list[int] = []
        self._numba_type_ = _bundle_type(_listed(fields, entries))
        self._table = np.array(entries, dtype=np.int64)
        self.address = self._table.__array_interface__["data"][0]

    def __reduce__(self) -> tuple[Any, ...]:
        return Bundle, (self.fields,)  # a copy lists the addresses of its own arrays


class BundleType(types.Type):
    """The type of bundles: that of the NamedTuple of views it opens to."""

    def __init__(self, content: types.Type) -> None:
        self.content = content
        super().__init__(name=f"Bundle({content})")


def _listed(item: Any, entries: list[int]) -> Any:
    """What an item is, to look its type up; its addresses, lengths and numbers are appended."""
    if isinstance(item, tuple):
        return type(item), *[_listed(field, entries) for field in item]
    if isinstance(item, np.ndarray):
        if not item.flags.c_contiguous:
            raise ValueError("a bundle takes C-contiguous arrays only")
        entries.append(item.__array_interface__["data"][0])
        entries.extend(item.shape)
        return item.dtype, item.ndim
    entries.append(operator.index(item))
    return None


@cache
def _bundle_type(listed: Any) -> BundleType:
    return BundleType(_opened_type(listed))


def _opened_type(listed: Any) -> types.Type:
    """The type of an item as :func:`opened` gives it."""
    if listed is None:
        return types.int64
    if isinstance(listed[0], np.dtype):
        return ViewType(from_dtype(listed[0]), listed[1])
    return types.NamedTuple([_opened_type(field) for field in listed[1:]], listed[0])


@register_model(BundleType)
class _BundleModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: BundleType) -> None:
        super().__init__(manager, kind, _INT.as_pointer())


@unbox(BundleType)
def _unbox_bundle(kind: BundleType, bundle: Any, c: Any) -> Any:
    address = c.pyapi.object_getattr_string(bundle, "address")
    pointer = c.builder.inttoptr(c.pyapi.long_as_longlong(address), _INT.as_pointer())
    c.pyapi.decref(address)
    return NativeValue(pointer)


def opened(bundle: Any) -> Any:
    """The NamedTuple of views that a bundle holds."""
    return bundle.fields


@type_callable(opened)
def _type_opened(context: Any) -> Any:
    return lambda bundle: bundle.content if isinstance(bundle, BundleType) else None


@lower_builtin(opened, BundleType)
def _opened_bundle(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    read = 0

    def entry() -> Any:
        nonlocal read
        read += 1
        return builder.load(builder.gep(args[0], [ir.Constant(_INT, read - 1)]))

    def build(kind: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            return context.make_tuple(builder, kind, [build(field) for field in kind])
        if isinstance(kind, ViewType):
            pointer = context.get_value_type(types.CPointer(kind.dtype))
            data = builder.inttoptr(entry(), pointer)
            return make_view(context, builder, kind, data, [entry() for _ in range(kind.ndim)])
        return entry()

    return build(sig.return_type)
