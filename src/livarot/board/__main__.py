"""``python -P -m livarot.board STORE PORT [PARENT] [--host NAME].. [--import MODULE]..``: serve the board.

At most as long as the process PARENT lives.  Without ``-P`` Python would look in the current folder first for whatever
streamlit imports.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from livarot.board import KnownHosts, known_hosts, settings
from livarot.errors import LivarotError, bad
from livarot.registry import import_modules
from livarot.sweeps.stopping import end_with


def serve(store: str, port: int, hosts: Sequence[str], imports: Sequence[str]) -> None:
    """Serve the board until a signal ends it."""
    import streamlit

    app: Any = getattr(streamlit, "App", None)
    if not hasattr(app, "run"):
        raise bad("board", f"streamlit {streamlit.__version__} is too old", cure="pip install 'livarot[board]'")
    from starlette.middleware import Middleware  # streamlit is built on it

    guard = Middleware(KnownHosts, hosts=known_hosts(port, hosts))
    before = list(sys.path)
    import_modules(imports)
    sys.path[:] = [*before, *(folder for folder in sys.path if folder not in before)]  # what is installed comes first
    sys.argv[1:] = [str(Path(store).absolute())]  # for the page
    app(Path(__file__).with_name("app.py"), middleware=[guard]).run(config=settings(port))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="livarot.board")
    parser.add_argument("store")
    parser.add_argument("port", type=int)
    parser.add_argument("parent", type=int, nargs="?")
    parser.add_argument("--host", action="append", default=[])
    parser.add_argument("--import", dest="imports", action="append", default=[])
    given = parser.parse_args()
    if given.parent is not None:
        threading.Thread(target=end_with, args=(given.parent,), daemon=True).start()
    try:
        serve(given.store, given.port, given.host, given.imports)
    except LivarotError as error:
        sys.stderr.write(f"livarot: {error}\n")
        sys.exit(2)
