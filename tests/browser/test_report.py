"""The page of a report in a browser: it draws, its filters work, it asks for nothing, and names run nothing."""

import numpy as np
import pytest

from livarot.report.page import page as page_of
from livarot.report.read_runs import read_runs
from livarot.report.summary import summarise
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store.store import Store
from tests.support.stores import HORIZONS, HOSTILE, columns_of, filled_store, hostile_store, store_of

pytestmark = pytest.mark.browser

NAMES = "[...document.querySelectorAll('#curves .legendtext')].map(x => x.textContent)"
LINES = "document.getElementById('curves').data.filter(t => t.meta === 'mean').map(t => [t.name, t.y])"


def written(store, path, *, controls=True):
    path.write_text(page_of(summarise(read_runs(store), controls=controls)), encoding="utf-8")
    return path


def show(watched, path, *, legend=True):
    watched.page.goto(path.as_uri())
    watched.page.wait_for_selector("body[data-ready=yes]")
    if legend:
        watched.page.wait_for_selector("#curves .legendtext")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return written(filled_store(folder / "store"), folder / "report.html")


@pytest.fixture
def page(watched, path):
    show(watched, path)
    yield watched.page
    assert watched.problems == []
    assert watched.requests == [path.as_uri()]


def test_the_page_draws_everything(page):
    assert page.evaluate(NAMES) == ["livarot", "uniform"]
    assert page.locator("#scaling .legendtext").count() == 2
    assert "slope" in page.locator("#scaling .legendtext").first.text_content()
    assert page.locator("#pairs .point").count() == 1
    assert page.locator("#table tbody tr").count() == 6
    assert page.locator("#audit tbody tr").count() == 3
    assert page.locator("pre").first.text_content().startswith('name = "two agents"')


def test_filters_change_the_curves(page):
    before = page.evaluate(LINES)
    page.locator("#agents input").first.uncheck()
    assert page.evaluate(NAMES) == ["uniform"]
    page.locator("#none").click()
    assert page.evaluate(LINES) == []
    page.locator("#all").click()
    assert page.evaluate(LINES) == before
    page.select_option("#environment", index=2)
    after = page.evaluate(LINES)
    assert [name for name, _ in after] == ["livarot", "uniform"]
    assert after[0][1][-1] > 4.0 * before[0][1][-1]  # (16 / 4)^1.5 = 8, with noise
    page.select_option("#metric", "optimism_gap")
    assert [name for name, _ in page.evaluate(LINES)] == ["livarot"]


def test_controls_are_shown_where_they_are_ticked(watched, tmp_path):
    show(watched, written(filled_store(tmp_path / "store"), tmp_path / "report.html", controls=False))
    page = watched.page
    assert page.evaluate(NAMES) == ["livarot"] and page.locator("#scaling .legendtext").count() == 1
    assert page.locator("#table tbody tr").count() == 6  # the table has all
    page.locator("#agents input").nth(1).check()
    assert page.evaluate(NAMES) == ["livarot", "uniform"] and page.locator("#pairs .point").count() == 1
    assert watched.problems == []


def test_regret_against_any_setting(watched, tmp_path):
    experiment = Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": [4, 8], "gap": [0.02, 0.05]})],
        agents=[AgentSpec(name="psrl", settings={"alpha0": [0.1, 1.0]})],
        episodes=[10, 20],
        seeds=5,
    )
    show(watched, written(store_of(tmp_path / "store", experiment), tmp_path / "report.html"))
    page = watched.page
    axes = page.locator("#axis option").all_text_contents()
    assert axes == ["horizon H", "episodes T", "gap", "agent.alpha0"]
    drawn = "document.getElementById('scaling').data.map(t => t.x)"
    for axis, sizes, lines in (("horizon", [4, 8], 2), ("episodes", [10, 20], 2), ("agent.alpha0", [0.1, 1], 1)):
        page.select_option("#axis", axis)
        assert page.evaluate(drawn) == [sizes] * lines
    assert watched.problems == []


