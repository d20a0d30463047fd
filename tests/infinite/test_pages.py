"""The examples of docs/infinite.md, docs/bus_engine.md and docs/bandit.md run."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["infinite.md", "bus_engine.md", "bandit.md"])
def test_the_examples(name):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(DOCS / name), module_relative=False, optionflags=flags)
    assert failed == 0 and tried >= 6
