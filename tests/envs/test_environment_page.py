"""docs/environments.md: its list is what the command prints, its examples run, it names every environment."""

import doctest
import re
from pathlib import Path

from livarot import envs
from livarot.cli import listing

PAGE = Path(__file__).parents[2] / "docs" / "environments.md"


def test_the_list_is_the_command_s():
    shown = re.search(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL).group(1).splitlines()
    # numbers to the digits shown; regenerate with `livarot list envs`
    assert shown == listing.lines(listing.environments(), listing.COLUMNS)


def test_the_examples():
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert failed == 0 and tried > 10


def test_every_environment_is_described():
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in envs.registry if f"| `{name}` |" not in text] == []
