"""What makes a function a rule of optimism, and how compiled loops take rules as arguments.

A rule says how an uncertain choice is valued: ``value(choice, v, settings)`` is written with lanes
(:mod:`livarot.core.lanes`) as if for one choice, :class:`livarot.planning.optimistic.choice.Choice`, whose outcomes are
worth v.  To numba each rule is a type of its own, so a loop that takes a rule is compiled for it when it is first used
and ``rule.value(...)`` costs no more than the function itself; the type's name carries a digest of the rule's code, so
that machine code kept on disk belongs to this rule and no other.
"""
# mypy: disable-error-code="no-untyped-call, misc, override"

from __future__ import annotations

import hashlib
import inspect
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import BuiltinFunctionType, CodeType, ModuleType
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numba.core import types
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, lower_getattr_generic, models, register_model, unbox

from livarot.core.inner import inner
from livarot.core.lanes import where
from livarot.errors import bad

CLIPS = ("nothing", "every Q", "V")  # nothing; every Q to [0, H]; V = max_a Q to at most H


class NoSettings(NamedTuple):
    """Of a rule without numbers to choose."""

    none: int = 0


class CompiledRule:
    """A rule as compiled loops see it: two functions and what the loops need to know of them."""

    def __init__(
        self,
        value: Any,
        bound: Any,
        clip: str,
        *,
        measured: bool,
        exact_for_two: bool,
        idle: bool,
        set_matters: bool,
        screened: bool,
        two_only: bool = False,
    ) -> None:
        function = _compiled("value", value)
        self.value = function if measured else _with_no_gap(function)
        self.bound, self.certified = _no_bound if bound is None else _compiled("bound", bound), bound is not None
        self.clips_q, self.clips_v = clip == CLIPS[1], clip == CLIPS[2]
        self.exact_for_two, self.idle_at_zero = exact_for_two, idle
        self.set_matters, self.screened, self.two_only = set_matters, screened, two_only
        parts = (function, self.bound, clip, measured, exact_for_two, idle, set_matters, two_only)
        digest = hashlib.sha256(repr([_code_of(part) for part in parts]).encode()).hexdigest()[:16]
        source = getattr(function, "py_func", function)
        self._numba_type_ = RuleType(f"{source.__module__}.{source.__qualname__}", digest)
        _RULES[self._numba_type_.name] = self

    def __repr__(self) -> str:
        return self._numba_type_.name

    @property
    def of_pairs(self) -> Any:
        """How a loop over pairs values a choice of three or more outcomes."""
        from livarot.planning.optimistic import pairs

        return pairs.two_only if self.two_only else pairs.value_pairs

    @property
    def of_replicas(self) -> Any:
        """The same, of a loop over replicas."""
        from livarot.planning.optimistic import replicas

        return replicas.two_only if self.two_only else replicas.value_replicas


@dataclass(frozen=True)
class LaneRule:
    """A rule of optimism made by :func:`rule`."""

    function: CompiledRule
    settings: Any
    bounded: bool
    measured: bool
    optimistic: bool = True

    def compiled(self, max_reachable: int) -> tuple[CompiledRule, Any]:
        return self.function, self.settings

    def with_settings(self, **changes: float) -> LaneRule:
        """The same rule with other numbers."""
        known = self.settings._fields
        wrong = [name for name in changes if name not in known]
        if wrong:
            raise bad("settings", f"the rule has no {wrong[0]!r}", count=len(wrong), cure=f"it has {', '.join(known)}")
        return replace(self, settings=_checked(self.settings._replace(**changes)))


def rule(
    value: Callable[..., Any] | None = None,
    *,
    bound: Callable[..., Any] | None = None,
    settings: Any = None,
    clip: str = "nothing",
    measured: bool = False,
    exact_for_two: bool = False,
    idle_at_zero: bool = True,
    set_matters: bool = True,
    screened: bool = False,
) -> Any:
    """Make a rule of optimism of a function on lanes, ``value(choice, v, settings)``; also as a decorator.

    The function gives the optimistic expectation of ``v`` over the confidence set of ``choice``
    (:class:`livarot.planning.optimistic.choice.Choice`), from the arithmetic of :mod:`livarot.core.lanes`, and is
    compiled into the planner when it is first used.

    bound
        a function like ``value`` that is at least the maximum over the set: the plan then has a certified ``upper``,
        by a recursion of its own
    settings
        a NamedTuple of numbers, handed to the functions; ``rule.with_settings(...)`` changes them
    clip
        "nothing", "every Q" (to [0, H]) or "V" (max_a Q to at most H)
    measured
        ``value`` gives a pair: the value and its first-order gap
    exact_for_two
        two outcomes are valued by their exact maximum instead
    idle_at_zero
        nothing is added where v = 0, so the last stage needs no work
    set_matters
        False: only the logits and probabilities at the centre are read
    screened
        ``value`` and ``bound`` are at least p.V at the centre and at most the larger of the maximum over the set and
        the box relaxation, both are given, and two outcomes are exact: pairs that cannot be best may be left out

    Nobody can see from outside whether a bound is one: ``upper`` is as certain as the function.  Indices are not looked
    at in compiled code; run it once with NUMBA_DISABLE_JIT=1 or NUMBA_BOUNDSCHECK=1.

    >>> import livarot
    >>> from livarot.lanes import expectation, sqrt
    >>> @livarot.rule(clip="every Q", idle_at_zero=False)
    ... def hopeful(choice, v, settings):
    ...     return expectation(choice.p, v) + choice.beta * sqrt(choice.longest)
    >>> mdp = livarot.envs.river_swim(4, 8)
    >>> result = livarot.run(mdp, livarot.agents.Livarot(rule=hopeful), 20, seed=0)
    >>> result.regret.shape
    (1, 20)
    """
    if value is None:
        return lambda function: rule(
            function, bound=bound, settings=settings, clip=clip, measured=measured, exact_for_two=exact_for_two,
            idle_at_zero=idle_at_zero, set_matters=set_matters, screened=screened,
        )  # fmt: skip
    truths = {"measured": measured, "exact_for_two": exact_for_two, "idle_at_zero": idle_at_zero}
    for name, truth in (truths | {"set_matters": set_matters, "screened": screened}).items():
        if not isinstance(truth, bool):
            raise bad(name, f"is {truth!r}", cure="give True or False")
    if clip not in CLIPS:
        raise bad("clip", f"is {clip!r}", cure=f"choose one of {', '.join(map(repr, CLIPS))}")
    options = {"exact_for_two": exact_for_two, "idle": idle_at_zero, "set_matters": set_matters}
    if screened and not (bound is not None and exact_for_two and idle_at_zero and set_matters and clip == CLIPS[0]):
        raise bad("screened", "needs a bound, exact_for_two, idle_at_zero, set_matters and no clip")
    made = CompiledRule(value, bound, clip, measured=measured, screened=screened, **options)
    return LaneRule(made, _checked(NoSettings() if settings is None else settings), bound is not None, measured)


