"""Many small files, read by a few threads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

READERS = 2  # verifying is mostly work, not waiting
AT_ONCE = 64  # files of a task: to hand one out takes as long as to read a small file
T = TypeVar("T")


def in_threads(work: Callable[[str], T], items: Sequence[str]) -> Iterator[T]:
    """``work`` of each item, in their order.

    >>> list(in_threads(len, ["a", "bc"]))
    [1, 2]
    """
    with ThreadPoolExecutor(READERS) as pool:
        parts = [items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE)]
        for found in pool.map(lambda part: [work(item) for item in part], parts):
            yield from found


def sha256_of(name: str) -> str | None:
    """The SHA-256 of a file; None if it cannot be read."""
    try:
        with open(name, "rb", buffering=0) as file:
            return hashlib.sha256(file.readall()).hexdigest()
    except OSError:
        return None
