"""What rules of optimism are written with: arithmetic on W numbers at a time (:mod:`livarot.core.lanes`), and `Choice`.

A rule is a function ``value(choice, v, settings)`` (:func:`livarot.rule`); ``choice`` is a :class:`Choice`, ``v`` the
values of its outcomes.  Write it as if for one choice: ``+ - * /``, comparisons, and the functions below.
"""

from livarot.core.compiling.inner import inner
from livarot.core.lanes import W, absolute, any_of, exp, lane, maximum, minimum, sqrt, where
from livarot.core.law import expectation, softmax
from livarot.planning.optimistic.choice import Choice, dot, extremes, gradient, solver_room, value_at, value_at_centre

__all__ = [
    "Choice",
    "W",
    "absolute",
    "any_of",
    "dot",
    "exp",
    "expectation",
    "extremes",
    "gradient",
    "inner",
    "lane",
    "maximum",
    "minimum",
    "softmax",
    "solver_room",
    "sqrt",
    "value_at",
    "value_at_centre",
    "where",
]
