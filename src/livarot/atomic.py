"""Writing: a file is complete or absent.

What is written goes to a temporary file in the same folder, is forced to disk, and is then renamed over the target: a
process killed at any point leaves the old file or the new one, and at worst a ``.livarot-*.tmp`` beside it.
"""

from __future__ import annotations

import contextlib
import os
import reprlib
import secrets
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from livarot.bounded import PathLike
from livarot.errors import bad

MAX_TOGETHER = 128  # files open at once
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write_atomic(path: PathLike, data: bytes) -> None:
    """Put `data` into the file `path`, replacing what is there: all or nothing, and durably."""
    write_together({as_path(path): data})


def write_together(contents: Mapping[str, bytes] | Mapping[Path, bytes]) -> None:
    """Write files, each of them all or nothing.

    They are forced to disk after all are written, and each folder once for their names: a journaling file system then
    does most of its work once instead of once per file.  No file is renamed before every one is on disk.
    """
    files = ((os.fspath(target), data) for target, data in contents.items())
    while batch := dict(islice(files, MAX_TOGETHER)):
        _write_batch(batch)


def _write_batch(contents: Mapping[str, bytes]) -> None:
    """Each step is done for all files before the next one: the system then takes a third less processor time."""
    token, target = secrets.token_hex(8), ""
    temporaries: dict[str, str] = {}
    opened: dict[str, int] = {}
    folders: set[str] = set()
    try:
        try:
            for number, target in enumerate(contents):
                folder = os.path.dirname(target) or os.curdir
                folders.add(folder)
                name = f"{folder}/.livarot-{token}-{number}.tmp"
                opened[target] = os.open(name, _CREATE, 0o666)
                temporaries[target] = name
            for target, descriptor in opened.items():
                _write_all(descriptor, contents[target])
            if hasattr(os, "posix_fadvise"):  # begin to write now: the disk places all files in one go
                for target, descriptor in opened.items():  # noqa: B007 (named if it fails)
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            for target, descriptor in opened.items():  # noqa: B007 (named if it fails)
                os.fsync(descriptor)
            for target in temporaries:
                os.close(opened.pop(target))
            for target, name in temporaries.items():
                os.replace(name, target)
        except BaseException:
            for descriptor in opened.values():
                with contextlib.suppress(OSError):
                    os.close(descriptor)
            for name in temporaries.values():
                with contextlib.suppress(OSError):
                    os.unlink(name)
            raise
        for folder in sorted(folders):
            _sync_folder(folder)
    except OSError as error:
        problem = f"cannot write {len(contents.get(target, b''))} bytes to {target!r}: {error.strerror or error}"
        cure = None if os.path.isdir(os.path.dirname(target) or os.curdir) else "create its folder first"
        raise bad("path", problem, cure=cure) from error


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """A new file to write to, which replaces `path` when all of it is on disk; removed if an exception is raised."""
    target = as_path(path)
    temporary = target.with_name(f".livarot-{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, _CREATE, 0o666)
    try:
        try:
            with open(descriptor, "wb", closefd=False) as file:  # the caller may close it
                yield file
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(os.path.dirname(target) or os.curdir)


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`: one call may write only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def as_path(path: PathLike) -> Path:
    try:
        result = Path(path)
        if "\0" not in str(result):
            return result
    except TypeError as error:
        raise bad("path", f"must be a path, got {reprlib.repr(path)}") from error
    raise bad("path", f"{str(path)!r} contains a null character")


def _sync_folder(folder: str) -> None:
    """Make a rename durable; Windows has no such call."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
