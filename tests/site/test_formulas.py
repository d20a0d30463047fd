"""Formulas in plain text become the same formulas in LaTeX, or stay as they are."""

from __future__ import annotations

import inspect
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sitekit.displays import display, inline, row
from sitekit.docstrings import blocks
from sitekit.formulas import formula, joined
from sitekit.lexicon import GREEK, NAMES, Unsure
from sitekit.mathml import mathml
from sitekit.names import mathematics, public_names

pytest.importorskip("docutils")


def tex(text):
    return joined(formula(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("theta_h", r"\theta_{h}"),
        ("V_{h+1}(s')", r"V_{h + 1}(s')"),
        ("theta_hat_h", r"{\hat{\theta}}_{h}"),
        ("phi~ vbar", r"{\tilde{\phi}}\,{\bar{v}}"),
        ("sigma_bar_T^2", r"{\bar{\sigma}}_{T}^{2}"),
        ("gram^-1", r"\mathrm{gram}^{-1}"),
        ("p0 e1", r"p_{0}\,e_{1}"),
        ("V*_h", r"V_{h}^{*}"),
        ("x' A x''", r"x'\,A\,x''"),
        ("N'_{h+1}", r"N_{h + 1}'"),
        ("p^(H-1)", r"p^{H - 1}"),
        ("xi^(m)", r"\xi^{(m)}"),
        ("E_theta[V]", r"\mathbb{E}_{\theta}[V]"),
        ("P(s'|s, a)", r"P(s' \mid s, a)"),
        ("P(.|s, a)", r"P(\cdot \mid s, a)"),
        ("KL(p | p0)", r"\mathrm{KL}(p \mid p_{0})"),
        ("|x|", r"\lvert x\rvert"),
        ("2 |theta - mean|_A^2", r"2\,\lVert \theta - \mathrm{mean}\rVert_{A}^{2}"),
        ("|phi|^2_{gram^-1}", r"\lVert \phi\rVert_{\mathrm{gram}^{-1}}^{2}"),
        ("max|phi_i|", r"\max \lvert \phi_{i}\rvert"),
        ("sqrt(d/2) sqrt N sqrt2", r"\sqrt{d / 2}\,\sqrt{N}\,\sqrt{2}"),
        ("sum_{s'} P V", r"\sum_{s'} P\,V"),
        ("sum_s' P V", r"\sum_{s'} P\,V"),
        ("max over theta in C_h of E_theta[V]", r"\max_{\theta \in C_{h}} \mathbb{E}_{\theta}[V]"),
        ("min { E_p V : KL(p|p0) <= eps }", r"\min \{\mathbb{E}_{p}\,V: \mathrm{KL}(p \mid p_{0}) \le \varepsilon\}"),
        ("clip_[0,H]( r + 1 )", r"\mathrm{clip}_{[0, H]}(r + 1)"),
        ("p . V + q.V", r"p \cdot V + q \cdot V"),
        ("a * b", r"a \cdot b"),
        ("-eta V", r"{-\eta}\,V"),
        ("4 2^{3/4}", r"4 \cdot 2^{3 / 4}"),
        ("2e d", r"2\,e\,d"),
        ("log^2(S t)", r"\log^{2}(S\,t)"),
        ("sum_t log p_t", r"\sum_{t} \log\,p_{t}"),
        ("a -> b", r"a \to b"),
        ("x ~ N(0, 1)", r"x \sim N(0, 1)"),
        ("x_1 ... x_n", r"x_{1}\,\ldots\,x_{n}"),
        ("a = b for all t", r"a = b \text{ for } \text{ all } t"),
        ("p proportional to q", r"p \propto q"),
        ("V +- z", r"V \pm z"),
    ],
)
def test_each_sign(text, expected):
    assert tex(text) == expected
    assert mathml(expected, block=True).startswith("<math")


def test_a_script_stands_below_the_symbol_and_not_below_its_accent():
    for text in ("theta_hat_h", "sigma_bar_T^2", "|x|_{theta_hat_h}"):
        assert "munder" not in mathml(tex(text), block=True)
    assert "<munder>" in mathml(tex("max_a Q"), block=True)


