"""Small pieces of HTML for notebooks."""

from __future__ import annotations

from html import escape


def as_html(text: str) -> str:
    """A text of several lines as it stands; nothing in it is read as HTML."""
    return f"<pre>{escape(text)}</pre>"
