"""Many small files, read by a few threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

READERS = 2  # verifying is mostly computing, not waiting
AT_ONCE = 64  # files handed to a thread together: handing over one takes as long as reading a small file
T = TypeVar("T")


def read_in_threads(work: Callable[[str], T], items: Iterable[str]) -> Iterator[T]:
    """``work`` of each item, in their order; it begins while the items are still being found.

    >>> list(read_in_threads(len, ["a", "bc"]))
    [1, 2]
    """
    with ThreadPoolExecutor(READERS) as pool:
        left = iter(items)
        parts = iter(lambda: list(islice(left, AT_ONCE)), [])
        for found in pool.map(lambda part: [work(item) for item in part], parts):
            yield from found
