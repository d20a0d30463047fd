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

from livarot.board import arguments
from livarot.errors import LivarotError
from livarot.experiments.store import Store
from tests.stores import filled_store, hostile_store

pytest.importorskip("streamlit")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def served(store, folder):
    """The board of a store; its address."""
    port = free_port()
    command = [sys.executable, "-m", "livarot.board", str(store), str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=os.environ | {"HOME": str(folder)})
    try:
        deadline = time.monotonic() + 60.0
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            with contextlib.suppress(OSError), contextlib.closing(connection):
                connection.request("GET", "/_stcore/health")
                if connection.getresponse().status == 200:
                    break
            assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.2)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def state_of(store):
    return {path: path.stat().st_mtime_ns for path in store.rglob("*")}


def test_the_board_in_this_process(tmp_path):
    """Streamlit's own test bench: no server, no browser."""
    from streamlit.testing.v1 import AppTest

    store = filled_store(tmp_path / "store")
    before = state_of(store)
    app = AppTest.from_string(f"from livarot.board.app import main\nmain({str(store)!r})", default_timeout=60).run()
    assert not app.exception
    frame = app.dataframe[-1].value
    assert list(frame["runs"]) == [8] * 6 and list(frame["planned"]) == [8] * 6
    assert len(app.multiselect(key="agents 0").value) == 2
    app.selectbox(key="panel").set_value(2).run()
    assert not app.exception
    assert state_of(store) == before


def test_an_empty_store_and_hostile_names_are_shown(tmp_path):
    from streamlit.testing.v1 import AppTest

    Store(tmp_path / "empty", create=True).close()
    for store, errors in ((tmp_path / "empty", 0), (hostile_store(tmp_path / "store"), 0), (tmp_path / "none", 1)):
        app = AppTest.from_string(f"from livarot.board.app import main\nmain({str(store)!r})", default_timeout=60).run()
        assert not app.exception
        assert len(app.error) == errors


def test_the_server_is_told_to_stay_on_this_machine():
    line = arguments("store", 8600)
    assert "--server.address=127.0.0.1" in line and "--browser.gatherUsageStats=false" in line
    with pytest.raises(LivarotError, match="port"):
        arguments("store", 80)


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
