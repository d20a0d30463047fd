"""Nested tuples of arrays and numbers, such as an agent's state: their parts by name, and how to map them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def leaves(part: Any, name: str = "") -> dict[str, Any]:
    """Whatever is not a tuple, in order, by its dotted name.

    >>> from livarot.agents.base import NoState
    >>> leaves((NoState([1.0]), 2))
    {'0.policy': [1.0], '1': 2}
    """
    if not isinstance(part, tuple):
        return {name: part}
    found: dict[str, Any] = {}
    for key, inner in _named(part, name):
        found |= leaves(inner, key)
    return found


def mapped(change: Callable[[str, Any], Any], part: Any, name: str = "") -> Any:
    """The same tuples with ``change(name, leaf)`` in place of each leaf, in the order of :func:`leaves`."""
    if not isinstance(part, tuple):
        return change(name, part)
    parts = [mapped(change, inner, key) for key, inner in _named(part, name)]
    return type(part)(*parts) if hasattr(part, "_fields") else tuple(parts)


def _named(part: tuple[Any, ...], name: str) -> list[tuple[str, Any]]:
    keys = map(str, getattr(part, "_fields", range(len(part))))
    return [(f"{name}.{key}" if name else key, inner) for key, inner in zip(keys, part, strict=True)]
