"""What belongs to a store: its folders, its index, its marker.

They may come from anybody (an archive, a shared disk), and livarot writes and deletes in them.  So a link in the place
of one is refused: what it points to does not belong to the store.  A missing folder counts as empty when it is read,
and is made again when something is written: git and some copies keep no empty folders.
"""

from __future__ import annotations

import os
import reprlib
import stat
from pathlib import Path

from livarot.errors import bad
from livarot.storage import parse_json, read_regular, write_atomic
from livarot.sweeps.experiment.keys import canonical

FOLDERS = ("runs", "failed", "corrupt", "checkpoints", "specs", "drivers", "running")
MARKER = "livarot-store.json"
INDEX = "index.sqlite"
INDEX_FILES = (INDEX, f"{INDEX}-wal", f"{INDEX}-shm", f"{INDEX}-journal")
OURS = (".", INDEX)  # beginnings of names that may exist before the marker does
STORE_SCHEMA = 1
MAX_MARKER = 1 << 12  # bytes


def own_folder(path: Path) -> Path:
    """A folder of a store, to write or delete in: made if it is missing, refused if it is a link."""
    if not _is_own(path, stat.S_IFDIR):
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise bad("store", f"cannot make {str(path)!r}: {error.strerror or error}") from error
    return path


def names_in(path: Path) -> list[str]:
    """The names in a folder of a store, sorted; none if it is missing."""
    return sorted(os.listdir(path)) if _is_own(path, stat.S_IFDIR) else []


def check_own(store: Path) -> None:
    """Refuse a store with a link, or something of another kind, in the place of a folder, its index or its marker."""
    for names, kind in ((FOLDERS, stat.S_IFDIR), ((MARKER, *INDEX_FILES), stat.S_IFREG)):
        for name in names:
            _is_own(store / name, kind)


def _is_own(path: Path, kind: int) -> bool:
    """Is it there?  Refused if it is not of this kind."""
    try:
        found = stat.S_IFMT(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise bad("store", f"cannot read {str(path)!r}: {error.strerror or error}") from error
    if found != kind:
        wanted = "folder" if kind == stat.S_IFDIR else "file"
        what = "a link" if found == stat.S_IFLNK else f"not a {wanted}"
        raise bad("store", f"{str(path)!r} is {what}", cure=f"a store has its own {wanted}s: remove it")
    return True


def make_store(path: Path) -> None:
    """Make the folder, and all that belongs to it; a folder that already holds other things is refused."""
    if not (path / MARKER).is_file() and path.is_dir():
        foreign = [name for name in sorted(os.listdir(path)) if name not in FOLDERS and not name.startswith(OURS)]
        if foreign:  # folders of a store without its marker are not: it is being made, or its maker died
            text = f"{str(path)!r} is not a store and not empty ({foreign[0]!r} is there)"
            raise bad("store", text, cure="choose another folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise bad("store", f"cannot make {str(path)!r}: {error.strerror or error}") from error
    for name in FOLDERS:
        own_folder(path / name)
    if not (path / MARKER).is_file():
        write_atomic(path / MARKER, canonical({"kind": "livarot-store", "schema": STORE_SCHEMA}).encode())


def check_store(path: Path) -> None:
    """Refuse what is not a store, or one of a later version."""
    if not (path / MARKER).is_file():
        raise bad("store", f"{str(path)!r} is not a store", cure="give the folder that `livarot run` wrote")
    check_own(path)
    try:
        schema = parse_json(read_regular(path / MARKER, MAX_MARKER)[0]).get("schema")
    except (OSError, ValueError, AttributeError) as error:
        raise bad("store", f"{str(path / MARKER)!r} cannot be read ({error})") from error
    if not isinstance(schema, int) or schema > STORE_SCHEMA:
        raise bad("store", f"{str(path)!r} has schema {reprlib.repr(schema)}", cure="upgrade livarot")
