"""``livarot report`` and ``livarot board``: what a store has, as a page with figures, and live.

This module is imported by ``livarot --help``; a command imports what it needs when it runs.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

PORT = 8501
STOPPED = (0, 130, -2, -15)  # by Ctrl-C or a signal to end


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("report")(report)
    app.command("board")(board)


def report(
    store: Annotated[Path, typer.Argument(help="Folder of the results.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the files (STORE/report).")] = None,
) -> None:
    """One interactive page, figures for a paper and a LaTeX table."""
    from livarot.cli.app import one_line_errors

    with one_line_errors():
        command(store, out)


def board(
    store: Annotated[Path, typer.Argument(help="Folder of the results.")],
    port: Annotated[int, typer.Option(help="Port on this machine.")] = PORT,
) -> None:
    """Watch a sweep fill a store and compare its runs, in a browser on this machine; it only reads."""
    from livarot.cli.app import one_line_errors

    with one_line_errors():
        board_command(store, port)


def command(store: Path, out: Path | None = None) -> None:
    """Write page, figures and table of a store; into its folder ``report`` unless told otherwise."""
    from livarot.report.page import report as write_report

    folder = store / "report" if out is None else out
    written = write_report(store, folder)
    typer.echo(f"{len(written)} files in {folder}; open {written[0]}")


def board_command(store: Path, port: int) -> None:
    """Serve the live board of a store until Ctrl-C."""
    from livarot.errors import bad
    from livarot.experiments.store import Store

    if importlib.util.find_spec("streamlit") is None:
        raise bad("board", "streamlit is not installed", cure="pip install 'livarot[board]'")
    if not 1024 <= port <= 65535:
        raise bad("port", f"{port} cannot be used", cure="choose one from 1024 to 65535")
    Store(store).close()  # refuses what is no store
    typer.echo(f"the board of {store}: http://127.0.0.1:{port} (Ctrl-C ends it)", err=True)
    line = [sys.executable, "-m", "livarot.board", str(store.absolute()), str(port)]
    code = subprocess.run(line, check=False).returncode  # noqa: S603
    if code not in STOPPED:
        raise bad("board", f"the server ended with {code}", cure=f"is port {port} in use? Choose another: --port")
