"""Docstrings with mathematics become valid reStructuredText that shows the same characters."""

from __future__ import annotations

import inspect
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sitekit.displays import display
from sitekit.docstrings import blocks, escaped, to_rst
from sitekit.names import public_names

docutils = pytest.importorskip("docutils.core")
nodes = pytest.importorskip("docutils.nodes")

TEXT = """The value V*_h(s) = max_a Q*, |x| <= 1 and a_ for s_{h+1}.

    P(s' | s, a) = exp(phi . theta) / sum
                   over the next states

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
    assert "P(s' | s, a) = exp(phi . theta) / sum\n               over the next states" in shown
    assert "one item that goes on here" in shown
    assert ">>> 1 + 1\n2" in shown


def test_markup_that_is_meant_stays():
    assert escaped("**no** ``a * b`` :func:`f` `x`, 2*3") == "**no** ``a * b`` ``f`` ``x``\\ , 2\\*3"
    link = {"livarot.run": "livarot.run"}.get
    assert escaped("see ``livarot.run``", link) == "see :py:obj:`livarot.run <livarot.run>`"


def test_words_are_emphasised_and_products_are_not():
    assert escaped("*this* one (*that one*), *two words*.") == "*this* one (\\ *that one*\\ ), *two words*\\ ."
    for text in ("a * b", "(phi * theta)", "*args, **kwargs", "V* and Q*", "2*3*4", "x *y", "pi*_h", "a *b * c*d"):
        assert document([escaped(text)]).astext() == text


def test_pages_of_the_site_are_links():
    link = {"docs/robust.md": "/robust"}.get
    assert escaped("see docs/robust.md, ``docs/robust.md``", link) == "see :doc:`/robust`\\ , :doc:`/robust`"
    assert escaped("see docs/none.md", link) == "see docs/none.md"


TERMS = """Parameters
----------
reg : ridge, ``reg/2`` is added
    to the rest.
a, b : names

``"one"``  the first
           of them
``"two"``  the second

clip
    what is cut
"""


def test_terms_have_what_they_mean_beside_them():
    found = document(to_rst(TERMS.splitlines()))
    pairs = [(item[0].astext(), item[1].astext()) for item in found.findall(nodes.definition_list_item)]
    assert pairs == [
        ("reg", "ridge, reg/2 is added to the rest."),
        ("a, b", "names"),
        ('"one"', "the first of them"),
        ('"two"', "the second"),
        ("clip", "what is cut"),
    ]
    assert [title.astext() for title in found.findall(nodes.rubric)] == ["Parameters"]


TABLE = """====  ==========  =====
name  printed     proof
====  ==========  =====
one   2 sqrt(d)   x^2
two   a long one in the way  y
      left out    z
====  ==========  =====
"""


def test_tables_have_cells():
    found = document(to_rst(TABLE.splitlines()))
    rows = [[cell.astext() for cell in line.findall(nodes.entry)] for line in found.findall(nodes.row)]
    assert rows[0] == ["name", "printed", "proof"] and rows[1] == ["one", r"2\,\sqrt{d}", "x^{2}"]
    assert rows[2:] == [["two", "a long one in the way left out", "y z"]]
    unclear = TABLE.replace("      left out    z", "across all of the columns, so to say")
    assert "across all" in next(iter(document(to_rst(unclear.splitlines())).findall(nodes.literal_block))).astext()


@settings(deadline=None)
@given(st.text(alphabet="ab *_|`:[]\\-=.>\n'", max_size=80))
def test_whatever_is_written_can_be_read(text):
    document(to_rst(inspect.cleandoc(text).splitlines()))


@pytest.mark.parametrize("name", public_names(), ids=lambda name: name.path)
def test_our_docstrings(name):
    text = inspect.getdoc(name.thing) or ""
    formulas = ["\n".join(block) for block in blocks(text.splitlines()) if block[0].startswith("  ") and display(block)]
    shown = document(to_rst(text.splitlines())).astext()
    for formula in formulas:  # they are tested in test_formulas.py
        text = text.replace(formula, "")
    words = re.findall(r"[A-Za-zα-ω]{3,}", re.sub(r":\w+:", "", text))
    assert [word for word in words if word not in shown] == []
