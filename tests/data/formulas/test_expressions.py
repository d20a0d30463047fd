"""Arithmetic in formulas: what is allowed is computed, everything else is refused before anything runs."""

import numpy as np
import pytest

from livarot.data.formulas.expressions import Leaf, check_memory, evaluate, parsed
from livarot.errors import LivarotError

X = np.array([1.0, 2.0, 4.0, 7.0])
Y = np.array([0.5, -1.0, 3.0, 2.0])


def value(text, memory=None, x=X):
    columns = {"x": x, "y": Y[: len(x)], "a b": 2.0 * x}
    known = {} if memory is None else memory
    return evaluate(parsed(text), lambda leaf: columns[leaf.name], known, learn=memory is None or not memory)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", X),
        ("log(x)", np.log(X)),
        ("(x - 2) / 10 ** 2", (X - 2) / 100),
        ("I(x % 2 + x // 2)", X % 2 + X // 2),
        ("-x * +y", -X * Y),
        ("x > 2", (X > 2) * 1.0),
        ("maximum(x, y) - minimum(x, 3)", np.maximum(X, Y) - np.minimum(X, 3)),
        ("sqrt(abs(y)) + exp(y) + expm1(y) + log1p(x) + log2(x) + log10(x)",
         np.sqrt(np.abs(Y)) + np.exp(Y) + np.expm1(Y) + np.log1p(X) + np.log2(X) + np.log10(X)),
        ("`a b` + 1", 2 * X + 1),
        ("center(x)", X - X.mean()),
        ("standardise(log(x))", (np.log(X) - np.log(X).mean()) / np.log(X).std(ddof=1)),
    ],
)  # fmt: skip
def test_values(text, expected):
    (found,) = value(text)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", "eval('1')", "open('x')", "x.__class__", "x.mean()", "().__class__",
        "lambda: 1", "[x for x in y]", "x if y else x", "x[0]", "'text'", "f'{x}'", "log(x, base=2)", "log(*x)",
        "x and y", "x := 1", "print(x)", "np.log(x)", "poly(x, 2) + 1", "poly(x, degree=10**9)", "poly(x, 99)",
        "poly(x)", "x < y < 2", "await x", "1 +", "x; y", "__builtins__", "x @ y", "~x", "not x", "state.__class__.x",
        "1j", "True", "None", "(" * 300,
    ],
)  # fmt: skip
def test_everything_else_is_refused(text):
    with pytest.raises(LivarotError, match="formula: "):
        parsed(text)


def test_polynomials_are_those_of_formulaic_and_keep_their_constants():
    theirs = pytest.importorskip("formulaic.transforms").poly
    x = np.random.default_rng(0).normal(size=50)
    memory = {}
    first = evaluate(parsed("poly(x, 3)"), lambda leaf: x, memory, learn=True)
    np.testing.assert_allclose(np.stack(first, axis=1), np.asarray(theirs(x, degree=3, _state={})), atol=1e-12)
    again = evaluate(parsed("poly(x, 3)"), lambda leaf: x[:5], memory, learn=False)
    np.testing.assert_allclose(np.stack(again), np.stack(first)[:, :5], atol=1e-14)
    with pytest.raises(LivarotError, match="no constants for 'standardise"):
        evaluate(parsed("standardise(x)"), lambda leaf: x, memory, learn=False)


def test_what_is_not_finite_is_refused():
    with pytest.raises(LivarotError, match=r"feature 'log\(y\)': is not finite \(1 in all, first at index 1\)"):
        value("log(y)")
    with pytest.raises(LivarotError, match="constant column"):
        value("standardise(x)", x=np.ones(3))
    with pytest.raises(LivarotError, match="more than 2 different values"):
        value("poly(x, 2)", x=np.array([1.0, 2.0, 1.0]))


def test_leaves():
    assert parsed("log(state.age) * next.x / `a b`").leaves == (
        Leaf("state", "age"),
        Leaf("next", "x"),
        Leaf("", "a b"),
    )


@pytest.mark.parametrize(
    "memory",
    [
        {"eval(x)": [0.0, 1.0]}, {"standardise(x)": [0.0]}, {"standardise(x)": [0.0, 0.0]}, {"poly(x, 2)": [1.0] * 4},
        {"poly(x, 2)": [0.0, 0.0, 1.0, 1.0, float("nan")]}, {"standardise(x)": "ab"}, [1], {"poly(x, 99)": [1.0]},
    ],
)  # fmt: skip
def test_constants_of_a_file_are_checked(memory):
    with pytest.raises(ValueError, match=r"transforms|constants|formula"):
        check_memory(memory)
