"""The live board: a page on this machine that shows a store while a sweep fills it.  It only reads.

``livarot board STORE`` starts it (extra ``livarot[board]``).  The server listens on 127.0.0.1 and sends nothing
anywhere.
"""

from __future__ import annotations

from pathlib import Path

from livarot.errors import bad

ADDRESS = "127.0.0.1"
PORT = 8501


def arguments(store: str | Path, port: int = PORT) -> list[str]:
    """The command line of streamlit that serves the board, after its name.

    >>> "--server.address=127.0.0.1" in arguments("results/first")
    True
    """
    if not 1024 <= port <= 65535:
        raise bad("port", f"{port} cannot be used", cure="choose one from 1024 to 65535")
    settings = {
        "server.address": ADDRESS,
        "server.port": str(port),
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "server.enableXsrfProtection": "true",
        "server.enableCORS": "true",
        "browser.gatherUsageStats": "false",
        "browser.serverAddress": ADDRESS,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "global.developmentMode": "false",
    }
    app = Path(__file__).with_name("app.py")
    options = [f"--{name}={value}" for name, value in settings.items()]
    return ["run", str(app), *options, "--", str(Path(store).absolute())]
