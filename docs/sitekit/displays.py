"""Displays and cells of tables: rows of formulas, with labels before and remarks behind them."""

from __future__ import annotations

import re
from typing import NamedTuple

from sitekit.formulas import formula, joined
from sitekit.lexicon import BIG, FUNCTIONS, GREEK, Unsure, unsure

LABEL = re.compile(r"[A-Za-z][A-Za-z -]*")
REMARK = re.compile(r"\(([A-Za-z][A-Za-z0-9' ,:;-]*)\)[.,]?")
FORMULA = re.compile(rf"sqrt|[_^=+]|\b(?:{'|'.join(GREEK)})\b")
SIGN = r"(?:<=|>=|!=|->|<-|=>|=|<|>|~)"
BEFORE, AFTER = re.compile(rf"{SIGN}(?: |$)"), re.compile(rf"(?:^| ){SIGN}$")


class Row(NamedTuple):
    label: str
    left: str  # of the first relation
    right: str
    stated: bool  # a relation is there, or a label


def cells(line: str) -> list[str]:
    """What two spaces separate, outside of brackets."""
    found, start = [], 0
    for gap in re.finditer(r" {2,}", line):
        before = line[: gap.start()]
        if sum(map(before.count, "([{")) == sum(map(before.count, ")]}")):
            found.append(line[start : gap.start()])
            start = gap.end()
    merged: list[str] = []
    for cell in [*found, line[start:]]:  # the spaces that align a sign are no gap
        if merged and (BEFORE.match(cell) or AFTER.search(merged[-1])):
            merged[-1] += f" {cell}"
        else:
            merged.append(cell)
    return merged


def label(text: str) -> str:
    """LaTeX of a label, such as ``radius eps``."""
    if not LABEL.fullmatch(text):
        unsure("no label")
    words = text.split()
    if not any(len(word) > 3 and word not in GREEK for word in words) or {*words} & {*BIG, *FUNCTIONS}:
        unsure("rather a formula")
    return r"\ ".join(GREEK.get(word, rf"\text{{{word}}}") for word in words)


def row(line: str) -> Row:
    """One line of a display."""
    parts = cells(line.strip())
    name = ""
    if len(parts) > 1:
        try:
            name, parts = label(parts[0]), parts[1:]
        except Unsure:
            name = ""  # the first part is a formula, or nothing is
    remark = ""
    if len(parts) > 1 and (found := REMARK.fullmatch(parts[-1])):
        try:
            formula(parts[-1])
        except Unsure:
            remark, parts = rf"\text{{({found.group(1)})}}", parts[:-1]
    formulas = [formula(part) for part in parts]
    first = formulas[0]
    stated = bool(name) or any(item.kind == "relation" for items in formulas for item in items)
    at = next((at for at, item in enumerate(first) if item.kind == "relation"), None)
    rest = "".join(rf"\qquad {joined(items)}" for items in formulas[1:])
    rest += rf"\qquad {remark}" if remark else ""
    if at is None:
        start = r"\qquad " if first and first[0].kind == "operator" else ""  # the line before goes on
        return Row(name, "", start + joined(first) + rest, stated)
    return Row(name, joined(first[:at]), f"{first[at].latex} {joined(first[at + 1 :])}{rest}", stated)


def display(lines: list[str]) -> str | None:
    r"""LaTeX of an indented block, or None if it is not surely made of formulas.

    >>> display(["    V_h = max_a Q_h,   V_H = 0"])
    'V_{h} = \\max_{a} Q_{h},\\qquad V_{H} = 0'
    """
    try:
        rows = [row(line) for line in lines if line.strip()]
    except Unsure:
        return None
    if not any(each.stated for each in rows):
        return None
    if len(rows) == 1:
        only = rows[0]
        return (rf"{only.label}\qquad " if only.label else "") + f"{only.left} {only.right}".strip()
    named, aligned = any(each.label for each in rows), all(each.left for each in rows)
    out = []
    for each in rows:
        formula = f"{each.left} & {each.right}" if aligned and not named else f"{each.left} {each.right}".strip()
        out.append(f"{each.label} & {formula}" if named else formula if aligned else f"& {formula}")
    return r"\begin{aligned} " + r" \\ ".join(out) + r" \end{aligned}"


def inline(text: str) -> str | None:
    """LaTeX of a formula within text, such as the cell of a table; None if it is not surely one."""
    try:
        return joined(formula(text)) if FORMULA.search(text) else None
    except Unsure:
        return None
