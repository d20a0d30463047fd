"""What may be handed to a public function or to the fields of an agent: read off its signature, checked in one place.

``@checked`` looks at the annotations of a function, or of a class's ``__init__`` and public methods, when it is first
called.  A value is refused, in one line that names the argument, unless it fits:

    float             a finite number >= 0 (integers and NumPy's numbers become floats)
    int               a whole number from 1 to 2^63 - 1 (NumPy's become Python's; truth values are not numbers)
    bool              True or False
    Literal["a"]      one of these words
    a class           an instance; of a protocol, what has its methods
    Callable          what can be called
    Sequence, ...     what can be iterated over (an array too)
    X | Y             either; None only where it is written
    anything else     (arrays, Any) is left to the function

A class that is imported for type checkers only is known by its name.

Another range belongs to a name, the same wherever that name occurs (``RULES``), or stands in the decorator:

>>> @checked(size=partial(require_positive_int, minimum=2))
... def box(size: int = 2, reg: float | None = None) -> tuple[int, float | None]:
...     return size, reg
>>> box(np.int32(3), reg=1)
(3, 1.0)
>>> box(1)
Traceback (most recent call last):
    ...
livarot.errors.LivarotError: size: must be an integer >= 2, got 1 (int)
>>> box(reg=[0.5])
Traceback (most recent call last):
    ...
livarot.errors.LivarotError: reg: must be a finite number >= 0, got [0.5] (list)
"""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import os
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints, overload

import numpy as np

from livarot.errors import (
    bad,
    require_non_negative,
    require_positive,
    require_positive_int,
    require_probability,
    shown,
)

T = TypeVar("T")
Rule = Callable[[str, Any], Any]

natural = partial(require_positive_int, minimum=0)
several = partial(require_positive_int, minimum=2)
any_count = partial(require_positive_int, maximum=10**300)  # for formulas, which do not store what they count


def failure_level(argument: str, value: Any) -> float:
    """A probability whose inverse is still finite."""
    number = require_probability(argument, value)
    if number < 1e-300:
        raise bad(argument, f"{number:.6g} is too small: 1/delta is infinite", cure="take at least 1e-300")
    return number


def param_bound(argument: str, value: Any) -> float:
    """B, whose powers in the radii must still be finite."""
    number = require_non_negative(argument, value)
    if number > 1e60:
        raise bad(argument, f"{number:.6g} is above 1e60, where its powers overflow", cure="take a smaller one")
    return number


RULES: dict[str, Rule] = {
    "failure_level": failure_level,
    "param_bound": param_bound,
    **dict.fromkeys(("level", "p", "base_probability", "mixing", "discount"), require_probability),
    **dict.fromkeys(("reg", "kappa", "tol", "alpha0"), require_positive),
    **dict.fromkeys(("seed", "step", "episode", "n_explore", "n_starts", "max_nodes"), natural),
    **dict.fromkeys(("stage", "state", "action", "next_state", "parameter", "rule"), natural),
    **dict.fromkeys(("n_iter", "max_iter", "n_samples"), partial(require_positive_int, maximum=10**6)),
}
HOT = ("plan", "update")  # called once per episode with what the run itself has made: not checked
NUMBERS = (bool, int, float, NoneType)


@overload
def checked(thing: T, /) -> T: ...
@overload
def checked(**rules: Rule) -> Callable[[T], T]: ...
def checked(thing: Any = None, /, **rules: Rule) -> Any:
    """The function, or class, with its arguments checked as the module's docstring says."""
    if thing is None:
        return partial(_checked, rules=RULES | rules)
    return _checked(thing, RULES)


def _checked(thing: Any, rules: dict[str, Rule]) -> Any:
    if not isinstance(thing, type):
        return _wrapped(thing, rules)
    for name, method in list(vars(thing).items()):
        public = not name.startswith("_") and name not in HOT
        if (name == "__init__" or public) and inspect.isfunction(method):
            setattr(thing, name, _wrapped(method, rules))
    return thing


class Check(NamedTuple):
    """How a value is checked: by ``look``, unless its type is in ``exact`` or it is an int from ``low`` to ``high``."""

    exact: frozenset[type]
    low: int
    high: int
    look: Rule


