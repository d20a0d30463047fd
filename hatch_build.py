"""The README and the addresses of the project as a package index needs them.

An index shows the README elsewhere, so links within the repository must be absolute there.  Where the repository is
stands in one place, ``repository-code`` in CITATION.cff; while it is not public there is no such line, and links become
their text, since a link that leads nowhere is worse than none.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

IMAGE = re.compile(r"!\[([^\]]*)\]\((?!\w+://)([^)\s]+)\)")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!\w+://|#)([^)\s]+)\)")


def repository(citation: str) -> str | None:
    """The address of the repository, if it has one."""
    found = re.search(r'^repository-code: *"?([^"\s]+)', citation, re.MULTILINE)
    return found.group(1).rstrip("/") if found else None


def readme(text: str, home: str | None) -> str:
    """The README for a package index."""
    if home is None:
        text = re.sub(rf"^{IMAGE.pattern}\n+(?:The picture is [^\n]*\n+)?", "", text, flags=re.MULTILINE)
        return LINK.sub(r"\1", text)
    return LINK.sub(rf"[\1]({home}/blob/main/\2)", IMAGE.sub(rf"![\1]({home}/raw/main/\2)", text))


def urls(home: str | None) -> dict[str, str]:
    """The addresses that an index shows beside it."""
    if home is None:
        return {}
    pages = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
    return {"Source": home, "Issues": f"{home}/issues"} | {k: f"{home}/blob/main/{v}" for k, v in pages.items()}


class CustomMetadataHook(MetadataHookInterface):
    """Called by hatchling for every wheel and source distribution."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        home = repository((root / "CITATION.cff").read_text(encoding="utf-8"))
        text = readme((root / "README.md").read_text(encoding="utf-8"), home)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls(home)
