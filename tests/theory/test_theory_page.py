"""docs/theory.md: its examples print what it says, what it names exists, and its figures in prose are right."""

import doctest
import math
import re
from pathlib import Path

import pytest

from livarot import envs, theory
from tests.test_docs import missing

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_examples():
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert failed == 0 and tried > 15


def test_what_is_named_exists():
    assert missing(TEXT) == []


def test_figures_in_prose():
    constants = theory.Constants.of(envs.hard_chain(10, n_episodes=1000, param_bound="tight"))
    assert "2500 times" in TEXT and constants.kappa_bound / constants.kappa.upper == pytest.approx(2565, rel=0.01)
    printed, proof = (
        theory.regret_bound(constants, 1000, sigma_bar=constants.sigma_bar_star, reading=r)
        for r in ("printed", "proof")
    )
    assert "is a third of" in TEXT.replace("\n  ", " ")
    assert proof.terms["variance"] / printed.terms["variance"] == pytest.approx(3.06, abs=0.01)
    assert "6.2e-04" in TEXT and f"{proof.sigma_bar_needed:.1e}" == "6.2e-04"
    lengths = [theory.theory_settings(constants, 1000, reading=r).tau for r in ("proof", "printed")]
    assert "3.1e31 episodes instead of 2.6e23" in TEXT and [f"{t:.1e}" for t in lengths] == ["3.1e+31", "2.6e+23"]
    assert "0.34/√H" in TEXT
    assert math.sqrt(10) * constants.sigma_bar_star == pytest.approx(0.34, abs=0.005)
    assert "88 %" in TEXT and theory.chain_lower_bound(10, 2, 1000).value / 46.0721 == pytest.approx(0.886, abs=1e-3)


def test_the_examples_are_doctests():
    assert len(re.findall(r"^```python$", TEXT, re.MULTILINE)) == len(
        re.findall(r"^```python\n>>>", TEXT, re.MULTILINE)
    )
