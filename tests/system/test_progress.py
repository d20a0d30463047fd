"""Progress bars: for long work in a terminal or a notebook, and nowhere else."""

from __future__ import annotations

import io
import sys
import threading
import types

import pytest

import livarot
from livarot.errors import LivarotError
from livarot.system import progress
from livarot.system.progress import Bar, counted, in_notebook, watched


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A function that makes standard error a terminal, within the test: pytest replaces it between its phases."""

    def use():
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return use


class Handle:
    def __init__(self):
        self.shown = []

    def update(self, drawing):
        self.shown.append(drawing)


@pytest.fixture
def notebook(monkeypatch):
    """IPython's two modules, as a kernel has them."""
    handle = Handle()

    def display(drawing, display_id):
        handle.update(drawing)
        return handle

    shell = type("ZMQInteractiveShell", (), {})()
    modules = {
        "IPython": types.SimpleNamespace(get_ipython=lambda: shell),
        "IPython.display": types.SimpleNamespace(HTML=str, display=display),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return handle


def test_nobody_watches_a_test():
    assert not watched()
    with counted(None, 10, "things") as count:
        assert count is None


def test_a_terminal_is_watched_by_the_main_thread(terminal):
    terminal()
    found = []
    assert watched() and not in_notebook()
    thread = threading.Thread(target=lambda: found.append(watched()))
    thread.start()
    thread.join()
    assert found == [False]
    with counted(False, 10, "things") as count:
        assert count is None


def test_short_work_shows_nothing(terminal):
    screen = terminal()
    with counted(None, 10, "things") as count:
        for _ in range(10):
            count(1)
    assert screen.getvalue() == ""


def test_long_work_has_a_bar(terminal, monkeypatch):
    screen = terminal()
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "BEAT", 0.0)
    with counted(True, 10, "things") as count:
        count(4)
    assert "things" in screen.getvalue()


def test_work_of_unknown_length_is_counted(terminal, notebook, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "BEAT", 0.0)
    with counted(None, None, "steps") as count:
        count(4)
    assert notebook.shown[0] == "<progress></progress> 4 steps"
    monkeypatch.delitem(sys.modules, "IPython")
    screen = terminal()
    with counted(None, None, "steps") as count:
        count(4)
    assert "4 steps" in screen.getvalue()


def test_a_notebook_has_the_browser_s_bar(notebook, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "BEAT", 0.0)
    assert in_notebook() and watched()
    with counted(None, 10, "things") as count:
        count(4)
        count(1)
    assert [text.split(">")[-1] for text in notebook.shown[:2]] != [""] * 2
    assert 'value="4" max="10"' in notebook.shown[0] and 'value="5"' in notebook.shown[1]
    assert notebook.shown[-1] == ""


def test_a_function_of_one_s_own_is_called_instead():
    seen = []
    with counted(seen.append, 10, "things") as count:
        count(3)
    assert seen == [3]
    with pytest.raises(LivarotError, match="progress: must be True"), counted("yes", 1, "things"):
        pass


def test_the_time_that_is_left():
    bar = Bar(10, "things")
    bar.reach(5)
    assert bar.text().startswith("5 of 10 things, ") and bar.text().endswith(" s left")


def test_a_run_takes_a_bar_and_gives_the_same_numbers():
    mdp, agent = livarot.envs.hard_chain(3, gap=0.1), livarot.agents.Uniform()
    plain = livarot.run(mdp, agent, 5)
    assert (livarot.run(mdp, agent, 5, progress=True).regret == plain.regret).all()
