"""Hashes of many small files, computed by processes that do nothing else.

Threads of this process would wait for the interpreter after each of the four system calls that a file takes.  The names
go to these processes in a file, and the answers come back in one, line by line: no pipe has to be emptied, and all is
plain text.  Files that such a process does not answer for are hashed here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from livarot.bounded import read_regular
from livarot.errors import LivarotError

PROCESSES = 2
MANY = 5000  # files: fewer are hashed before such a process has started
NOTHING = "-"


def in_words(size: int, mtime: int, sha256: str) -> str:
    """The state of a file as text, ``mtime`` in nanoseconds: equal texts mean equal files."""
    return f"{size} {mtime} {sha256}"


def look(path: str, limit: int) -> str:
    """`in_words` of a regular file of at most ``limit`` bytes; "-" if there is none, or if it cannot be read."""
    try:
        data, found = read_regular(path, limit)
    except (OSError, LivarotError):
        return NOTHING
    return in_words(len(data), found.st_mtime_ns, hashlib.sha256(data).hexdigest())


class Looking:
    """Hash files of one folder from now on, by separate processes if they are many: ``with Looking(...)``."""

    def __init__(self, folder: str | os.PathLike[str], names: Sequence[str], limit: int) -> None:
        self.folder, self.limit = os.fspath(folder), limit
        share = -(-len(names) // PROCESSES) if len(names) >= MANY else len(names)
        self._shares = [names[at : at + share] for at in range(0, len(names), share or 1)]
        self._others = [self._begin(names) for names in self._shares] if len(names) >= MANY else []

    def __enter__(self) -> Looking:
        return self

    def __exit__(self, *_: object) -> None:
        for process, answers in filter(None, self._others):
            process.kill()
            process.wait()
            answers.close()

    def found(self) -> Iterator[str]:
        """What `look` returns for each name, in order."""
        for place, names in enumerate(self._shares):
            answers = self._answers(place)[: len(names)]
            yield from answers
            yield from (look(f"{self.folder}/{name}", self.limit) for name in names[len(answers) :])

    def _begin(self, names: Sequence[str]) -> tuple[subprocess.Popen[bytes], IO[bytes]] | None:
        """A process that hashes these files; None where none can be started."""
        paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [sys.executable or "", "-P", "-m", __name__, os.path.abspath(self.folder), str(self.limit)]
        with contextlib.suppress(OSError), tempfile.TemporaryFile() as asked:
            asked.write("\n".join(names).encode())
            asked.seek(0)
            answers = tempfile.TemporaryFile()  # noqa: SIM115, closed with the process
            try:
                process = subprocess.Popen(  # noqa: S603, this very module
                    command, stdin=asked, stdout=answers, stderr=subprocess.DEVNULL, env=environment
                )
            except BaseException:
                answers.close()
                raise
            return process, answers
        return None

    def _answers(self, place: int) -> list[str]:
        """What another process said; it may have died before the end, or in the middle of a line."""
        other = self._others[place] if self._others else None
        if other is None:
            return []
        other[0].wait()
        other[1].seek(0)
        return other[1].read().decode().split("\n")[:-1]


def main() -> None:
    """Write one line for each name that is read."""
    folder, limit = sys.argv[1], int(sys.argv[2])
    for name in sys.stdin.read().splitlines():
        sys.stdout.write(look(f"{folder}/{name}", limit) + "\n")


if __name__ == "__main__":
    main()
