"""What the board shows: runs as they come, failures with their reasons, names that can be told apart."""

import pytest

from livarot.board.app import heading, in_legend
from livarot.report.read_runs import Runs
from livarot.sweeps.experiment.spec import Experiment
from livarot.sweeps.store.store import Store
from tests.support.stores import fill, filled_store, hostile_store

pytest.importorskip("streamlit")


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
