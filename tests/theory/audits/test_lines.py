"""The lines of an audit, as text and as HTML."""

import math

from livarot.theory.audits.auditing import audit
from livarot.theory.audits.lines import FAILS, HOLDS, Audit, Line, shown
from tests.support.audits import by_hand


def test_html_is_escaped():
    result = by_hand([[1.0]], None)
    object.__setattr__(result, "agent", "<b>")
    page = audit(result)._repr_html_()
    assert "<b>" not in page and "&lt;b&gt;" in page and page.count("<tr>") == len(audit(result).lines) + 1


def test_a_table_has_a_line_per_quantity_and_failures_are_those_that_fail():
    lines = (Line("regret", "mean", "3", "4", HOLDS), Line("coverage", "share", ".8", ".95", FAILS))
    audit = Audit("a", "a()", 2, 5, {}, {}, {}, {}, {}, {}, lines)
    assert audit.failures == lines[1:]
    head, names, rule, *body = str(audit).splitlines()
    assert head == "audit of a: 2 seeds, 5 episodes" and set(rule) == {"-"} and len(body) == 2
    assert body[1].split() == ["coverage:", "share", ".8", ".95", FAILS]
    assert body[0].index("4") == names.index("promised")
    assert audit.to_dict()["table"][0]["verdict"] == HOLDS


def test_numbers_that_no_float_holds_are_powers_of_ten():
    assert shown(1234.56, None) == "1235"
    assert shown(None, 1000.0 * math.log(10.0)) == "10^1000"
    assert shown(None, None) == "infinite"
