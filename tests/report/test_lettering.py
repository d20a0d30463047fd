"""Names in figures are text, in signs that can be drawn."""

from livarot.report import lettering
from livarot.report.lettering import drawable, escaped, wrapped


def test_names_in_figures_are_not_mathematics():
    assert escaped("$x$") == r"\$x\$"
    assert not escaped("_hidden").startswith("_")


def test_signs_without_a_font_are_told_by_their_code(monkeypatch):
    monkeypatch.setattr(lettering, "_drawn", lambda sign: sign.isascii() and sign.isprintable())
    assert drawable("é ﬁ\n猫") == "e fi [732B]"
    assert drawable("\u202ex") == "[202E]x"


def test_lines_are_broken_between_words():
    assert wrapped("a few-words here", 9) == "a\nfew-words\nhere" and wrapped("", 9) == " "
