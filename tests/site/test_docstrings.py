"""Docstrings with mathematics become valid reStructuredText that shows the same characters."""

from __future__ import annotations

import inspect
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sitekit.docstrings import blocks, escaped, to_rst
from sitekit.names import public_names

docutils = pytest.importorskip("docutils.core")

TEXT = """The value V*_h(s) = max_a Q*, |x| <= 1 and a_ for s_{h+1}.

    P(s' | s, a) = exp(phi . theta) / sum
                   over s''

- one *item* that goes
  on here
- another
>>> 1 + 1
2
"""


def document(lines):
    settings = {"report_level": 2, "halt_level": 2, "syntax_highlight": "none"}
    return docutils.publish_doctree("\n".join(lines), settings_overrides=settings)  # any complaint is an error


def test_blocks_are_paragraphs_displays_items_and_doctests():
    found = [block[0].strip()[:3] for block in blocks(TEXT.splitlines())]
    assert found == ["The", "P(s", "- o", "- a", ">>>"]


def test_characters_survive():
    shown = document(to_rst(TEXT.splitlines())).astext()
    assert "V*_h(s) = max_a Q*, |x| <= 1 and a_ for s_{h+1}." in shown
    assert "P(s' | s, a) = exp(phi . theta) / sum\n               over s''" in shown
    assert "one *item* that goes on here" in shown
    assert ">>> 1 + 1\n2" in shown


def test_markup_that_is_meant_stays():
    assert escaped("**no** ``a * b`` :func:`f` `x`, 2*3") == "**no** ``a * b`` ``f`` ``x``\\ , 2\\*3"
    link = {"livarot.run": "livarot.run"}.get
    assert escaped("see ``livarot.run``", link) == "see :py:obj:`livarot.run <livarot.run>`"


@settings(deadline=None)
@given(st.text(alphabet="ab *_|`:[]\\-.>\n'", max_size=80))
def test_whatever_is_written_can_be_read(text):
    document(to_rst(inspect.cleandoc(text).splitlines()))


@pytest.mark.parametrize("name", public_names(), ids=lambda name: name.path)
def test_our_docstrings(name):
    text = inspect.getdoc(name.thing) or ""
    shown = document(to_rst(text.splitlines())).astext()
    words = re.findall(r"[A-Za-zα-ω]{3,}", re.sub(r":\w+:", "", text))
    assert [word for word in words if word not in shown] == []
