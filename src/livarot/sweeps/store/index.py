"""The index of a store: SQLite beside the files, for quick answers; it can be rebuilt from the files at any time.

The files are the truth.  The index repeats their heads, and adds seconds and dates, which must not be in files that are
to be equal.  Each row carries a digest of itself; if a row that is read does not match it, the index is rebuilt.
It also holds the claims by which drivers on one store share the work: a claim counts while its driver holds the lock on
its own file, which the system releases whatever ends the driver.  Where SQLite or locks do not work (some network
folders), a run may be computed twice, with equal bytes.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from livarot.errors import LivarotError, bad
from livarot.storage import open_regular
from livarot.sweeps.store.folders import own_folder

logger = logging.getLogger(__name__)

NUMBERS = ("regret", "realised_regret", "sigma_bar", "covered", "optimism_gap", "inner_gap")
RUN_COLUMNS = ("key", "cell", "seed", *NUMBERS, "size", "mtime", "sha256", "seconds", "finished")
SOURCE_COLUMNS = ("key", "sha256", "plugin")
CELL_COLUMNS = ("cell", "environment", "environment_settings", "agent", "agent_settings", "episodes")
GUARD = "drivers/guard"  # locked by every process that works in a store
PATIENCE = 10.0  # seconds to wait for others that create the same index
CHUNK = 500  # SQLite takes a limited number of values per statement


class IndexDamaged(Exception):
    """A row is not what was written."""


class Sync(NamedTuple):
    """What the comparison of files and index found: runs that are there, and how many were new, gone or damaged."""

    done: set[str]
    added: int = 0
    removed: int = 0
    damaged: int = 0


class Index:
    """One connection, usable from all threads of a process."""

    def __init__(self, path: Path | str) -> None:
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, timeout=30.0, check_same_thread=False, isolation_level=None)
        weakref.finalize(self, self._connection.close)  # of stores that nobody closes, or whose index is refused below
        self._connection.execute("PRAGMA trusted_schema=OFF")
        _patiently(self._connection, "PRAGMA journal_mode=WAL")
        strange = "SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')"
        if self._connection.execute(strange).fetchone()[0]:
            self._connection.close()
            raise sqlite3.DatabaseError("it has views or triggers")  # they may compute anything, for ever
        self._connection.execute("PRAGMA synchronous=NORMAL")
        # SQL is made of constant names only; values go in as parameters
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS cells ({_declared(CELL_COLUMNS)}, digest)")
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS runs ({_declared(RUN_COLUMNS)}, digest)")
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS sources ({_declared(SOURCE_COLUMNS)}, digest)")
        self._connection.execute("CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL)")
        self._connection.execute("CREATE INDEX IF NOT EXISTS runs_cell ON runs (cell)")

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def add(self, cells: Sequence[Sequence[Any]], runs: Sequence[Sequence[Any]], owner: str | None = None) -> None:
        """Insert or replace rows, ordered as ``CELL_COLUMNS`` and ``RUN_COLUMNS``; the owner's claims on them end."""
        with self._writing() as connection:
            if owner is not None:
                _unclaim(connection, owner, [row[0] for row in runs])
            _insert(connection, "cells", cells)
            _insert(connection, "runs", runs)

    def add_sources(self, rows: Sequence[Sequence[Any]]) -> None:
        """Insert or replace rows, ordered as ``SOURCE_COLUMNS``: which sources made the file of that SHA-256."""
        with self._writing() as connection:
            _insert(connection, "sources", rows)

    def sources(self) -> dict[str, tuple[str, str]]:
        """SHA-256 and plugin by key; empty if a row is damaged: they are then read from the files again."""
        with contextlib.suppress(IndexDamaged):
            return {row["key"]: (row["sha256"], row["plugin"]) for row in self._rows("sources", SOURCE_COLUMNS)}
        return {}

    def remove(self, keys: Iterable[str]) -> None:
        with self._writing() as connection:
            connection.executemany("DELETE FROM runs WHERE key = ?", [(key,) for key in keys])

    def files(self) -> dict[str, tuple[str, int, int, str, str]]:
        """Key, the file's size, date and SHA-256, and cell of every run by its key, as the index has them.

        Digests are not checked, which would take much longer than the rest: where the file turns out to be different,
        the whole row is read and checked.
        """
        return {row[0]: row for row in self._select("SELECT key, size, mtime, sha256, cell FROM runs")}

    def hashes(self) -> dict[str, str]:
        """The SHA-256 of every run's file by its key, likewise."""
        return dict(self._select("SELECT key, sha256 FROM runs"))

    def counts(self) -> dict[str, int]:
        """How many runs each cell has, counted in the table itself: SQLite's index of it may be damaged alone."""
        return dict(self._select("SELECT cell, COUNT(*) FROM runs NOT INDEXED GROUP BY cell"))

    def keys(self, cell: str) -> list[str]:
        """The runs of a cell."""
        return [row[0] for row in self._select("SELECT key FROM runs WHERE cell = ?", (cell,))]

    def _select(self, text: str, values: tuple[str, ...] = ()) -> list[Any]:
        with self._lock:
            return self._connection.execute(text, values).fetchall()

    def runs(self, cell: str | None = None) -> list[dict[str, Any]]:
        """Every run (of a cell), with its digest checked."""
        return self._rows(
            "runs", RUN_COLUMNS, "" if cell is None else "WHERE cell = ?", () if cell is None else (cell,)
        )

    def row(self, key: str) -> dict[str, Any] | None:
        """One run; None if it is not there, or damaged."""
        with contextlib.suppress(IndexDamaged, sqlite3.DatabaseError):
            return next(iter(self._rows("runs", RUN_COLUMNS, "WHERE key = ?", (key,))), None)
        return None

    def cells(self) -> list[dict[str, Any]]:
        return self._rows("cells", CELL_COLUMNS)

    def _rows(
        self, table: str, columns: Sequence[str], which: str = "", values: tuple[str, ...] = ()
    ) -> list[dict[str, Any]]:
        text = f"SELECT {', '.join(columns)}, digest FROM {table} {which}"  # noqa: S608
        found = self._select(text, values)
        for row in found:
            if _row_digest(row[:-1]) != row[-1]:
                raise IndexDamaged(f"a row of {table} does not match its digest")
        return [dict(zip(columns, row, strict=False)) for row in found]

    # ---------------------------------------------------------------- claims
    def claim(self, keys: Sequence[str], owner: str, alive: Any) -> set[str]:
        """The keys that are the owner's from now on; ``alive(other)`` tells whether another owner lives."""
        with self._writing() as connection:
            held: dict[str, str] = {}
            for part in _chunks(keys):
                marks = ", ".join("?" * len(part))
                rows = connection.execute(f"SELECT key, owner FROM claims WHERE key IN ({marks})", part)  # noqa: S608
                held |= dict(rows.fetchall())
            living = {other: other != owner and alive(other) for other in set(held.values())}
            mine = [key for key in keys if not living.get(held.get(key, ""), False)]
            connection.executemany("INSERT OR REPLACE INTO claims VALUES (?, ?)", [(key, owner) for key in mine])
        return set(mine)

    def release(self, owner: str, keys: Iterable[str] | None = None) -> None:
        """Give up these claims of the owner, or all."""
        with self._writing() as connection:
            if keys is None:
                connection.execute("DELETE FROM claims WHERE owner = ?", (owner,))
            else:
                _unclaim(connection, owner, keys)


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        places = ", ".join("?" * (len(rows[0]) + 1))
        values = [(*row, _row_digest(row)) for row in rows]
        connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", values)  # noqa: S608


