"""The live board: a page on this machine that shows a store while a sweep fills it.  It only reads.

``livarot board STORE`` starts it (extra ``livarot[board]``).  The server listens on 127.0.0.1 and sends nothing
anywhere.  A page of another site can have its own name point to 127.0.0.1 and would then share the board's origin
(DNS rebinding), so a request must also name the board by an address that is known here: `KnownHosts`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from livarot.errors import bad

ADDRESS = "127.0.0.1"
PORT = 8501
_HOST = re.compile(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]  # ASGI


def settings(port: int = PORT) -> dict[str, Any]:
    """The settings of streamlit.

    >>> settings()["server.address"]
    '127.0.0.1'
    """
    return {
        "server.address": ADDRESS,
        "server.port": check_port(port),
        "server.headless": True,
        "server.fileWatcherType": "none",
        "server.enableXsrfProtection": True,
        "server.enableCORS": True,
        "browser.gatherUsageStats": False,
        "browser.serverAddress": ADDRESS,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "global.developmentMode": False,
    }


def check_port(port: int) -> int:
    if not 1024 <= port <= 65535:
        raise bad("port", f"{port} cannot be used", cure="choose one from 1024 to 65535")
    return port


def known_hosts(port: int, more: Iterable[str] = ()) -> frozenset[str]:
    """The names of a board on a port, as a browser sends them: those of this machine, and ``more`` of the user's.

    >>> sorted(known_hosts(8501, ["board.example.org"]))
    ['127.0.0.1:8501', '[::1]:8501', 'board.example.org', 'localhost:8501']
    """
    named = [name.lower() for name in more]
    for index, name in enumerate(named):
        if not _HOST.fullmatch(name):
            raise bad("host", f"{name!r} is not a host", index=index, cure="write name or name:port, without http://")
    return frozenset([*(f"{name}:{port}" for name in (ADDRESS, "localhost", "[::1]")), *named])


class KnownHosts:
    """Refuses requests, for pages and for websockets, whose Host is not known or whose Origin is not such a host."""

    def __init__(self, app: Application, hosts: frozenset[str]) -> None:
        self._app, self._hosts = app, hosts
        self._origins = {f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self._known(scope["headers"]):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: the server answers 403
        else:
            plain = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 403, "headers": plain})
            text = b"This board is not known by that name; name it with: livarot board --host\n"
            await send({"type": "http.response.body", "body": text})

    def _known(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        sent = [(name.lower(), value.decode("latin-1").lower()) for name, value in headers]
        hosts = [value for name, value in sent if name == b"host"]
        origins = [value for name, value in sent if name == b"origin"]
        return len(hosts) == 1 and hosts[0] in self._hosts and self._origins.issuperset(origins)
