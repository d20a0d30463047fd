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

from livarot.board import known_hosts, settings
from livarot.board.app import heading, in_legend
from livarot.errors import LivarotError
from livarot.report.read_runs import Runs
from livarot.sweeps.spec import Experiment
from livarot.sweeps.store.store import Store
from tests.support.stores import fill, filled_store, hostile_store

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


def test_the_board_in_this_process(tmp_path):
    """Streamlit's own test bench: no server, no browser."""
    from streamlit.testing.v1 import AppTest

    store = filled_store(tmp_path / "store")
    before = state_of(store)
    app = AppTest.from_string(f"from livarot.board.app import main\nmain({str(store)!r})", default_timeout=60).run()
    assert not app.exception
    assert app.title[0].value == "two agents"
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


def test_failed_runs_are_shown_with_their_reason(tmp_path):
    """Also while nothing is stored, and whatever their notes look like."""
    from streamlit.testing.v1 import AppTest

    experiment = Experiment(
        name="*two* <b>agents</b>",
        environments=[{"name": "hard-chain", "settings": {"horizon": [3, 4], "gap": 0.1}}],
        agents=[{"name": "uniform", "label": "chance"}],
        episodes=5,
        seeds=2,
    )
    with Store(tmp_path / "store", create=True) as store:
        store.add_spec(experiment)
        raised, died = (cell.run(1) for cell in experiment.cells())
        store.fail(raised, attempts=1, traceback="Traceback (most recent call last):\n  File x\nValueError: no luck\n")
        store.fail(
            died, attempts=3, traceback="the worker died 3 times; killed\nFatal Python error: Segmentation fault"
        )
    path = str(tmp_path / "store")
    app = AppTest.from_string(f"from livarot.board.app import main\nmain({path!r})", default_timeout=60).run()
    assert not app.exception
    assert app.title[0].value == r"\*two\* \<b\>agents\<\/b\>"
    shown = {row["reason"]: row for row in app.dataframe[0].value.to_dict("records")}
    assert shown.keys() == {"ValueError: no luck", "the worker died 3 times; killed"}
    assert shown["ValueError: no luck"] == {
        "reason": "ValueError: no luck",
        "seed": 1,
        "attempts": 1,
        "run": "hard-chain (horizon=3) chance T=5",
    }
    assert len(app.info) == 1


def test_headings_and_names_are_whole(tmp_path):
    def runs(*names):
        spec = {"environments": [{"name": "hard-chain"}], "agents": [{"name": "uniform"}], "episodes": 5, "seeds": 1}
        return Runs({}, {}, [], {}, [Experiment(name=name, **spec) for name in names])

    assert heading(runs(), "results/first") == "first"
    assert heading(runs("a", "b", "a"), "x") == "a, b"
    assert heading(runs("a", "b", "c", "d", "e"), "x") == "a, b, c and 2 more"
    long = ", ".join(f"setting_{number}=0.05" for number in range(12))
    assert in_legend(f"livarot ({long})").replace("<br>", " ") == f"livarot ({long})"
    assert max(map(len, in_legend(f"livarot ({long})").split("<br>"))) <= 60
    assert in_legend("a<br>b") == "a&lt;br&gt;b"


def test_long_names_can_be_told_apart_in_the_table(tmp_path):
    from streamlit.testing.v1 import AppTest

    text = "the joint maximum over the ellipsoid and a radius that is scaled down by hand"
    experiment = Experiment(
        environments=[{"name": "hard-chain", "label": text, "settings": {"horizon": [3, 4], "gap": 0.1}}],
        agents=[{"name": "uniform", "label": f"{text}, one"}, {"name": "livarot", "label": f"{text}, other"}],
        episodes=20,
        seeds=2,
    )
    with Store(tmp_path / "store", create=True) as store:
        store.add_spec(experiment)
        for cell in experiment.cells():
            fill(store, cell, 1.0, 2)
    path = str(tmp_path / "store")
    app = AppTest.from_string(f"from livarot.board.app import main\nmain({path!r})", default_timeout=60).run()
    assert not app.exception
    frame = app.dataframe[-1].value
    assert len(set(frame["environment"])) == len(set(frame["agent"])) == 2
    assert max(map(len, [*frame["environment"], *frame["agent"]])) <= 55
    assert app.multiselect(key="agents 0").options == [f"{text}, one", f"{text}, other"]


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


def test_the_server_is_told_to_stay_on_this_machine():
    told = settings(8600)
    assert told["server.address"] == "127.0.0.1" and told["browser.gatherUsageStats"] is False
    with pytest.raises(LivarotError, match="port"):
        settings(80)


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


@pytest.mark.parametrize("name", ["http://x", "x/y", "x y", "", "x:y", "user@x", "*"])
def test_a_host_that_is_none_is_refused(name):
    with pytest.raises(LivarotError, match=r"^host: .* is not a host"):
        known_hosts(8501, [name])


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
