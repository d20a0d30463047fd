"""How much memory something may take: what is too large is refused before any of it is allocated.

The limit is half of the machine's memory, or the number of bytes in the environment variable ``LIVAROT_MAX_BYTES``.
"""

from __future__ import annotations

import os

from livarot.errors import bad

SETTING = "LIVAROT_MAX_BYTES"
SHARE = 2  # the limit is the machine's memory divided by this
UNKNOWN = 4 << 30  # bytes of memory assumed where the machine does not say


def memory_limit() -> int:
    """The largest number of bytes that one model, run, report or table may take."""
    given = os.environ.get(SETTING, "").strip()
    if given:
        if not given.isdecimal() or int(given) == 0:
            raise bad(SETTING, f"{given[:40]!r} is not a number of bytes", cure="write one such as 8000000000")
        return int(given)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE
    except (AttributeError, OSError, ValueError):
        return UNKNOWN


def in_words(n_bytes: int) -> str:
    """A size as people say it.

    >>> in_words(1536), in_words(29 << 40), in_words(2**200)
    ('1.5 KiB', '29.0 TiB', 'more than 10^18 bytes')
    """
    size, unit = float(min(n_bytes, 10**19)), 0
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
    while size >= 1024.0 and unit < len(units):
        size, unit = size / 1024.0, unit + 1
    if unit == len(units):
        return "more than 10^18 bytes"
    return f"{size:.1f} {units[unit]}" if unit else f"{n_bytes} bytes"


def require_memory(argument: str, what: str, numbers: int) -> None:
    """Refuse ``argument`` if ``what`` would hold too many ``numbers`` of eight bytes each.

    >>> require_memory("horizon", "the rewards (H, S, A)", 10**14)
    Traceback (most recent call last):
        ...
    livarot.errors.LivarotError: horizon: the rewards (H, S, A) would take 727.6 TiB, more than the ... allowed; ...
    """
    limit = memory_limit()
    if 8 * numbers > limit:
        raise bad(
            argument,
            f"{what} would take {in_words(8 * numbers)}, more than the {in_words(limit)} allowed",
            cure=f"make it smaller, or allow more with the environment variable {SETTING} (bytes)",
        )
