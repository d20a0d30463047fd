"""Debian's Chromium, driven by Playwright; without it these tests are skipped."""

import shutil

import pytest


@pytest.fixture(scope="session")
def browser():
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("there is no Chromium; get it with: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        # in a container there is no user namespace for the sandbox
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


class Watched:
    """A page, and its console messages, requests and errors."""

    def __init__(self, page):
        self.page, self.problems, self.requests = page, [], []
        page.on("console", lambda message: self._said(message))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("dialog", lambda dialog: (self.problems.append("dialog"), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))

    def _said(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(message.text)


@pytest.fixture
def watched(browser):
    page = browser.new_page(viewport={"width": 1200, "height": 1600})
    yield Watched(page)
    page.close()
