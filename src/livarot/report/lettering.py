"""Any name in a figure: on one line, in signs that an installed font has, and never as mathematics."""

from __future__ import annotations

import textwrap
import unicodedata
from functools import cache

from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

FONTS = (
    "DejaVu Sans", "Noto Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans CJK KR", "Source Han Sans",
    "IPAexGothic", "IPAGothic", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Hiragino Sans",
    "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "Arial Unicode MS", "Noto Sans Arabic", "Noto Sans Devanagari",
    "Noto Sans Symbols2", "Noto Emoji", "Segoe UI Symbol", "Segoe UI Emoji", "FreeSans",
)  # fmt: skip


def drawable(text: str) -> str:
    """The text on one line; a character that no installed font has loses its accents, or becomes its code.

    >>> drawable("two\\nlines\\x07")
    'two lines[07]'
    """
    return "".join(sign if _drawn(sign) else _replaced(sign) for sign in " ".join(text.split()))


def escaped(text: str) -> str:
    """The text so that matplotlib shows it unchanged: not as mathematics, and not hidden from a legend."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") or not text.strip() else text


def wrapped(text: str, width: int) -> str:
    """The text on lines of at most this many characters, broken between words where there are any."""
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False)) or " "


def _replaced(sign: str) -> str:
    plain = "".join(part for part in unicodedata.normalize("NFKD", sign) if not unicodedata.combining(part))
    if plain != sign and plain and all(_drawn(part) for part in plain):
        return plain
    return f"[{ord(sign):02X}]"


@cache
def fonts() -> tuple[str, ...]:
    """Those of :data:`FONTS` that are installed; the first comes with matplotlib."""
    installed = {font.name for font in fontManager.ttflist}
    return tuple(name for name in FONTS if name in installed or name == FONTS[0])


@cache
def _drawn(sign: str) -> bool:
    if not sign.isprintable():
        return False
    return any(get_font(findfont(FontProperties(family=[name]))).get_char_index(ord(sign)) for name in fonts())
