"""Arrays on disk: a file is complete or absent, and damage is noticed.

Conventions
-----------
A file is in the safetensors format: the length of its head, the head (JSON: names, types, shapes, offsets),
the numbers. No code is ever stored or run. Its metadata hold one entry ``livarot``, a canonical JSON object

    digest    SHA-256 of the fields below and of every tensor's name, type, shape and little-endian bytes
    header    what the caller wishes to keep beside the arrays
    kind      what the file is, for example ``mdp``
    schema    version of this layout, `SCHEMA`
    version   version of livarot that wrote the file

One entry and sorted keys make the bytes a function of the content, so files can be compared by their hashes.
The format itself has no checksum: one flipped bit in its body would load silently, hence the digest. The
digest guards against accidents; it is not a signature.

Reading is bounded: `open_regular` does not wait for a pipe or device, a file is not read before its size is known, and
text is not parsed before the depth of its brackets is known.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import reprlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as _decode
from safetensors.numpy import save as _encode

from livarot.atomic import as_path, replacing, write_atomic, write_together
from livarot.bounded import MAX_DEPTH, PathLike, check_depth, open_regular, parse_json, read_regular
from livarot.errors import LivarotError, bad
from livarot.file_layout import Layout, Misfit

__all__ = [
    "MAX_DEPTH",
    "MAX_FILE_BYTES",
    "MAX_HEAD_BYTES",
    "SCHEMA",
    "check_depth",
    "content_digest",
    "load_tensors",
    "open_regular",
    "parse_json",
    "read_regular",
    "reading",
    "replacing",
    "save_tensors",
    "spreadsheet_safe",
    "write_atomic",
    "write_together",
]

SCHEMA = 1
MAX_FILE_BYTES = 4 * 2**30
MAX_HEAD_BYTES = 10**6
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'")  # an apostrophe too, so that the guard can be removed again

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

_ENTRY = "livarot"
_FIELDS = {"digest", "header", "kind", "schema", "version"}
_STORED = {"float64": "F64", "int32": "I32", "int64": "I64", "bool": "BOOL"}


def save_tensors(path: PathLike, tensors: Mapping[str, NDArray[Any]], *, kind: str, header: Mapping[str, JSON]) -> None:
    """Write `tensors` (float64, int32, int64 or bool) and the JSON object `header` to `path`, atomically.

    Equal content gives equal bytes: order of the names, memory layout and byte order make no difference.
    """
    for name, array in tensors.items():
        _check_tensor(name, array)
    size = sum(array.nbytes for array in tensors.values())
    if size > MAX_FILE_BYTES - MAX_HEAD_BYTES - 8:
        raise bad("tensors", f"{size} bytes, a file holds at most {MAX_FILE_BYTES}", cure="split them")
    arrays = {
        name: np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C") for name, array in tensors.items()
    }
    data = _encode(arrays, metadata={_ENTRY: _description(arrays, kind, header)})
    if _head_length(data) > MAX_HEAD_BYTES:
        problem = f"with {len(arrays)} tensors the head has {_head_length(data)} bytes, the limit is"
        raise bad("header", f"{problem} {MAX_HEAD_BYTES}", cure="store long lists as tensors")
    write_atomic(path, data)


def load_tensors(
    path: PathLike, *, kind: str, layout: Layout | Callable[[dict[str, Any]], Layout] | None = None
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The tensors and the header of a file made by `save_tensors` with this `kind`, verified.

    Anything else (missing, too large, truncated, damaged, of another kind, of a later schema, not of this `layout`)
    is a `LivarotError` of one line.  Names, types and shapes are compared before the numbers are read.  A layout that
    depends on the header is a function of it.
    """
    name = repr(str(path))
    sizes: dict[str, int] = {}
    with _opened(as_path(path), name) as (file, size):
        start, head = _head(file, size, name)
        fields = _checked_fields(head.pop("__metadata__", None), name)
        if fields["kind"] != kind:
            found = reprlib.repr(fields["kind"])
            raise bad("path", f"{name} holds {found}, not {kind!r}", cure="load it as what it is")
        shapes = {key: _type_and_shape(entry, name) for key, entry in head.items()}
        layout = layout(fields["header"]) if callable(layout) else layout
        with reading(path):
            if layout is not None:
                sizes = layout.check_head(fields["header"], shapes)
        data = start + file.read(size - len(start))
    try:
        tensors = _decode(data)
    except (SafetensorError, ValueError, TypeError, KeyError, OverflowError) as error:
        _damaged(name, str(error)[:200], error)
    digest = fields.pop("digest")
    if digest != _digest(_canonical_json(fields), tensors):
        _damaged(name, "its content does not match its SHA-256")
    for array in tensors.values():
        if array.dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
            _damaged(name, "a truth value is neither 0 nor 1")
    with reading(path):
        if layout is not None:
            layout.check_numbers(tensors, sizes)
    arrays = {key: np.require(tensors[key], requirements=["C", "A", "W"]) for key in sorted(tensors)}
    return arrays, fields["header"]


@contextlib.contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Turn any error in a file's content, while an object is built from it, into one line that names the file."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError, AttributeError) as error:
        if isinstance(error, LivarotError) and error.argument == "path":
            raise
        why = str(error) if isinstance(error, LivarotError | Misfit) else f"{type(error).__name__}: {error}"
        problem = f"{str(path)!r} does not hold what it should: {' '.join(why.split())[:300]}"
        raise bad("path", problem, cure="restore it or make it again") from error


