"""What the thumbnails of the gallery show, for those who cannot see them."""

from __future__ import annotations

import html
import re

from sphinx.application import Sphinx

THUMBNAIL = re.compile(
    r"""(?P<image>\.\. image:: \S*/thumb/\S+\n +:alt:)[ ]*\n(?P<between>.*?thumbnail-title">(?P<title>[^<]*)</div>)""",
    re.DOTALL,
)


def described(text: str) -> str:
    """Each thumbnail of a page of the gallery is described by the title of its example."""
    return THUMBNAIL.sub(lambda found: f"{found['image']} First figure of: {titled(found)}\n{found['between']}", text)


def titled(found: re.Match[str]) -> str:
    return " ".join(html.unescape(found["title"]).split())


def on_source(app: Sphinx, docname: str, content: list[str]) -> None:
    if docname.startswith("gallery"):
        content[0] = described(content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", on_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