def test_a_fraction_only_where_nothing_else_could_be_meant():
    assert tex("exp(a) / sum_i exp(b_i)") == r"\frac{\exp(a)}{\sum_{i} \exp(b_{i})}"
    assert tex("a / (b + c)") == r"\frac{a}{b + c}"
    for text in ("a / b c", "a/b", "a + b / c", "sum_i a_i / b", "E V / c", "a / log b", "a / b / c", "-a / b"):
        assert "frac" not in tex(text) and " / " in tex(text)


@pytest.mark.parametrize(
    "text",
    [
        "p_s' x",  # of s', or primed
        "g_p' x",
        "V*x",  # a star or a product
        "x[i]",  # an index of an array
        "(I (x) x)",  # a Kronecker product
        "1e-6",
        "<g, theta>",
        "a.b",
        "theta_h_k",
        "p0_h",
        "x^2^3",
        "(a",
        "a)",
        "|a",
        "a +",
        "+ * a",
        "a = = b",
        "a , , b",
        "x := 1",
        "every state has its own",
        'make("chain")',
        "z += y",
        "learning_rate = 1",
        "n_states = 2",
        "1 -x",
        "a | b",
        "√d",
    ],
)
def test_it_is_left_alone(text):
    with pytest.raises(Unsure):
        formula(text)
    assert display([f"    {text}"]) is None and inline(text) is None


def test_rows_labels_and_remarks():
    assert row("V_h = max_a Q_h   (or the policy's action)").right.endswith(r"\qquad \text{(or the policy's action)}")
    assert row("penalty eta   Q = min_p E_p V").label == r"\text{penalty}\ \eta"
    assert row("V(theta)         = 1").right == "= 1"
    assert row("a  <=  b  <=  c").right == r"\le b \le c"
    assert display(["    x = 1", "    y = 2"]) == r"\begin{aligned} x & = 1 \\ y & = 2 \end{aligned}"
    assert display(["  x = 1", "    + y"]) == r"\begin{aligned} & x = 1 \\ & \qquad {+y} \end{aligned}"
    assert display(["  radius eps  x = 1", "  y = 2"]) == (
        r"\begin{aligned} \text{radius}\ \varepsilon & x = 1 \\  & y = 2 \end{aligned}"
    )


def test_one_line_in_doubt_leaves_the_whole_block_alone():
    assert display(["    x = 1", "    y = the other one"]) is None
    assert display(["    for k in range(m):", "        z = y"]) is None
    assert display(["    x y"]) is None  # it says nothing


WORDS = [*GREEK, *NAMES, "sqrt", "max", " over ", " of ", "_hat", "  "]
SIGNS = st.sampled_from([*WORDS, *"abspxV123()[]{}|_^'*/+-=<>~.,;: "])


@settings(deadline=None, max_examples=400)
@given(st.lists(SIGNS, max_size=14).map("".join) | st.text(max_size=40))
@example("sqrt sqrt")
@example("max over")
def test_nothing_raises_and_brackets_match(text):
    latex = display([f"    {text}"])
    if latex is not None:
        assert mathml(latex, block=True).startswith("<math")
        plain = re.sub(r"\\[{}]", "", latex)
        assert plain.count("{") == plain.count("}")


COUNTED = {"theta": r"\\theta(?![a-z])", "<=": r"\\le(?![a-z])", "sum": r"\\sum(?![a-z])"}


def test_no_sign_is_lost():
    """Some signs of every formula of ours are in its LaTeX, in the same number."""
    found = set()
    for name in public_names():
        for text in (inspect.getdoc(name.thing) or "", mathematics(name.thing)):
            for block in blocks(text.splitlines()):
                if block[0].startswith("  ") and (latex := display(block)) is not None:
                    found.add((" ".join(block), latex))
    assert len(found) > 20
    for plain, latex in found:
        for sign, command in COUNTED.items():
            assert plain.count(sign) == len(re.findall(command, latex)), (sign, plain, latex)