def _checked(settings: Any) -> Any:
    """Settings as kernels know them: a NamedTuple of floats and whole numbers."""
    if not (isinstance(settings, tuple) and hasattr(settings, "_fields") and len(settings)):
        raise bad("settings", f"{settings!r} is not a NamedTuple", cure="give a NamedTuple of numbers")
    for name, number in zip(settings._fields, settings, strict=True):
        if not isinstance(number, int | float) or not math.isfinite(number) or abs(number) >= 2**63:
            raise bad("settings", f"{name} = {number!r} is not a number that compiled code knows")
    return settings


def _compiled(name: str, function: Any) -> Any:
    """A function for lanes, compiled unless it is already."""
    if hasattr(function, "py_func"):
        return function
    if not inspect.isfunction(function) or len(inspect.signature(function).parameters) != 3:
        raise bad("rule", f"{name}: {function!r} is not one", cure=f"write it as {name}(choice, v, settings)")
    return inner(function)


def _with_no_gap(value: Any) -> Any:
    @inner
    def exact(choice: Any, v: Any, settings: Any) -> Any:
        found = value(choice, v, settings)
        return found, where(found - found == 0.0, 0.0, math.inf)  # infinite where it is not a finite number

    return exact


@inner
def _no_bound(choice: Any, v: Any, settings: Any) -> Any:
    return choice.beta


def _code_of(part: Any, seen: tuple[Any, ...] = ()) -> Any:
    """What decides the machine code of a function: its code, what it names, and the code of the functions it names.

    What cannot be compared gets a mark that never comes again: then the rule is compiled once more, but never mistaken
    for another one.
    """
    function = getattr(part, "py_func", part)
    if any(function is one for one in seen):
        return ""
    if isinstance(part, int | float | str | type | BuiltinFunctionType | None):
        return repr(part)
    if isinstance(part, np.ndarray):
        return part.dtype.str, part.shape, part.tobytes()
    if isinstance(part, tuple):
        return type(part).__qualname__, [_code_of(x, seen) for x in part]
    if isinstance(part, ModuleType):
        file = getattr(part, "__file__", None)
        stat = os.stat(file) if file and os.path.exists(file) else None
        return part.__name__, stat and (stat.st_size, stat.st_mtime_ns)
    code = getattr(function, "__code__", None)
    if code is None:
        return uuid4().hex
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    named = [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    return [_plain(code), *(_code_of(x, (*seen, function)) for x in [*cells, *named])]


def _plain(code: CodeType) -> Any:
    constants = [_plain(x) if isinstance(x, CodeType) else x for x in code.co_consts]
    return code.co_code, constants, code.co_names, code.co_varnames


_RULES: dict[str, CompiledRule] = {}


class RuleType(types.Type):
    """The type of one rule."""

    def __init__(self, rule: str, digest: str) -> None:
        super().__init__(name=f"rule({rule}, {digest})")


@register_model(RuleType)
class _RuleModel(models.OpaqueModel):
    pass


@unbox(RuleType)
def _unbox(kind: RuleType, rule: Any, c: Any) -> Any:
    return NativeValue(c.context.get_dummy_value())


@infer_getattr
class _RuleAttributes(AttributeTemplate):
    key = RuleType

    def generic_resolve(self, kind: RuleType, name: str) -> Any:
        found = getattr(_RULES[kind.name], name)
        return types.boolean if isinstance(found, bool) else types.Dispatcher(found)


@lower_getattr_generic(RuleType)
def _attribute(context: Any, builder: Any, kind: RuleType, value: Any, name: str) -> Any:
    found = getattr(_RULES[kind.name], name)
    return context.get_constant(types.boolean, found) if isinstance(found, bool) else context.get_dummy_value()
