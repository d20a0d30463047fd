"""The README is true: its example prints what it says, its links lead somewhere, its numbers are ours."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
EXAMPLE, *MORE = (body for language, body in BLOCKS if language == "python")
OUTPUT, FINDING = (body for language, body in BLOCKS if language == "text")
LINKS = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]


def test_the_example_prints_what_the_readme_says(capsys):
    assert MORE == []
    exec(compile(EXAMPLE, "README.md", "exec"), {})  # noqa: S102
    assert capsys.readouterr().out == OUTPUT


@pytest.mark.parametrize("link", LINKS)
def test_links(link):
    assert (ROOT / link).is_file()


def test_the_commands_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make ([a-z-]+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.slow
def test_the_finding_is_what_the_experiment_writes():
    from livarot.studies.paper.experiment import reproduce
    from livarot.studies.paper.report import text

    assert text(reproduce(workers=2)) == FINDING
