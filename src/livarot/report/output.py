"""Folders of results: checked before the work, written when all of it is done."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from livarot.errors import bad
from livarot.storage import write_together


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Can files be written there?  Asked before the work is done; nothing is created."""
    path = Path(folder)
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise bad("out", f"{str(there)!r} is not a folder", cure="choose another one")
    if not os.access(there, os.W_OK | os.X_OK):
        raise bad("out", f"no right to write in {str(there)!r}", cure="choose another folder")
    return path


def write_all(folder: str | os.PathLike[str], content: Mapping[str, bytes], *, own: Collection[str] = ()) -> list[Path]:
    """Write files by name, each complete or not at all; returns their paths.

    ``own`` are all names that the caller ever writes: such files of an earlier call that are not written now are
    removed.  Nothing else in the folder is touched.
    """
    path = check_folder(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise bad("out", f"cannot create {str(path)!r}: {error.strerror or error}") from error
    write_together({path / name: data for name, data in content.items()})
    for name in own:
        if name not in content and (path / name).is_file():
            _remove(path / name)
    return [path / name for name in content]


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        problem = f"cannot remove {str(path)!r}, left by an earlier report: {error.strerror or error}"
        raise bad("out", problem, cure="delete it, or choose another folder") from error
