"""The report of a store: what it says is what the runs say, names do nothing, the store is left alone."""

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from livarot.errors import LivarotError
from livarot.report.curves import COLOURS
from livarot.report.latex import table
from livarot.report.page import FILES, data_of, files, page, report
from livarot.report.read_runs import POINTS, kept_episodes, read_runs, reduce_columns
from livarot.report.statistics import mean_interval
from livarot.report.summary import RESAMPLES, summarise
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store.store import Store
from tests.support.stores import HOSTILE, N_SEEDS, columns_of, filled_store, hostile_store, store_of


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return filled_store(tmp_path_factory.mktemp("report") / "store")


@pytest.fixture(scope="module")
def summary(store):
    return summarise(read_runs(store))


class Blocks(HTMLParser):
    """Scripts, policies, and every element that could fetch or run something."""

    def __init__(self):
        super().__init__()
        self.scripts, self.policy, self.tags, self.handlers, self.addresses = [], None, [], [], []
        self._kind = None

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.handlers += [name for name in found if name.startswith("on")]
        self.addresses += [found[name] for name in ("src", "href", "action", "data") if found.get(name)]
        if tag == "script":
            self._kind = found.get("type", "code")
            self.scripts.append([self._kind, ""])
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]

    def handle_endtag(self, tag):
        self._kind = None if tag == "script" else self._kind

    def handle_data(self, data):
        if self._kind is not None:
            self.scripts[-1][1] += data


def parsed(text):
    found = Blocks()
    found.feed(text)
    return found


def data_in(text):
    return json.loads(next(body for kind, body in parsed(text).scripts if kind == "application/json"))


def test_the_numbers_are_those_of_the_runs(store, summary):
    with Store(store) as opened:
        for one in summary.cells:
            values = [opened.read(one.cell.run(seed).key).columns["regret"].sum() for seed in one.seeds]
            np.testing.assert_allclose(one.values, values, rtol=1e-12)
            assert one.totals["regret"] == mean_interval(one.values, n_resamples=RESAMPLES)
            assert one.curves["regret"].mean[-1] == pytest.approx(np.mean(values), rel=1e-12)
            assert one.episodes[0] == 1 and one.episodes[-1] == one.cell.episodes
    assert len(summary.cells) == 6 and len(summary.panels) == 3
    shown = data_in(page(summary))
    assert len(shown["cells"]) == 6
    assert shown["cells"][0]["regret"][0] == pytest.approx(summary.cells[0].values.mean(), rel=1e-4)


def test_the_audit_counts_episodes_and_runs(summary):
    one = next(cell for cell in summary.cells if cell.cell.agent == "livarot")
    assert one.audit["covered"] == pytest.approx(1.0 - 1.0 / N_SEEDS * 0.5)  # one seed is uncovered for half the time
    assert one.audit["always_covered"].estimate == pytest.approx(1.0 - 1.0 / N_SEEDS)
    assert one.audit["optimistic"] == 1.0 and one.audit["least_optimism"] == pytest.approx(0.25)
    other = next(cell for cell in summary.cells if cell.cell.agent == "uniform")
    assert other.audit["covered"] is None and "optimism_gap" not in other.curves


def test_slopes_and_comparisons(summary):
    assert {summary.agents[line.agent] for line in summary.scaling} == {"livarot", "uniform"}
    for line in summary.scaling:  # the runs were made with regret = factor * H^1.5 * noise
        assert line.slope.low < 1.5 < line.slope.high
    for one in summary.comparisons:
        assert summary.agents[one.first] == "livarot" and one.difference.high < 0.0
        assert one.difference.n_seeds == N_SEEDS and one.improvement.estimate == 1.0
    assert len(summary.comparisons) == 3 and summary.comparisons_left_out == 0


