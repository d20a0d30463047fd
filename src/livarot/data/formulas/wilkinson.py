"""Formulas in the notation of Wilkinson and Rogers, as in R, patsy and statsmodels.

    "~ price + C(mode, contr.treatment(base='car')) + log(income):next_state"

The algebra (``+ - : * / ^ ( )``) is formulaic's; what stands between these signs is read by
:mod:`livarot.data.formulas.expressions` and never run as code.  What is particular to choices among next states:

* ``state``, ``action``, ``next_state`` and ``stage`` are categories (as are the columns that have these roles);
  so is every column of text and every pandas Categorical; ``C(x)`` makes one of numbers.
* What is the same for all alternatives of a choice cancels: the constant is ignored, and of ``age * next_state`` the
  term ``age`` is left out (one warning lists all such columns).
* A category leaves out its reference where its columns would add up to a term of the model, or to something that
  cancels: the rule of R, with "cancels" in the place of the constant.
* ``offset(x)`` is a known part of the logits.
* ``a | b | c`` is mlogit's: a as it is, b (properties of the decision maker) once for each next state, with a constant
  for each, c once for each next state.
* The left side names the column of next states, or of the chosen flags, and may be left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, cast

from livarot.data.formulas.expressions import SIDES, Leaf, leaf_of, parsed, refused, syntax_tree
from livarot.data.formulas.formula import LABELS, Factor, Scope, Terms
from livarot.errors import LivarotError, bad
from livarot.extras import extras_explained

NEXT = Factor("next_state", "next", None, True)
LONGEST = 4000


def read_formula(formula: str, scope: Scope, sides: Sequence[str] = ()) -> Terms:
    """The terms of a formula; ``sides`` are the names that may stand on its left."""
    left, parts = _algebra(formula)
    if left and (len(left) > 1 or (sides and left[0] not in sides)):
        cure = f"leave it out, or write {' or '.join(map(repr, sides))}"
        raise bad("formula", f"{' + '.join(left)!r} stands on the left", cure=cure)
    products: dict[frozenset[str], tuple[Factor, ...]] = {}
    offsets: list[Factor] = []
    for place, terms in enumerate(parts):
        for term in terms:
            factors = [_factor(text, scope) for text in term if text != "1"]
            if len(factors) == 1 and factors[0].side == "offset":
                offsets.append(_offset_of(factors[0], scope))
                continue
            if any(factor.side == "offset" for factor in factors):
                raise bad("formula", "offset(...) stands in a product", cure="give it as a term of its own")
            if place == 1 or (place == 2 and factors):
                factors.append(NEXT)
            if factors:
                products.setdefault(frozenset(factor.text for factor in factors), tuple(factors))
    if not products:
        raise bad("formula", f"{formula!r} has no terms", cure="write '~ price + time'")
    ordered = sorted(products.values(), key=len)  # R's order: main effects, then products of two, ...
    return Terms(ordered, offsets, marginal=True)


class _Anything:
    """A scope for which every name is a column of numbers."""

    def is_column(self, text: str) -> bool:
        return False

    is_category = is_covariate = is_column

    def role(self, text: str) -> str | None:
        return None


def check_formula(formula: str) -> None:
    """Refuse a formula with anything that is not allowed, whatever the data."""
    read_formula(formula, cast(Scope, _Anything()))


def uses_stage(formula: str) -> bool:
    """Does a formula name the stage?"""
    return any(text == "stage" for terms in _algebra(formula)[1] for term in terms for text in term)


def _algebra(formula: str) -> tuple[list[str], list[list[list[str]]]]:
    """The texts on the left, and of every part on the right its terms, as texts of factors."""
    with extras_explained():
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser
    if not isinstance(formula, str) or len(formula) > LONGEST:
        raise bad("formula", "is not a text of reasonable length", cure="write '~ price + time'")
    try:
        found = DefaultFormulaParser().get_terms(formula)
    except LivarotError:
        raise
    except (FormulaicError, SyntaxError, ValueError, TypeError, RecursionError, KeyError, AttributeError) as error:
        lines = str(error).splitlines() or ["cannot be read"]
        raise bad("formula", f"{formula!r}: {lines[0]}", cure="write it as in R: '~ a + b:c + log(d)'") from None
    named = getattr(found, "_structure", {})
    left = [_text(factor) for term in named.get("lhs", ()) for factor in term.factors]
    right = named.get("rhs", named.get("root", found))
    parts = right if isinstance(right, tuple) else (right,)
    if len(parts) > 3:
        raise bad("formula", f"has {len(parts)} parts", cure="write at most a | b | c")
    return left, [_terms(part) for part in parts]


def _terms(part: Iterable[Any]) -> list[list[str]]:
    return [[_text(factor) for factor in term.factors] for term in part]


def _text(factor: Any) -> str:
    text = str(factor.expr)
    quoted = factor.eval_method.value == "lookup" and not text.replace(".", "_").isidentifier()
    return f"`{text}`" if quoted else text


def _factor(text: str, scope: Scope) -> Factor:
    """A factor from its text."""
    tree, quoted = syntax_tree(text)
    leaf = leaf_of(tree, quoted)
    if leaf is None and isinstance(tree, ast.Attribute):  # a column with a dot in its name
        leaf = Leaf("", text) if scope.is_column(text) else None
    if leaf is not None:
        return _column(leaf, scope, category=None)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        inside = leaf_of(tree.args[0], quoted) if tree.args else None
        if tree.func.id == "C" and inside is not None:
            return _column(inside, scope, category=_base(tree, text))
        if tree.func.id == "offset" and len(tree.args) == 1 and not tree.keywords:
            return Factor(text[text.index("(") + 1 : text.rindex(")")], "offset", None, False)
    expression = parsed(text)
    return _of_expression(expression.text, scope)


def _offset_of(factor: Factor, scope: Scope) -> Factor:
    expression = parsed(factor.text)
    if isinstance(expression.tree, ast.Name | ast.Attribute):
        return _column(expression.leaves[0], scope, category=None)
    return _of_expression(factor.text, scope)


def _of_expression(text: str, scope: Scope) -> Factor:
    expression = parsed(text)
    if not expression.leaves:
        raise refused(text, "names no column")
    made = Factor(text, "next", None, False, expression)
    outside = {scope.is_covariate(leaf) for leaf in made.leaves()}
    if len(outside) > 1:
        cure = "compute that column yourself, or write a product a:b"
        raise bad("formula", f"{text!r} mixes covariates with attributes of states", cure=cure)
    return made


def _column(leaf: Leaf, scope: Scope, category: tuple[Any, ...] | None) -> Factor:
    """A column: a category with this base level; with ``category`` None its own type decides whether it is one."""
    plain = f"{leaf.side}.{leaf.name}" if leaf.side else leaf.name
    text = plain if category is None else f"C({plain})"
    role = LABELS.get(plain) if not leaf.side else None
    role = role or (None if leaf.side else scope.role(plain))
    if role is not None:
        return Factor(plain, role, None, True, base=category or ())
    side, name = (leaf.side or "next"), leaf.name
    if leaf.side in SIDES and scope.is_column(plain):
        side, name = "next", plain
    found = Factor(text, side, name, category is not None, base=category or ())
    if category is None and scope.is_category(found):
        found = Factor(text, side, name, True)
    return found


def _base(call: ast.Call, text: str) -> tuple[Any, ...]:
    """The reference level of ``C(x, contr.treatment(base="b"))``, ``C(x, Treatment("b"))``; () for ``C(x)``."""
    if len(call.args) == 1 and not call.keywords:
        return ()
    given = call.args[1] if len(call.args) == 2 and not call.keywords else None
    if isinstance(given, ast.Call) and ast.unparse(given.func) in ("contr.treatment", "Treatment"):
        values = [*given.args, *(k.value for k in given.keywords if k.arg in ("base", "reference"))]
        if len(given.args) + len(given.keywords) == 0:
            return ()
        if len(values) == 1 and len(given.args) + len(given.keywords) == 1:
            try:
                return (ast.literal_eval(values[0]),)
            except ValueError:
                pass
    cure = "write C(x), C(x, contr.treatment(base='b')), or give reference={'x': 'b'}"
    raise bad("formula", f"{text!r} is not a treatment contrast", cure=cure)
