"""The command line.  This module imports next to nothing, so that ``livarot --help`` answers at once."""

from __future__ import annotations

import sys


def main() -> None:
    """The console script ``livarot``, also ``python -m livarot``."""
    try:
        from livarot.cli.app import app

        app(prog_name="livarot")
    except KeyboardInterrupt:  # before a command has begun
        sys.exit(130)
