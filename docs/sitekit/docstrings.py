"""Docstrings with mathematics in plain text, as reStructuredText that is always valid.

Our docstrings are written for readers of the source: ``*`` is a product, ``|x|`` a norm, V^pi_h a value, and an
indented block is a display.  Read as reStructuredText that would be emphasis, substitutions and references to targets
that do not exist.  So everything is escaped except what is markup here too: literals, roles, doctests, lists, displays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

ITEM = re.compile(r"(?:[-*]|\d{1,2}[.)])\s+")
LITERAL = r"(?<!`)``(?=[^\s`])[^`]*[^\s`\\]``(?!`)"
ROLE = r"(?::[a-z]+(?::[a-z]+)?:)?(?<!`)`(?=[^\s`])[^`]*[^\s`\\]`(?!`)"
STRONG = r"(?<!\*)\*\*(?=[^\s*`\\])[^*`\\]*[^\s*`\\]\*\*(?!\*)"
MARKUP = re.compile(f"{LITERAL}|{ROLE}|{STRONG}")
APART = "\\ "
SPECIAL = re.compile(r"([\\*_|`\[\]:])")
Link = Callable[[str], str | None]


def nowhere(name: str) -> str | None:
    """No link."""
    return None


def to_rst(lines: list[str], link: Link = nowhere) -> list[str]:
    """A docstring, without its margin, as reStructuredText; ``link(name)`` is the public path of a name, or None."""
    out: list[str] = []
    for block in blocks(lines):
        out += [*_block(block, link), ""]
    return out


def blocks(lines: list[str]) -> Iterator[list[str]]:
    """Runs of lines of one sort: paragraphs, items of lists, displays (indented), doctests."""
    block: list[str] = []
    sort = ""
    for line in [*lines, ""]:
        text = line.strip()
        if sort == "item" and line.startswith(" ") and text:  # the item goes on
            block.append(line)
            continue
        found = _sort(line, sort)
        if not text and sort == "display":
            found = "display"  # an empty line within a display
        if found != sort or found == "item" or not text:
            if sort == "display" and not text:
                block.append(line)
                continue
            if any(map(str.strip, block)):
                yield block
            block = []
        sort = found
        if text:
            block.append(line)
    if any(map(str.strip, block)):
        yield block


def _sort(line: str, before: str) -> str:
    text = line.strip()
    if not text:
        return ""
    if text.startswith(">>>") or before == "doctest":
        return "doctest"
    if line.startswith("  "):
        return "display"
    return "item" if ITEM.match(line) else "paragraph"


def _block(block: list[str], link: Link) -> list[str]:
    while block and not block[-1].strip():
        block = block[:-1]
    first = block[0]
    if first.strip().startswith(">>>"):
        margin = len(first) - len(first.lstrip())
        return [".. code-block:: pycon", "", *(f"   {line[margin:]}" for line in block)]
    if first.startswith("  "):
        return ["::", "", *(f"    {line}" for line in block)]
    if mark := ITEM.match(first):
        sign = mark.group() if mark.group()[0].isdigit() else "- "
        body = escaped(" ".join([first[mark.end() :], *(line.strip() for line in block[1:])]), link)
        return [f"{sign}{APART}{body}"]
    return [APART + escaped(" ".join(line.strip() for line in block), link)]  # never a list, a title or a comment


def escaped(text: str, link: Link = nowhere) -> str:
    """Text whose only markup is literals, links and strong emphasis; an escaped space sets them off, and shows nothing.

    >>> escaped("V*_h <= |x|, ``a * b`` and 2`n`")
    'V\\\\*\\\\_h <= \\\\|x\\\\|, ``a * b`` and 2\\\\ ``n``'
    """
    out, last = [], 0
    for found in MARKUP.finditer(text):
        out.append(SPECIAL.sub(r"\\\1", text[last : found.start()]))
        if found.start() and not text[found.start() - 1].isspace():
            out.append(APART)
        out.append(_marked(found.group(), link))
        last = found.end()
        if last < len(text) and not text[last].isspace():
            out.append(APART)
    return "".join([*out, SPECIAL.sub(r"\\\1", text[last:])])


def _marked(text: str, link: Link) -> str:
    if text.startswith("**"):
        return text
    inner = " ".join(text.partition("`")[2].strip("`").split())
    if not text.startswith("``"):  # in a role, ~ and . before a name say how it is looked up and shown
        inner = inner.lstrip("~.") or inner
    path = link(inner.removesuffix("()"))
    return f":py:obj:`{inner} <{path}>`" if path else f"``{inner}``"
