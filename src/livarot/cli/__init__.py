"""The command line.  This module imports next to nothing, so that ``livarot --help`` answers at once."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """The console script ``livarot``, also ``python -m livarot``."""
    gc.set_threshold(100_000, 20, 20)  # a store's rows are many objects without cycles: looking for some takes a tenth
    try:
        from livarot.cli.app import app

        app(prog_name="livarot")
    except KeyboardInterrupt:  # before a command has begun
        sys.exit(130)