def test_an_axis_that_an_environment_does_not_have_cannot_be_chosen(watched, tmp_path):
    chain = EnvironmentSpec(name="hard-chain", settings={"horizon": [4, 8]})
    experiment = Experiment(
        environments=[chain, EnvironmentSpec(name="river-swim")],
        agents=[AgentSpec(name="psrl")],
        episodes=[10, 20],
        seeds=5,
    )
    show(watched, written(store_of(tmp_path / "store", experiment), tmp_path / "report.html"))
    page = watched.page
    assert page.input_value("#axis") == "horizon"
    page.select_option("#environment", label="river-swim, T = 10")
    assert page.input_value("#axis") == "episodes" and page.locator("#scaling .legendtext").count() == 1
    assert page.locator("#axis option[disabled]").all_text_contents() == ["horizon H"]
    assert watched.problems == []


def test_logarithmic_axes_are_for_what_cannot_be_negative(page):
    axis = "document.getElementById('curves').layout.yaxis.type"
    page.check("#log")
    assert page.evaluate(axis) == "log" and page.locator("#log-note").is_hidden()
    lowest = page.evaluate("Math.min(...document.getElementById('curves').data.flatMap(t => t.y))")
    assert lowest > 0.0
    for metric in ("realised_regret", "optimism_gap"):
        page.select_option("#metric", metric)
        assert page.evaluate(axis) == "linear"
        assert page.locator("#log").is_disabled() and page.locator("#log-note").is_visible()
    page.select_option("#metric", "regret")
    assert page.evaluate(axis) == "log"


def test_what_is_missing_is_told_as_it_is(page):
    page.locator("#none").click()
    assert page.locator("#no-curves").text_content() == "No agent is ticked."
    assert page.locator("#no-scaling").text_content() == "No agent is ticked."
    assert page.locator("#no-pairs").text_content() == "Tick two agents or more to compare them."
    assert page.locator("#curves").is_hidden() and page.locator("#pairs").is_hidden()
    page.locator("#agents input").first.check()
    assert page.locator("#curves").is_visible() and page.locator("#no-curves").is_hidden()
    assert page.locator("#no-pairs").text_content() == "Tick two agents or more to compare them."
    page.locator("#all").click()
    assert page.locator("#pairs").is_visible() and page.locator("#no-pairs").is_hidden()


def test_sorting_knows_numbers_and_headings_stand_over_them(page):
    page.locator("#table th button", has_text="environment").click()
    found = page.locator("#table tbody td:nth-child(1)").all_text_contents()
    assert found == [f"hard-chain (horizon={h})" for h in HORIZONS for _ in range(2)]
    align = "getComputedStyle(document.querySelectorAll('#table th')[5]).textAlign"
    assert page.evaluate(align) == page.evaluate(align.replace("#table th", "#table td")) == "right"


def test_a_narrow_screen_has_no_horizontal_overflow_and_print_has_all_rows(watched, tmp_path):
    path = written(hostile_store(tmp_path / "store"), tmp_path / "report.html")
    watched.page.set_viewport_size({"width": 420, "height": 900})
    show(watched, path)
    watched.page.locator("summary").evaluate_all("all => all.forEach(x => x.click())")
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 420
    cut = "[...document.querySelectorAll('.scroll')].filter(x => x.scrollHeight > x.clientHeight + 1).length"
    assert watched.page.evaluate(cut) > 0
    watched.page.emulate_media(media="print")
    assert watched.page.evaluate(cut) == 0


def test_a_broken_promise_is_red_and_one_episode_is_a_marker(watched, tmp_path):
    cell = Cell.of("hard-chain", {"horizon": 4}, "livarot", {}, 1, "theory")
    with Store(tmp_path / "store", create=True) as store:
        for seed in range(10):
            columns = columns_of(np.random.Generator(np.random.Philox(seed)), 1, 1.0 + seed, covered=True)
            columns["covered"][:] = float(seed > 7)
            store.put(cell.run(seed), columns, np.ones((1, 1), dtype=np.int32))
    show(watched, written(tmp_path / "store", tmp_path / "report.html"), legend=False)
    page = watched.page
    assert page.locator("#audit tr.bad").count() == 1
    assert page.locator("#audit tbody td").nth(3).text_content() == "95 %, by its theory"
    assert page.evaluate("document.getElementById('curves').data.map(t => t.mode)") == ["markers"]
    assert page.locator("#no-pairs").text_content() == "There is only one agent here."
    assert "1 agent, 1 environment" in page.locator("p.note").first.text_content()
    assert watched.problems == []


