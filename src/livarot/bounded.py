"""Bounded reading: regular files only; size is checked before content is read, depth before text is parsed."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from typing import Any, NoReturn, TypeAlias

import numpy as np

from livarot.errors import bad

MAX_DEPTH = 64  # of brackets, and parts of a dotted key
PathLike: TypeAlias = "str | os.PathLike[str]"

_BINARY, _NO_LINK, _NO_WAIT = (getattr(os, name, 0) for name in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"))
# the strings and comments of JSON and TOML; an unclosed one ends with the text, so one pass without backtracking does
_QUOTED = re.compile(
    r'''"""(?:[^"\\]++|\\.?|"(?!""))*+(?:"{3,5}|\Z)|"(?:[^"\\\n]++|\\.?)*+"?'''
    r"""|'''(?:[^']++|'(?!''))*+(?:'{3,5}|\Z)|'[^'\n]*+'?|#[^\n]*+""",
    re.DOTALL,
)


def open_regular(path: PathLike, *, follow: bool = False, flags: int = os.O_RDONLY) -> int:
    """The descriptor of a regular file; a pipe, a device and, unless ``follow``, a link are refused, not waited for."""
    return _opened(path, follow, flags)[0]


def _opened(path: PathLike, follow: bool, flags: int) -> tuple[int, os.stat_result]:
    try:
        descriptor = os.open(path, flags | _BINARY | _NO_WAIT | (0 if follow else _NO_LINK), 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise bad("path", f"{str(path)!r} is a link", cure="put the file itself there") from error
        if error.errno in (errno.ENXIO, errno.EISDIR):  # a pipe that nobody reads, a socket, a folder
            raise bad("path", f"{str(path)!r} is not a file") from error
        raise
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode):
        return descriptor, found
    os.close(descriptor)
    raise bad("path", f"{str(path)!r} is not a file")


def read_regular(path: PathLike, limit: int) -> tuple[bytes, os.stat_result]:
    """The content of a regular file, not a link, and its status when it was read; refused if larger than ``limit``."""
    descriptor, found = _opened(path, False, os.O_RDONLY)
    try:  # few system calls: each of them hands the interpreter to another thread
        if found.st_size > limit:
            raise bad("path", f"{str(path)!r} has {found.st_size} bytes, the limit is {limit}")
        parts = [os.read(descriptor, found.st_size)]
        while parts[-1] and sum(map(len, parts)) < found.st_size:
            parts.append(os.read(descriptor, found.st_size))
        return parts[0] if len(parts) == 1 else b"".join(parts), found
    finally:
        os.close(descriptor)


def check_depth(text: str) -> None:
    """Refuse JSON or TOML with more than `MAX_DEPTH` open brackets, or parts of a key: parsers need a stack for the
    former and quadratic time for the latter.

    >>> check_depth("[" * 100)
    Traceback (most recent call last):
        ...
    livarot.errors.LivarotError: text: brackets or dotted keys are nested more than 64 deep
    """
    if max(text.count("[") + text.count("{"), text.count(".")) <= MAX_DEPTH:
        return
    outside = _QUOTED.sub("", text)
    steps = np.zeros(256, dtype=np.int8)
    steps[list(b"[{")], steps[list(b"]}")] = 1, -1
    signs = np.frombuffer(outside.encode(errors="replace"), dtype=np.uint8)
    depth = np.cumsum(steps[signs], dtype=np.int32).max(initial=0)
    if depth > MAX_DEPTH or max(part.count(".") for part in re.split(r"[\n=,\[\]{}]", outside)) > MAX_DEPTH:
        raise bad("text", f"brackets or dotted keys are nested more than {MAX_DEPTH} deep")


def parse_json(text: str | bytes) -> Any:
    """JSON of bounded depth without repeated keys and without NaN; anything else is a ``ValueError``."""
    decoded = text if isinstance(text, str) else text.decode()
    check_depth(decoded)
    return json.loads(decoded, parse_constant=_no_constant, object_pairs_hook=_no_repetition)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key occurs twice")
    return result
