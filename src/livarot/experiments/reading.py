"""Many small files, read by a few threads."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

READERS = 2  # verifying is mostly work, not waiting
AT_ONCE = 64  # files of a task: to hand one out takes as long as to read a small file
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe is not waited for
T = TypeVar("T")


def in_threads(work: Callable[[str], T], items: Iterable[str]) -> Iterator[T]:
    """``work`` of each item, in their order; it begins while the items are still being found.

    >>> list(in_threads(len, ["a", "bc"]))
    [1, 2]
    """
    with ThreadPoolExecutor(READERS) as pool:
        left = iter(items)
        parts = iter(lambda: list(islice(left, AT_ONCE)), [])
        for found in pool.map(lambda part: [work(item) for item in part], parts):
            yield from found


def sha256_of(name: str) -> str | None:
    """The SHA-256 of a file; None if it cannot be read."""
    try:
        descriptor = os.open(name, _FLAGS)
        try:  # three calls of the system, each of which hands the interpreter to another thread
            return hashlib.sha256(os.read(descriptor, os.fstat(descriptor).st_size + 1)).hexdigest()
        finally:
            os.close(descriptor)
    except OSError:
        return None
