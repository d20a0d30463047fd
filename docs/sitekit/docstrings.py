"""Docstrings with mathematics in plain text, as reStructuredText that is always valid.

Our docstrings are written for readers of the source: ``*`` is a product, ``|x|`` a norm, V^pi_h a value, and an
indented block is a display.  Read as reStructuredText that would be emphasis, substitutions and references to targets
that do not exist.  So everything is escaped except what is markup here too: literals, roles, doctests, lists, terms
with what they mean, headings, tables, emphasis of words, and displays, which become formulas where that is safe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sitekit.displays import display, inline

ITEM = re.compile(r"(?:[-*]|\d{1,2}[.)])\s+")
LITERAL = r"(?<!`)``(?=[^\s`])[^`]*[^\s`\\]``(?!`)"
ROLE = r"(?::[a-z]+(?::[a-z]+)?:)?(?<!`)`(?=[^\s`])[^`]*[^\s`\\]`(?!`)"
STRONG = r"(?<!\*)\*\*(?=[^\s*`\\])[^*`\\]*[^\s*`\\]\*\*(?!\*)"
EMPHASIS = r"(?<![\w*\\)\]}'|])\*(?=[A-Za-z(])[A-Za-z0-9 ,.'();/-]{0,80}(?<=[A-Za-z0-9.)])\*(?![\w*({])"
PAGE = r"(?<![\w/.-])docs/\w+\.md\b(?:#[\w-]+)?"
MARKUP = re.compile(f"{LITERAL}|{ROLE}|{STRONG}|{EMPHASIS}|{PAGE}")
RULE = re.compile(r"=+(?: +=+)+")
UNDERLINE = re.compile(r"-{3,}|={3,}")
NAMED = re.compile(r"((?:[\w.*]+|``[^`]+``)(?:, (?:[\w.*]+|``[^`]+``))*) : +(\S.*)")  # name : what it is
PLACED = re.compile(r"(``[^`]+``(?:,? (?:or )?``[^`]+``)*|[a-z][\w-]*) {2,}(\S.*)")  # what it is, in a column
APART = "\\ "
SPECIAL = re.compile(r"([\\*_|`\[\]:])")
Link = Callable[[str], str | None]


def nowhere(name: str) -> str | None:
    """No link."""
    return None


def to_rst(lines: list[str], link: Link = nowhere) -> list[str]:
    """A docstring, without its margin, as reStructuredText; ``link(name)`` is the public path of a name, or None."""
    out: list[str] = []
    plain: list[str] = []
    for chunk in [*chunks(lines), []]:
        made = _table(chunk, link) or _heading(chunk, link) or _terms(chunk, link)
        if made or not chunk:
            for block in blocks(plain):
                out += [*_block(block, link), ""]
            plain = []
            out += [*made, ""] if made else []
        else:
            plain += [*chunk, ""]
    return out


def chunks(lines: list[str]) -> Iterator[list[str]]:
    """Runs of lines without an empty line."""
    chunk: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            chunk.append(line)
        elif chunk:
            yield chunk
            chunk = []


def _heading(chunk: list[str], link: Link) -> list[str]:
    """A title with a line below it, and what follows."""
    if len(chunk) < 2 or not chunk[0][0].isalpha() or not UNDERLINE.fullmatch(chunk[1].rstrip()):
        return []
    return [f".. rubric:: {escaped(chunk[0].strip(), link)}", "", *to_rst(chunk[2:], link)]


def _terms(chunk: list[str], link: Link) -> list[str]:
    """Terms and what they mean: ``name : meaning``, meanings in a column, or meanings in lines of their own below."""
    entries: list[tuple[str, list[str]]] = []
    for line in chunk:
        if line.startswith("  "):
            if not entries:
                return []
            entries[-1][1].append(line.strip())
        else:
            entries.append((line.rstrip(), []))
    found = [NAMED.fullmatch(first) or PLACED.fullmatch(first) for first, _ in entries]
    if all(found):
        pairs = [(match[1], [match[2], *rest]) for match, (_, rest) in zip(found, entries, strict=True) if match]
    elif all(rest and _is_term(first) and not rest[0].startswith(">>>") for first, rest in entries):
        pairs = entries
    else:
        return []
    out: list[str] = []
    for term, meaning in pairs:
        out += [f"{APART}{escaped(term, link)}", f"    {APART}{escaped(' '.join(meaning), link)}"]
    return out


def _is_term(text: str) -> bool:
    return re.fullmatch(r"(?:\w+|``[^`]+``)(?:, (?:\w+|``[^`]+``))*", text) is not None


def _table(chunk: list[str], link: Link) -> list[str]:
    """A table between lines of signs; its cells are two spaces apart."""
    if len(chunk) < 3 or not RULE.fullmatch(chunk[0].rstrip()) or chunk[-1].rstrip() != chunk[0].rstrip():
        return []
    starts = [found.start() for found in re.finditer("=+", chunk[0])]
    body = [line for line in chunk if not RULE.fullmatch(line.rstrip())]
    rows = [_cells(line.rstrip(), starts) for line in body]
    if not rows or not all(rows):
        return ["::", "", *(f"    {line}" for line in chunk)]
    header = ["   :header-rows: 1"] if len(chunk) - len(body) > 2 else []
    whole: list[list[str]] = []
    for row in rows:
        if whole and not row[0]:  # the row above goes on
            whole[-1] = [f"{above} {cell}".strip() for above, cell in zip(whole[-1], row, strict=True)]
        else:
            whole.append(row)
    out = [".. list-table::", *header, ""]
    for row in whole:
        for at, cell in enumerate(row):
            out += [f"   {' ' if at else '*'} - {_cell(cell, link)}".rstrip()]
    return out


def _cells(line: str, starts: list[int]) -> list[str]:
    """The cells of a row, none if they are not clear; a long one may reach into the next column."""
    found = re.split(r" {2,}", line.strip())
    if len(found) == len(starts) and not line.startswith(" "):
        return found
    if any(line[start - 1 : start].strip() for start in starts[1:]):
        return []
    return [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]


def _cell(text: str, link: Link) -> str:
    latex = inline(text)
    return f"{APART}:math:`{latex}`" if latex else APART + escaped(text, link) if text else ""


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
        if latex := display(block):
            return [".. math::", "", f"   {latex}"]
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
    if text.startswith("*"):
        return text
    if text.startswith("docs/"):
        page = link(text.partition("#")[0])
        return f":doc:`{page}`" if page else SPECIAL.sub(r"\\\1", text)
    inner = " ".join(text.partition("`")[2].strip("`").split())
    if not text.startswith("``"):  # in a role, ~ and . before a name say how it is looked up and shown
        inner = inner.lstrip("~.") or inner
    path = link(inner.removesuffix("()"))
    if path and path.startswith("/"):
        return f":doc:`{path}`"
    return f":py:obj:`{inner} <{path}>`" if path else f"``{inner}``"
