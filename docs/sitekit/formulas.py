"""Formulas of docstrings, from plain text to LaTeX, or None: what is not surely a formula stays as it is.

The conventions are those of our docstrings: ``theta_hat_h``, ``V_{h+1}(s')``, ``gram^-1``, ``|x|_A``, ``sqrt(d)``,
``max over theta in C of``, two spaces between formulas on a line.  The order of what is written is never changed: a
product stays a product and ``a / b c`` stays on one line, so a reading cannot differ from that of the plain text.  A
word that is in none of the lists below, a bracket without its partner or an operator without its operand is enough
for the whole block to be left alone.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from sitekit.lexicon import (
    ACCENTS,
    BIG,
    CLOSING,
    FUNCTIONS,
    INDEXED,
    OPERATORS,
    RELATIONS,
    STARRED,
    STATES,
    SUBSCRIPTS,
    WORDS,
    Token,
    Unsure,
    symbol,
    tokens,
    unsure,
)


class Item(NamedTuple):
    """A piece of LaTeX; the kinds are operand, function, big, operator, relation, mark (a comma) and word."""

    kind: str
    latex: str
    spaced: bool = False  # before
    group: bool = False  # in brackets


class Parser:
    """One formula, read from left to right."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.at = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.now
        self.at += 1
        return token

    def take(self, text: str) -> bool:
        if self.now.text == text and self.now.sort != "end":
            self.at += 1
            return True
        return False

    def follows(self, text: str) -> bool:
        """The next token is this one and stands right here, without a space."""
        return self.now.text == text and not self.now.before

    def whole(self) -> list[Item]:
        items = self.sequence("")
        return items if self.now.sort == "end" else unsure("something is left over")

    def sequence(self, end: str) -> list[Item]:
        """Everything up to ``end``, which is not consumed: a closing sign, the word of, or nothing."""
        items: list[Item] = []
        while not (self.now.sort == "end" or self.now.text in (end, ")", "]", "}") or self.closes(end, items)):
            items.append(self.item(items, end))
        if self.now.text != end:
            unsure(f"no {end or 'end'}")
        checked(items)
        return fractions(items)

    def closes(self, end: str, items: list[Item]) -> bool:
        return end == "|" and self.now.text == "|" and bool(items) and items[-1].kind == "operand"

    def item(self, items: list[Item], end: str) -> Item:
        token = self.now
        last = items[-1].kind if items else "start"
        if token.sort == "number":
            self.next()
            if last == "operand" and not token.before:
                unsure("a number right after a factor")
            return self.scripted(token.text, token)
        if token.sort == "name":
            return self.named()
        if token.text in CLOSING:
            return self.group(items)
        if token.text == "|":
            return self.bar(last, end)
        self.next()
        if token.text == ".":
            return self.dot(token, last)
        if token.text in ("..", "..."):
            return Item("operand", r"\ldots", True)
        if token.text in RELATIONS:
            if token.text in "<>~" and not (token.before and token.after):
                unsure("brackets or a tilde")
            return Item("relation", RELATIONS[token.text])
        if token.text in OPERATORS:
            if token.text == "*" and not (token.before and token.after):
                unsure("a star or a product")
            if token.text in "+-" and last == "operand" and token.before and not token.after:
                unsure("a sign or an operator")
            return Item("operator", OPERATORS[token.text], token.before and token.after)
        if token.text in (",", ";") or (token.text == ":" and end == "}"):
            return Item("mark", token.text)
        return unsure(token.text)

    def dot(self, token: Token, last: str) -> Item:
        if self.now.sort == "end":
            return Item("mark", ".")  # of the sentence
        if last in ("start", "mark") and self.now.text in ("|", ",", ")"):
            return Item("operand", r"\cdot")  # any value
        factors = last == "operand" and (self.now.sort == "name" or self.now.text == "(")
        close = len(self.tokens[self.at - 2].text) == 1 and self.now.text[:1].isupper()  # p.V, but not a.name
        if factors and (token.before == token.after) and (token.before or close):
            return Item("operator", r"\cdot")
        return unsure("a point")

    def bar(self, last: str, end: str) -> Item:
        token = self.next()
        if last == "operand" and token.before == token.after:
            if end not in (")", "]", "}"):
                unsure("a condition outside of brackets")
            return Item("relation", r"\mid")
        if last == "operand" and not (token.before and not token.after):
            unsure("a bar")
        inside = joined(self.sequence("|"))
        self.next()
        scripts = self.scripted("", token).latex
        left, right = (r"\lVert ", r"\rVert") if scripts.startswith("_") else (r"\lvert ", r"\rvert")
        return Item("operand", f"{left}{inside}{right}{scripts}", token.before)

    def group(self, items: list[Item]) -> Item:
        token = self.next()
        last = items[-1] if items else Item("start", "")
        before = self.tokens[self.at - 2].text if self.at > 1 else ""
        if token.text == "(" and token.before and self.now.text == "x" and self.tokens[self.at + 1].text == ")":
            unsure("a Kronecker product or an argument")
        if token.text == "[" and last.kind == "operand" and not last.latex.startswith(INDEXED):
            unsure("an index")
        if token.text == "{" and not (token.before or before in CLOSING or before in BIG):
            unsure("a brace")
        inside = joined(self.sequence(CLOSING[token.text]))
        self.next()
        left, right = (r"\{", r"\}") if token.text == "{" else (token.text, CLOSING[token.text])
        if r"\frac" in inside and token.text != "{":
            left, right = rf"\left{left} ", rf" \right{right}"
        return self.scripted(f"{left}{inside}{right}", token, group=True)

    def named(self) -> Item:
        token = self.next()
        name = token.text
        if name in BIG:
            return self.operator_of(name, token)
        if name in FUNCTIONS:
            return self.scripted(FUNCTIONS[name], token, kind="function")
        if name == "in":
            return Item("relation", r"\in")
        if name == "proportional" and self.take("to"):
            return Item("relation", r"\propto")
        if name in WORDS:
            return Item("word", rf"\text{{ {name} }}")
        if root := re.fullmatch(r"sqrt(\d*)", name):
            return self.root(token, root.group(1))
        return self.scripted(self.accented(symbol(name)), token, name=name)

    def root(self, token: Token, number: str) -> Item:
        if number:
            inside = number
        elif self.follows("("):
            self.next()
            inside = joined(self.sequence(")"))
            self.next()
        elif self.now.sort in ("name", "number") and self.now.before:
            inner = self.item([], "")
            inside = inner.latex if inner.kind == "operand" else unsure("a root of an operator")
        else:
            unsure("a root of nothing")
        return self.scripted(rf"\sqrt{{{inside}}}", token)

    def operator_of(self, name: str, token: Token) -> Item:
        """A sum, a maximum, ...; ``max over A of B`` has A below."""
        if self.now.text == "over" and self.now.before:
            here = self.at
            self.next()
            try:
                below = joined(self.sequence("of"))
                self.next()
                return Item("big", f"{BIG[name]}_{{{below}}}", token.before)
            except Unsure:
                self.at = here
        return self.scripted(BIG[name], token, kind="big", name=name)

    def accented(self, latex: str) -> str:
        """``theta_hat``, and ``phi~``."""
        following = self.tokens[self.at + 1] if self.follows("_") else self.now
        if self.follows("_") and following.text in ACCENTS and not following.before:
            self.at += 2
            return f"{{{ACCENTS[following.text]}{{{latex}}}}}"
        if self.follows("~"):
            self.next()
            return rf"{{\tilde{{{latex}}}}}"
        return latex

    def scripted(self, latex: str, token: Token, *, kind: str = "operand", name: str = "", group: bool = False) -> Item:
        """With what stands below and above: ``_``, ``^``, primes, and the star of an optimum."""
        below = above = primes = ""
        if self.follows("*") and name in STARRED and (self.now.after or self.tokens[self.at + 1].text in "_^,)]}'|("):
            above = self.next().text
        while not self.now.before:
            if self.follows("_") and not below:
                self.next()
                loose = self.now
                below = self.script("_")
                if self.follows("'") and loose.sort == "name":
                    if name in BIG:
                        below += self.primes()
                    elif loose.text[0] in STATES or loose.text not in "ijkht":
                        unsure("what is primed?")
            elif self.follows("^") and not above and not primes:
                self.next()
                above = self.script("^")
                if self.follows("'"):
                    unsure("what is primed?")
            elif self.follows("'") and not primes:
                primes = self.primes()
            else:
                break
        if self.follows("_") or self.follows("^"):
            unsure("two of them")
        if below and re.search(r"\w_\{\d+\}$", latex):
            unsure("below what is below")
        latex += f"_{{{below}}}" if below else ""
        if above:
            primes = primes.replace("'", r"\prime ")
            latex += f"^{{{above}{primes}}}"
        else:
            latex += primes
        return Item(kind, latex, token.before, group)

    def primes(self) -> str:
        found = ""
        while self.follows("'"):
            found += self.next().text
        return found

    def script(self, sign: str) -> str:
        if self.now.before:
            unsure("nothing below or above")
        token = self.next()
        if token.text == "{" or (token.text == "(" and sign == "^") or (token.text == "[" and sign == "_"):
            inside = self.sequence(CLOSING[token.text])
            self.next()
            if token.text == "(" and any(item.kind == "operator" for item in inside):
                return joined(inside)  # a power, in brackets only because it is long
            return joined(inside) if token.text == "{" else f"{token.text}{joined(inside)}{CLOSING[token.text]}"
        if token.text == "-" and sign == "^" and self.now.sort == "number":
            return f"-{self.next().text}"
        if token.text == "*" and sign == "^":
            return "*"
        if token.sort == "number":
            return token.text
        if token.sort == "name":
            return rf"\mathrm{{{token.text}}}" if token.text in SUBSCRIPTS else symbol(token.text)
        return unsure(f"{token.text} below or above")


