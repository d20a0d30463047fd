"""The words and signs of the formulas in docstrings, and their LaTeX."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn


def listed(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


GREEK = {
    name: f"\\{name}"
    for name in listed(
        "alpha beta gamma delta zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega "
        "Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega"
    )
}
GREEK |= {"eps": r"\varepsilon", "epsilon": r"\varepsilon", "lam": r"\lambda"}
UPRIGHT = listed(
    "KL kl TV Var Cov Reg Regret gram reg offset radius width span curvature clip softmax sigmoid mean gap discount "
    "factor scale bD lower upper constant hardness clarity center matrix weight Dirichlet cos sin "
    "Hess diam UCB start interval sd"
)
NAMES = GREEK | {
    "Hcal": r"\mathcal{H}",
    "infinity": r"\infty",
    "DeltaV": r"\Delta V",
    "E": r"\mathbb{E}",
    "grad": r"\nabla",
}
NAMES |= {name: rf"\mathrm{{{name}}}" for name in UPRIGHT}
BIG = {name: f"\\{name}" for name in listed("sum prod max min sup inf lim liminf limsup")}
BIG |= {name: rf"\operatorname{{{name}}}" for name in ("argmax", "argmin")}
FUNCTIONS = {name: f"\\{name}" for name in ("exp", "log", "det")}
ACCENTS = {"hat": r"\hat", "bar": r"\bar", "tilde": r"\tilde"}
SUBSCRIPTS = listed("gram matrix min max log plans")  # words that stand below
WORDS = listed("over of all for where with at and or if on along under otherwise when every from then given")
RELATIONS = {"<=": r"\le", ">=": r"\ge", "!=": r"\ne", "->": r"\to", "<-": r"\leftarrow", "=>": r"\Rightarrow"}
RELATIONS |= {"=": "=", "<": "<", ">": ">", "~": r"\sim"}
OPERATORS = {"+": "+", "-": "-", "/": "/", "*": r"\cdot", "+-": r"\pm"}
CLOSING = {"(": ")", "[": "]", "{": "}"}
STATES = listed("s x y z p")  # p_s' could be the entry at s', or p_s primed
STARRED = listed("V Q g pi theta x t kappa")
INDEXED = (*(NAMES.get(name, name) for name in ("E", "Var", "Cov", "P")), r"\mathrm{clip}")  # before a square bracket
LEXEME = re.compile(
    r"(?P<number>\d+(?:\.\d+)?|\.\d+)"
    r"|(?P<name>[A-Za-z]+\d*)"
    r"|(?P<sign>\+-|->|<-|<=|>=|=>|!=|\.\.\.?|[-+/*=<>~^_'|.,;:(){}\[\]])"
)
EXPONENT = re.compile(r"(?:\d+(?:\.\d+)?|\.\d+)[eE][-+]?\d")


class Unsure(Exception):
    """It may not be a formula."""


def unsure(why: str) -> NoReturn:
    raise Unsure(why)


class Token(NamedTuple):
    text: str
    sort: str  # number, name, sign or end
    before: bool  # a space stands before it
    after: bool


def tokens(text: str) -> list[Token]:
    """The words and signs of a formula, and an end."""
    found, at = [], 0
    while at < len(text):
        if text[at] == " ":
            at += 1
            continue
        match = LEXEME.match(text, at)
        if match is None or EXPONENT.match(text, at):
            unsure(text[at:])
        end = match.end()
        after = end == len(text) or text[end] == " "
        found.append(Token(match.group(), match.lastgroup or "", at == 0 or text[at - 1] == " ", after))
        at = end
    return [*found, Token("", "end", True, True)]


def symbol(name: str) -> str:
    """LaTeX of a name without subscripts."""
    if name in NAMES:
        return NAMES[name]
    if len(name) == 1:
        return name
    if found := re.fullmatch(r"([A-Za-z]+?)(\d+)", name):
        return f"{symbol(found.group(1))}_{{{found.group(2)}}}"
    for accent, latex in ACCENTS.items():
        base = name.removesuffix(accent)
        if base != name and (len(base) == 1 or base in GREEK):
            return f"{{{latex}{{{symbol(base)}}}}}"
    return unsure(f"{name} is no name we know")