def content_digest(header: Mapping[str, JSON], tensors: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of a JSON object and of tensors, whatever their order and memory layout."""
    return _digest(_canonical_json(header), tensors)


def spreadsheet_safe(cell: Any) -> Any:
    """Text that a spreadsheet would run, with an apostrophe in front; numbers as they are.

    >>> spreadsheet_safe("=1+1"), spreadsheet_safe(-3), spreadsheet_safe("worn"), spreadsheet_safe(("-", 1))
    ("'=1+1", -3, 'worn', "('-', 1)")
    """
    if isinstance(cell, bool | int | float | np.number):
        return cell
    text = str(cell)
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text


def _description(arrays: Mapping[str, NDArray[Any]], kind: str, header: Mapping[str, JSON]) -> str:
    """The text of the metadata entry."""
    if not isinstance(kind, str) or not kind:
        raise bad("kind", "must be a word")
    try:
        fields: dict[str, Any] = {
            "header": dict(header),
            "kind": kind,
            "schema": SCHEMA,
            "version": _version(),
        }
        text = _canonical_json(fields)
        check_depth(text)
        if json.loads(text) != fields:
            raise TypeError("a key is not text, or a sequence is not a list")
        return _canonical_json({"digest": _digest(text, arrays), **fields})
    except (TypeError, ValueError, RecursionError) as error:
        cure = "use dicts with text keys, lists, text, finite numbers, bool and None"
        raise bad("header", f"not a JSON object ({error})", cure=cure) from error


def _checked_fields(metadata: Any, name: str) -> dict[str, Any]:
    """The fields of the metadata entry, refused unless complete, canonical and of a known schema."""
    text = metadata.get(_ENTRY) if isinstance(metadata, dict) else None
    text = text if isinstance(text, str) else "null"
    fields = _parse(text, name)
    if not isinstance(fields, dict) or not {"kind", "schema", "version"} <= fields.keys():
        raise bad("path", f"{name} was not written by livarot, or is damaged")
    schema = fields["schema"]
    if type(schema) is not int or schema < 1:
        _damaged(name, "its schema is not a positive integer")
    if schema > SCHEMA:
        writer = f"{name} has schema {schema}, written by livarot {reprlib.repr(fields['version'])}"
        reader = f"livarot {_version()} reads schemas up to {SCHEMA}"
        raise bad("path", f"{writer}; {reader}", cure="upgrade livarot")
    try:  # 1e999 is read as infinity, and half of a surrogate pair as text: neither can be written
        canonical = _canonical_json(fields).encode() == text.encode()
    except (ValueError, RecursionError) as error:
        _damaged(name, "its head holds what livarot does not write", error)
    if not canonical or fields.keys() != _FIELDS or len(metadata) != 1:
        _damaged(name, "its head was changed")
    if not isinstance(fields["header"], dict):
        _damaged(name, "its header is not an object")
    return fields


def _check_tensor(name: str, array: NDArray[Any]) -> None:
    """Refuse a name the format does not take, and a type that is not stored."""
    if not isinstance(name, str) or not name or name == "__metadata__" or not name.isprintable():
        raise bad("tensors", f"{reprlib.repr(name)} cannot name a tensor", cure="use a word")
    if not isinstance(array, np.ndarray) or array.dtype.name not in _STORED:
        found = f"dtype {array.dtype}" if isinstance(array, np.ndarray) else f"type {type(array).__name__}"
        raise bad("tensors", f"{name!r} has {found}", cure=f"use an array of {', '.join(_STORED)}")


def _canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _digest(text: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over `text`, then over each tensor in order of its name: a line of JSON and its bytes."""
    total = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        total.update(f"\n{_canonical_json([name, array.dtype.name, list(array.shape)])}\n".encode())
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        total.update(little.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


@contextlib.contextmanager
def _opened(path: Path, name: str) -> Iterator[tuple[BinaryIO, int]]:
    """A regular file of acceptable size, and that size; the user's path may be a link."""
    try:
        with open(open_regular(path, follow=True), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_FILE_BYTES:
                raise bad("path", f"{name} has {size} bytes, the limit is {MAX_FILE_BYTES}")
            yield file, size
    except FileNotFoundError as error:
        raise bad("path", f"there is no file {name}") from error
    except OSError as error:
        raise bad("path", f"cannot read {name}: {error.strerror or error}") from error


def _head_length(data: bytes) -> int:
    return int.from_bytes(data[:8], "little")


def _head(file: BinaryIO, size: int, name: str) -> tuple[bytes, dict[str, Any]]:
    """The bytes up to the end of the head, and what it says."""
    start = file.read(8)
    length = _head_length(start)
    if length > MAX_HEAD_BYTES:
        raise bad("path", f"{name} is damaged or not livarot's: its head would have {length} bytes")
    start += file.read(length)
    if len(start) < 8 + length:
        _damaged(name, f"it ends after {size} bytes, within its head")
    try:
        head = _parse(start[8:].decode(), name)
    except UnicodeDecodeError as error:
        _damaged(name, "its head is not text", error)
    if not isinstance(head, dict):
        _damaged(name, "its head is not an object")
    return start, head


def _type_and_shape(entry: Any, name: str) -> tuple[str, tuple[int, ...]]:
    """What the head says of a tensor; that the numbers are there is checked when they are read."""
    known = {stored: dtype for dtype, stored in _STORED.items()}
    if not (isinstance(entry, dict) and isinstance(entry.get("dtype"), str) and entry["dtype"] in known):
        _damaged(name, "a tensor has a type that livarot does not write")
    shape = entry.get("shape")
    if not (isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)):
        _damaged(name, "a tensor has a shape that is not a list of sizes")
    return known[entry["dtype"]], tuple(shape)


def _parse(text: str, name: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        _damaged(name, f"its head is not JSON ({error})", error)


def _damaged(name: str, how: str, error: BaseException | None = None) -> NoReturn:
    raise bad("path", f"{name} is damaged: {how}", cure="restore it or make it again") from error


def _version() -> str:
    try:
        return importlib.metadata.version("livarot")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
