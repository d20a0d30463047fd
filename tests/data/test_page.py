"""docs/data.md: its examples run as printed."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def test_the_examples():
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert failed == 0 and tried > 20