def test_bands_can_be_chosen(page):
    def fills():
        return page.evaluate("document.getElementById('curves').data.filter(t => t.fill).map(t => Math.max(...t.y))")

    page.select_option("#metric", "realised_regret")  # in the exact one all seeds differ by a factor: equal bands
    whole = fills()  # simultaneous, unless another one is chosen
    page.select_option("#band", "pointwise")
    assert len(whole) == 2 and all(wide > narrow for wide, narrow in zip(whole, fills(), strict=True))
    page.select_option("#band", "none")
    assert fills() == []


def test_the_table_sorts_and_filters(page):
    def column(index):
        return page.locator(f"#table tbody td:nth-child({index})").all_text_contents()

    page.locator("#table th button", has_text="regret").first.click()
    rising = [float(text.split()[0]) for text in column(6)]
    assert rising == sorted(rising) and len(set(rising)) == 6
    page.locator("#table th button", has_text="regret").first.click()
    assert [float(text.split()[0]) for text in column(6)] == rising[::-1]
    page.fill("#filter", "uniform horizon=8")
    assert column(2) == ["uniform"]
    page.fill("#filter", "")
    page.check("#only-panel")
    assert len(column(2)) == 2


def test_hostile_names_run_nothing(watched, tmp_path):
    path = written(hostile_store(tmp_path / "store"), tmp_path / "report.html")
    show(watched, path)
    page = watched.page
    for index in range(page.locator("#environment option").count()):
        page.select_option("#environment", index=index)
        page.locator("#all").click()
    page.locator("summary").evaluate_all("all => all.forEach(x => x.click())")
    page.locator("th button").evaluate_all("all => all.forEach(x => x.click())")
    page.locator("#curves .scatterlayer .lines path").first.hover(force=True)
    page.wait_for_timeout(200)
    assert page.evaluate("[window.pwned, document.title.length > 0]") == [None, True]
    assert watched.problems == []
    assert watched.requests == [path.as_uri()]
    told = " ".join(page.locator("#table td").all_text_contents())
    assert all(name in told for name in HOSTILE[:18])  # the rest has characters that a browser shows in its own way


def test_names_with_dollars_are_not_mathematics(watched, tmp_path):
    experiment = Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": [4, 5]}, label="$a_b$ & $c$")],
        agents=[AgentSpec(name="uniform", label="$x^2$ <b>")],
        episodes=5,
        seeds=1,
    )
    said = []
    watched.page.on("console", lambda message: said.append(message.text))
    show(watched, written(store_of(tmp_path / "store", experiment), tmp_path / "report.html"), legend=False)
    assert watched.page.locator("#scaling .gtitle").text_content() == "$a_b$ & $c$, T = 5"
    assert watched.page.locator("#scaling .legendtext").all_text_contents() == ["$x^2$ <b>"]
    assert said == []


def test_the_policy_stops_scripts_that_are_not_its_own(watched, path, tmp_path):
    """Even if a name got through, it would not run: a script put into the file by hand does not."""
    text = path.read_text(encoding="utf-8")
    other = tmp_path / "other.html"
    inserted = "</h1><script>window.pwned=1</script><img src=x onerror='pwned=1'>"
    other.write_text(text.replace("</h1>", inserted), encoding="utf-8")
    watched.page.goto(other.as_uri())
    watched.page.wait_for_selector("body[data-ready=yes]")
    assert watched.page.evaluate("window.pwned") is None
    assert any("Content Security Policy" in text for text in watched.problems)
