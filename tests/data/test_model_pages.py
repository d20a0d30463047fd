"""docs/covariates.md, docs/repeated.md, docs/coming_from.md: their examples run as printed; their figures exist."""

import doctest
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "least"), [("covariates", 18), ("repeated", 20), ("coming_from", 12)])
def test_the_examples(page, least):
    pytest.importorskip("statsmodels")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    with warnings.catch_warnings():
        failed, tried = doctest.testfile(str(DOCS / f"{page}.md"), module_relative=False, optionflags=flags)
    assert failed == 0 and tried >= least
    assert (DOCS / "img" / f"{page}.png").stat().st_size > 5000
