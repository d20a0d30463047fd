"""``livarot report`` and ``livarot board``: what a store has, as a page with figures, and live.

This module is imported by ``livarot --help``; a command imports what it needs when it runs.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from livarot.cli.sweep import PANEL, Imports, import_modules

PORT, REFUSED = 8501, 2
PLUGINS = "livarot.registry"  # warns of what installed packages offer and cannot be used
PATIENCE = 5.0  # seconds that the server has to end by itself


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("report", rich_help_panel=PANEL)(report)
    app.command("board", rich_help_panel=PANEL)(board)


def report(
    store: Annotated[Path, typer.Argument(help="Folder of the results.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the files (STORE/report).")] = None,
    against: Annotated[
        str | None, typer.Option(metavar="SETTING", help="Axis of scaling.pdf: dim, gap, episodes, agent.reg, ...")
    ] = None,
    controls: Annotated[bool, typer.Option("--controls", help="Draw the uniform policy and the oracle too.")] = False,
    imports: Imports = None,
) -> None:
    """One interactive page, figures for a paper and a LaTeX table."""
    from livarot.cli.app import one_line_errors

    with one_line_errors("report,sweep"), warnings_shown():
        import_modules(imports)
        from livarot.report.page import report as write_report

        folder = store / "report" if out is None else out
        written = write_report(store, folder, controls=controls, against=against)
        typer.echo(f"{len(written)} files in {folder}; open {written[0]}")


def board(
    store: Annotated[Path, typer.Argument(help="Folder of the results.")],
    port: Annotated[int, typer.Option(help="Port on this machine.")] = PORT,
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:PORT]", help="Another name that browsers may use for it (a proxy's); repeat."),
    ] = None,
    imports: Imports = None,
) -> None:
    """Watch a sweep fill a store and compare its runs, in a browser on this machine; it only reads."""
    from livarot.cli.app import one_line_errors

    with one_line_errors("board"):
        import_modules(imports)  # refused here, in one line; the server imports them itself
        board_command(store, port, host or [], imports or [])


@contextlib.contextmanager
def warnings_shown(part: str = "livarot") -> Iterator[None]:
    """Show warnings of the library, or of a part of it, on standard error: of a damaged run, for example."""
    import logging

    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("livarot: %(message)s"))
    handler.addFilter(lambda record: part == PLUGINS or record.name != PLUGINS)  # every command shows those
    logging.getLogger(part).addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger(part).removeHandler(handler)


def board_command(store: Path, port: int, hosts: Sequence[str] = (), imports: Sequence[str] = ()) -> None:
    """Serve the live board of a store until Ctrl-C or another signal to end, which the server gets too."""
    from livarot.errors import bad
    from livarot.sweeps.stopping import handling
    from livarot.sweeps.store.store import Store

    if importlib.util.find_spec("streamlit") is None:
        raise bad("board", "streamlit is not installed", cure="pip install 'livarot[board]'")
    if not 1024 <= port <= 65535:
        raise bad("port", f"{port} cannot be used", cure="choose one from 1024 to 65535")
    Store(store).close()  # refuses what is not a store
    typer.echo(f"the board of {store}: http://127.0.0.1:{port} (Ctrl-C ends it)", err=True)
    # -P: the server must not import Python files of the current folder
    line = [sys.executable, "-P", "-m", "livarot.board", str(store.absolute()), str(port), str(os.getpid())]
    line += [f"--host={name}" for name in hosts] + [f"--import={name}" for name in imports]
    server = Server()
    with handling(server.on_signal):
        code = server.run(line)
    if server.signal is not None:
        raise typer.Exit(128 + server.signal)
    if code == REFUSED:  # the server has said why
        raise typer.Exit(REFUSED)
    if code:
        raise bad("board", f"the server ended with {code}", cure=f"is port {port} in use? Choose another: --port")


class Server:
    """A process that ends with this one: signals to end are passed on to it, and it watches its parent."""

    def __init__(self) -> None:
        self.signal: int | None = None  # what asked for the end
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, line: list[str]) -> int:
        """Start it and wait for its end, which an exception here brings about too; its exit code."""
        self._process = subprocess.Popen(line)  # noqa: S603
        if self.signal is not None:  # while it was being started
            self._process.terminate()
        try:
            return self._process.wait()
        finally:
            self._end(self._process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            process.kill()

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """Ask the server to end; the second time kill it."""
        first, self.signal = self.signal is None, self.signal or number
        if self._process is not None:
            if first:
                self._process.terminate()
            else:
                self._process.kill()
