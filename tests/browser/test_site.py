"""The documentation site in a browser; ``make docs`` builds it first, and without it these tests are skipped."""

from __future__ import annotations

import functools
import http.server
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
if not (SITE / "index.html").is_file():
    pytest.skip("the site is not built; build it with: make docs", allow_module_level=True)
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(watched, address):
    """A page of the site.  In the end: no complaint of the browser, and no request that left this machine."""
    yield watched.page
    assert watched.problems == []
    assert [url for url in watched.requests if not url.startswith((address, "data:", "file:"))] == []


def test_the_front_page(page, address):
    page.goto(f"{address}/index.html")
    assert page.title().startswith("livarot")
    assert page.locator("img[src*=finding]").evaluate("image => image.naturalWidth") > 300
    assert page.locator("math").count() >= 1
    page.locator(".sd-card", has_text="For research in reinforcement learning").click()
    page.wait_for_url("**/start_research.html")
    assert page.locator("h1").inner_text().startswith("Five minutes for researchers")


def test_a_page_of_the_reference(page, address):
    page.goto(f"{address}/api/livarot.run.html")
    signature = page.locator("dt.sig").first.inner_text()
    assert "n_episodes: int" in signature and "seed" in signature
    assert page.locator("dt#livarot\\.run").count() == 1
    page.get_by_role("link", name="Compare agents").first.click()
    page.wait_for_url("**/plot_02_compare_agents.html")


def test_every_public_name_has_an_anchor():
    from sitekit.names import public_names

    for name in public_names():
        text = (SITE / "api" / f"{name.path}.html").read_text(encoding="utf-8")
        assert f'id="{name.path}"' in text, name.path


def test_formulas_of_docstrings_are_drawn(page, address):
    page.goto(f"{address}/api/livarot.theory.regret_bound.html")
    assert page.locator("table math").count() >= 15
    assert page.locator("div.formula math").first.bounding_box()["width"] > 100
    page.goto(f"{address}/api/livarot.solve_robust.html")
    assert page.locator("article em", has_text="rectangular").count() == 1
    assert page.locator("article a[href='../robust.html']").count() >= 1
    assert "ArrayLike" in page.locator("dt.sig").first.inner_text()


def test_most_pages_of_the_reference_have_formulas():
    from sitekit.names import public_names

    pages = [(SITE / "api" / f"{name.path}.html").read_text(encoding="utf-8") for name in public_names()]
    assert sum("<math" in text for text in pages) > len(pages) / 2


def test_search(page, address):
    page.goto(f"{address}/search.html?q=solve_robust")
    page.wait_for_selector("#search-results a[href*='solve_robust']")
    first = page.locator("#search-results li a").first
    assert "solve_robust" in first.get_attribute("href")


def test_search_of_files_on_disk(page):
    """The folder can be read without any server."""
    page.goto(f"{(SITE / 'search.html').as_uri()}?q=worst_case")
    page.wait_for_selector("#search-results a[href*='worst_case']")


def test_a_page_of_the_gallery(page, address):
    page.goto(f"{address}/gallery/index.html")
    assert page.locator(".sphx-glr-thumbcontainer").count() >= 12
    broken = "[...document.images].filter(image => image.complete && !image.naturalWidth).length"
    assert page.evaluate(broken) == 0
    assert page.locator(".sphx-glr-thumbcontainer img:not([alt^='First figure of'])").count() == 0
    page.locator(".sphx-glr-thumbcontainer", has_text="Write an agent").click()
    page.wait_for_url("**/plot_03_write_an_agent.html")
    assert page.locator("img.sphx-glr-single-img").evaluate("image => image.naturalWidth") > 300


@pytest.mark.parametrize(
    "name",
    [
        "index.html",
        "start_data.html",
        "paper.html",
        "paper_map.html",
        "agents.html",
        "api/livarot.RunResult.html",
        "api/livarot.agents.Livarot.html",
        "api/livarot.theory.regret_bound.html",
        "environment/river-swim.html",
        "gallery/data/plot_10_csv_to_policy.html",
    ],
)
def test_a_phone_scrolls_in_one_direction_only(page, address, name):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{address}/{name}")
    assert page.evaluate(WIDE) <= 0
