"""``python -m livarot.board STORE PORT``: become the server of the board."""

from __future__ import annotations

import os
import sys

from livarot.board import arguments

if __name__ == "__main__":
    line = arguments(sys.argv[1], int(sys.argv[2]))
    os.execv(line[0], line)  # noqa: S606
