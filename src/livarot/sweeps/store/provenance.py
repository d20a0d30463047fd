"""Which code made a result."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa


@cache
def provenance() -> dict[str, Any]:
    """Which code made a result: versions, the commit of a checkout, and a hash of livarot's sources.

    Runs of agents or environments of plugins also have a hash (:mod:`livarot.sweeps.experiment.sources`).

    >>> sorted(provenance())
    ['commit', 'livarot', 'machine', 'numba', 'numpy', 'pyarrow', 'python', 'source']
    """
    root = Path(__file__).parents[2]
    source = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        source.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return {
        "commit": _commit(root.parents[1]),
        "livarot": importlib.metadata.version("livarot"),
        "machine": platform.machine(),
        "numba": numba.__version__,
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "python": platform.python_version(),
        "source": source.hexdigest()[:16],
    }


def _commit(checkout: Path) -> str | None:
    """The commit of a checkout, read from its files; None elsewhere."""
    try:
        git = checkout / ".git"
        if git.is_file():  # a work tree of its own: the file says where its folder is
            git = (checkout / git.read_text().split(":", 1)[1].strip()).resolve()
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head[:40]
        common = git / (git / "commondir").read_text().strip() if (git / "commondir").is_file() else git
        name = head[5:]
        if (common / name).is_file():
            return (common / name).read_text().strip()[:40]
        packed = (common / "packed-refs").read_text().splitlines()
        return next((line[:40] for line in packed if line.endswith(f" {name}")), None)
    except (OSError, IndexError, UnicodeDecodeError):
        return None
