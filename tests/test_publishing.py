"""What a package index and a package manager get: the README with links that work there, true requirements."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RELATIVE = re.compile(r"\]\((?!\w+://|#)")
HOME = "https://example.org/livarot"


@pytest.fixture(scope="module")
def hook():
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_are_absolute_where_there_is_a_home(hook):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = hook.readme(text, HOME)
    assert RELATIVE.search(text) and not RELATIVE.search(found)
    assert f"]({HOME}/blob/main/docs/design.md)" in found
    assert f"]({HOME}/raw/main/docs/img/finding.png)" in found


def test_without_a_home_links_are_text(hook):
    found = hook.readme((ROOT / "README.md").read_text(encoding="utf-8"), None)
    assert not RELATIVE.search(found) and "](" not in found.replace("](http", "")
    assert "finding.png" not in found and "docs/design.md: the architecture" in found


def test_the_home_is_read_from_the_citation(hook):
    assert hook.repository(f'title: x\nrepository-code: "{HOME}/"\n') == HOME
    assert hook.repository("title: x\n") is None
    assert hook.urls(HOME)["Source"] == HOME and hook.urls(None) == {}


def test_the_metadata_that_is_built(hook):
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    core = ProjectMetadata(str(ROOT), PluginManager()).core
    home = hook.repository((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert core.readme_content_type == "text/markdown" and not RELATIVE.search(core.readme)
    assert dict(core.urls) == hook.urls(home)


def test_the_conda_recipe_asks_for_the_same():
    text = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    run = re.search(r"  run:\n((?:    - .*\n)+)", text).group(1)
    asked = {line.strip("- ").replace(" ", "") for line in run.strip().splitlines()}
    assert asked == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
    assert f"version: {PROJECT['version']}\n" in text


def test_the_versions_agree():
    assert f"version: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["CODE_OF_CONDUCT.md", "SECURITY.md", "CONTRIBUTING.md"])
def test_links_of_the_project_s_pages(name):
    for link in re.findall(r"\]\(([^)#\s]+)", (ROOT / name).read_text(encoding="utf-8")):
        assert "://" in link or (ROOT / link).is_file(), link