def test_the_policy_names_exactly_the_two_scripts(summary):
    found = parsed(page(summary))
    code = [body for kind, body in found.scripts if kind == "code"]
    hashes = {base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in code}
    assert len(code) == 2
    rules = dict(rule.strip().split(" ", 1) for rule in found.policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert set(re.findall(r"'sha256-([^']+)'", rules["script-src"])) == hashes
    assert "unsafe" not in rules["script-src"] and "http" not in found.policy and "*" not in found.policy
    assert found.addresses == ["data:,"] and found.handlers == []


def test_equal_runs_give_equal_files(store, summary):
    again = files(summarise(read_runs(store), controls=True))
    assert again == files(summarise(summary.runs, controls=True))
    assert set(again) >= {"report.html", "table.tex", "curves.pdf", "curves.png", "scaling.pdf", "comparisons.png"}
    assert again["curves.pdf"].startswith(b"%PDF") and again["curves.png"].startswith(b"\x89PNG")


def test_a_report_is_written_and_the_store_left_alone(store, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    written = report(store, tmp_path / "a" / "b")
    assert {path.name for path in written} == {path.name for path in (tmp_path / "a" / "b").iterdir()}
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*")} == before


def test_figures_of_an_earlier_report_are_removed_and_nothing_else(store, tmp_path):
    out = tmp_path / "out"
    assert {path.name for path in report(store, out, controls=True)} == set(FILES)
    (out / "scaling.txt").write_text("mine")
    (out / "other.pdf").write_text("mine")
    report(filled_store(tmp_path / "few", n_seeds=1), out)  # one seed: nothing to compare
    assert {path.name for path in out.iterdir()} == {*FILES, "scaling.txt", "other.pdf"} - {
        "comparisons.pdf",
        "comparisons.png",
    }


def test_the_page_prints_the_table_s_digits(store, summary):
    """Both round the full number: 5 digits first and 4 of those would give 2.6350 -> 2.64 for 2.634996."""
    shown, lines = data_of(summary), table(summary)
    for cell in shown["cells"]:
        estimate, _, ends = cell["told"]["regret"].partition(" ")
        assert f"{estimate}}}$ & ${ends}$" in lines or f"${estimate}$ & ${ends}$" in lines
        if cell["told"]["covered"]:
            assert cell["told"]["covered"].removesuffix(" %") + r"\,\%" in lines


def test_a_store_of_one_run_is_told_in_the_singular(tmp_path):
    experiment = Experiment(
        environments=[EnvironmentSpec(name="river-swim")], agents=[AgentSpec(name="uniform")], episodes=1, seeds=1
    )
    text = page(summarise(read_runs(store_of(tmp_path / "store", experiment))))
    assert "1 run, 1 agent, 1 environment." in text and "1 run made by" in text


def test_the_page_has_the_figures_colours(summary):
    assert data_of(summary)["colours"] == [colour.lower() for colour in COLOURS]


def test_hostile_names_are_text_everywhere(tmp_path):
    summary = summarise(read_runs(hostile_store(tmp_path / "store")))
    text = page(summary)
    plain = parsed(page(summarise(read_runs(filled_store(tmp_path / "plain")))))
    found = parsed(text)
    assert set(found.tags) <= set(plain.tags) and found.handlers == [] and found.addresses == ["data:,"]
    assert len(found.scripts) == 3
    agents = data_in(text)["agents"]
    assert all(any(name in agent for agent in agents) for name in HOSTILE)
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert html.escape(HOSTILE[0]) in outside and HOSTILE[0] not in outside
    assert all(data for data in files(summary).values())  # figures and table can be made of such names


def test_a_curve_is_thinned_and_keeps_its_ends():
    for n in (1, 2, 99, 100, 101, 12_345):
        kept = kept_episodes(n)
        assert kept[0] == 0 and kept[-1] == n - 1 and len(kept) <= POINTS and (np.diff(kept) > 0).all()
    columns = columns_of(np.random.Generator(np.random.Philox(0)), 5000, 2.0, covered=True)
    curves, totals = reduce_columns(columns)
    assert curves.shape == (3, POINTS)
    assert totals["regret"] == pytest.approx(columns["regret"].sum(), rel=1e-12)


def test_too_few_seeds_have_means_and_no_bands(tmp_path):
    summary = summarise(read_runs(filled_store(tmp_path / "store", n_seeds=2)))
    shown = data_of(summary)
    assert shown["pairs"] == [] and summary.comparisons_left_out == 3
    assert all(set(curve) == {"mean"} for cell in shown["cells"] for curve in cell["curves"].values())
    assert shown["cells"][0]["regret"][1:] == [None, None]
    assert files(summary)["report.html"]


def test_a_damaged_file_is_told_and_left_out(tmp_path):
    store = filled_store(tmp_path / "store")
    victim = sorted((store / "runs").iterdir())[0]
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(bytes(data))
    runs = read_runs(store)
    assert runs.n_runs == 6 * N_SEEDS - 1 and len(runs.damaged) == 1
    assert victim.exists()
    assert "1 damaged file left out" in page(summarise(runs))


def test_a_damaged_file_is_named_by_a_warning(tmp_path, caplog):
    store = filled_store(tmp_path / "store", n_seeds=1)
    victim = sorted((store / "runs").iterdir())[0]
    victim.write_bytes(victim.read_bytes()[:-20])
    report(store, tmp_path / "out")
    [said] = [one for one in caplog.records if one.levelname == "WARNING"]
    assert victim.stem in said.getMessage() and "left out" in said.getMessage()


def test_what_cannot_be_reported_is_refused_in_one_line(tmp_path):
    with pytest.raises(LivarotError, match="is not a store"):
        report(tmp_path, tmp_path / "out")
    Store(tmp_path / "empty", create=True).close()
    with pytest.raises(LivarotError, match="holds no run"):
        report(tmp_path / "empty", tmp_path / "out")
    with Store(tmp_path / "failed", create=True) as store:
        for seed in range(3):
            store.fail(Cell("river-swim", {}, "psrl", {}, 5).run(seed), attempts=1, traceback="no")
    with pytest.raises(LivarotError, match=r"3 runs failed; livarot status STORE --failures"):
        report(tmp_path / "failed", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(LivarotError, match="is not a folder"):
        report(filled_store(tmp_path / "store", n_seeds=1), tmp_path / "file")


def test_many_cells_make_no_larger_page(tmp_path):
    """The numbers of a page are bounded: with more cells a curve has fewer points, never fewer than twelve."""
    with Store(tmp_path / "store", create=True) as store:
        for index in range(600):
            cell = Cell("hard-chain", {"horizon": 5}, "livarot", {"beta_scale": 0.001 * index}, 300)
            columns = columns_of(np.random.Generator(np.random.Philox(index)), 300, 1.0, covered=True)
            store.put(cell.run(0), columns, np.zeros((300, 1), dtype=np.int32))
    shown = data_of(summarise(read_runs(tmp_path / "store")))
    assert len(shown["cells"]) == 600
    assert {len(cell["x"]) for cell in shown["cells"]} == {40}
