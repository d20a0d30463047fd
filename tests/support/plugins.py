"""Packages of others, as if they were installed."""

from pathlib import Path


def install(folder: Path, module: str, code: str, entry_points: str) -> None:
    """Write a module and the files that say what it offers; `folder` must then be on the path."""
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