def _unclaim(connection: sqlite3.Connection, owner: str, keys: Iterable[str]) -> None:
    connection.executemany("DELETE FROM claims WHERE key = ? AND owner = ?", [(key, owner) for key in keys])


def _patiently(connection: sqlite3.Connection, text: str) -> None:
    """Execute; SQLite does not wait by itself for others that create the same file."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute(text)
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > end:
                raise
            time.sleep(0.02)


def is_busy(error: Exception) -> bool:
    """Does the error say that others hold the index (and not that it is damaged)?"""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _declared(columns: Sequence[str]) -> str:
    return ", ".join([f"{columns[0]} TEXT PRIMARY KEY", *columns[1:]])


def _row_digest(row: Sequence[Any]) -> str:
    return blake2b(repr(tuple(row)).encode(), digest_size=8).hexdigest()


def _chunks(keys: Sequence[str]) -> Iterator[list[str]]:
    for first in range(0, len(keys), CHUNK):
        yield list(keys[first : first + CHUNK])


class DriverLock:
    """A file that a driver keeps locked while it lives; :meth:`alive` asks whether another driver does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = secrets.token_hex(8)
        try:
            # locked before it has its name: nobody can take it for the lock of a dead driver
            new = open_regular(own_folder(folder) / f".{self.token}.new", flags=os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            self._file = os.fdopen(new, "wb")
            _lock(new)
            os.replace(folder / f".{self.token}.new", folder / f"{self.token}.lock")
        except OSError as error:
            raise bad("store", f"{str(folder)!r} cannot be written: {error.strerror or error}") from error
        self.since = os.fstat(self._file.fileno()).st_mtime_ns  # by the clock of the folder's file system

    def alive(self, token: str) -> bool:
        """Is the lock of that driver held?  Without locks on this system nobody else counts as alive."""
        if token == self.token:
            return True
        return lock_is_held(self.folder / f"{token}.lock")

    def release(self) -> None:
        (self.folder / f"{self.token}.lock").unlink(missing_ok=True)
        self._file.close()

    close = release


@contextlib.contextmanager
def guarded(path: Path, *, alone: bool) -> Iterator[None]:
    """Work in a store: sweeps and merges side by side, ``alone`` for what deletes; the lock ends with the process.

    A process that cannot have the lock now is refused at once.  Where there are no locks, none is refused.
    """
    try:
        own_folder(path.parent)
        descriptor = open_regular(path, flags=os.O_WRONLY | os.O_CREAT)
    except OSError as error:
        raise bad("store", f"{str(path.parent)!r} cannot be written: {error.strerror or error}") from error
    try:
        if not _lock(descriptor, shared=not alone):
            if alone:
                raise bad("store", f"a sweep is running in {str(path.parent)!r}", cure="wait for it or stop it")
            raise bad("store", f"livarot gc is at work in {str(path.parent)!r}", cure="run the same again")
        yield
    finally:
        os.close(descriptor)


def lock_is_held(path: Path) -> bool:
    """Does a living driver hold this lock file?"""
    try:
        descriptor = open_regular(path, flags=os.O_RDWR)
    except (OSError, LivarotError):
        return False
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, shared: bool = False) -> bool:
    """Take the lock without waiting; False if somebody holds it, True where there are no locks."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        logger.debug("this folder has no locks: drivers do not see each other")
    return True