def checked(items: list[Item]) -> None:
    """Operators have operands, relations two sides."""
    kinds = ["start", *(item.kind for item in items), "end"]
    for before, now in pairwise(kinds):
        sign = now in ("operator", "relation")
        if sign and before in ("operator", "big", "function"):
            unsure("two signs")
        if now == "relation" and before != "operand":
            unsure("one side")
        if now == "mark" and before not in ("operand", "start"):
            unsure("a comma after nothing")
        if now == "end" and before not in ("operand", "mark"):
            unsure("it goes on")
    for before, item in zip([Item("start", ""), *items], items, strict=False):
        unary = item.kind == "operator" and before.kind != "operand"
        if unary and item.latex not in ("-", "+"):
            unsure("an operator with one operand")


def fractions(items: list[Item]) -> list[Item]:
    """``exp(a) / sum_i exp(a_i)`` as a fraction, if it is all there is between two relations or commas."""
    out: list[Item] = []
    run: list[Item] = []
    for item in [*items, Item("end", "")]:
        if item.kind in ("relation", "mark", "word", "end"):
            out += [*_fraction(run), item]
            run = []
        else:
            run.append(item)
    return out[:-1]


def _fraction(run: list[Item]) -> list[Item]:
    signs = [at for at, item in enumerate(run) if item.kind == "operator"]
    if len(signs) != 1 or run[signs[0]].latex != "/" or not run[signs[0]].spaced:
        return run
    above, below = run[: signs[0]], run[signs[0] + 1 :]
    plain = [*above, *below[1:]] if below[0].kind == "big" else [*above, *below]
    applied = all(after.group for item, after in pairwise(plain) if item.kind == "function")
    if any(item.kind == "big" or r"\mathbb" in item.latex for item in plain) or not applied:
        return run
    factors = sum(item.kind == "operand" for item in below)
    if below[0].kind != "big" and factors > 1:
        return run
    return [Item("operand", rf"\frac{{{bare(above)}}}{{{bare(below)}}}", run[0].spaced)]


def bare(items: list[Item]) -> str:
    """Without the round brackets around all of it."""
    text = joined(items)
    if len(items) == 1 and items[0].group and text[0] == "(" and text[-1] == ")":
        return text[1:-1]
    return text


def joined(items: list[Item]) -> str:
    """One string; a space between two factors is a thin space."""
    out = ""
    for at, item in enumerate(items):
        before = items[at - 1] if at else Item("start", "")
        if before.kind == "operand" and item.kind in ("operand", "function", "big"):
            number = item.latex[0].isdigit() and before.latex[-1].isdigit()
            out += r" \cdot " if number else r"\," if item.spaced or not item.group else ""
        elif before.kind == "function":
            out += "" if item.group else r"\,"
        elif before.kind != "start" and item.kind != "mark":
            out += " "
        out += item.latex
        if before.latex in ("-", "+") and item.kind == "operand" and (at < 2 or items[at - 2].kind != "operand"):
            out = f"{out[: -len(item.latex) - 2]}{{{before.latex}{item.latex}}}"  # a sign, not an operator
    return out


def formula(text: str) -> list[Item]:
    """The pieces of one formula; :class:`Unsure` if it is none."""
    return Parser(text).whole()
