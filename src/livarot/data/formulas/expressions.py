"""Arithmetic on columns, as text: ``log(age)``, ``(age - 50) / 10``, ``poly(dose, 2)``.

Text is parsed by Python's own parser and then *read*, node by node; nothing is ever run as code.  Allowed are names
of columns (``x``, ``next.x``, ``state.x``, ``action.x``, and names in backticks), numbers, ``+ - * / // % **``,
comparisons (1 or 0), and the functions below; everything else is refused, also in a model that comes from a file.

=============================  =========================================================================
function                       value
=============================  =========================================================================
``log log1p log2 log10``       logarithms; ``exp expm1 sqrt abs`` likewise, elementwise
``minimum(x, y)``              the smaller one; ``maximum`` the larger one
``I(x)``                       x itself, for arithmetic inside of a formula
``center(x)``                  x minus its mean
``standardise(x)``             that, divided by the standard deviation (also ``standardize``, ``scale``)
``poly(x, 2)``                 orthogonal polynomials of degree 1 and 2, as in R; one column each
=============================  =========================================================================

The last three depend on all values of a column.  Their constants are those of the data of the fit: ``memory`` keeps
them, under the text of the call, for predictions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from livarot.core.arrays import FloatArray
from livarot.errors import bad

SIDES = ("state", "action", "next")
PLAIN: dict[str, Callable[..., Any]] = {
    "log": np.log, "log1p": np.log1p, "log2": np.log2, "log10": np.log10, "exp": np.exp, "expm1": np.expm1,
    "sqrt": np.sqrt, "abs": np.abs, "minimum": np.minimum, "maximum": np.maximum, "I": np.positive,
}  # fmt: skip
ARITY = {"minimum": 2, "maximum": 2}
SCALED = ("center", "standardise", "standardize", "scale")
BINARY: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.true_divide, ast.Pow: np.power,
    ast.FloorDiv: np.floor_divide, ast.Mod: np.mod,
}  # fmt: skip
UNARY: dict[type[ast.unaryop], Callable[..., Any]] = {ast.UAdd: np.positive, ast.USub: np.negative}
COMPARED: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal, ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}  # fmt: skip
LONGEST, MOST_DEGREE = 1000, 20
QUOTED = re.compile(r"`([^`]*)`")
MARK = "_quoted_"

Memory: TypeAlias = "dict[str, list[float]]"


class Leaf(NamedTuple):
    """A column that an expression names: its side ("" where none is written) and its name."""

    side: str
    name: str


class Parsed(NamedTuple):
    """An expression that was read and allowed, and the columns it names."""

    text: str
    tree: ast.expr
    quoted: tuple[str, ...]  # names that stood in backticks
    leaves: tuple[Leaf, ...]


def parsed(text: str) -> Parsed:
    """Read an expression, refused unless all of it is allowed.

    >>> parsed("log(state.age) / 2").leaves
    (Leaf(side='state', name='age'),)
    """
    tree, quoted = syntax_tree(text)
    leaves: dict[Leaf, None] = {}
    for node in ast.walk(tree):
        if node is not tree and isinstance(node, ast.Call) and ast.unparse(node.func) == "poly":
            raise refused(text, "has poly(...) inside of something else")
    _check(tree, text, quoted, leaves)
    return Parsed(text, tree, quoted, tuple(leaves))


def syntax_tree(text: str) -> tuple[ast.expr, tuple[str, ...]]:
    """The syntax tree of a text, and the names in backticks that were taken out of it."""
    quoted = tuple(QUOTED.findall(text))
    if len(text) > LONGEST or MARK in text:
        raise refused(text[:60], "is too long or uses a reserved name")
    count = iter(range(len(quoted)))
    try:
        return ast.parse(QUOTED.sub(lambda _: f"{MARK}{next(count)}", text).strip(), mode="eval").body, quoted
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise refused(text, "cannot be read") from None


def restored(text: str, quoted: tuple[str, ...]) -> str:
    """A text with its names in backticks again."""
    return re.sub(rf"{MARK}(\d+)", lambda found: f"`{quoted[int(found[1])]}`", text)


def refused(text: str, problem: str) -> Exception:
    allowed = "columns, numbers, + - * / // % **, comparisons, C(), offset() and the functions "
    functions = ", ".join((*PLAIN, "center", "standardise", "poly"))
    return bad("formula", f"{text!r} {problem}", cure=f"use {allowed}{functions}; or a Computed feature")


def leaf_of(node: ast.expr, quoted: tuple[str, ...]) -> Leaf | None:
    """The column that a node names, None if it is something else."""
    if isinstance(node, ast.Name):
        return Leaf("", quoted[int(node.id[len(MARK) :])] if node.id.startswith(MARK) else node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in SIDES:
        inner = node.attr
        return Leaf(node.value.id, quoted[int(inner[len(MARK) :])] if inner.startswith(MARK) else inner)
    return None


def _check(node: ast.expr, text: str, quoted: tuple[str, ...], leaves: dict[Leaf, None]) -> None:
    leaf = leaf_of(node, quoted)
    inside: list[ast.expr] = []
    if leaf is not None:
        if leaf.name.startswith("__"):
            raise refused(text, f"names {leaf.name!r}, which may not be used")
        leaves[leaf] = None
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        pass
    elif isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        inside = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        inside = [node.operand]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
        inside = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        inside = _arguments(node, node.func.id, text)
    else:
        raise refused(text, f"has {ast.unparse(node)!r}, which may not be used")
    for part in inside:
        _check(part, text, quoted, leaves)


def _arguments(call: ast.Call, name: str, text: str) -> list[ast.expr]:
    """The arguments of an allowed call that are themselves expressions."""
    if name == "poly":
        _degree(call, text)
        return call.args[:1]
    wanted = ARITY.get(name, 1)
    if (name not in PLAIN and name not in SCALED) or call.keywords or len(call.args) != wanted:
        raise refused(text, f"has {ast.unparse(call)!r}, which may not be used")
    return list(call.args)


def _degree(call: ast.Call, text: str) -> int:
    given = [k.value for k in call.keywords if k.arg == "degree"] + list(call.args[1:])
    right = len(given) == 1 and len(call.args) + len(call.keywords) == 2 and isinstance(given[0], ast.Constant)
    degree = getattr(given[0], "value", None) if right else None
    if type(degree) is not int or not 1 <= degree <= MOST_DEGREE:
        raise refused(text, f"must be poly(x, degree) with a degree from 1 to {MOST_DEGREE}")
    return degree


def evaluate(one: Parsed, column: Callable[[Leaf], Any], memory: Memory, *, learn: bool) -> list[FloatArray]:
    """The columns of an expression: one, or several of ``poly``.

    ``learn`` takes the constants of ``center``, ``standardise`` and ``poly`` from the data and puts them into
    ``memory``; otherwise they come from there.
    """

    def value(node: ast.expr) -> Any:
        leaf = leaf_of(node, one.quoted)
        if leaf is not None:
            return np.asarray(column(leaf), dtype=np.float64)
        if isinstance(node, ast.Constant):
            return float(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.BinOp):
            return BINARY[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp):
            return UNARY[type(node.op)](value(node.operand))
        if isinstance(node, ast.Compare):
            both = value(node.left), value(node.comparators[0])
            return COMPARED[type(node.ops[0])](*both).astype(np.float64)
        assert isinstance(node, ast.Call)  # noqa: S101 (all of it was checked)
        assert isinstance(node.func, ast.Name)  # noqa: S101
        if node.func.id in PLAIN:
            return PLAIN[node.func.id](*(value(part) for part in node.args))
        key = restored(ast.unparse(node), one.quoted)
        degree = _degree(node, one.text) if node.func.id == "poly" else 0
        x = np.asarray(value(node.args[0]), dtype=np.float64)
        if learn and key not in memory:
            memory[key] = learn_poly(x, degree, one.text) if degree else learn_scale(x, node.func.id, one.text)
        if key not in memory:
            raise bad("formula", f"the model has no constants for {key!r}", cure="fit again")
        return poly(x, degree, memory[key]) if degree else (x - memory[key][0]) / memory[key][1]

    with np.errstate(all="ignore"):
        found = np.asarray(value(one.tree), dtype=np.float64)
    columns = [found] if found.ndim < 2 else list(found.T)
    for values in columns:
        wrong = ~np.isfinite(values)
        if wrong.any():
            first = int(np.atleast_1d(wrong).argmax())
            cure = "mind the range of the function, or drop those rows"
            raise bad(f"feature {one.text!r}", "is not finite", index=first, count=int(wrong.sum()), cure=cure)
    return [np.ascontiguousarray(values) for values in columns]


def learn_scale(x: FloatArray, name: str, text: str) -> list[float]:
    """Mean, and standard deviation (n - 1) or 1."""
    spread = float(x.std(ddof=1)) if name != "center" and x.size > 1 else float(name == "center")
    if not spread > 0.0:
        raise bad("formula", f"{text!r} divides by the standard deviation of a constant column", cure="leave it out")
    return [float(x.mean()), spread]


def learn_poly(x: FloatArray, degree: int, text: str) -> list[float]:
    """The constants of the three-term recurrence: alpha_0.., then the squared norms n_0..n_degree."""
    if len(np.unique(x)) <= degree:
        raise bad("formula", f"{text!r} needs more than {degree} different values", cure="lower the degree")
    alpha: list[float] = []
    before, own = np.zeros_like(x), np.ones_like(x)
    norms = [float(own @ own)]
    for k in range(degree):
        alpha.append(float((x * own) @ own) / norms[-1])
        beta = norms[-1] / norms[-2] if k else 0.0
        before, own = own, (x - alpha[-1]) * own - beta * before
        norms.append(float(own @ own))
    return [*alpha, *norms]


def poly(x: FloatArray, degree: int, constants: list[float]) -> FloatArray:
    """Orthonormal polynomials (n, degree) with these constants."""
    alpha, norms = constants[:degree], constants[degree:]
    before, own = np.zeros_like(x), np.ones_like(x)
    found = []
    for k in range(degree):
        beta = norms[k] / norms[k - 1] if k else 0.0
        before, own = own, (x - alpha[k]) * own - beta * before
        found.append(own / np.sqrt(norms[k + 1]))
    return np.stack(found, axis=-1)


def check_memory(memory: Any) -> Memory:
    """The constants in a file, refused (ValueError) unless they are those of calls that are allowed."""
    if not isinstance(memory, dict):
        raise ValueError("its transforms are not a table")
    for text, constants in memory.items():
        tree, _ = syntax_tree(text) if isinstance(text, str) else (None, ())
        call = tree.func.id if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) else ""
        wanted = 2 if call in SCALED else 2 * _degree(tree, text) + 1 if call == "poly" else -1  # type: ignore[arg-type]
        right = isinstance(constants, list) and len(constants) == wanted
        numbers = right and all(type(x) in (int, float) and np.isfinite(x) for x in constants)
        scales = constants[1:] if call in SCALED else constants[(wanted - 1) // 2 :] if numbers else []
        if not numbers or not all(x > 0 for x in scales):
            raise ValueError(f"the constants of {text!r} do not fit")
    return {text: [float(x) for x in constants] for text, constants in memory.items()}
