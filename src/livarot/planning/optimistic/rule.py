"""What makes a function a rule of optimism, and how compiled loops call it.

A rule says how an uncertain choice is valued: ``value(choice, v, settings)`` is written with lanes
(:mod:`livarot.core.lanes`) as if for one choice, :class:`livarot.planning.optimistic.choice.Choice`, whose outcomes are
worth v.  Loops over pairs or replicas are compiled once, for all rules: they are handed a table (:class:`Table`) of
what to do and of addresses, and a rule's function is compiled by itself when a problem has a choice that needs it
(:mod:`livarot.core.compiling.native`).
"""
# mypy: disable-error-code="no-untyped-call, no-untyped-def"

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

from numba.core import types
from numba.extending import lower_builtin, type_callable

from livarot.core.compiling.inner import inner
from livarot.core.compiling.native import Native, digest_of, emit_call
from livarot.core.lanes import LANE, lane, where
from livarot.core.views import Bundle, BundleType, ViewType, opened
from livarot.errors import bad
from livarot.planning.optimistic.choice import Choice

CLIPS = ("nothing", "every Q", "V")  # nothing; every Q to [0, H]; V = max_a Q to at most H


class NoSettings(NamedTuple):
    """The settings of a rule that has none."""

    none: int = 0


class Table(NamedTuple):
    """A rule in the form that compiled loops read."""

    value: Any  # address of the function that values a choice; 0 where no choice needs one
    bound: Any  # address of the function that bounds it
    settings: Any  # address of the settings handed to both
    certified: bool  # there is a bound
    clips_q: bool
    clips_v: bool
    exact_for_two: bool
    idle_at_zero: bool
    set_matters: bool


@dataclass(frozen=True)
class LaneRule:
    """A rule of optimism made by :func:`rule`, whose docstring explains the fields."""

    value: Any
    bound: Any
    settings: Any
    clip: str
    measured: bool
    exact_for_two: bool
    idle_at_zero: bool
    set_matters: bool
    screened: bool
    bounded: bool  # its plans have an upper bound
    optimistic: bool = True  # its plans have a confidence set

    def __repr__(self) -> str:
        return f"rule({_name(self.value)}, {digest_of(self.value, self.bound)}, {self.settings})"

    @property
    def made(self) -> LaneRule:
        return self

    def with_settings(self, **changes: float) -> LaneRule:
        """The same rule with other numbers."""
        known = self.settings._fields
        wrong = [name for name in changes if name not in known]
        if wrong:
            raise bad("settings", f"the rule has no {wrong[0]!r}", count=len(wrong), cure=f"it has {', '.join(known)}")
        return replace(self, settings=_checked(self.settings._replace(**changes)))

    @cached_property
    def table(self) -> Bundle:
        """The :class:`Table` that loops are handed; making it compiles or loads the rule's functions."""
        settings = Bundle(self.settings)
        kind = settings._numba_type_
        value = _native(self.value, self.measured, kind)
        return self._table(value, 0 if self.bound is None else _native(self.bound, False, kind), settings)

    @cached_property
    def table_for_two(self) -> Bundle:
        """The same where no choice has more than two outcomes: a rule that is exact for two compiles nothing."""
        return self._table(0, 0, 0) if self.exact_for_two else self.table

    def _table(self, value: Any, bound: Any, settings: Any) -> Bundle:
        clips = self.clip == CLIPS[1], self.clip == CLIPS[2]
        certified = self.bound is not None
        return Bundle(
            Table(value, bound, settings, certified, *clips, self.exact_for_two, self.idle_at_zero, self.set_matters)
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: x for name, x in self.__dict__.items() if name not in ("table", "table_for_two")}


@cache
def _native(function: Any, measured: bool, settings: BundleType) -> Native:
    """A rule's function with its address, compiled for settings of that type."""

    def valued(choice, v, numbers):
        found = function(choice, v, opened(numbers))
        return lane(found), where(found - found == 0.0, 0.0, math.inf)  # infinite where it is not a finite number

    def valued_and_measured(choice, v, numbers):
        found, gap = function(choice, v, opened(numbers))
        return lane(found), lane(gap)

    entry = valued_and_measured if measured else valued
    source = getattr(function, "py_func", function)
    return Native(entry, (_CHOICE, _FLAT, settings), source.__module__, source.__qualname__, digest_of(entry))


_FLAT = ViewType(LANE, 1)
_KINDS = dict.fromkeys(("widest", "longest", "beta", "scale"), LANE)
_KINDS |= {"y": ViewType(LANE, 2), "horizon": types.float64}
_CHOICE = types.NamedTuple([_KINDS.get(name, _FLAT) for name in Choice._fields], Choice)


def called(function: Any, choice: Any, v: Any, settings: Any) -> Any:
    """What one of the functions in a :class:`Table` gives for a choice: value and first-order gap."""
    return function(choice, v, settings)


@type_callable(called)
def _type_called(context: Any) -> Any:
    return lambda function, choice, v, settings: types.UniTuple(LANE, 2) if choice == _CHOICE else None


@lower_builtin(called, types.Integer, types.BaseTuple, ViewType, types.Integer)
def _called(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    settings = types.CPointer(types.int64)
    table = builder.inttoptr(args[3], context.get_value_type(settings))
    kinds = sig.return_type(_CHOICE, _FLAT, settings)
    return emit_call(context, builder, kinds, args[0], [args[1], args[2], table])


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
        a function like ``value`` whose result is at least the maximum over the set: a second recursion then gives the
        plan a certified ``upper``
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

    Whether ``bound`` is a bound cannot be checked: ``upper`` is as certain as that function.  Compiled code does not
    check indices; run a new rule once with NUMBA_DISABLE_JIT=1 or NUMBA_BOUNDSCHECK=1.

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
    truths |= {"set_matters": set_matters, "screened": screened}
    for name, truth in truths.items():
        if not isinstance(truth, bool):
            raise bad(name, f"is {truth!r}", cure="give True or False")
    if clip not in CLIPS:
        raise bad("clip", f"is {clip!r}", cure=f"choose one of {', '.join(map(repr, CLIPS))}")
    if screened and not (bound is not None and exact_for_two and idle_at_zero and set_matters and clip == CLIPS[0]):
        raise bad("screened", "needs a bound, exact_for_two, idle_at_zero, set_matters and no clip")
    functions = _compiled("value", value), None if bound is None else _compiled("bound", bound)
    numbers = _checked(NoSettings() if settings is None else settings)
    return LaneRule(*functions, numbers, clip, bounded=bound is not None, **truths)


def _checked(settings: Any) -> Any:
    """Settings as kernels take them: a NamedTuple of floats and whole numbers."""
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
        raise bad(
            "rule",
            f"{name}: {function!r} is not a function of three arguments",
            cure=f"write it as {name}(choice, v, settings)",
        )
    return inner(function)


def _name(function: Any) -> str:
    source = getattr(function, "py_func", function)
    return f"{source.__module__}.{source.__qualname__}"
