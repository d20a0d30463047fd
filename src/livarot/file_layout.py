"""What a file has to hold, as tables (names, types, shapes in terms of each other, ranges), and the check of it.

Sizes have names.  An entry of the header that is a whole number is a size; any other size is set by the first tensor
that mentions it and has to be the same everywhere.  ``"pairs+1"`` is one more than the size ``pairs``.

>>> paths = Layout({"n": Entry(int, 1)}, {"start": Tensor("int64", ("paths+1",)), "node": Tensor("int32", ("m",), "n")})
>>> sizes = paths.check_head({"n": 3}, {"start": ("int64", (3,)), "node": ("int32", (4,))})
>>> sizes["paths"], sizes["m"]
(2, 4)
>>> paths.check_numbers({"start": np.array([0, 2, 4]), "node": np.array([0, 1, 2, 3], np.int32)}, sizes)
Traceback (most recent call last):
    ...
livarot.file_layout.Misfit: tensor 'node' has 3 at index 3, allowed are 0..2
"""

from __future__ import annotations

import json
import math
import reprlib
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.bounded import parse_json
from livarot.errors import bad

LARGEST = sys.float_info.max


class Misfit(ValueError):
    """The content of a file does not fit its layout; the message says why."""


class Entry(NamedTuple):
    """An entry of the header: ``float`` takes whole numbers too, and ``low <= value <= high`` is for numbers."""

    type: type
    low: float = -LARGEST
    high: float = LARGEST
    optional: bool = False

    def check(self, name: str, value: Any) -> None:
        wanted: Any = (int, float) if self.type is float else self.type
        right = isinstance(value, wanted) and (self.type is bool or not isinstance(value, bool))
        if right and self.type in (int, float):
            right = self.low <= value <= self.high
        if not right:
            raise Misfit(f"its header has {name} = {reprlib.repr(value)}, expected {self.type.__name__}{self._range()}")

    def _range(self) -> str:
        bounded = (self.low, self.high) != (-LARGEST, LARGEST)
        return f" from {self.low:g} to {self.high:g}" if bounded else ""


class Tensor(NamedTuple):
    """``below`` is a size: whole numbers from ``low`` (0) to below it.  Otherwise ``low <= x <= high``.

    Numbers must be finite, unless ``finite`` is False: that allows infinities and, where there is no range, NaN.
    """

    dtype: str
    shape: tuple[str | int, ...]
    below: str | None = None
    low: float = -math.inf
    high: float = math.inf
    optional: bool = False
    finite: bool = True