def _wrapped(function: Any, rules: dict[str, Rule]) -> Any:
    if not function.__annotations__.keys() - {"return"}:
        return function
    checks: dict[str, Check | None] = {}
    places: list[tuple[int, str, Check]] = []  # the same by position: looked up faster, once per plan

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not checks:
            found = _checks(function, rules)
            places[:] = [(i, name, check) for i, (name, check) in enumerate(found.items()) if check is not None]
            checks.update(found)
        count = len(args)
        for place, name, (exact, low, high, look) in places:
            if place >= count:
                break
            value = args[place]
            kind = type(value)
            if kind in exact or (kind is int and low <= value <= high):
                continue
            args = (*args[:place], look(name, value), *args[place + 1 :])
        for name, value in kwargs.items():
            own = checks.get(name)
            if own is not None:
                kwargs[name] = own.look(name, value)
        return function(*args, **kwargs)

    return call


def _checks(function: Any, rules: dict[str, Rule]) -> dict[str, Check | None]:
    """The check of every parameter, in their order; None where anything may be handed in."""
    hints = get_type_hints(function, localns=_Names(vars(builtins) | function.__globals__))
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [one.name for one in inspect.signature(function).parameters.values() if one.kind not in variadic]
    return {name: _check(hints.get(name), rules.get(name)) for name in named}


def check_settings(function: Any, settings: dict[str, Any], **rules: Rule) -> None:
    """The checks of ``checked`` for arguments that were given earlier and are kept in ``settings``."""
    for name, check in _checks(function, RULES | rules).items():
        if check is not None and name in settings:
            check.look(name, settings[name])


def required_arguments(function: Callable[..., Any]) -> int:
    """How many positional arguments a function must be given; 0 for built-in functions without a signature.

    >>> required_arguments(lambda s, a, weight=1.0: 0.0), required_arguments(max)
    (2, 0)
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in places and one.default is inspect.Parameter.empty for one in parameters)


class _ByName(type):
    """A class that is imported for type checkers only: its instances are known by the name of their class."""

    def __instancecheck__(cls, value: Any) -> bool:
        return any(known.__name__ == cls.__name__ for known in type(value).__mro__)

    def __getattr__(cls, name: str) -> Any:  # module.Class
        if name.startswith("_"):
            raise AttributeError(name)
        return _ByName(name, (), {})

    def __getitem__(cls, _: Any) -> Any:  # Class[..]
        return cls


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> type:
        return _ByName(name, (), {})


def _check(hint: Any, rule: Rule | None) -> Check | None:
    kinds: list[type] = []
    words: list[Any] = []
    for one in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        origin = get_origin(one) or one
        if origin is Literal:
            words += get_args(one)
        elif isinstance(origin, type) and origin not in (object, Any) and not origin.__module__.startswith("numpy"):
            kinds.append(origin)
        else:
            return None  # arrays, what can become an array, type variables
    number = rule if {int, float} & set(kinds) else None
    number = number or (require_non_negative if float in kinds else require_positive_int if int in kinds else None)
    classes = [kind for kind in kinds if kind not in NUMBERS]
    truth = bool in kinds
    exact = frozenset(kind for kind in kinds if kind not in (int, float))  # what nearly all values are

    def look(argument: str, value: Any) -> Any:
        if type(value) in exact:
            return value
        if number is not None and type(value) in (int, float):
            return number(argument, value)
        if truth and isinstance(value, np.bool_):
            return bool(value)
        if (isinstance(value, str) and value in words) or any(_fits(value, kind) for kind in classes):
            return value
        if number is not None and not (words and isinstance(value, str)):
            return number(argument, value)
        raise _misfit(argument, value, [kind.__name__ for kind in kinds if kind is not NoneType], words)

    return Check(exact, *_range(number), look)


def _range(rule: Rule | None) -> tuple[int, int]:
    """The range of integers that a rule accepts as they are; an empty range if it is not a rule for integers."""
    if getattr(rule, "func", rule) is not require_positive_int:
        return 1, 0
    limits = getattr(rule, "keywords", {})
    return limits.get("minimum", 1), limits.get("maximum", 2**63 - 1)


def _fits(value: Any, kind: type) -> bool:
    if kind is collections.abc.Sequence:
        return isinstance(value, collections.abc.Iterable)
    if getattr(kind, "_is_protocol", False):
        methods = [name for name in vars(kind) if not name.startswith("_")]
        return not isinstance(value, type) and all(hasattr(value, name) for name in methods)
    return isinstance(value, os.PathLike if kind is Path else kind)


def _misfit(argument: str, value: Any, names: list[str], words: list[Any]) -> Exception:
    wanted = " or ".join([*map(repr, words), *names])
    if isinstance(value, type):
        return bad(argument, f"the class {value.__name__} is not {wanted}", cure=f"make one: {value.__name__}(...)")
    if words:
        return bad(argument, f"{shown(value)} is unknown", cure=f"choose {wanted}")
    return bad(argument, f"must be {wanted}, got {shown(value)}")
