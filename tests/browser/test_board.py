"""The live board: on this machine only, it shows runs as they come, and it leaves the store alone."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.support.stores import filled_store, hostile_store

pytest.importorskip("streamlit")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def served(store, folder, *words):
    """The board of a store; its port."""
    port = free_port()
    process = started(["-m", "livarot.board", str(store), str(port), *words], port, folder)
    try:
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def started(words, port, folder):
    """A process of Python that serves the board, once it answers."""
    with (folder / "log").open("wb") as log:
        command = [sys.executable, "-P", *words]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=os.environ | {"HOME": str(folder)})
    deadline = time.monotonic() + 60.0
    while not answers(port):
        assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.2)
    return process


def answers(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.suppress(OSError), contextlib.closing(connection):
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == 200
    return False


def state_of(store):
    return {path: path.stat().st_mtime_ns for path in store.rglob("*")}


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_the_server_ends_with_the_command_and_imports_nothing_from_here(tmp_path, number):
    store = filled_store(tmp_path / "store", n_seeds=1)
    for name in ("click", "streamlit", "tornado", "livarot"):
        (tmp_path / f"{name}.py").write_text("open('executed', 'w').close()")
    port = free_port()
    process = started(["-m", "livarot", "board", str(store), "--port", str(port)], port, tmp_path)
    process.send_signal(number)
    assert process.wait(20) == (-number if number == signal.SIGKILL else 128 + number)
    deadline = time.monotonic() + 20.0
    while answers(port) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not answers(port)
    assert not (tmp_path / "executed").exists()


def first_line(port, path, **headers):
    """The answer's first line to a request with these headers and no others."""
    lines = [f"GET {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection.makefile("rb").readline().decode().strip()


def page(port, **headers):
    return first_line(port, "/", **headers, Connection="close").split()[1]


def websocket(port, **headers):
    key = {"Sec_WebSocket_Version": "13", "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    return first_line(port, "/_stcore/stream", **headers, Connection="Upgrade", Upgrade="websocket", **key).split()[1]


def test_a_foreign_host_or_origin_gets_nothing(tmp_path):
    """DNS rebinding: another site's name that points to 127.0.0.1 shares the board's origin."""
    store = filled_store(tmp_path / "store", n_seeds=1)
    with served(store, tmp_path, "--host=Board.example.org") as port:
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "board.example.org"):
            assert page(port, Host=host) == "200"
            assert websocket(port, Host=host, Origin=f"http://{host}") == "101"
        for host in (f"evil.example:{port}", "evil.example", f"localhost:{port + 1}", "localhost", "", f"127.1:{port}"):
            assert page(port, Host=host) == "403", host
            assert websocket(port, Host=host, Origin=f"http://{host}") == "403", host
            assert websocket(port, Host=host) == "403", host
        assert page(port) in ("400", "403")
        for path in ("/_stcore/health", "/_stcore/host-config", "/static/index.html", "/media/x"):
            assert first_line(port, path, Host=f"evil.example:{port}", Connection="close").split()[1] == "403"
        ours = f"127.0.0.1:{port}"
        for origin in ("http://evil.example", "http://localhost:3000", "null", f"http://evil.example:{port}"):
            assert websocket(port, Host=ours, Origin=origin) == "403", origin
            assert page(port, Host=ours, Origin=origin) == "403", origin


def test_a_bad_host_ends_the_command_in_one_line(tmp_path):
    store = filled_store(tmp_path / "store", n_seeds=1)
    words = [sys.executable, "-m", "livarot", "board", str(store), "--port", str(free_port()), "--host", "http://x"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if "is not a host" in line] == done.stderr.splitlines()[1:]


def test_the_server_imports_modules_of_one_s_own(tmp_path):
    store = filled_store(tmp_path / "store", n_seeds=1)
    (tmp_path / "own_board_module.py").write_text(
        "import os, pathlib\nfrom livarot import agents\n"
        "agents.registry.register('own-agent', agents.Uniform, 'own')\npathlib.Path(f'by-{os.getpid()}').touch()"
    )
    for name in ("click", "tornado"):
        (tmp_path / f"{name}.py").write_text("open('executed', 'w').close()")
    port = free_port()
    words = ["-m", "livarot", "board", str(store), "--port", str(port), "--import", "own_board_module"]
    process = started(words, port, tmp_path)
    process.terminate()
    process.wait(20)
    imported_by = {path.name for path in tmp_path.glob("by-*")}
    assert f"by-{process.pid}" in imported_by and len(imported_by) == 2  # the command, and the server
    assert not (tmp_path / "executed").exists()


@pytest.mark.browser
def test_the_board_fills_up_in_a_browser(watched, tmp_path):
    store = filled_store(tmp_path / "store")
    late = sorted((store / "runs").iterdir())[:10]
    kept = {path: path.read_bytes() for path in late}
    for path in late:
        path.unlink()
    with served(store, tmp_path) as port:
        with socket.socket() as other:  # not on other addresses
            assert other.connect_ex(("127.0.0.2", port)) != 0
        watched.page.goto(f"http://127.0.0.1:{port}")
        watched.page.wait_for_selector("text=38 of 48 runs", timeout=60_000)
        watched.page.wait_for_selector(".js-plotly-plot .legendtext", timeout=60_000)
        for path, data in kept.items():
            path.write_bytes(data)
        before = state_of(store)
        watched.page.wait_for_selector("text=48 of 48 runs", timeout=30_000)
        assert state_of(store) == before
    away = [
        url for url in watched.requests if f"//127.0.0.1:{port}/" not in url and not url.startswith(("data:", "blob:"))
    ]
    assert away == []


@pytest.mark.browser
def test_hostile_names_run_nothing_on_the_board(watched, tmp_path):
    store = hostile_store(tmp_path / "store")
    with served(store, tmp_path) as port:
        watched.page.goto(f"http://127.0.0.1:{port}")
        watched.page.wait_for_selector(".js-plotly-plot .legendtext", timeout=60_000)
        watched.page.wait_for_timeout(1000)
        assert watched.page.evaluate("window.pwned === undefined")
    assert all(f"//127.0.0.1:{port}/" in url or url.startswith(("data:", "blob:")) for url in watched.requests)