class Layout(NamedTuple):
    """What a file holds; ``sizes`` are those known beforehand."""

    header: Mapping[str, Entry]
    tensors: Mapping[str, Tensor]
    sizes: Mapping[str, int] = {}

    def check_head(self, header: Mapping[str, Any], found: Mapping[str, tuple[str, tuple[int, ...]]]) -> dict[str, int]:
        """The sizes, or :class:`Misfit`; ``found`` has dtype and shape of every tensor; numbers are not needed."""
        _names("header entry", {k: e.optional for k, e in self.header.items()}, header)
        for name, entry in self.header.items():
            if name in header:
                entry.check(name, header[name])
        sizes = dict(self.sizes) | {
            name: header[name] for name, entry in self.header.items() if entry.type is int and name in header
        }
        _names("tensor", {k: t.optional for k, t in self.tensors.items()}, found)
        for name, tensor in self.tensors.items():
            if name in found:
                dtype, shape = found[name]
                if dtype != tensor.dtype:
                    raise Misfit(f"tensor {name!r} has dtype {dtype}, expected {tensor.dtype}")
                wanted = tuple(map(str, tensor.shape))
                fits = len(shape) == len(wanted) and all(map(_fits, [sizes] * len(shape), wanted, shape))
                if not fits:
                    known = ", ".join(f"{k} = {v}" for k, v in sizes.items() if k in "".join(wanted))
                    text = f"({', '.join(wanted)})" + (f" with {known}" if known else "")
                    raise Misfit(f"tensor {name!r} has shape {shape}, expected {text}")
        return sizes

    def check_numbers(self, tensors: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> None:
        """Every number is in its range, or :class:`Misfit` says which is not."""
        for name, tensor in self.tensors.items():
            if name in tensors:
                low, high = tensor.low, tensor.high
                if tensor.below is not None:
                    low, high = 0 if math.isinf(low) else low, sizes[tensor.below] - 1
                check_range(f"tensor {name!r}", tensors[name], low, high, tensor.finite)


def check_range(what: str, array: NDArray[Any], low: float, high: float, finite: bool = True) -> None:
    """Refuse numbers that are not finite (if ``finite``) or not in low..high; NaN is only in -inf..inf."""
    if finite and array.dtype.kind == "f" and not np.isfinite(array).all():
        where = int(np.argmin(np.isfinite(array).reshape(-1)))
        raise Misfit(f"{what} has {array.reshape(-1)[where]} at index {where}")
    bounded = array.dtype != np.bool_ and (low > -math.inf or high < math.inf)
    if bounded and array.size and not (array.min() >= low and array.max() <= high):
        where = int(np.argmin(((array >= low) & (array <= high)).reshape(-1)))
        raise Misfit(f"{what} has {array.reshape(-1)[where]} at index {where}, allowed are {low:.17g}..{high:.17g}")


def _names(what: str, wanted: Mapping[str, bool], found: Mapping[str, Any]) -> None:
    lost = [name for name, optional in wanted.items() if not optional and name not in found]
    if lost:
        raise Misfit(f"{what} {lost[0]!r} is missing")
    more = [name for name in found if name not in wanted]
    if more:
        raise Misfit(f"{what} {reprlib.repr(more[0])} does not belong there")


def _fits(sizes: dict[str, int], wanted: str, size: int) -> bool:
    """Does ``size`` agree with the size called ``wanted``?  A size that is met for the first time is added."""
    name, _, more = wanted.partition("+")
    own = size - int(more or 0)
    return own >= 0 and (own == int(name) if name.isdecimal() else sizes.setdefault(name, own) == own)


# Text in a tensor: a head has no room for the names of many states.
TEXT = Tensor("int32", ("characters",), low=0, high=127)


def to_numbers(words: Any) -> NDArray[np.int32]:
    """JSON as the numbers of its characters."""
    try:
        text = json.dumps(words, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except ValueError as error:
        raise bad("labels", f"cannot be stored ({error})", cure="give infinite labels a name of their own") from error
    return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int32)


def from_numbers(numbers: NDArray[Any]) -> Any:
    """What :func:`to_numbers` was given."""
    return parse_json(bytes(numbers.astype(np.uint8)).decode())


def plain_label(label: Any) -> Any:
    """A label as JSON: tuples as ``{"tuple": [...]}``, a list only at the top."""
    if isinstance(label, list):
        return [plain_label(x) for x in label]
    if isinstance(label, tuple):
        return {"tuple": [plain_label(x) for x in label]}
    value = label.item() if isinstance(label, np.generic) else label
    if value is None or isinstance(value, str | bool | int | float):
        return value
    problem = f"{label!r} ({type(label).__name__}) cannot be stored"
    raise bad("labels", problem, cure="use text, numbers or tuples of these as states, actions and categories")


def read_labels(stored: Any) -> tuple[Any, ...]:
    """A list of labels as they were, all different."""
    if not isinstance(stored, list):
        raise Misfit(f"labels are {reprlib.repr(stored)}, expected a list")
    labels = tuple(map(_label, stored))
    if len(set(labels)) < len(labels):
        raise Misfit("a label occurs twice")
    return labels


def _label(stored: Any) -> Any:
    if isinstance(stored, dict) and stored.keys() == {"tuple"} and isinstance(stored["tuple"], list):
        return tuple(map(_label, stored["tuple"]))
    if isinstance(stored, list | dict):
        raise Misfit(f"{reprlib.repr(stored)} is not a label")
    return stored
